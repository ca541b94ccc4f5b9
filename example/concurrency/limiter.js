'use strict';

/** Limits the number of tasks that run at a time; the others wait in order of arrival. */
class Limiter {
  #limit;
  #inFlight = 0;
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {number} limit how many tasks may run at a time, at least 1 */
  constructor(limit) {
    this.#limit = limit;
  }

  get limit() {
    return this.#limit;
  }

  /** A higher limit starts waiting tasks at once; a lower one does not stop running tasks. */
  set limit(limit) {
    this.#limit = limit;
    this.#startWaiting();
  }

  /** Number of running tasks. */
  get inFlight() {
    return this.#inFlight;
  }

  /** Number of waiting tasks. */
  get queued() {
    return this.#waiting.length;
  }

  /** @returns {Promise<void>} resolves when the task may begin; it has to {@link leave} when it is done */
  enter() {
    return new Promise(resolve => {
      this.#waiting.push(resolve);
      this.#startWaiting();
    });
  }

  leave() {
    this.#inFlight--;
    this.#startWaiting();
  }

  #startWaiting() {
    while (this.#inFlight < this.#limit && this.#waiting.length > 0) {
      this.#inFlight++;
      this.#waiting.shift()();
    }
  }
}

module.exports = { Limiter };
