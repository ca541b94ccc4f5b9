'use strict';

// Runs in the process's hub. Has the `collect` hooks of one thread run, which needs its event loop.

const { randomUUID } = require('node:crypto');
const { textOf } = require('../options/thrown');
const { unref } = require('../event-loop/timers');

// Read when this file is loaded, because an application's tests may fake timers later.
const { setTimeout, clearTimeout } = globalThis;

/**
 * A thread that has not begun to run its hooks by then computes or sleeps. Scrapes do not wait for it again
 * until it has answered.
 */
const RESPONSE_MILLISECONDS = 250;

/** @typedef {Map<unknown, unknown>} Failed why hooks have failed, by metric */

/**
 * @typedef {{id: string, failed: Promise<Failed>, resolve: (failed: Failed) => void,
 *   timer: NodeJS.Timeout, isLate: boolean}} Request
 */

class HookRequests {
  #send;
  /** @type {Request | undefined} until it was answered */
  #current = undefined;
  #isOver = false;

  /** @param {(message: {request: string}) => void} send to the thread */
  constructor(send) {
    this.#send = send;
  }

  /**
   * Has the hooks run. All metrics of a scrape share a request.
   *
   * @param {string} name of the metric that asks
   * @returns {Promise<void> | undefined} undefined if the thread does not answer: its last values are shown
   */
  collect(name) {
    if (this.#isOver || this.#current?.isLate) return undefined;
    const request = (this.#current ??= this.#request());
    return request.failed.then(failed => {
      if (failed.has(name)) throw new Error(`in a thread, ${textOf(failed.get(name))}`);
    });
  }

  /**
   * @param {unknown} id from a message
   * @returns {boolean} whether it is that of the request that was not answered yet
   */
  isCurrent(id) {
    return this.#current !== undefined && this.#current.id === id;
  }

  /** The thread has begun to run its hooks. They have as much time as the scrape. */
  started() {
    clearTimeout(this.#current?.timer);
  }

  /** @param {Failed} failed */
  settle(failed) {
    clearTimeout(this.#current?.timer);
    this.#current?.resolve(failed);
    this.#current = undefined;
  }

  /** The thread answers nothing any more. */
  end() {
    this.#isOver = true;
    this.settle(new Map());
  }

  /** @returns {Request} */
  #request() {
    /** @type {(failed: Failed) => void} */
    let resolve = () => {};
    /** @type {Promise<Failed>} */
    const failed = new Promise(fulfil => (resolve = fulfil));
    const timer = setTimeout(() => {
      request.isLate = true;
      resolve(new Map());
    }, RESPONSE_MILLISECONDS);
    unref(timer);
    // Not a number: each copy of this package with a hub gets all answers of a thread.
    const request = { id: randomUUID(), failed, resolve, timer, isLate: false };
    this.#send({ request: request.id });
    return request;
  }
}

module.exports = { HookRequests };
