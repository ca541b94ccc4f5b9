'use strict';

// Moves the live rows of a table to a new index and new pages. Moving the label sets takes most of the time,
// so each step moves a few rows, while the table continues to record in the old rows. The numbers are copied
// in one step at the end, in about 3 ms for 100,000 rows.

const { LabelIndex } = require('./label-index');
const { LiveRows } = require('./live-rows');
const { MISSING } = require('./label-dictionary');
const { RowForms } = require('./label-form');
const { growPages, pageShiftOf } = require('./number-pages');
const { grown } = require('./row-array');
const { RowStarts, startOf } = require('./row-starts');

const ROWS_PER_STEP = 32;

/** @typedef {import('./series-table').SeriesTable} SeriesTable */

class Compaction {
  #oldIndex;
  /** By position: whether the new index shares the dictionary of the old one. */
  #shares;
  /** @type {Int32Array} by old row: its new number + 1, or 0 */
  #newRows;
  /** The old row that is checked next. */
  next = 0;
  /** @type {import('./series-table').RowMove | undefined} moves what rows have besides numbers */
  #move = undefined;
  /** @type {RowStarts | undefined} undefined if there is none, or one for all rows */
  #starts = undefined;

  /**
   * @param {SeriesTable} table
   * @param {readonly string[]} labelNames those of the table, and perhaps more
   */
  constructor(table, labelNames) {
    this.table = table;
    this.#oldIndex = table.index;
    this.index = new LabelIndex(labelNames);
    const dictionaries = this.#oldIndex?.dictionaries ?? [];
    // Giving every value a new id takes most of the time, so it is done only if most values are gone.
    this.#shares = dictionaries.map(({ values }) => values.length <= table.liveCount * 2);
    this.#shares.forEach((shares, i) => {
      if (shares) this.index.dictionaries[i] = dictionaries[i];
    });
    // Zeros are not written: the kernel provides the memory when it is used, and not all of it in the first
    // step.
    this.#newRows = new Int32Array(table.rowCount);
    /** @type {Float64Array[]} */
    this.pages = [];
    this.pageShift = pageShiftOf(table.width);
    this.rowForms = new RowForms();
    /** As of finish(). */
    this.starts = table.starts;
  }

  /**
   * Moves the label sets of a few rows.
   *
   * @returns {boolean} whether all are moved
   */
  step() {
    const { rowCount } = this.table;
    const end = Math.min(this.next + ROWS_PER_STEP, rowCount);
    for (; this.next < end; this.next++) if (this.table.isLive(this.next)) this.moveRow(this.next);
    return end === rowCount;
  }

  /**
   * @protected
   * @param {number} old a live row
   */
  moveRow(old) {
    this.newRowOf(old);
  }

  /**
   * Copies the numbers.
   *
   * @returns {LiveRows | undefined} the live rows by their new numbers; undefined if all rows are live and in
   *   order
   */
  finish() {
    const { table } = this;
    this.startCopying(typeof table.starts === 'object');
    const live = new LiveRows(table.liveCount);
    let isInOrder = true;
    for (const old of table.liveRows()) {
      const row = this.newRowOf(old);
      isInOrder &&= row === live.count;
      live.append(row);
      this.copyRow(old, row);
    }
    this.endCopying();
    return isInOrder && live.count === this.index.rowCount ? undefined : live;
  }

  /**
   * @protected
   * @param {boolean} hasStarts whether the table has a start for each row, or may get them before the
   *   compaction ends
   */
  startCopying(hasStarts) {
    this.#move = this.table.startMove();
    if (hasStarts) this.#starts = new RowStarts(new Int32Array(this.index.rowCount));
  }

  /**
   * @protected
   * @param {number} old a live row
   * @param {number} row its new number
   */
  copyRow(old, row) {
    this.#copyNumbers(old, row);
    this.rowForms.set(row, this.table.formOf(old));
    this.#starts?.set(row, startOf(/** @type {number} */ (this.table.starts), old));
    this.#move?.copy(old, row);
  }

  /** @protected */
  endCopying() {
    this.#move?.finish(this.index.rowCount);
    this.starts = typeof this.table.starts === 'object' ? this.#starts : this.table.starts;
  }

  /**
   * @param {number} old a live row
   * @returns {number} its new number, assigned by the first call
   */
  newRowOf(old) {
    if (old >= this.#newRows.length) this.#newRows = grown(this.#newRows, old + 1);
    if (this.#newRows[old] === 0) this.#newRows[old] = this.#add(old) + 1;
    return this.#newRows[old] - 1;
  }

  /** @param {number} old a removed row; if its label set comes back, it gets another row */
  forget(old) {
    const row = (this.#newRows[old] ?? 0) - 1;
    if (row === -1) return;
    this.#newRows[old] = 0;
    this.index.forget(row);
  }

  /**
   * @protected
   * @param {number} old
   * @returns {boolean} whether it has got a new number
   */
  isMoved(old) {
    return this.#newRows[old] > 0;
  }

  /**
   * @param {number} old
   * @returns {number} its new number
   */
  #add(old) {
    const { index } = this;
    const oldIndex = this.#oldIndex;
    index.ids.fill(MISSING);
    for (let i = 0; i < this.#shares.length; i++) {
      const id = /** @type {LabelIndex} */ (oldIndex).idAt(old, i);
      index.ids[i] =
        id === MISSING || this.#shares[i]
          ? id
          : index.dictionaries[i].add(/** @type {LabelIndex} */ (oldIndex).dictionaries[i].values[id]);
    }
    const row = index.addTuple();
    growPages(this.pages, row, this.table.width, this.pageShift);
    return row;
  }

  /**
   * @param {number} old
   * @param {number} row
   */
  #copyNumbers(old, row) {
    const { width, pages, pageShift, pageMask } = this.table;
    const source = pages[old >> pageShift];
    const target = this.pages[row >> this.pageShift];
    const from = (old & pageMask) * width;
    const to = (row & ((1 << this.pageShift) - 1)) * width;
    for (let i = 0; i < width; i++) target[to + i] = source[from + i];
  }
}

module.exports = { Compaction };
