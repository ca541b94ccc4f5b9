'use strict';

// The numbers of tables without labels, which have one row each: applications have hundreds of them. They
// share buffers, because a typed array with its own buffer takes 100 bytes more. Benchmark row:
// memory/unlabelled. The garbage collector frees a block when all of its tables are gone.

const BLOCK_NUMBERS = 512; // 4 KB
/** More numbers than this get their own buffer, because they would leave too much of a block unused. */
const MOST_SHARED = BLOCK_NUMBERS / 8;

/** The block that is not full yet. */
let block = new Float64Array(0);
let used = 0;

/**
 * @param {number} count
 * @returns {Float64Array} that many zeros, used by no other table
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
