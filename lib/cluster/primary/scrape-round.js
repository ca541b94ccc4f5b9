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

  /** To be called when a caller has left, or its time is up. */
  noteProgress() {
    this.#onProgress();
  }

  /** Whether the time of any caller is not up. A request with less time would spoil the numbers of others. */
  get hasTime() {
    return [...this.callers].some(({ isLate }) => !isLate);
  }

  /**
   * @returns {Promise<ScrapeCaller[]>} those to be answered now: those whose time is up, and after them all
   *   others when no worker is waited for; resolves when there are any, or no caller is left
   */
  async due() {
    for (;;) {
      const late = [...this.callers].filter(({ isLate }) => isLate);
      if (late.length > 0) return late;
      if (this.waiting.size === 0 || this.callers.size === 0) return [...this.callers];
      await new Promise(resolve => (this.#onProgress = () => resolve(undefined)));
    }
  }
}

module.exports = { ScrapeRound };
