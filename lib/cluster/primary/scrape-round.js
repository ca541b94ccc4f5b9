'use strict';

// Runs on the primary's loop. One round: the callers that share it, and the workers that have not answered.

/** @typedef {import('../wire/scrape-callers').ScrapeCaller} ScrapeCaller */
/** @typedef {import('./worker-record').WorkerRecord} WorkerRecord */

class ScrapeRound {
  /** By performance.now(). */
  startedAt = performance.now();
  /** Whether any worker has answered. */
  isAnswered = false;
  /** @type {Map<WorkerRecord, number>} when each worker that has not answered was asked */
  waiting = new Map();
  #onProgress = () => {};

  /** @param {Set<ScrapeCaller>} callers */
  constructor(callers) {
    this.callers = callers;
  }

  /** @returns {number} milliseconds until the deadline of the most patient caller, at least 1 */
  get timeout() {
    const deadline = Math.max(...Array.from(this.callers, caller => caller.deadline));
    return Math.max(Math.round(deadline - performance.now()), 1);
  }

  /** @param {WorkerRecord} worker that has answered, cannot answer, or is not waited for any more */
  stopWaiting(worker) {
    if (this.waiting.delete(worker)) this.#onProgress();
  }

  /** To be called when a caller has left. */
  noteLeft() {
    this.#onProgress();
  }

  /** @returns {Promise<void>} resolves when all workers have answered, or no caller waits any more */
  async collected() {
    await new Promise(resolve => {
      this.#onProgress = () => {
        if (this.waiting.size === 0 || this.callers.size === 0) resolve(undefined);
      };
      this.#onProgress();
    });
    this.#onProgress = () => {};
  }
}

module.exports = { ScrapeRound };
