'use strict';

/** @typedef {{buffer: ArrayBuffer, length: number, ascii: boolean}} Body memory of its own, of which `length` bytes count */

// A character of a JavaScript string is at most this many bytes of UTF-8.
const BYTES_PER_CHARACTER = 3;

// What was written in memory that was too small is moved a part with each piece that is written after it: to move 12 MB
// in one go holds the loop for 10 ms.
const MOVED_BYTES = 524_288;

/** A page of text as UTF-8, in memory that grows. */
class Page {
  #bytes;
  #characters = 0;
  /** @type {Buffer | undefined} the memory that was too small, of which a part is still to be moved */
  #former = undefined;
  #movedTo = 0;

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
    this.#move(Infinity);
    return this.#bytes.subarray(start, this.length);
  }

  /** @returns {Body} what was written */
  get body() {
    this.#move(Infinity);
    const { buffer } = this.#bytes;
    return {
      buffer: /** @type {ArrayBuffer} */ (buffer),
      length: this.length,
      ascii: this.length === this.#characters,
    };
  }

  /** @param {number} bytes to be written next */
  #makeRoom(bytes) {
    this.#move(MOVED_BYTES);
    if (this.#bytes.length - this.length >= bytes) return;
    this.#move(Infinity);
    this.#former = this.#bytes.subarray(0, this.length);
    this.#movedTo = 0;
    this.#bytes = Buffer.allocUnsafeSlow(this.#bytes.length * 2 + bytes);
  }

  /** @param {number} most bytes */
  #move(most) {
    const former = this.#former;
    if (former === undefined) return;
    const end = Math.min(this.#movedTo + most, former.length);
    former.copy(this.#bytes, this.#movedTo, this.#movedTo, end);
    this.#movedTo = end;
    if (end === former.length) this.#former = undefined;
  }
}

module.exports = { Page };
