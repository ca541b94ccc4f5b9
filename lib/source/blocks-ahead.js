'use strict';

// Blocks of extras (digests) that are written before the capture, a piece at a time: they may be slightly
// older than the numbers, and writing a thousand of them at once would block the loop.

const { ByteWriter } = require('./byte-buffers');
const { HEADER_BYTES } = require('./source-format');

/** How many numbers are written at once. This takes 0.05 ms. */
const NUMBERS_PER_PIECE = 16384;

/** @typedef {import('./extras').ExtraBlock} ExtraBlock */

class BlocksAhead {
  #writer = new ByteWriter(64, HEADER_BYTES);
  /** @type {Map<ExtraBlock, number>} offsets in the file */
  #blocks = new Map();

  /** The position in the file at which the blocks end. */
  get length() {
    return this.#writer.length;
  }

  /** @returns {readonly Uint8Array[]} the chunks that no longer change */
  get completeChunks() {
    return this.#writer.completeChunks;
  }

  /** @returns {Uint8Array[]} what follows the header; complete chunks are the same objects each time */
  chunks() {
    return this.#writer.chunks();
  }

  /**
   * @param {Iterable<ExtraBlock>} blocks each of one chunk of numbers, which must not change any more
   * @returns {Generator<void>} yields after each piece
   */
  *add(blocks) {
    for (const block of blocks) {
      this.#blocks.set(block, this.length);
      const numbers = /** @type {Float64Array} */ (block.chunks[0]);
      for (let from = 0; from < numbers.length; from += NUMBERS_PER_PIECE) {
        this.#writer.append(numbers.subarray(from, from + NUMBERS_PER_PIECE));
        yield;
      }
    }
  }

  /**
   * @param {ExtraBlock} block
   * @returns {number | undefined} its offset in the file, if it was added
   */
  offsetOf(block) {
    return this.#blocks.get(block);
  }
}

module.exports = { BlocksAhead };
