'use strict';

// Runs long work that is written as a generator, which yields wherever it may pause. In the aggregator's
// thread it runs without pauses; on a shared event loop it runs in slices.

const { setRealImmediate } = require('./timers');

// The last step of a slice and a young-generation collection take another 0.3 ms: together less than 1 ms.
const SLICE_MILLISECONDS = 0.5;

/**
 * @template T
 * @param {Generator<unknown, T>} steps
 * @returns {T}
 */
function runThrough(steps) {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/**
 * @template T
 * @param {Generator<unknown, T>} steps
 * @param {number} [sliceMilliseconds] longest time for which the loop is blocked, unless a single step takes
 *   longer
 * @param {<R>(slice: () => R) => R} [timed] runs each slice, to time it
 * @returns {Promise<T>}
 */
async function runInSlices(steps, sliceMilliseconds = SLICE_MILLISECONDS, timed = slice => slice()) {
  for (;;) {
    const end = milliseconds() + sliceMilliseconds;
    const step = timed(() => {
      for (;;) {
        const each = steps.next();
        if (each.done || milliseconds() >= end) return each;
      }
    });
    if (step.done) return step.value;
    await turn();
  }
}

/**
 * Sandboxes of old test runners have no `performance`. It is looked up at each call: a look-up when this file
 * is loaded would load perf_hooks.
 */
function milliseconds() {
  return typeof performance === 'undefined' ? Date.now() : performance.now();
}

/** @returns {Promise<void>} fulfilled in the next turn of the event loop */
function turn() {
  return new Promise(resolve => setRealImmediate(resolve));
}

module.exports = { runThrough, runInSlices, turn, milliseconds };
