'use strict';

// The bytes of what some rows have besides their numbers: a block has a head for each row, and then the bytes
// of each row. Digests and buckets are in such blocks.

const { SnapshotError } = require('./byte-buffers');

/** Length of a row's head: its version, its number, and its length in bytes. */
const HEAD_BYTES = 16;

const ROWS_PER_STEP = 32;

/** @typedef {import('./extras').ExtraBlock} ExtraBlock */

/**
 * An encoded row. `version` is unique: the same row has another one after each change. `bytes` may be
 * replaced by a copy of them in a block.
 *
 * @typedef {{version: number, bytes: Uint8Array}} EncodedRow
 */

/**
 * Makes a block.
 *
 * @param {number} kind
 * @param {readonly number[]} rows in rising order
 * @param {readonly (EncodedRow | undefined)[]} encoded the encoded rows, by row number
 * @param {boolean} [replaces] whether the bytes of the rows become those in the block
 * @returns {Generator<void, ExtraBlock>} yields where a slice may end
 */
function* blockOf(kind, rows, encoded, replaces = false) {
  const taken = /** @type {EncodedRow[]} */ (rows.map(row => encoded[row]));
  const headBytes = rows.length * HEAD_BYTES;
  const bytes = taken.reduce((sum, { bytes: { length } }) => sum + length, headBytes);
  const all = new Float64Array(Math.ceil(bytes / 8));
  const index = new Int32Array(all.buffer, rows.length * 8, rows.length * 2);
  const target = new Uint8Array(all.buffer, 0, bytes);
  let end = headBytes;
  for (let i = 0; i < rows.length; i++) {
    const { version, bytes: own } = taken[i];
    all[i] = version;
    index[i * 2] = rows[i];
    index[i * 2 + 1] = own.length;
    target.set(own, end);
    if (replaces) taken[i].bytes = target.subarray(end, end + own.length);
    end += own.length;
    if ((i + 1) % ROWS_PER_STEP === 0) yield;
  }
  return { kind, count: rows.length, chunks: [all] };
}

/**
 * Reads the rows of a block, which may come from another process.
 *
 * @template T
 * @typedef {object} RowReader
 * @property {(start: number, end: number) => void} check throws a SnapshotError if the bytes of a row do not
 *   follow the format
 * @property {(start: number, end: number) => T} read a row that was checked
 */

/**
 * A block that may come from another process: the constructor checks all of it.
 *
 * @template T
 */
class RowBlock {
  #versions;
  /** @type {Int32Array} row number and length in bytes of each row */
  #rows;
  /** @type {Float64Array} where the bytes of each row end */
  #ends;
  #reader;

  /**
   * @param {import('./byte-buffers').ByteReader} block at its beginning
   * @param {number} count of rows in it
   * @param {number} rowCount of the table
   * @param {(bytes: Buffer) => RowReader<T>} readerOf
   * @throws {SnapshotError} if the bytes do not follow the format
   */
  constructor(block, count, rowCount, readerOf) {
    if (count > rowCount) throw new SnapshotError('numbers', `a block of ${count} rows of ${rowCount}`);
    this.#versions = block.float64Array(count);
    this.#rows = block.int32Array(count * 2);
    const bytes = block.buffer.subarray(block.position, block.end);
    this.#reader = readerOf(bytes);
    this.#ends = new Float64Array(count);
    let [before, end] = [-1, 0];
    for (let i = 0; i < count; i++) {
      const [row, length] = [this.#rows[i * 2], this.#rows[i * 2 + 1]];
      if (!(row > before && row < rowCount))
        throw new SnapshotError('numbers', `a block with row ${row} of ${rowCount}`);
      before = row;
      const start = end;
      end += length;
      if (!(length >= 0 && end <= bytes.length))
        throw new SnapshotError('length', `the bytes of a row end at ${end} of ${bytes.length}`);
      this.#reader.check(start, end);
      this.#ends[i] = end;
    }
  }

  /**
   * @param {number} row
   * @returns {number | undefined} a number that differs after each change of the row; undefined if the block
   *   does not have the row
   */
  versionOf(row) {
    const place = this.#placeOf(row);
    return place < 0 ? undefined : this.#versions[place];
  }

  /**
   * @param {number} row
   * @returns {T | undefined} undefined if the block does not have the row
   */
  read(row) {
    const place = this.#placeOf(row);
    if (place < 0) return undefined;
    const end = this.#ends[place];
    return this.#reader.read(end - this.#rows[place * 2 + 1], end);
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
}

module.exports = { RowBlock, blockOf };
