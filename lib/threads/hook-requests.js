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
 * @typedef {object} Request
 * @property {string} id
 * @property {'sent' | 'late' | 'begun'} state late: the thread has not begun in time
 * @property {Promise<Failed>} failed resolved when the thread has answered, or is late
 * @property {Promise<Failed>} answered
 * @property {(failed: Failed) => void} settle
 * @property {NodeJS.Timeout} timer
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
   * Has the hooks run. All metrics of a scrape share a request. As in CollectHooks, a call never shares a run
   * that began before it: it waits for that, and shares the next one.
   *
   * @param {string} name of the metric that asks
   * @returns {Promise<void> | undefined} undefined if the thread does not answer: its last values are shown
   */
  collect(name) {
    if (this.#isOver) return undefined;
    const { state, failed, answered } = (this.#current ??= this.#request());
    if (state === 'late') return undefined;
    if (state === 'begun') return answered.then(() => this.collect(name));
    return failed.then(reasons => {
      if (reasons.has(name)) throw new Error(`in a thread, ${textOf(reasons.get(name))}`);
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
    if (this.#current === undefined) return;
    clearTimeout(this.#current.timer);
    this.#current.state = 'begun';
  }

  /** @param {Failed} failed */
  settle(failed) {
    const request = this.#current;
    this.#current = undefined;
    clearTimeout(request?.timer);
    request?.settle(failed);
  }

  /** The thread answers nothing any more. */
  end() {
    this.#isOver = true;
    this.settle(new Map());
  }

  /** @returns {Request} */
  #request() {
    /** @type {(failed: Failed) => void} */
    let settle = () => {};
    /** @type {() => void} */
    let giveUp = () => {};
    /** @type {Promise<Failed>} */
    const answered = new Promise(fulfil => (settle = fulfil));
    /** @type {Promise<Failed>} */
    const late = new Promise(fulfil => (giveUp = () => fulfil(new Map())));
    const timer = setTimeout(() => {
      request.state = 'late';
      giveUp();
    }, RESPONSE_MILLISECONDS);
    unref(timer);
    /** @type {Request} */
    const request = {
      // Not a number: each copy of this package with a hub gets all answers of a thread.
      id: randomUUID(),
      state: 'sent',
      failed: Promise.race([answered, late]),
      answered,
      settle,
      timer,
    };
    this.#send({ request: request.id });
    return request;
  }
}

module.exports = { HookRequests };
