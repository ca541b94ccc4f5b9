'use strict';

// The merged numbers of one family's rows, and which rows a scrape contains in which order. The arrays
// persist between scrapes.

const { stretchesOf } = require('./source-rows');
const { addTo, rounded } = require('../series/exact-sum');
const { VALUE_LAYOUT, kindOf, widthOf, rulesOf, columnMap, isSame, combined } = require('../series/layouts');

const ROWS_PER_STEP = 8192;

// Shared, because hundreds of families are created at once.
const NO_ROWS = new Int32Array(0);
const NO_NUMBERS = new Float64Array(0);
/** The order of one row. */
const ONE_ROW = new Int32Array(1);

/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('./family-quantiles').FamilyQuantiles} FamilyQuantiles */

class FamilyTotals {
  #quantiles;
  #buckets;
  #scrape = 0;
  /** @type {Int32Array} by row: the last scrape that contained it */
  #lastScrape = NO_ROWS;
  /** @type {Float64Array} by row and column: rounding errors of sums, or how many workers contributed */
  #errors = NO_NUMBERS;
  /** @type {Int32Array} rows of this scrape in output order */
  #order = NO_ROWS;
  #orderLength = 0;
  /** @type {import('../series/layouts').Layout} */
  #layout = VALUE_LAYOUT;
  #width = 1;

  /**
   * @param {FamilyQuantiles} quantiles that the sources' digests are added to
   * @param {import('./family-buckets').FamilyBuckets} [buckets] the same for sparse buckets
   */
  constructor(quantiles, buckets) {
    this.#quantiles = quantiles;
    this.#buckets = buckets;
    /** @type {Float64Array} by row and column */
    this.values = NO_NUMBERS;
  }

  /** @returns {Int32Array} rows of the last scrape in output order */
  get order() {
    return this.#order.subarray(0, this.#orderLength);
  }

  /**
   * Starts a scrape.
   *
   * @param {number} scrape its number
   * @param {number} rowCount of the family
   * @param {import('../series/layouts').Layout} layout
   */
  begin(scrape, rowCount, layout) {
    this.#scrape = scrape;
    this.#orderLength = 0;
    this.#layout = layout;
    this.#width = widthOf(layout);
    const numbers = rowCount * this.#width;
    if (this.values.length < numbers) {
      const capacity = Math.max(numbers, Math.min(this.values.length * 2, numbers * 2));
      this.values = new Float64Array(capacity);
      this.#errors = new Float64Array(capacity);
    }
    if (this.#lastScrape.length < rowCount) {
      const capacity = Math.max(rowCount, this.#lastScrape.length * 2);
      this.#lastScrape = new Int32Array(capacity);
      this.#order = capacity === 1 ? ONE_ROW : new Int32Array(capacity);
    }
  }

  /** Clears all rows, because they have been renumbered. */
  clear() {
    this.#lastScrape = NO_ROWS;
    this.#order = NO_ROWS;
    this.#orderLength = 0;
    this.values = this.#errors = NO_NUMBERS;
  }

  /**
   * Adds a row to the scrape.
   *
   * @param {number} row
   * @returns {boolean} whether it is the row's first occurrence
   */
  #include(row) {
    if (this.has(row)) return false;
    this.#lastScrape[row] = this.#scrape;
    this.#order[this.#orderLength++] = row;
    return true;
  }

  /**
   * Adds a source whose rows are translated.
   *
   * @param {Source} source
   * @returns {Generator<void, void>} yields where a slice may end
   */
  *addSum(source) {
    for (const stretch of stretchesOf(source)) yield* this.#addStretch(source, stretch);
  }

  /**
   * @param {Source} source
   * @param {import('./source-rows').Stretch} stretch
   * @returns {Generator<void, void>}
   */
  *#addStretch({ workerId, definition, rows, order, extras }, { columns, first, from, to }) {
    const { digestOf, buckets } = extras;
    const totals = this.values;
    const errors = this.#errors;
    const width = this.#width;
    const rules = rulesOf(this.#layout);
    const same = isSame(definition.layout.marks, this.#layout.marks);
    const columnOf = same ? undefined : columnMap(definition.layout, this.#layout.marks);
    const ownWidth = widthOf(definition.layout);
    for (let i = from; i < to; i++) {
      const row = order === undefined ? i : order[i];
      const familyRow = rows.rows[row];
      const own = (row - first) * ownWidth;
      const start = familyRow * width;
      if (this.#include(familyRow)) {
        for (let column = 0; column < width; column++) {
          totals[start + column] = columnOf === undefined ? columns[own + column] : 0;
          errors[start + column] = 0;
        }
        if (columnOf !== undefined)
          for (let c = 0; c < ownWidth; c++) totals[start + columnOf[c]] += columns[own + c];
      } else {
        for (let c = 0; c < ownWidth; c++) {
          const at = columnOf === undefined ? start + c : start + columnOf[c];
          if (rules === undefined) addTo(totals, errors, at, columns[own + c]);
          else this.#combine(rules[at - start], at, columns[own + c]);
        }
      }
      if (digestOf !== undefined)
        this.#quantiles.contribute(familyRow, workerId, digestOf(row), columns[own + ownWidth - 1]);
      if (buckets !== undefined) this.#buckets?.contribute(familyRow, workerId, buckets, row);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /**
   * @param {import('../series/layouts').Rule} rule
   * @param {number} at
   * @param {number} value
   */
  #combine(rule, at, value) {
    if (rule === 'sum') addTo(this.values, this.#errors, at, value);
    else this.values[at] = combined(rule, this.values[at], value);
  }

  /**
   * @param {number} row
   * @returns {boolean} whether a source of this scrape has it
   */
  has(row) {
    return this.#lastScrape[row] === this.#scrape;
  }

  /**
   * Rounds each sum with its error.
   *
   * @returns {Generator<void, void>} yields where a slice may end
   */
  *round() {
    const totals = this.values;
    const errors = this.#errors;
    const width = this.#width;
    for (let i = 0; i < this.#orderLength; i++) {
      const from = this.#order[i] * width;
      for (let at = from; at < from + width; at++) totals[at] = rounded(totals[at], errors[at]);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /**
   * Adds a source by a rule other than the sum. These rules apply to the values as exposed, so buckets are
   * cumulative.
   *
   * @param {Source} source
   * @param {string} rule
   * @returns {Generator<void, void>} yields where a slice may end
   */
  *addByRule(source, rule) {
    for (const stretch of stretchesOf(source)) yield* this.#addStretchByRule(source, stretch, rule);
  }

  /**
   * @param {Source} source
   * @param {import('./source-rows').Stretch} stretch
   * @param {string} rule
   * @returns {Generator<void, void>}
   */
  *#addStretchByRule({ workerId, definition, rows, order, extras }, { columns, first, from, to }, rule) {
    const { digestOf, buckets } = extras;
    const totals = this.values;
    const contributions = this.#errors;
    const width = this.#width;
    const { layout } = definition;
    const columnOf = columnMap(layout, this.#layout.marks);
    const cumulated = this.#cumulated;
    const ownWidth = columnOf.length;
    const values = new Float64Array(width);
    for (let i = from; i < to; i++) {
      const row = order === undefined ? i : order[i];
      const familyRow = rows.rows[row];
      const own = (row - first) * ownWidth;
      const start = familyRow * width;
      values.fill(0);
      for (let c = 0; c < ownWidth; c++) values[columnOf[c]] += columns[own + c];
      for (let c = 1; c < cumulated; c++) values[c] += values[c - 1];
      if (this.#include(familyRow)) {
        totals.set(values, start);
        contributions.fill(1, start, start + width);
      } else if (rule !== 'first') {
        for (let c = 0; c < width; c++) {
          totals[start + c] = combined(rule, totals[start + c], values[c]);
          contributions[start + c]++;
        }
      }
      if (digestOf !== undefined)
        this.#quantiles.contribute(familyRow, workerId, digestOf(row), columns[own + ownWidth - 1]);
      if (buckets !== undefined) this.#buckets?.contribute(familyRow, workerId, buckets, row);
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /**
   * Completes what addByRule() has added: divides averages, and makes bucket counts non-cumulative again.
   *
   * @param {string} rule
   */
  finishRule(rule) {
    if (rule === 'average') this.#divide();
    this.#undoCumulation();
  }

  /** How many columns are cumulated. */
  get #cumulated() {
    return kindOf(this.#layout).isCumulative ? this.#layout.marks.length + 1 : 0;
  }

  #divide() {
    const width = this.#width;
    for (let i = 0; i < this.#orderLength; i++) {
      const from = this.#order[i] * width;
      for (let at = from; at < from + width; at++) this.values[at] /= this.#errors[at];
    }
  }

  #undoCumulation() {
    const width = this.#width;
    for (let i = 0; i < this.#orderLength; i++) {
      const from = this.#order[i] * width;
      for (let c = this.#cumulated - 1; c > 0; c--) this.values[from + c] -= this.values[from + c - 1];
    }
  }
}

module.exports = { FamilyTotals };
