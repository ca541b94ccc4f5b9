'use strict';

// The sparse buckets of a native histogram's rows, in blocks: populated buckets only. A number takes a byte
// for each 7 bits, the lowest first, and indices are written as differences: most buckets take two bytes.
// Indices must rise, and counts must be whole numbers.

const { LITTLE_ENDIAN, SnapshotError } = require('./byte-buffers');
const { BUCKETS, LATER_BUCKETS } = require('./source-format');
const { MIN_SCHEMA, MAX_SCHEMA, isIndex } = require('../series/native-index');

/** Schema and zero threshold. */
const HEAD_BYTES = 9;
/** Maximum length of a number up to MAX_SAFE_INTEGER. */
const MOST_BYTES_OF_NUMBER = 8;
/** Maximum length of the difference of two indices, and a count. */
const MOST_BYTES_OF_BUCKET = 4 + MOST_BYTES_OF_NUMBER;

const CHUNK_BYTES = 16384;

/** The first index is written as the difference from this, which is less than any index of any schema. */
const BEFORE_FIRST = -(2 ** 19);

/** @typedef {import('../series/merged-buckets').Buckets} Buckets */
/** @typedef {Buckets['positive']} Side */
/** @typedef {import('./extras').SourceBuckets} SourceBuckets */

/**
 * `changes` is what changesOf() has returned.
 *
 * @typedef {import('./row-blocks').EncodedRow & {changes: number | undefined}} EncodedBuckets
 */

/** Encodes rows. Several rows share a piece of memory. */
class BucketWriter {
  #bytes = new Uint8Array(0);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /**
   * @param {Buckets} buckets of a row
   * @returns {Uint8Array} the row
   */
  add({ schema, zeroThreshold, zeroCount, positive, negative, maxBuckets }) {
    const buckets = positive.indices.length + negative.indices.length;
    this.#reserve(HEAD_BYTES + 2 * MOST_BYTES_OF_NUMBER + buckets * MOST_BYTES_OF_BUCKET + 2);
    const start = this.#length;
    this.#bytes[start] = schema - MIN_SCHEMA;
    this.#view.setFloat64(start + 1, zeroThreshold, LITTLE_ENDIAN);
    this.#length += HEAD_BYTES;
    this.#number(maxBuckets);
    this.#number(zeroCount);
    this.#side(positive);
    this.#side(negative);
    return this.#bytes.subarray(start, this.#length);
  }

  /** @param {Side} side */
  #side({ indices, counts }) {
    const bytes = this.#bytes;
    let before = BEFORE_FIRST;
    for (let i = 0; i < indices.length; i++) {
      const step = indices[i] - before;
      before = indices[i];
      if (step < 128 && counts[i] < 128) {
        // The fast path for most buckets.
        bytes[this.#length] = step;
        bytes[this.#length + 1] = counts[i];
        this.#length += 2;
      } else {
        this.#number(step);
        this.#number(counts[i]);
      }
    }
    bytes[this.#length++] = 0;
  }

  /** @param {number} value */
  #number(value) {
    const bytes = this.#bytes;
    // Limited, because the sum of what hostile workers have sent may be larger, and would be refused.
    let left = Math.min(value, Number.MAX_SAFE_INTEGER);
    for (; left >= 2 ** 31; left = Math.floor(left / 128)) bytes[this.#length++] = (left % 128) + 128;
    for (; left >= 128; left >>>= 7) bytes[this.#length++] = (left & 127) | 128;
    bytes[this.#length++] = left;
  }

  /** @param {number} more */
  #reserve(more) {
    if (this.#length + more <= this.#bytes.length) return;
    this.#bytes = new Uint8Array(Math.max(CHUNK_BYTES, more));
    this.#view = new DataView(this.#bytes.buffer);
    this.#length = 0;
  }
}

const writer = new BucketWriter();

/** Unlike counts of changes, versions are unique, even for rows that return and metrics registered again. */
let nextVersion = 1;

/** @type {import('./row-encoder').RowKind<SourceBuckets, EncodedBuckets>} */
const BUCKET_ROWS = {
  ahead: BUCKETS,
  later: LATER_BUCKETS,
  rowsPerStep: 32,
  rowsOf: ({ buckets }) => buckets,
  encode: (buckets, row) => {
    const changes = buckets.changesOf(row);
    const read = buckets.read(row);
    return read && { changes, version: nextVersion++, bytes: writer.add(read) };
  },
};

/**
 * Reads the rows of a block.
 *
 * @implements {RowReader}
 */
class BucketReader {
  #bytes;
  #view;
  #position = 0;

  /** @param {Buffer} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /**
   * @param {number} start
   * @param {number} end
   */
  check(start, end) {
    if (!(end - start > HEAD_BYTES)) throw new SnapshotError('length', 'the buckets of a row have no end');
    this.read(start, end, false);
    if (this.#position !== end) throw new SnapshotError('length', 'the buckets of a row do not end');
  }

  /**
   * @param {number} start
   * @param {number} _end
   * @param {boolean} [isKept] false only to check the bytes
   * @returns {Buckets}
   */
  read(start, _end, isKept = true) {
    const schema = this.#bytes[start] + MIN_SCHEMA;
    if (schema > MAX_SCHEMA) throw invalid(`schema ${schema} of a native histogram`);
    const zeroThreshold = this.#view.getFloat64(start + 1, LITTLE_ENDIAN);
    if (!(zeroThreshold >= 0 && zeroThreshold < Infinity)) throw invalid(`zero threshold ${zeroThreshold}`);
    this.#position = start + HEAD_BYTES;
    const maxBuckets = this.#number();
    const zeroCount = this.#number();
    const positive = this.#side(schema, isKept);
    const negative = this.#side(schema, isKept);
    return { schema, zeroThreshold, zeroCount, positive, negative, maxBuckets };
  }

  /**
   * @param {number} schema
   * @param {boolean} isKept
   * @returns {Side}
   */
  #side(schema, isKept) {
    /** @type {Side} */
    const side = { indices: [], counts: [] };
    let index = BEFORE_FIRST;
    for (let step = this.#number(); step !== 0; step = this.#number()) {
      // Indices rise.
      const isValid = index !== BEFORE_FIRST || isIndex(index + step, schema);
      const count = this.#number();
      index += step;
      if (count === 0 || !isValid) throw invalid(`a bucket ${index} with ${count} observations`);
      if (!isKept) continue;
      side.indices.push(index);
      side.counts.push(count);
    }
    if (index !== BEFORE_FIRST && !isIndex(index, schema)) throw invalid(`a bucket ${index}`);
    return side;
  }

  /** @returns {number} a whole number of at most MAX_SAFE_INTEGER */
  #number() {
    const bytes = this.#bytes;
    let byte = bytes[this.#position++];
    if (byte < 128) return byte;
    let value = byte - 128;
    for (let unit = 128; ; unit *= 128) {
      byte = bytes[this.#position++];
      // undefined past the end
      if (!(byte < 128)) {
        if (byte === undefined) throw new SnapshotError('length', 'the buckets of a row do not end');
        value += (byte - 128) * unit;
      } else {
        value += byte * unit;
        break;
      }
      if (unit >= 2 ** 49) throw invalid('a number has too many bytes');
    }
    if (value > Number.MAX_SAFE_INTEGER) throw invalid(`${value} observations`);
    return value;
  }
}

/**
 * @param {string} message
 * @returns {SnapshotError}
 */
function invalid(message) {
  return new SnapshotError('numbers', message);
}

/** @typedef {import('./row-blocks').RowReader<Buckets>} RowReader */

module.exports = { BUCKET_ROWS, BucketWriter, BucketReader };
