'use strict';

// Runs with the aggregator. Provides the memory for the next page: the buffer of an earlier page that has
// been compressed or written to a file, or a new one of the expected size. If the size is right, the page is
// not moved while it is written.

// A larger buffer is dropped: otherwise a page that has become much shorter would hold its memory for good.
const MAX_OVERSIZE = 4;

// Additional bytes: the last piece of a page needs space for its longest possible encoding.
const LAST_PIECE_BYTES = 262_144;

class PagePool {
  /** @type {ArrayBuffer | undefined} */
  #buffer = undefined;
  /** Bytes of the last page. */
  #lastLength = 65536;

  /**
   * Adds a buffer that nothing else uses. The pool holds only the largest.
   *
   * @param {ArrayBuffer} buffer
   */
  put(buffer) {
    if (this.#buffer === undefined || this.#buffer.byteLength < buffer.byteLength) this.#buffer = buffer;
  }

  /** @returns {number | ArrayBuffer} a buffer for a page, or the bytes to allocate for it */
  take() {
    const buffer = this.#buffer;
    this.#buffer = undefined;
    return buffer !== undefined && this.#fits(buffer) ? buffer : this.#expectedBytes();
  }

  /** @param {number} length bytes of the page that was written last */
  setLastLength(length) {
    this.#lastLength = length;
  }

  /** @param {ArrayBuffer} buffer */
  #fits({ byteLength }) {
    return (
      byteLength >= this.#lastLength + LAST_PIECE_BYTES && byteLength <= this.#expectedBytes() * MAX_OVERSIZE
    );
  }

  /** @returns {number} bytes for a page that is slightly longer than the last one */
  #expectedBytes() {
    return this.#lastLength + (this.#lastLength >> 4) + LAST_PIECE_BYTES;
  }
}

module.exports = { PagePool };
