'use strict';

/** Milliseconds. A longer timer would fire at once. */
const MAX_TIMER = 2 ** 31 - 1;

// Read when this file is loaded: fake timers in an application's tests would otherwise stop what pauses for
// good.
const { setTimeout: setRealTimeout, setImmediate: setRealImmediate } = realTimers();

/**
 * Lets the process end before the timer fires. Where an environment replaces timers (jsdom, a polyfill), they
 * may be numbers.
 *
 * @template T
 * @param {T} timer
 * @returns {T}
 */
function unref(timer) {
  /** @type {any} */ (timer)?.unref?.();
  return timer;
}

/**
 * @param {number} milliseconds
 * @returns {Promise<unknown>} resolved after that time, unless the process ends before
 */
function pause(milliseconds) {
  return new Promise(resolve => unref(setRealTimeout(resolve, milliseconds)));
}

/**
 * @typedef {object} Timers
 * @property {(callback: (value?: any) => void, milliseconds: number) => unknown} setTimeout
 * @property {(callback: (value?: any) => void) => unknown} setImmediate
 */

/** @returns {Timers} */
function realTimers() {
  try {
    return require('timers');
  } catch {
    // Not Node.js.
    const { setTimeout } = globalThis;
    return { setTimeout, setImmediate: callback => setTimeout(callback, 0) };
  }
}

/**
 * Waits until a promise is settled, or for a time.
 *
 * @param {Promise<unknown>} promise
 * @param {number} milliseconds
 * @param {{mayEnd?: boolean}} [options] whether the process may end meanwhile, default false
 * @returns {Promise<void>} rejects as the promise does
 */
async function settledWithin(promise, milliseconds, { mayEnd = false } = {}) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const timeIsUp = new Promise(resolve => (timer = setTimeout(resolve, Math.min(milliseconds, MAX_TIMER))));
  if (mayEnd) unref(timer);
  try {
    await Promise.race([promise, timeIsUp]);
  } finally {
    clearTimeout(timer);
  }
}

module.exports = { MAX_TIMER, setRealTimeout, setRealImmediate, unref, pause, settledWithin };
