'use strict';

// The numbers of tables without labels, which have one row for good: applications have hundreds of them. A typed array
// with a buffer of its own takes some 100 bytes more than one that shares it. A block is garbage when all of its tables
// are.

const BLOCK_NUMBERS = 512; // 4 KB
/** What is larger would leave too much of a block unused. */
const MOST_SHARED = BLOCK_NUMBERS / 8;

/** The block that still has room. */
let block = new Float64Array(0);
let used = 0;

/**
 * @param {number} count
 * @returns {Float64Array} that many zeros, which nobody else has
 */
function numbersInBlock(count) {
  if (count > MOST_SHARED) return new Float64Array(count);
  if (used + count > block.length) {
    block = new Float64Array(BLOCK_NUMBERS);
    used = 0;
  }
  const numbers = block.subarray(used, used + count);
  used += count;
  return numbers;
}

module.exports = { numbersInBlock };
