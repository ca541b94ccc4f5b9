'use strict';

/** Lets a limited number of tasks run at a time; the others wait in the order in which they came. */
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

  /** Raised, it lets waiting tasks in at once; lowered, it stops no task that runs. */
  set limit(limit) {
    this.#limit = limit;
    this.#letIn();
  }

  /** How many tasks run. */
  get inFlight() {
    return this.#inFlight;
  }

  /** How many tasks wait. */
  get queued() {
    return this.#waiting.length;
  }

  /** @returns {Promise<void>} resolves when the task may begin; it has to {@link leave} when it is done */
  enter() {
    return new Promise(resolve => {
      this.#waiting.push(resolve);
      this.#letIn();
    });
  }

  leave() {
    this.#inFlight--;
    this.#letIn();
  }

  #letIn() {
    while (this.#inFlight < this.#limit && this.#waiting.length > 0) {
      this.#inFlight++;
      this.#waiting.shift()();
    }
  }
}

module.exports = { Limiter };
