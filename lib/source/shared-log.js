'use strict';

// A list of records in chunks of shared memory. One thread appends to it; another one reads it at any time,
// without the help of the first. A chunk starts with the number of its complete words. A record consists of
// its kind, two lengths, integers, and a text as UTF-8, in words of 32 bits. When a chunk is full, the next
// one must be passed to the reader as soon as it exists.

const HEAD_WORDS = 2;
const RECORD_WORDS = 3;
const FIRST_BYTES = 4096;
const MOST_BYTES = 256 * 1024;
const WORD_BYTES = 4;
/** A UTF-16 unit takes three bytes of UTF-8 at most. */
const MOST_BYTES_OF_UNIT = 3;
const SHORT_TEXT = 24;
const LAST_ASCII = 0x7f;

class LogWriter {
  #onChunk;
  #words = newChunk(FIRST_BYTES);
  #bytes = bytesOf(this.#words);
  #end = HEAD_WORDS;

  /** @param {(chunk: SharedArrayBuffer) => void} onChunk called with each chunk, before it has records */
  constructor(onChunk) {
    this.#onChunk = onChunk;
    onChunk(this.#words.buffer);
  }

  /**
   * @param {number} kind
   * @param {readonly number[]} integers
   * @param {string} [text]
   */
  append(kind, integers, text = '') {
    const { length } = integers;
    const needed = RECORD_WORDS + length + wordsOf(text.length * MOST_BYTES_OF_UNIT);
    if (this.#end + needed > this.#words.length) this.#startChunk(needed);
    const words = this.#words;
    const start = this.#end;
    const textStart = start + RECORD_WORDS + length;
    const textBytes = this.#write(text, textStart * WORD_BYTES);
    words[start] = kind;
    words[start + 1] = length;
    words[start + 2] = textBytes;
    for (let i = 0; i < length; i++) words[start + RECORD_WORDS + i] = integers[i];
    this.#end = textStart + wordsOf(textBytes);
    // Only now, when the record is complete, does the reader see it.
    Atomics.store(words, 0, this.#end);
  }

  /**
   * @param {string} text
   * @param {number} start
   * @returns {number} how many bytes it takes
   */
  #write(text, start) {
    const bytes = this.#bytes;
    const { length } = text;
    // Calling Buffer takes longer than writing a short text, as most label values are.
    if (length > SHORT_TEXT) return bytes.write(text, start);
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > LAST_ASCII) return bytes.write(text, start);
      bytes[start + i] = unit;
    }
    return length;
  }

  /** @param {number} needed words of its first record */
  #startChunk(needed) {
    const size = Math.min(this.#bytes.length * 2, MOST_BYTES);
    this.#words = newChunk(Math.max(size, (HEAD_WORDS + needed) * WORD_BYTES));
    this.#bytes = bytesOf(this.#words);
    this.#end = HEAD_WORDS;
    this.#onChunk(this.#words.buffer);
  }
}

/** Reads one record after the other. The fields describe the record that next() has found. */
class LogReader {
  /** @type {Int32Array[]} that follow the present one */
  #chunks = [];
  /** Words of the chunks before the present one. */
  #before = 0;
  /** @type {Int32Array} */
  #words = Int32Array.of(HEAD_WORDS);
  #bytes = Buffer.alloc(0);
  #position = HEAD_WORDS;

  kind = 0;
  /** How many integers the record has. */
  #count = 0;
  #textBytes = 0;

  /** @param {SharedArrayBuffer} chunk the next one */
  add(chunk) {
    this.#chunks.push(new Int32Array(chunk));
  }

  /** How many words the complete records have so far. */
  get published() {
    return [this.#words, ...this.#chunks].reduce((sum, words) => sum + endOf(words), this.#before);
  }

  /** How many of these words were skipped. */
  get skipped() {
    return this.#before + this.#position;
  }

  /**
   * Finds the record that follows those that were skipped.
   *
   * @returns {boolean} false if there is none yet
   */
  next() {
    for (;;) {
      // Read before the number of words, because a chunk is complete if another one follows.
      const isFull = this.#chunks.length > 0;
      const start = this.#position;
      if (endOf(this.#words) > start) {
        this.kind = this.#words[start];
        this.#count = this.#words[start + 1];
        this.#textBytes = this.#words[start + 2];
        return true;
      }
      if (!isFull) return false;
      this.#words = /** @type {Int32Array} */ (this.#chunks.shift());
      this.#bytes = bytesOf(this.#words);
      this.#before += this.#position;
      this.#position = HEAD_WORDS;
    }
  }

  /** Moves to the end of the record. */
  skip() {
    this.#position += RECORD_WORDS + this.#count + wordsOf(this.#textBytes);
  }

  /**
   * @param {number} i
   * @returns {number} that integer of the record, below 2^32
   */
  integer(i) {
    return this.#words[this.#position + RECORD_WORDS + i] >>> 0;
  }

  /**
   * @param {number} first
   * @returns {number[]} that integer and all that follow
   */
  integersFrom(first) {
    return Array.from({ length: this.#count - first }, (_, i) => this.integer(first + i));
  }

  /** The text of the record. */
  get text() {
    const start = (this.#position + RECORD_WORDS + this.#count) * WORD_BYTES;
    return this.#bytes.toString('utf8', start, start + this.#textBytes);
  }
}

/**
 * @param {number} bytes
 * @returns {Int32Array<SharedArrayBuffer>} a chunk without records
 */
function newChunk(bytes) {
  const words = new Int32Array(new SharedArrayBuffer(bytes));
  words[0] = HEAD_WORDS;
  return words;
}

/** @param {Int32Array} words of a chunk */
function bytesOf({ buffer }) {
  return Buffer.from(/** @type {ArrayBuffer} */ (buffer));
}

/**
 * @param {Int32Array} words of a chunk
 * @returns {number} how many of them are complete
 */
function endOf(words) {
  return Atomics.load(words, 0);
}

/** @param {number} bytes */
function wordsOf(bytes) {
  return Math.ceil(bytes / WORD_BYTES);
}

module.exports = { LogWriter, LogReader };
