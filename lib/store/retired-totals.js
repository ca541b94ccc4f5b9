'use strict';

// The totals of dead workers in one family. A counter must not fall when a worker dies, so the worker's last
// numbers are added here, by the family's rows, with their rounding errors.

const { addTo, normalise } = require('../series/exact-sum');
const { mergeDigests } = require('../metric/centroids');
const { VALUE_LAYOUT, widthOf, rulesOf, columnMap, unionOf, isSame, combined } = require('../series/layouts');

/** Marks a row without retired totals. */
const NEVER = 0;

const NO_NUMBERS = new Float64Array(0);
/** @type {Map<number, Float64Array>} of a family that has none: an empty Map takes 200 bytes */
const NO_DIGESTS = new Map();

class RetiredTotals {
  #sums = NO_NUMBERS;
  #errors = NO_NUMBERS;
  /** @type {Float64Array} by row: when a worker with it was retired or a live worker exposed it last, in
   *   milliseconds, by the store's clock */
  #lastSeen = NO_NUMBERS;
  #count = 0;
  /** @type {Map<number, Float64Array>} by row, of a summary without a window */
  #digests = NO_DIGESTS;
  #width = 0;
  /** @type {import('../series/layouts').Rule[] | undefined} by column; undefined if all are added up */
  #rules = undefined;

  constructor() {
    /** @type {import('../series/layouts').Layout} with all marks that were ever retired */
    this.layout = VALUE_LAYOUT;
    /** Increases with each change of a digest. */
    this.version = 0;
  }

  get isEmpty() {
    return this.#count === 0;
  }

  /** How many numbers there are. */
  get size() {
    return this.#count * this.#width;
  }

  /** Numbers per row. */
  get width() {
    return this.#width;
  }

  /**
   * Adds columns for the marks that are missing.
   *
   * @param {import('../series/layouts').Layout} layout
   */
  addColumns(layout) {
    if (this.isEmpty) {
      this.#setLayout(layout);
      this.#sums.fill(0);
      this.#errors.fill(0);
      return;
    }
    const marks = unionOf([this.layout.marks, layout.marks]);
    if (isSame(marks, this.layout.marks)) return;
    const columnOf = columnMap(this.layout, marks);
    const union = { kind: layout.kind, marks };
    const width = widthOf(union);
    const rows = this.#lastSeen.length;
    const [sums, errors] = [new Float64Array(rows * width), new Float64Array(rows * width)];
    for (const row of this.rows()) {
      for (let column = 0; column < this.#width; column++) {
        const at = row * width + columnOf[column];
        // Added and not set, because two equal bounds become one.
        addTo(sums, errors, at, this.#sums[row * this.#width + column]);
        errors[at] += this.#errors[row * this.#width + column];
      }
    }
    this.#sums = sums;
    this.#errors = errors;
    this.#setLayout(union);
  }

  /** @param {import('../series/layouts').Layout} layout */
  #setLayout(layout) {
    this.layout = layout;
    this.#width = widthOf(layout);
    this.#rules = rulesOf(layout);
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {number} value
   */
  add(row, column, value) {
    this.#makeRoom(row);
    const at = row * this.#width + column;
    const rule = this.#rules?.[column] ?? 'sum';
    if (rule !== 'sum') {
      this.#sums[at] = this.has(row) ? combined(rule, this.#sums[at], value) : value;
      return;
    }
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
    if (this.#digests === NO_DIGESTS) this.#digests = new Map();
    const present = this.#digests.get(row);
    this.#digests.set(row, present === undefined ? centroids.slice() : mergeDigests([present, centroids]));
    this.version++;
  }

  /**
   * Records that a worker with this row was retired, or that a live worker exposes the row.
   *
   * @param {number} row
   * @param {number} now milliseconds, by the store's clock
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
   * Drops rows that were last seen before a given time.
   *
   * @param {number} oldest milliseconds, by the store's clock
   */
  drop(oldest) {
    for (const row of this.rows()) if (this.#lastSeen[row] < oldest) this.remove(row);
  }

  /** @param {number} row that has totals */
  remove(row) {
    this.#lastSeen[row] = NEVER;
    this.#sums.fill(0, row * this.#width, (row + 1) * this.#width);
    this.#errors.fill(0, row * this.#width, (row + 1) * this.#width);
    this.#digests.delete(row);
    this.#count--;
  }

  /** @param {number[]} rows the old row numbers, in the new order */
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

module.exports = { RetiredTotals };
