'use strict';

// Runs in the process's hub. Asks one thread to run its `collect` hooks, for which its event loop is needed.
// A capture of this process calls them like its own hooks (lib/source/collect-hooks.js).

const { randomUUID } = require('node:crypto');
const { textOf } = require('../options/thrown');
const { unref } = require('../event-loop/timers');

// Read when this file is loaded, because an application's tests may fake timers later.
const { setTimeout, clearTimeout } = globalThis;

/**
 * A thread that has not started to run its hooks within this time is computing or sleeping. Scrapes do not
 * wait for it again until it has answered.
 */
const RESPONSE_MILLISECONDS = 250;

/** @typedef {Map<unknown, unknown>} Failed why hooks have failed, by metric */

/**
 * @typedef {object} Request
 * @property {boolean} isLate whether the thread has not started in time
 * @property {(failed: Failed) => void} settle
 * @property {NodeJS.Timeout} timer
 */

class HookRequests {
  #send;
  /** @type {Map<unknown, Request>} by id, until they are answered */
  #unanswered = new Map();
  /** @type {Promise<Failed> | undefined} resolved when the thread has answered the request of this turn */
  #latest = undefined;
  #isOver = false;

  /** @param {(message: {request: string}) => void} send to the thread */
  constructor(send) {
    this.#send = send;
  }

  /**
   * Asks the thread to run its hooks for a capture. All metrics of a capture share a request. If the hooks
   * already run in the thread, it runs them again after that.
   *
   * @param {string} name of the metric that asks
   * @returns {Promise<void> | undefined} undefined if the thread does not answer: its last values are shown
   */
  collect(name) {
    if (this.#isOver || [...this.#unanswered.values()].some(({ isLate }) => isLate)) return undefined;
    this.#latest ??= this.#request();
    return this.#latest.then(failed => {
      if (failed.has(name)) throw new Error(`in a thread, ${textOf(failed.get(name))}`);
    });
  }

  /**
   * To be called when the thread has started to run its hooks. They have as much time as the scrape.
   *
   * @param {unknown} id of a request, perhaps of another copy of this package: it gets all answers, too
   */
  started(id) {
    const request = this.#unanswered.get(id);
    if (request === undefined) return;
    clearTimeout(request.timer);
    request.isLate = false;
  }

  /**
   * @param {unknown} id of a request
   * @param {Failed} failed
   */
  settle(id, failed) {
    this.started(id);
    this.#unanswered.get(id)?.settle(failed);
    this.#unanswered.delete(id);
  }

  /** To be called when the thread does not answer any more. */
  end() {
    this.#isOver = true;
    for (const id of [...this.#unanswered.keys()]) this.settle(id, new Map());
  }

  /** @returns {Promise<Failed>} */
  #request() {
    void this.#endTurn();
    const id = randomUUID();
    /** @type {Promise<Failed>} */
    const failed = new Promise(settle => {
      const timer = setTimeout(() => {
        request.isLate = true;
        settle(new Map());
      }, RESPONSE_MILLISECONDS);
      const request = { isLate: false, settle, timer: unref(timer) };
      this.#unanswered.set(id, request);
    });
    this.#send({ request: id });
    return failed;
  }

  async #endTurn() {
    await undefined;
    this.#latest = undefined;
  }
}

module.exports = { HookRequests };
