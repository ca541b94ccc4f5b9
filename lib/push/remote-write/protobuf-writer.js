'use strict';

// Writes protobuf messages: https://protobuf.dev/programming-guides/encoding/

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;

const LONGEST_VARINT = 10;
const BYTES_PER_CHARACTER = 3; // of UTF-8, at most
const FIRST_BYTES = 65536;

/** Up to this length, bytes are copied one by one: TypedArray.set() takes 100 ns. */
const SHORT_COPY = 48;

/** One message, in memory that grows. */
class ProtobufWriter {
  #bytes;

  /** How many bytes have been written. */
  length = 0;

  /** @param {number} [capacity] bytes that it has memory for at first */
  constructor(capacity = FIRST_BYTES) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity);
  }

  /** @returns {Buffer} what was written, in this writer's memory */
  get bytes() {
    return this.#bytes.subarray(0, this.length);
  }

  /**
   * @param {number} field
   * @param {number} value an integer of at least 0
   */
  integer(field, value) {
    this.#reserve(2 * LONGEST_VARINT);
    this.#tag(field, VARINT);
    this.varint(value);
  }

  /**
   * @param {number} field
   * @param {Uint8Array} bytes 8 of them, little endian
   */
  fixed64(field, bytes) {
    this.#reserve(LONGEST_VARINT);
    this.#tag(field, FIXED64);
    this.append(bytes);
  }

  /** @param {Uint8Array} bytes of fields */
  append(bytes) {
    const { length } = bytes;
    this.#reserve(length);
    const to = this.#bytes;
    if (length > SHORT_COPY) to.set(bytes, this.length);
    else for (let i = 0, j = this.length; i < length; i++, j++) to[j] = bytes[i];
    this.length += length;
  }

  /**
   * @param {number} field
   * @param {string} text
   */
  text(field, text) {
    this.#reserve(LONGEST_VARINT + text.length * BYTES_PER_CHARACTER);
    const start = this.begin(field, text.length);
    this.length = start + this.#bytes.write(text, start);
    this.end(start, text.length);
  }

  /**
   * Begins a message in a field; end() completes it.
   *
   * @param {number} field
   * @param {number} [expected] its length. If it turns out to have more or fewer digits, end() moves the
   *   message
   * @returns {number} its start
   */
  begin(field, expected = 0) {
    this.#reserve(2 * LONGEST_VARINT);
    this.#tag(field, LENGTH_DELIMITED);
    this.length += digitsOf(expected);
    return this.length;
  }

  /**
   * @param {number} start as begin() has returned it
   * @param {number} [expected] as begin() got it
   */
  end(start, expected = 0) {
    const { length } = this;
    const reserved = digitsOf(expected);
    const bytes = length - start;
    const extra = digitsOf(bytes) - reserved;
    if (extra !== 0) {
      this.#reserve(Math.max(extra, 0));
      this.#bytes.copyWithin(start + extra, start, length);
    }
    this.length = start - reserved;
    this.varint(bytes);
    this.length = length + extra;
  }

  /** @param {number} value an integer of at least 0; up to 2^53, so without the operators of 32 bits */
  varint(value) {
    this.#reserve(LONGEST_VARINT);
    let rest = value;
    while (rest >= 128) {
      this.#bytes[this.length++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.length++] = rest;
  }

  /**
   * @param {number} field
   * @param {number} type
   */
  #tag(field, type) {
    // One byte: no field of these protocols is above 15.
    this.#bytes[this.length++] = field * 8 + type;
  }

  /** @param {number} bytes to be written next */
  #reserve(bytes) {
    if (this.#bytes.length - this.length >= bytes) return;
    const larger = Buffer.allocUnsafeSlow(this.#bytes.length * 2 + bytes);
    this.#bytes.copy(larger, 0, 0, this.length);
    this.#bytes = larger;
  }
}

/**
 * @param {number} value
 * @returns {number} how many bytes it takes as a varint
 */
function digitsOf(value) {
  let digits = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) digits++;
  return digits;
}

module.exports = { ProtobufWriter };
