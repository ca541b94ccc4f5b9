'use strict';

// The numbers of tables without labels, which have one row each: applications have hundreds of them. They
// share buffers, because a typed array with its own buffer takes 100 bytes more. Benchmark row:
// memory/unlabelled. The garbage collector frees a block when all of its tables are gone.

const BLOCK_NUMBERS = 512; // 4 KB
/** More numbers than this get their own buffer, because they would leave too much of a block unused. */
const MOST_SHARED = BLOCK_NUMBERS / 8;

class NumberBlocks {
  #allocate;
  /** The block that is not full yet. */
  #block = new Float64Array(0);
  #used = 0;

  /** @param {(count: number) => Float64Array<any>} allocate returns that many zeros */
  constructor(allocate) {
    this.#allocate = allocate;
  }

  /**
   * @param {number} count
   * @returns {Float64Array} that many zeros, used by no other table
   */
  take(count) {
    if (count > MOST_SHARED) return this.#allocate(count);
    if (this.#used + count > this.#block.length) {
      this.#block = this.#allocate(BLOCK_NUMBERS);
      this.#used = 0;
    }
    this.#used += count;
    return this.#block.subarray(this.#used - count, this.#used);
  }
}

/** Of this thread. */
const ownBlocks = new NumberBlocks(count => new Float64Array(count));

module.exports = { NumberBlocks, ownBlocks };
