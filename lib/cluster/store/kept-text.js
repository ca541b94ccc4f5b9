'use strict';

// The text of a family as it was written last. Most series of a large page do not change from one scrape to the next:
// what stands between two that did is copied in one go, and only changed rows are formatted again.

const { PIECE_CHARACTERS, headOf, rowWriter } = require('../../exposition/text-format');

/** @typedef {import('../../exposition/text-format').Family} Family */
/** @typedef {import('../../exposition/page').Page} Page */

// Below this, formatting everything takes microseconds.
const MIN_ROWS = 64;

// What stands between two changed rows and is no longer than this goes with their text: two calls less.
const SHORT_RUN_BYTES = 512;

// Between two looks at the clock, where others share the loop.
const ROWS_PER_STEP = 4096;

class KeptText {
  /** What else than its rows' values the text depends on; '' where nothing is kept. */
  #key = '';
  /** With so many rows, the text of this key was not ASCII alone: characters are no bytes then. */
  #wideFrom = Infinity;
  #bytes = Buffer.alloc(0);
  /** How many rows are kept, in the order of the text. */
  #count = 0;
  #rows = new Int32Array(0);
  /** Where the text of each row ends. */
  #ends = new Uint32Array(0);
  /** All numbers of each row. */
  #numbers = new Float64Array(0);

  /**
   * Prepares to write a family. Forgets what was kept of it, if that can be of no use.
   *
   * @param {Family} family
   * @param {boolean} openMetrics
   * @returns {boolean} whether its text follows from its labels and numbers alone, and is long enough to be kept
   */
  prepare(family, openMetrics) {
    const { kind } = family.layout;
    if (kind !== 'value' && kind !== 'histogram') return false;
    if (openMetrics && family.exemplarAt !== undefined) return false;
    const { length } = /** @type {Int32Array} */ (family.rows());
    if (length < MIN_ROWS) {
      this.#forget();
      return false;
    }
    this.#aimAt(keyOf(family, openMetrics));
    // The row that made it wide may have gone with others.
    return length < this.#wideFrom;
  }

  /**
   * Writes a family, without a line feed at its end, and keeps its text.
   *
   * @param {Family} family for which prepare() has just said yes
   * @param {boolean} openMetrics
   * @param {Page} page
   * @returns {Generator<void, void>} yields where others may have the loop
   */
  *write(family, openMetrics, page) {
    const rows = /** @type {Int32Array} */ (family.rows());
    page.write(headOf(family, openMetrics));
    this.#makeRoom(rows.length, widthOf(family.layout));
    const start = page.length;
    const length = yield* this.#writeRows(family, rows, rowWriter(family, openMetrics), page);
    if (page.length - start === length) {
      this.#keep(page.from(start), rows.length);
    } else {
      this.#forget();
      this.#wideFrom = rows.length;
    }
  }

  /**
   * @param {Family} family
   * @param {Int32Array} rows
   * @param {(row: number) => string} textOf
   * @param {Page} page
   * @returns {Generator<void, number>} how many characters were written
   */
  *#writeRows(family, rows, textOf, page) {
    const kept = this.#bytes;
    const ends = this.#ends;
    const count = this.#count;
    // Until it has been written whole, nothing of it is kept.
    this.#count = 0;
    const width = widthOf(family.layout);
    let length = 0;
    let text = '';
    let keptEnd = 0;
    let [runStart, runEnd] = [0, 0];
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      const keptStart = keptEnd;
      if (i < count) keptEnd = ends[i];
      const isKept = i < count && this.#rows[i] === row;
      if (this.#noteNumbers(i, width, family.pageOf(row), family.offsetOf(row)) && isKept) {
        if (runStart === runEnd) runStart = keptStart;
        runEnd = keptEnd;
        length += keptEnd - keptStart;
      } else {
        if (runEnd - runStart > SHORT_RUN_BYTES) {
          page.write(text);
          page.copyFrom(kept, runStart, runEnd);
          text = '';
        } else if (runStart < runEnd) {
          text += kept.toString('latin1', runStart, runEnd);
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
    if (runStart < runEnd) page.copyFrom(kept, runStart, runEnd);
    return length;
  }

  /**
   * Notes a row's numbers.
   *
   * @param {number} i position of the row
   * @param {number} width
   * @param {ArrayLike<number>} page
   * @param {number} offset
   * @returns {boolean} whether they are what they were; NaN is never
   */
  #noteNumbers(i, width, page, offset) {
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

  /** @param {string} key */
  #aimAt(key) {
    if (key === this.#key) return;
    this.#key = key;
    this.#wideFrom = Infinity;
    this.#count = 0;
  }

  /** Gives the memory back. */
  #forget() {
    if (this.#rows.length === 0) return;
    this.#count = 0;
    this.#bytes = Buffer.alloc(0);
    this.#rows = new Int32Array(0);
    this.#ends = new Uint32Array(0);
    this.#numbers = new Float64Array(0);
  }

  /**
   * @param {number} count rows
   * @param {number} width
   */
  #makeRoom(count, width) {
    if (this.#rows.length < count) {
      // Some more: series come one after the other.
      const capacity = count + (count >> 2);
      this.#rows = larger(this.#rows, new Int32Array(capacity));
      this.#ends = larger(this.#ends, new Uint32Array(capacity));
    }
    const numbers = this.#rows.length * width;
    if (this.#numbers.length < numbers) this.#numbers = larger(this.#numbers, new Float64Array(numbers));
  }

  /**
   * @param {Buffer} written
   * @param {number} count rows
   */
  #keep(written, count) {
    // Some more: counts grow longer.
    if (this.#bytes.length < written.length)
      this.#bytes = Buffer.allocUnsafeSlow(written.length + (written.length >> 4));
    written.copy(this.#bytes);
    this.#count = count;
  }
}

/**
 * All that the text depends on besides the rows and their numbers.
 *
 * @param {Family} family
 * @param {boolean} openMetrics
 */
function keyOf(family, openMetrics) {
  const { layout } = family;
  const bounds = layout.kind === 'histogram' ? layout.bounds : [];
  return [openMetrics, family.labelVersion, bounds, headOf(family, openMetrics)].join('\n');
}

/** @param {import('../../exposition/text-format').Layout} layout */
function widthOf(layout) {
  return layout.kind === 'histogram' ? layout.bounds.length + 2 : 1;
}

/**
 * @template {Int32Array | Uint32Array | Float64Array} T
 * @param {T} from
 * @param {T} to
 * @returns {T}
 */
function larger(from, to) {
  to.set(from);
  return to;
}

module.exports = { KeptText };
