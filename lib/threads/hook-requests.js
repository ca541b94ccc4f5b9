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
 * @property {string} id
 * @property {'sent' | 'late' | 'begun'} state late: the thread has not started in time
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
   * Asks the thread to run its hooks for a capture. All metrics of a capture share a request. As in
   * CollectHooks, a call never shares a run that started before it: it waits for that run, and shares the
   * next one.
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
   * @returns {boolean} whether it is the id of the request that was not answered yet
   */
  isCurrent(id) {
    return this.#current !== undefined && this.#current.id === id;
  }

  /** To be called when the thread has started to run its hooks. They have as much time as the scrape. */
  started() {
    if (this.#current === undefined) return;
    clearTimeout(this.#current.timer);
    this.#current.state = 'begun';
  }

  /** @param {Failed} failed */
  settle(failed) {
    const request = this.#current;
    this.#current = undefined;
    if (request === undefined) return;
    clearTimeout(request.timer);
    request.settle(failed);
  }

  /** To be called when the thread does not answer any more. */
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
      // Not a number, because each copy of this package with a hub gets all answers of a thread.
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
