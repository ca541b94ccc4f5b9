'use strict';

// Runs in the process's hub. Has the `collect` hooks of one thread run, which needs its event loop.

const { randomUUID } = require('node:crypto');
const { isLonger } = require('../source/collect-hooks');
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
 * @property {number} began when it has begun, by performance.now(); Infinity before
 * @property {number} longestWait milliseconds for which a scrape has waited in vain
 * @property {Promise<Failed>} failed resolved when the thread has answered, or is late
 * @property {Promise<Failed>} answered
 * @property {(failed: Failed) => void} settle
 * @property {NodeJS.Timeout} timer
 */

class HookRequests {
  #send;
  #onSettled;
  /** @type {Request | undefined} until it was answered */
  #current = undefined;
  #isOver = false;

  /**
   * @param {(message: {request: string}) => void} send to the thread
   * @param {(answered: boolean, hooksBegan?: number) => void} [onSettled] called when the thread has
   *   answered, or is not waited for; `hooksBegan` by performance.now()
   */
  constructor(send, onSettled = () => {}) {
    this.#send = send;
    this.#onSettled = onSettled;
  }

  /**
   * Has the hooks run for a scrape, unless they are running.
   *
   * @param {number} timeout milliseconds that the scrape waits at most
   * @returns {number} milliseconds that it waits; 0 if the thread does not answer, or a scrape with as much
   *   time has waited for these hooks in vain
   */
  ask(timeout) {
    if (this.#isOver) return 0;
    const { state, longestWait } = (this.#current ??= this.#request());
    return state !== 'late' && isLonger(timeout, longestWait) ? timeout : 0;
  }

  /**
   * Notes that a scrape has waited in vain.
   *
   * @param {number} milliseconds
   */
  timeOut(milliseconds) {
    if (this.#current === undefined) return;
    this.#current.longestWait = Math.max(this.#current.longestWait, milliseconds);
  }

  /** Whether they are running. */
  get isRunning() {
    return this.#current?.state === 'begun';
  }

  /**
   * Has the hooks run for a capture. All metrics of a capture share a request. As in CollectHooks, a call
   * never shares a run that began before it: it waits for that, and shares the next one.
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
    this.#current.began = performance.now();
  }

  /** @param {Failed} failed */
  settle(failed) {
    this.#end(failed, true);
  }

  /** The thread answers nothing any more. */
  end() {
    this.#isOver = true;
    this.#end(new Map(), false);
  }

  /**
   * @param {Failed} failed
   * @param {boolean} isAnswered
   */
  #end(failed, isAnswered) {
    const request = this.#current;
    this.#current = undefined;
    if (request === undefined) return;
    clearTimeout(request.timer);
    request.settle(failed);
    this.#onSettled(isAnswered, request.began);
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
      this.#onSettled(false);
    }, RESPONSE_MILLISECONDS);
    unref(timer);
    /** @type {Request} */
    const request = {
      // Not a number: each copy of this package with a hub gets all answers of a thread.
      id: randomUUID(),
      ...{ state: 'sent', began: Infinity, longestWait: 0 },
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
