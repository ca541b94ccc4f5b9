'use strict';

// Concurrent callers share runs: those of one turn of the loop, and those that come while a run is under way,
// share the next one. So no caller gets what was begun before its call, and however many there are, no more
// than two runs are needed.

const { settledWithin } = require('./timers');

/** @template T */
class Batches {
  #run;
  #milliseconds;
  /** Whether the youngest run is under way and not old yet, or about to start. */
  #isBusy = false;

  /**
   * @param {(items: T[]) => Promise<unknown>} run never rejected
   * @param {number} milliseconds a run that takes longer does not delay the next one any more
   */
  constructor(run, milliseconds) {
    this.#run = run;
    this.#milliseconds = milliseconds;
    /** @type {Set<T>} items for the next run */
    this.waiting = new Set();
  }

  /** @param {T} item */
  add(item) {
    this.waiting.add(item);
    if (this.#isBusy) return;
    this.#isBusy = true;
    // Not queueMicrotask(), which fake timers of tests replace.
    void Promise.resolve().then(() => this.#start());
  }

  async #start() {
    while (this.waiting.size > 0) {
      const items = [...this.waiting];
      this.waiting.clear();
      await settledWithin(this.#run(items), this.#milliseconds, { mayEnd: true });
    }
    this.#isBusy = false;
  }
}

module.exports = { Batches };
