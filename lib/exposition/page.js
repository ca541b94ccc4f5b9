'use strict';

/**
 * A buffer that nothing else uses; its first `length` bytes are the page.
 *
 * @typedef {{buffer: ArrayBuffer, length: number}} Body
 */

// A character of a JavaScript string is at most this many bytes of UTF-8.
const BYTES_PER_CHARACTER = 3;

// A page of a million series has some 150 MB.
const MAX_BYTES = 2 ** 30;

/**
 * A page of text as UTF-8, in a buffer that grows. Growing moves the whole page at once (about 6 ms for 12
 * MB), so callers start with the expected size. Bytes that are never written take no physical memory.
 */
class Page {
  #bytes;

  /** @param {number | ArrayBuffer} memory to start with, or how many bytes of it */
  constructor(memory) {
    // allocUnsafeSlow(): a part of Node's shared pool cannot be transferred to another thread.
    this.#bytes = typeof memory === 'number' ? Buffer.allocUnsafeSlow(memory) : Buffer.from(memory);
    /** How many bytes have been written. Set to an earlier value, it removes what was written since. */
    this.length = 0;
  }

  /** @param {string} text */
  write(text) {
    if (text === '') return;
    this.#reserve(text.length * BYTES_PER_CHARACTER);
    this.length += this.#bytes.write(text, this.length);
  }

  /**
   * Writes bytes, such as a part of an earlier page.
   *
   * @param {Buffer} bytes
   * @param {number} start
   * @param {number} end
   */
  copyFrom(bytes, start, end) {
    this.#reserve(end - start);
    bytes.copy(this.#bytes, this.length, start, end);
    this.length += end - start;
  }

  /**
   * The bytes written since some point.
   *
   * @param {number} start a former `length`
   * @returns {Buffer} in this page's memory, valid until the next write
   */
  from(start) {
    return this.#bytes.subarray(start, this.length);
  }

  /** @returns {Body} what was written */
  get body() {
    return { buffer: /** @type {ArrayBuffer} */ (this.#bytes.buffer), length: this.length };
  }

  /**
   * @param {number} bytes to be written next
   * @throws {RangeError} if the page becomes too long
   */
  #reserve(bytes) {
    if (this.length + bytes > MAX_BYTES) throw new RangeError(`a page of more than ${MAX_BYTES} bytes`);
    if (this.#bytes.length - this.length >= bytes) return;
    const larger = Buffer.allocUnsafeSlow(this.#bytes.length * 2 + bytes);
    this.#bytes.copy(larger, 0, 0, this.length);
    this.#bytes = larger;
  }
}

module.exports = { Page };
