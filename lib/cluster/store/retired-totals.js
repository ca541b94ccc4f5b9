'use strict';

// What dead workers have counted in one family. Counters must not fall when a worker dies, so its last numbers stay,
// by the family's rows, with their error terms.

const { addTo, normalise } = require('./exact-sum');
const { mergeDigests } = require('../wire/digest');
const { widthOf, columnMap, unionOf, isSame } = require('./column-layout');

/** What stays of a dead worker, if its aggregator is 'sum'. */
const LASTING_TYPES = new Set(['counter', 'histogram', 'summary']);

/** A row that nothing was retired into. */
const NEVER = 0;

class RetiredTotals {
  #sums = new Float64Array(0);
  #errors = new Float64Array(0);
  /** @type {Float64Array} by row: when it was retired into or exposed last, milliseconds since the epoch */
  #lastSeen = new Float64Array(0);
  #count = 0;
  /** @type {Map<number, Float64Array>} by row, of a summary without a window */
  #digests = new Map();
  #width = 0;
  #layout = 'value';

  constructor() {
    /** Bounds or quantiles; all that were ever retired. */
    /** @type {number[]} */
    this.marks = [];
    /** Rises with each change of a digest. */
    this.version = 0;
  }

  get isEmpty() {
    return this.#count === 0;
  }

  /** Numbers a row. */
  get width() {
    return this.#width;
  }

  /**
   * Makes sure that a layout's bounds are among the columns.
   *
   * @param {string} layout
   * @param {readonly number[]} marks
   */
  includeMarks(layout, marks) {
    if (this.isEmpty) {
      this.#layout = layout;
      this.marks = [...marks];
      this.#width = widthOf(layout, marks.length);
      this.#sums.fill(0);
      this.#errors.fill(0);
      return;
    }
    const union = unionOf([this.marks, marks]);
    if (isSame(union, this.marks)) return;
    const columnOf = columnMap(this.#layout, this.marks, union);
    const width = widthOf(this.#layout, union.length);
    const rows = this.#lastSeen.length;
    const [sums, errors] = [new Float64Array(rows * width), new Float64Array(rows * width)];
    for (const row of this.rows()) {
      for (let column = 0; column < this.#width; column++) {
        const at = row * width + columnOf[column];
        // Added and not set: two equal bounds become one.
        addTo(sums, errors, at, this.#sums[row * this.#width + column]);
        errors[at] += this.#errors[row * this.#width + column];
      }
    }
    this.#sums = sums;
    this.#errors = errors;
    this.#width = width;
    this.marks = union;
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {number} value
   */
  add(row, column, value) {
    this.#makeRoom(row);
    const at = row * this.#width + column;
    addTo(this.#sums, this.#errors, at, value);
    normalise(this.#sums, this.#errors, at);
  }

  /**
   * Adds to the error term alone.
   *
   * @param {number} row
   * @param {number} column
   * @param {number} error
   */
  addError(row, column, error) {
    this.#errors[row * this.#width + column] += error;
  }

  /**
   * @param {number} row
   * @param {Float64Array} centroids
   */
  addDigest(row, centroids) {
    const known = this.#digests.get(row);
    this.#digests.set(row, known === undefined ? centroids.slice() : mergeDigests([known, centroids]));
    this.version++;
  }

  /**
   * Notes that a row was retired into, or that a live worker exposes it.
   *
   * @param {number} row
   * @param {number} now milliseconds since the epoch
   */
  touch(row, now) {
    this.#makeRoom(row);
    if (this.#lastSeen[row] === NEVER) this.#count++;
    this.#lastSeen[row] = now;
  }

  /** @param {number} row */
  has(row) {
    return row < this.#lastSeen.length && this.#lastSeen[row] !== NEVER;
  }

  /** @returns {Generator<number>} */
  *rows() {
    if (this.#count === 0) return;
    for (let row = 0; row < this.#lastSeen.length; row++) if (this.#lastSeen[row] !== NEVER) yield row;
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  sumAt(row, column) {
    return this.#sums[row * this.#width + column];
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  errorAt(row, column) {
    return this.#errors[row * this.#width + column];
  }

  /** @param {number} row */
  lastSeenAt(row) {
    return this.#lastSeen[row];
  }

  /** @param {number} row */
  digestOf(row) {
    return this.#digests.get(row);
  }

  /**
   * Drops rows that were seen last before a time.
   *
   * @param {number} oldest milliseconds since the epoch
   */
  drop(oldest) {
    for (const row of this.rows()) {
      if (this.#lastSeen[row] >= oldest) continue;
      this.#lastSeen[row] = NEVER;
      this.#sums.fill(0, row * this.#width, (row + 1) * this.#width);
      this.#errors.fill(0, row * this.#width, (row + 1) * this.#width);
      this.#digests.delete(row);
      this.#count--;
    }
  }

  /** @param {number[]} rows the old number of each row, in their new order */
  renumber(rows) {
    const [sums, errors, lastSeen, width] = [this.#sums, this.#errors, this.#lastSeen, this.#width];
    const digests = this.#digests;
    this.#sums = new Float64Array(rows.length * width);
    this.#errors = new Float64Array(rows.length * width);
    this.#lastSeen = new Float64Array(rows.length);
    this.#digests = new Map();
    rows.forEach((old, row) => {
      if (old >= lastSeen.length || lastSeen[old] === NEVER) return;
      this.#lastSeen[row] = lastSeen[old];
      this.#sums.set(sums.subarray(old * width, (old + 1) * width), row * width);
      this.#errors.set(errors.subarray(old * width, (old + 1) * width), row * width);
      const digest = digests.get(old);
      if (digest !== undefined) this.#digests.set(row, digest);
    });
  }

  /** @param {number} row */
  #makeRoom(row) {
    if (row < this.#lastSeen.length && this.#sums.length >= (row + 1) * this.#width) return;
    const rows = Math.max(row + 1, this.#lastSeen.length * 2, 8);
    this.#lastSeen = grown(this.#lastSeen, rows);
    this.#sums = grown(this.#sums, rows * this.#width);
    this.#errors = grown(this.#errors, rows * this.#width);
  }
}

/**
 * @param {Float64Array} numbers
 * @param {number} length
 */
function grown(numbers, length) {
  const longer = new Float64Array(Math.max(length, numbers.length));
  longer.set(numbers);
  return longer;
}

/**
 * @param {{type: string}} definition
 * @returns {boolean} whether what a metric has counted outlives its worker
 */
function isLasting({ type }) {
  return LASTING_TYPES.has(type);
}

module.exports = { RetiredTotals, isLasting };
