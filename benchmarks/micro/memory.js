'use strict';

const { nextTurn } = require('./timing.js');

// One collection leaves what weak references and finalizers held until the next.
const COLLECTIONS = 4;

/**
 * The memory that a value retains: heap and array buffers, as both hold numbers of series. The process needs
 * `--expose-gc`.
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
