'use strict';

// The memory that the next page begins in: that of an earlier one, which nobody needs any more, or as much new as it is
// likely to need.

// A page that has become much shorter gets less memory.
const MOST_TIMES_TOO_MUCH = 4;

// A page needs room for its last piece as UTF-8.
const LAST_PIECE_BYTES = 262_144;

class SpareMemory {
  /** @type {ArrayBuffer | undefined} */
  #memory = undefined;
  /** How long the last page was, in bytes. */
  #lastLength = 65536;

  /**
   * Takes memory that nobody else uses. The largest is kept.
   *
   * @param {ArrayBuffer} memory
   */
  give(memory) {
    if (this.#memory === undefined || this.#memory.byteLength < memory.byteLength) this.#memory = memory;
  }

  /** @returns {number | ArrayBuffer} for a page: memory, or how many bytes to begin with */
  take() {
    const memory = this.#memory;
    this.#memory = undefined;
    return memory !== undefined && this.#isFit(memory) ? memory : this.#room();
  }

  /** @param {number} length of a page that was written, in bytes */
  note(length) {
    this.#lastLength = length;
  }

  /**
   * Whether the next page is likely to find room in it, and it is not much more than the page needs.
   *
   * @param {ArrayBuffer} memory
   */
  #isFit({ byteLength }) {
    const least = this.#lastLength + LAST_PIECE_BYTES;
    return byteLength >= least && byteLength <= this.#room() * MOST_TIMES_TOO_MUCH;
  }

  /** @returns {number} bytes for a page that is a little longer than the last one */
  #room() {
    return this.#lastLength + (this.#lastLength >> 4) + LAST_PIECE_BYTES;
  }
}

module.exports = { SpareMemory };
