'use strict';

// The merged numbers of one family's rows, and which rows a scrape contains in which order. The arrays
// persist between scrapes.

const { stretchesOf } = require('./source-rows');
const { grown, withSpace } = require('../series/row-array');
const { addTo, rounded } = require('../series/exact-sum');
const { VALUE_LAYOUT, kindOf, widthOf, rulesOf, columnMap, isSame, combined } = require('../series/layouts');

const ROWS_PER_STEP = 8192;

// Shared, because hundreds of families are created at once.
const NO_ROWS = new Int32Array(0);
const NO_NUMBERS = new Float64Array(0);

/** @typedef {import('./cluster-family').Source} Source */

class FamilyTotals {
  #extras;
  #scrape = 0;
  /** @type {Int32Array} by row: the last scrape that contained it */
  #lastScrape = NO_ROWS;
  /** @type {Float64Array} by row and column: rounding errors of sums, or how many workers an average has */
  #errors = NO_NUMBERS;
  /** @type {Int32Array} rows of this scrape in output order */
  #order = NO_ROWS;
  #orderLength = 0;
  /** @type {import('../series/layouts').Layout} */
  #layout = VALUE_LAYOUT;
  #width = 1;
  /** Name of a built-in aggregator. */
  #rule = 'sum';
  /** @type {string[] | undefined} by column; undefined if all are added up */
  #rules = undefined;
  /** How many columns are cumulated on a page. */
  #cumulated = 0;

  /** @param {import('./family-extras').FamilyExtras<any, any>} extras to which those of sources are added */
  constructor(extras) {
    this.#extras = extras;
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
   * @param {string} rule name of a built-in aggregator
   */
  begin(scrape, rowCount, layout, rule) {
    this.#scrape = scrape;
    this.#orderLength = 0;
    this.#layout = layout;
    this.#width = widthOf(layout);
    this.#rule = rule;
    this.#rules = rule === 'sum' ? rulesOf(layout) : new Array(this.#width).fill(rule);
    this.#cumulated = kindOf(layout).isCumulative ? layout.marks.length + 1 : 0;
    this.values = withSpace(this.values, rowCount * this.#width);
    this.#errors = withSpace(this.#errors, rowCount * this.#width);
    if (this.#lastScrape.length < rowCount) {
      this.#lastScrape = grown(this.#lastScrape, rowCount);
      this.#order = grown(this.#order, rowCount);
    }
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
  *add(source) {
    for (const stretch of stretchesOf(source)) yield* this.#addStretch(source, stretch);
  }

  /**
   * @param {Source} source
   * @param {import('./source-rows').Stretch} stretch
   * @returns {Generator<void, void>}
   */
  *#addStretch({ workerId, definition, rows, order, extras }, { columns, first, from, to }) {
    const { digestOf, buckets } = extras;
    const { layout } = definition;
    const { marks } = this.#layout;
    const isSum = this.#rule === 'sum';
    const columnOf = isSum && isSame(layout.marks, marks) ? undefined : columnMap(layout, marks);
    const ownWidth = widthOf(layout);
    for (let i = from; i < to; i++) {
      const row = order[i];
      const familyRow = rows.rows[row];
      const own = (row - first) * ownWidth;
      if (isSum) this.#addRow(familyRow, columns, own, ownWidth, columnOf);
      else this.#addRow(familyRow, this.#asShown(columns, own, columnOf), 0, this.#width, undefined);
      if (digestOf !== undefined) {
        const digest = digestOf(row);
        const version = 'version' in digest ? digest.version : NaN;
        const weight = columns[own + ownWidth - 1];
        this.#extras.contribute(familyRow, workerId, version, { digest, weight });
      }
      if (buckets !== undefined)
        this.#extras.contribute(familyRow, workerId, buckets.changesOf(row) ?? NaN, { buckets, row });
      if ((i + 1) % ROWS_PER_STEP === 0) yield;
    }
  }

  /**
   * @param {number} row of the family
   * @param {Float64Array} columns
   * @param {number} own where those of the row are
   * @param {number} ownWidth
   * @param {number[] | undefined} columnOf undefined if the columns are those of the family
   */
  #addRow(row, columns, own, ownWidth, columnOf) {
    const totals = this.values;
    const errors = this.#errors;
    const width = this.#width;
    const rules = this.#rules;
    const start = row * width;
    if (this.#include(row)) {
      for (let column = 0; column < width; column++) {
        totals[start + column] = columnOf === undefined ? columns[own + column] : 0;
        errors[start + column] = 0;
      }
      if (columnOf !== undefined)
        for (let c = 0; c < ownWidth; c++) totals[start + columnOf[c]] += columns[own + c];
      return;
    }
    for (let c = 0; c < ownWidth; c++) {
      const at = columnOf === undefined ? start + c : start + columnOf[c];
      if (rules === undefined) addTo(totals, errors, at, columns[own + c]);
      else this.#combine(rules[at - start], at, columns[own + c]);
    }
  }

  /**
   * Other rules than the sum apply to values as they are exposed, so buckets are cumulated.
   *
   * @param {Float64Array} columns
   * @param {number} own where those of the row are
   * @param {number[] | undefined} columnOf
   * @returns {Float64Array}
   */
  #asShown(columns, own, columnOf = []) {
    const values = new Float64Array(this.#width);
    for (let c = 0; c < columnOf.length; c++) values[columnOf[c]] += columns[own + c];
    for (let c = 1; c < this.#cumulated; c++) values[c] += values[c - 1];
    return values;
  }

  /**
   * @param {string} rule
   * @param {number} at
   * @param {number} value
   */
  #combine(rule, at, value) {
    if (rule === 'sum') addTo(this.values, this.#errors, at, value);
    else this.values[at] = combined(rule, this.values[at], value);
    if (rule === 'average') this.#errors[at]++;
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
   * Completes what another rule than the sum has added: divides averages, and undoes the cumulation of
   * buckets.
   */
  finishRule() {
    const width = this.#width;
    for (const row of this.order) {
      const from = row * width;
      if (this.#rule === 'average')
        for (let at = from; at < from + width; at++) this.values[at] /= this.#errors[at] + 1;
      for (let at = from + this.#cumulated - 1; at > from; at--) this.values[at] -= this.values[at - 1];
    }
  }
}

module.exports = { FamilyTotals };
