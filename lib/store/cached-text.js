'use strict';

// Runs with the aggregator. Caches the text of a family. Most series of a large page do not change from one
// scrape to the next, so only changed rows are formatted again, and the text between them is copied in one
// piece.

const { widthOf } = require('../series/layouts');
const { grown, withSpace } = require('../series/row-array');
const { PIECE_CHARACTERS, takesLong } = require('../exposition/text-format');

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/formats').Format} Format */
/** @typedef {import('../exposition/page').Page} Page */

// Below this, formatting everything takes microseconds.
const MIN_ROWS = 64;

// A shorter run of unchanged rows is appended to the text of the changed ones, which saves two calls.
const SHORT_RUN_BYTES = 512;

// Rows between two points at which a slice may end.
const ROWS_PER_STEP = 4096;

// Most families are small and cache nothing.
const NO_BYTES = Buffer.alloc(0);
const NO_INTEGERS = new Int32Array(0);
const NO_NUMBERS = new Float64Array(0);

class CachedText {
  /** A key of everything that the text depends on, except its rows' values. */
  #key = '';
  #bytes = NO_BYTES;
  /** The number of cached rows; they are in the order of the text. */
  #count = 0;
  #rows = NO_INTEGERS;
  /** Where the text of each row ends. */
  #ends = NO_INTEGERS;
  /** @type {Float64Array} all numbers of each row */
  #numbers = NO_NUMBERS;

  /**
   * Prepares to write a family.
   *
   * @param {Family} family
   * @param {Format} format
   * @returns {format is Required<Format>} whether its text depends on its labels and numbers only, and is
   *   long enough to be cached
   */
  prepare(family, format) {
    if (format.rowWriter === undefined || takesLong(family)) return false;
    if (format.hasExemplars && family.exemplarAt !== undefined) return false;
    if (/** @type {Int32Array} */ (family.rows()).length < MIN_ROWS) return false;
    const head = /** @type {Required<Format>} */ (format).head(family);
    const key = [format.name, family.layout.marks, head].join('\n');
    if (key !== this.#key) this.#count = 0;
    this.#key = key;
    return true;
  }

  /**
   * Writes a family, without a line feed at its end, and caches its text.
   *
   * @param {Family} family for which prepare() has just returned true
   * @param {Required<Format>} format
   * @param {Page} page
   * @returns {Generator<void, void>} yields where a slice may end
   */
  *write(family, format, page) {
    const rows = /** @type {Int32Array} */ (family.rows());
    page.write(format.head(family));
    this.#reserve(rows.length, widthOf(family.layout));
    const start = page.length;
    const length = yield* this.#writeRows(family, rows, format.rowWriter(family), page);
    // Text that is not ASCII is not cached: its positions in bytes and in characters differ.
    if (page.length - start === length) this.#save(page.from(start), rows.length);
  }

  /**
   * @param {Family} family
   * @param {Int32Array} rows
   * @param {(row: number) => string} textOf
   * @param {Page} page
   * @returns {Generator<void, number>} how many characters were written
   */
  *#writeRows(family, rows, textOf, page) {
    const cached = this.#bytes;
    const ends = this.#ends;
    const count = this.#count;
    // Nothing is cached until the whole text has been written.
    this.#count = 0;
    const width = widthOf(family.layout);
    let length = 0;
    let text = '';
    let cachedEnd = 0;
    let [runStart, runEnd] = [0, 0];
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      const cachedStart = cachedEnd;
      if (i < count) cachedEnd = ends[i];
      const isCached = i < count && this.#rows[i] === row;
      if (this.#storeNumbers(i, width, family.pageOf(row), family.offsetOf(row)) && isCached) {
        if (runStart === runEnd) runStart = cachedStart;
        runEnd = cachedEnd;
        length += cachedEnd - cachedStart;
      } else {
        if (runEnd - runStart > SHORT_RUN_BYTES) {
          page.write(text);
          page.copyFrom(cached, runStart, runEnd);
          text = '';
        } else if (runStart < runEnd) {
          text += cached.toString('latin1', runStart, runEnd);
        }
        runStart = runEnd = 0;
        const rowText = textOf(row);
        text += rowText;
        length += rowText.length;
        if (text.length >= PIECE_CHARACTERS) {
          page.write(text);
          text = '';
          yield;
        }
      }
      this.#rows[i] = row;
      ends[i] = length;
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
    page.write(text);
    if (runStart < runEnd) page.copyFrom(cached, runStart, runEnd);
    return length;
  }

  /**
   * Stores a row's numbers.
   *
   * @param {number} i position of the row
   * @param {number} width
   * @param {ArrayLike<number>} page
   * @param {number} offset
   * @returns {boolean} whether they are unchanged; false for NaN
   */
  #storeNumbers(i, width, page, offset) {
    const numbers = this.#numbers;
    const start = i * width;
    let same = true;
    for (let column = 0; column < width; column++) {
      const number = page[offset + column];
      if (numbers[start + column] === number) continue;
      numbers[start + column] = number;
      same = false;
    }
    return same;
  }

  /**
   * @param {number} count rows
   * @param {number} width
   */
  #reserve(count, width) {
    if (this.#rows.length < count) {
      this.#rows = grown(this.#rows, count);
      this.#ends = grown(this.#ends, count);
    }
    this.#numbers = withSpace(this.#numbers, count * width);
  }

  /**
   * @param {Buffer} written
   * @param {number} count rows
   */
  #save(written, count) {
    // With spare capacity, because numbers become longer.
    if (this.#bytes.length < written.length)
      this.#bytes = Buffer.allocUnsafeSlow(written.length + (written.length >> 4));
    written.copy(this.#bytes);
    this.#count = count;
  }
}

module.exports = { CachedText };
