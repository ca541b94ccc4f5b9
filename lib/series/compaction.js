'use strict';

// Moves the live rows of a table to a new index and new pages, without a long step: each step moves a few
// rows, while the table continues to record in the old ones. The table notes each row that is used meanwhile,
// and it is copied again.

const { LabelIndex } = require('./label-index');
const { LiveRows } = require('./live-rows');
const { MISSING } = require('./label-dictionary');
const { RowForms } = require('./label-form');
const { growPages, pageShiftOf } = require('./number-pages');
const { grown } = require('./row-array');
const { RowStarts, startOf } = require('./row-starts');

const ROWS_PER_STEP = 32;
const CHANGED_PER_STEP = 64;

/** @typedef {import('./series-table').SeriesTable} SeriesTable */

class Compaction {
  #table;
  #live;
  #oldIndex;
  /** By position: whether the new index shares the dictionary of the old one. */
  #shares;
  /** @type {Int32Array} by old row: its new number + 1, or 0 */
  #newRows;
  /** The place in the order of live rows that is moved next. */
  next = 0;
  /** @type {Set<number>} old rows that were used or started, perhaps after they were moved */
  #changed = new Set();
  /** How many there were after the last step. */
  #left = 0;
  /** Whether rows were removed, perhaps after they were moved. */
  isReordered = false;
  /** Move what rows have besides numbers. */
  #moves;
  /** @type {RowStarts | undefined} undefined if the table needs none */
  #starts;

  /**
   * @param {SeriesTable} table with `live`
   * @param {readonly string[]} labelNames those of the table, and perhaps more
   */
  constructor(table, labelNames) {
    this.#table = table;
    this.#live = /** @type {LiveRows} */ (table.live);
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
    // Even if all rows have the same start, because that may change before the compaction ends.
    this.#starts = table.starts === undefined ? undefined : new RowStarts(new Int32Array(0));
    this.#moves = table.startMoves();
  }

  /**
   * Moves a few rows, then those that were used since they were moved.
   *
   * @returns {boolean} whether all are moved
   */
  step() {
    const { order, length } = this.#live;
    const end = Math.min(this.next + ROWS_PER_STEP, length);
    for (; this.next < end; this.next++) this.#moveRow(order[this.next]);
    const isLast = this.next >= length;
    if (isLast) this.#moveChanged();
    this.#left = this.#changed.size;
    // Children that are bound to rows must bind again, so that their next use is noted.
    this.#table.rebind();
    return isLast && this.#left === 0;
  }

  /** Moves more rows than were used since the last step, so the compaction ends however many these are. */
  #moveChanged() {
    let most = this.#changed.size - this.#left + CHANGED_PER_STEP;
    for (const old of this.#changed) {
      if (most-- === 0) return;
      this.#changed.delete(old);
      this.#moveRow(old);
    }
  }

  /**
   * To be called whenever a row may change or start.
   *
   * @param {number} old
   */
  note(old) {
    this.#changed.add(old);
  }

  /** @param {number} old a row; below 0 for none */
  #moveRow(old) {
    if (old < 0 || !this.#live.has(old)) return;
    const row = this.newRowOf(old);
    this.#copyNumbers(old, row);
    this.rowForms.set(row, this.#table.formOf(old));
    this.#starts?.set(row, startOf(/** @type {import('./row-starts').Starts} */ (this.#table.starts), old));
    for (const move of this.#moves) move.copy(old, row);
  }

  /**
   * To be called after the last step.
   *
   * @returns {LiveRows | undefined} the live rows by their new numbers; undefined if all rows are live and in
   *   order
   */
  finish() {
    const { rowCount } = this.index;
    for (const move of this.#moves) move.finish(rowCount);
    const { starts } = this.#table;
    this.starts = typeof starts === 'object' ? this.#starts : starts;
    if (!this.isReordered) return undefined;
    const rows = this.#live.rows();
    for (let i = 0; i < rows.length; i++) rows[i] = this.newRowOf(rows[i]);
    return LiveRows.of(rows, rowCount);
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
    growPages(this.pages, row, this.#table.width, this.pageShift);
    return row;
  }

  /**
   * @param {number} old
   * @param {number} row
   */
  #copyNumbers(old, row) {
    const { width, pages, pageShift, pageMask } = this.#table;
    const source = pages[old >> pageShift];
    const target = this.pages[row >> this.pageShift];
    const from = (old & pageMask) * width;
    const to = (row & ((1 << this.pageShift) - 1)) * width;
    for (let i = 0; i < width; i++) target[to + i] = source[from + i];
  }
}

module.exports = { Compaction };
