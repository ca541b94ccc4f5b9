'use strict';

// The bytes of sparse buckets: a block has some rows of a native histogram, with their populated buckets
// only. A number takes a byte for each 7 bits, the lowest first, and indices are written as differences: most
// buckets take two bytes. Indices must rise, and counts must be whole numbers.

const { LITTLE_ENDIAN, SnapshotError } = require('./byte-buffers');
const { MIN_SCHEMA, MAX_SCHEMA, isIndex } = require('../series/native-index');

/** Schema and zero threshold. */
const HEAD_BYTES = 9;
/** Maximum length of a number up to MAX_SAFE_INTEGER. */
const MOST_BYTES_OF_NUMBER = 8;
/** Maximum length of the difference of two indices, and a count. */
const MOST_BYTES_OF_BUCKET = 4 + MOST_BYTES_OF_NUMBER;

/** Length of a row's head: its version, its number, and its length in bytes. */
const INDEX_BYTES = 16;

const CHUNK_BYTES = 16384;
const ROWS_PER_STEP = 32;

/** The first index is written as the difference from this, which is less than any index of any schema. */
const BEFORE_FIRST = -(2 ** 19);

/** @typedef {import('../series/merged-buckets').Buckets} Buckets */
/** @typedef {Buckets['positive']} Side */
/** @typedef {import('./extras').ExtraBlock} ExtraBlock */

/**
 * An encoded row: `version` identifies this encoding, `changes` is what changesOf() returned.
 *
 * @typedef {{changes: number, version: number, bytes: Uint8Array}} EncodedRow
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

/**
 * Makes a block.
 *
 * @param {number} kind
 * @param {readonly number[]} rows in rising order
 * @param {readonly (EncodedRow | undefined)[]} encoded the encoded rows, by row number
 * @param {EncodedRow[]} [copies] receives them by row number, in the memory of the block
 * @returns {Generator<void, ExtraBlock>} yields where a slice may end
 */
function* blockOf(kind, rows, encoded, copies) {
  const taken = /** @type {EncodedRow[]} */ (rows.map(row => encoded[row]));
  const headBytes = rows.length * INDEX_BYTES;
  const bytes = taken.reduce((sum, { bytes: { length } }) => sum + length, headBytes);
  const all = new Float64Array(Math.ceil(bytes / 8));
  const index = new Int32Array(all.buffer, rows.length * 8, rows.length * 2);
  const target = new Uint8Array(all.buffer, 0, bytes);
  let end = headBytes;
  for (let i = 0; i < rows.length; i++) {
    const { changes, version, bytes: own } = taken[i];
    all[i] = version;
    index[i * 2] = rows[i];
    index[i * 2 + 1] = own.length;
    target.set(own, end);
    if (copies) copies[rows[i]] = { changes, version, bytes: target.subarray(end, end + own.length) };
    end += own.length;
    if ((i + 1) % ROWS_PER_STEP === 0) yield;
  }
  return { kind, count: rows.length, chunks: [all] };
}

/** Reads a block, which may come from another process: the constructor checks all of it. */
class BucketRows {
  #earlier;
  #versions;
  /** @type {Int32Array} row number and length in bytes of each row */
  #rows;
  /** @type {Float64Array} where the bytes of each row end */
  #ends;
  #bytes;
  #view;
  #position = 0;

  /**
   * @param {import('./byte-buffers').ByteReader} reader at the beginning of the block
   * @param {number} count of rows in it
   * @param {number} rowCount of the table
   * @param {BucketRows} [earlier] a block whose rows this one replaces
   * @throws {SnapshotError} if the bytes do not follow the format
   */
  constructor(reader, count, rowCount, earlier) {
    this.#earlier = earlier;
    if (count > rowCount) throw invalid(`the buckets of ${count} rows of ${rowCount}`);
    this.#versions = reader.float64Array(count);
    this.#rows = reader.int32Array(count * 2);
    this.#bytes = reader.buffer.subarray(reader.position, reader.end);
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);
    this.#ends = new Float64Array(count);
    let [before, end] = [-1, 0];
    for (let i = 0; i < count; i++) {
      const [row, length] = [this.#rows[i * 2], this.#rows[i * 2 + 1]];
      if (!(row > before && row < rowCount)) throw invalid(`buckets of row ${row} of ${rowCount}`);
      before = row;
      end += length;
      if (!(length > HEAD_BYTES && end <= this.#bytes.length))
        throw new SnapshotError('length', `the buckets of a row end at ${end} of ${this.#bytes.length}`);
      this.#ends[i] = end;
      this.#read(i, false);
      if (this.#position !== end) throw new SnapshotError('length', 'the buckets of a row do not end');
    }
  }

  /**
   * @param {number} row
   * @returns {number | undefined} a number that differs after each change of the row's buckets; undefined if
   *   no block has the row
   */
  changesOf(row) {
    const place = this.#placeOf(row);
    return place < 0 ? this.#earlier?.changesOf(row) : this.#versions[place];
  }

  /**
   * @param {number} row
   * @returns {Buckets | undefined} undefined if no block has the row
   */
  read(row) {
    const place = this.#placeOf(row);
    return place < 0 ? this.#earlier?.read(row) : this.#read(place, true);
  }

  /**
   * @param {number} row
   * @returns {number} position of the row in the block; negative if it is not there
   */
  #placeOf(row) {
    const rows = this.#rows;
    let [low, high] = [0, rows.length / 2];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (rows[middle * 2] < row) low = middle + 1;
      else high = middle;
    }
    return rows[low * 2] === row ? low : -1;
  }

  /**
   * @param {number} place
   * @param {boolean} isKept false only to check the bytes
   * @returns {Buckets}
   */
  #read(place, isKept) {
    const start = this.#ends[place] - this.#rows[place * 2 + 1];
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

module.exports = { BucketWriter, BucketRows, blockOf };
