'use strict';

const { nextTurn } = require('./timing.js');

// After one collection, objects of weak references and finalizers remain until the next.
const COLLECTIONS = 4;

/**
 * The memory that a value retains: heap and array buffers, because series are stored in both. The process
 * needs `--expose-gc`.
 *
 * @param {() => any} make
 * @returns {Promise<number>} bytes that are more after it than before
 */
async function memoryOf(make) {
  const before = await usedMemory();
  await make();
  return (await usedMemory()) - before;
}

/** @returns {Promise<number>} bytes */
async function usedMemory() {
  for (let collection = 0; collection < COLLECTIONS; collection++) {
    await nextTurn();
    globalThis.gc();
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

module.exports = { memoryOf };
