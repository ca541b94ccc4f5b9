'use strict';

// Long work is written as a generator that yields wherever others may have the loop. A thread of its own runs it
// through; a shared loop runs it in slices.

const SLICE_MILLISECONDS = 1;

// Taken when this file is loaded: work that waits for somebody's fake timer would never end.
const nextTurn = immediateOf();

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
 * @param {number} [sliceMilliseconds] how long others wait at most for the loop, save for the length of a step
 * @returns {Promise<T>}
 */
async function runInSlices(steps, sliceMilliseconds = SLICE_MILLISECONDS) {
  for (;;) {
    const end = performance.now() + sliceMilliseconds;
    do {
      const step = steps.next();
      if (step.done) return step.value;
    } while (performance.now() < end);
    await turn();
  }
}

/** @returns {Promise<void>} fulfilled when others have had the loop */
function turn() {
  return new Promise(resolve => nextTurn(resolve));
}

/** @returns {(callback: (value?: any) => void) => unknown} */
function immediateOf() {
  try {
    return require('timers').setImmediate;
  } catch {
    // Not Node.js.
    return callback => setTimeout(callback, 0);
  }
}

module.exports = { runThrough, runInSlices, turn };
