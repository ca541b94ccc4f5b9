'use strict';

/** @typedef {{buffer: ArrayBuffer, length: number, ascii: boolean}} Body memory of its own, of which `length` bytes count */

// A character of a JavaScript string is at most this many bytes of UTF-8.
const BYTES_PER_CHARACTER = 3;

/** A page of text as UTF-8, in memory that grows. */
class Page {
  #bytes;
  #characters = 0;

  /** @param {number | ArrayBuffer} memory to begin with, or how many bytes of it */
  constructor(memory) {
    // Not from the pool, of which others hold a part.
    this.#bytes = typeof memory === 'number' ? Buffer.allocUnsafeSlow(memory) : Buffer.from(memory);
    /** How many bytes have been written. */
    this.length = 0;
  }

  /** @param {string} text */
  write(text) {
    if (text === '') return;
    this.#makeRoom(text.length * BYTES_PER_CHARACTER);
    this.length += this.#bytes.write(text, this.length);
    this.#characters += text.length;
  }

  /**
   * Writes a part of an earlier page again.
   *
   * @param {Buffer} bytes ASCII
   * @param {number} start
   * @param {number} end
   */
  copyFrom(bytes, start, end) {
    this.#makeRoom(end - start);
    bytes.copy(this.#bytes, this.length, start, end);
    this.length += end - start;
    this.#characters += end - start;
  }

  /**
   * What was written from some point on.
   *
   * @param {number} start a former `length`
   * @returns {Buffer} in this page's memory, good until it is written to again
   */
  from(start) {
    return this.#bytes.subarray(start, this.length);
  }

  /** @returns {Body} what was written */
  get body() {
    const { buffer } = this.#bytes;
    return {
      buffer: /** @type {ArrayBuffer} */ (buffer),
      length: this.length,
      ascii: this.length === this.#characters,
    };
  }

  /** @param {number} bytes to be written next */
  #makeRoom(bytes) {
    if (this.#bytes.length - this.length >= bytes) return;
    const grown = Buffer.allocUnsafeSlow(this.#bytes.length * 2 + bytes);
    this.#bytes.copy(grown, 0, 0, this.length);
    this.#bytes = grown;
  }
}

module.exports = { Page };
