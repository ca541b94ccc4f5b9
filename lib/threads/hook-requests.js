'use strict';

// Runs in the process's hub. Asks one thread to run its `collect` hooks, for which its event loop is needed.

const { randomUUID } = require('node:crypto');
const { isLonger } = require('../source/collect-hooks');
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
 * @property {number} began when the thread started, by performance.now(); Infinity before that
 * @property {number} longestWait the longest time for which a scrape has waited in vain, milliseconds
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
   *   answered, or scrapes do not wait for it; `hooksBegan` by performance.now()
   */
  constructor(send, onSettled = () => {}) {
    this.#send = send;
    this.#onSettled = onSettled;
  }

  /**
   * Asks the thread to run its hooks for a scrape, unless they are already running.
   *
   * @param {number} timeout milliseconds that the scrape waits at most
   * @returns {number} milliseconds that the scrape waits; 0 if the thread does not answer, or a scrape with
   *   the same timeout has waited for these hooks in vain
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

  /** Whether the hooks are running. */
  get isRunning() {
    return this.#current?.state === 'begun';
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
    this.#current.began = performance.now();
  }

  /** @param {Failed} failed */
  settle(failed) {
    this.#end(failed, true);
  }

  /** To be called when the thread does not answer any more. */
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
      // Not a number, because each copy of this package with a hub gets all answers of a thread.
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
