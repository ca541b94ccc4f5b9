'use strict';

// Writes protobuf messages: https://protobuf.dev/programming-guides/encoding/

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;

const LONGEST_VARINT = 10;
const TOO_LARGE = 2 ** 64;
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
    this.#tag(field, VARINT);
    this.varint(value);
  }

  /**
   * @param {number} field of type sint32 or sint64
   * @param {number} value an integer
   */
  signed(field, value) {
    this.#tag(field, VARINT);
    this.zigzag(value);
  }

  /**
   * @param {number} field
   * @param {Uint8Array} bytes 8 of them, little endian
   */
  fixed64(field, bytes) {
    this.#tag(field, FIXED64);
    this.append(bytes);
  }

  /**
   * @param {number} field
   * @param {number} value
   */
  double(field, value) {
    this.#tag(field, FIXED64);
    this.#reserve(Float64Array.BYTES_PER_ELEMENT);
    this.length = this.#bytes.writeDoubleLE(value, this.length);
  }

  /** @returns {Buffer} a copy of what was written; the writer is empty then */
  take() {
    const taken = Buffer.from(this.bytes);
    this.length = 0;
    return taken;
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
    const start = this.begin(field);
    this.#reserve(text.length * BYTES_PER_CHARACTER);
    this.length += this.#bytes.write(text, start);
    this.end(start);
  }

  /**
   * Begins a message in a field; end() completes it.
   *
   * @param {number} field
   * @returns {number} its start
   */
  begin(field) {
    this.#tag(field, LENGTH_DELIMITED);
    // One byte for its length, which mostly is below 128.
    this.length++;
    return this.length;
  }

  /** @param {number} start as begin() has returned it */
  end(start) {
    const bytes = this.length - start;
    let extra = 0;
    for (let rest = bytes; rest >= 128; rest = Math.floor(rest / 128)) extra++;
    if (extra > 0) {
      this.#reserve(extra);
      this.#bytes.copyWithin(start + extra, start, this.length);
    }
    this.length = start - 1;
    this.varint(bytes);
    this.length += bytes;
  }

  /** @param {number} value an integer: 0, -1, 1, -2, 2 and so on become 0, 1, 2, 3, 4 */
  zigzag(value) {
    this.varint(value < 0 ? -2 * value - 1 : 2 * value);
  }

  /**
   * @param {number} value an integer of at least 0; mostly up to 2^53, so without the operators of 32 bits
   * @throws {RangeError} if it is not an integer, or has more than 64 bits
   */
  varint(value) {
    if (!(value >= 0 && value < TOO_LARGE)) throw new RangeError(`not an integer of 64 bits: ${value}`);
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
    // With the varint that follows: end() writes it where nothing may move.
    this.#reserve(2 * LONGEST_VARINT);
    if (field < 16) this.#bytes[this.length++] = field * 8 + type;
    else this.varint(field * 8 + type);
  }

  /** @param {number} bytes to be written next */
  #reserve(bytes) {
    if (this.#bytes.length - this.length >= bytes) return;
    const larger = Buffer.allocUnsafeSlow(this.#bytes.length * 2 + bytes);
    this.#bytes.copy(larger, 0, 0, this.length);
    this.#bytes = larger;
  }
}

module.exports = { ProtobufWriter };
