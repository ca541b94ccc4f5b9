'use strict';

// A list of records that one thread appends to and another one reads, at any time and without the help of the
// first: chunks of shared memory. A chunk begins with the number of bytes that are complete; each record is
// its length and its JSON as UTF-8. A chunk that is full is followed by another one, which has to be passed
// to the reader as soon as it exists.

const HEAD_BYTES = 8;
const LENGTH_BYTES = 4;
const FIRST_BYTES = 4096;
const MOST_BYTES = 256 * 1024;

class LogWriter {
  #onChunk;
  #committed;
  #bytes;
  #end = HEAD_BYTES;

  /** @param {(chunk: SharedArrayBuffer) => void} onChunk called with each chunk but the first */
  constructor(onChunk) {
    this.#onChunk = onChunk;
    this.first = new SharedArrayBuffer(FIRST_BYTES);
    this.#bytes = Buffer.from(/** @type {any} */ (this.first));
    this.#committed = new Int32Array(this.first, 0, 1);
  }

  /** @param {readonly unknown[]} record to be written as JSON */
  append(record) {
    const text = JSON.stringify(record);
    const length = Buffer.byteLength(text);
    if (this.#end + LENGTH_BYTES + length > this.#bytes.length) this.#startChunk(LENGTH_BYTES + length);
    this.#bytes.writeUInt32LE(length, this.#end);
    this.#bytes.write(text, this.#end + LENGTH_BYTES);
    this.#end += LENGTH_BYTES + length;
    // The reader sees the record only now, when it is complete.
    Atomics.store(this.#committed, 0, this.#end);
  }

  /** @param {number} needed bytes of its first record */
  #startChunk(needed) {
    const size = Math.max(Math.min(this.#bytes.length * 2, MOST_BYTES), HEAD_BYTES + needed);
    const chunk = new SharedArrayBuffer(size);
    this.#bytes = Buffer.from(/** @type {any} */ (chunk));
    this.#committed = new Int32Array(chunk, 0, 1);
    this.#end = HEAD_BYTES;
    this.#onChunk(chunk);
  }
}

class LogReader {
  /** @type {SharedArrayBuffer[]} that have not been read to the end; all but the last one are full */
  #chunks = [];
  #position = HEAD_BYTES;

  /** @param {SharedArrayBuffer} chunk the next one */
  add(chunk) {
    if (chunk.byteLength < HEAD_BYTES) throw new TypeError('a chunk of the log is too small');
    this.#chunks.push(chunk);
  }

  /**
   * @returns {unknown} the next record; undefined if there is none yet
   * @throws {Error} if the memory has no valid records
   */
  next() {
    for (;;) {
      const [chunk] = this.#chunks;
      if (chunk === undefined) return undefined;
      // Before the number of bytes is read: a chunk that is followed by another one is complete.
      const isFull = this.#chunks.length > 1;
      const end = Atomics.load(new Int32Array(chunk, 0, 1), 0);
      if (end > this.#position) return this.#read(chunk, end);
      if (!isFull) return undefined;
      this.#chunks.shift();
      this.#position = HEAD_BYTES;
    }
  }

  /**
   * @param {SharedArrayBuffer} chunk
   * @param {number} end of its complete records
   * @returns {unknown}
   */
  #read(chunk, end) {
    const bytes = Buffer.from(/** @type {any} */ (chunk));
    const start = this.#position + LENGTH_BYTES;
    if (end > bytes.length || start > end) throw new RangeError('the end of the log is not valid');
    const length = bytes.readUInt32LE(this.#position);
    if (start + length > end) throw new RangeError('a record of the log is not valid');
    this.#position = start + length;
    return JSON.parse(bytes.toString('utf8', start, start + length));
  }
}

module.exports = { LogWriter, LogReader };
