'use strict';

// Long work is written as a generator that yields wherever others may have the loop. A thread of its own runs it
// through; a shared loop runs it in slices.

const SLICE_MILLISECONDS = 1;

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
 * @returns {Promise<T>}
 */
async function runInSlices(steps) {
  for (;;) {
    const end = performance.now() + SLICE_MILLISECONDS;
    do {
      const step = steps.next();
      if (step.done) return step.value;
    } while (performance.now() < end);
    await new Promise(resolve => setImmediate(resolve));
  }
}

module.exports = { runThrough, runInSlices };
