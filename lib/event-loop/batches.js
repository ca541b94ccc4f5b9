'use strict';

// Concurrent callers share runs: callers of the same turn of the loop, and callers that arrive while a run is
// under way, share the next run. So no caller gets the result of a run that started before its call, and any
// number of callers need at most two runs.

const { settledWithin } = require('./timers');

/** @template T */
class Batches {
  #run;
  #milliseconds;
  /** Whether the latest run is about to start, or is under way and not yet old. */
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
