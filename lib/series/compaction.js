'use strict';

// Moves the live rows of a table to a new index and new pages, a few rows in each step. Meanwhile the table
// goes on recording in the old ones, and reports each row that is about to be written to or removed. A row
// that was written to is copied again, so the last step has few rows to copy.

const { LabelIndex } = require('./label-index');
const { LiveRows } = require('./live-rows');
const { MISSING } = require('./label-dictionary');
const { RowForms } = require('./label-form');
const { growPages, pageShiftOf } = require('./number-pages');
const { grown } = require('./row-array');

const ROWS_PER_STEP = 32;
/** The last step copies up to this many rows that were written to. */
const ROWS_OF_LAST_STEP = 1024;
const NOT_MOVED = 0;
/** A row that was removed before it was moved: if it is used again, it belongs to the end of the order. */
const REMOVED = -1;

/** @typedef {import('./series-table').SeriesTable} SeriesTable */
/** @typedef {import('./series-table').RowMove} RowMove */

class Compaction {
  #table;
  #oldIndex;
  /** By position: whether the new index shares the dictionary of the old one. */
  #shares;
  /** @type {Int32Array} by old row: its new number + 1, or NOT_MOVED, or REMOVED */
  #newRows;
  /** @type {Int32Array} by old row: its last place in `#written` + 1, or 0 */
  #places;
  /** @type {number[]} old rows that have to be copied (again), from `#copied` on */
  #written = [];
  #copied = 0;
  /** @type {LiveRows | undefined} the new rows that are live; undefined while that is all, in order */
  #live = undefined;
  /** @type {RowMove | undefined} of what the table's listener has of each row */
  #move;
  #steps;

  /**
   * @param {SeriesTable} table
   * @param {readonly string[]} labelNames those of the table, and perhaps more
   */
  constructor(table, labelNames) {
    this.#table = table;
    this.#oldIndex = table.index;
    this.index = new LabelIndex(labelNames);
    const dictionaries = this.#oldIndex?.dictionaries ?? [];
    // To give every value a new id takes most of the time: it is done only where most values are gone.
    this.#shares = dictionaries.map(({ values }) => values.length <= table.liveCount * 2);
    this.#shares.forEach((shares, i) => {
      if (shares) this.index.dictionaries[i] = dictionaries[i];
    });
    // Zeros: the kernel provides their memory when it is used, not all of it in the first step.
    this.#newRows = new Int32Array(table.rowCount);
    this.#places = new Int32Array(table.rowCount);
    this.#move = table.listener?.startMove();
    /** @type {Float64Array[]} */
    this.pages = [];
    this.pageShift = pageShiftOf(table.width);
    this.rowForms = new RowForms();
    this.#steps = this.#copyInSteps();
  }

  /**
   * Copies a few rows.
   *
   * @returns {boolean} whether so few rows are left that finish() can copy them
   */
  step() {
    return this.#steps.next().done === true;
  }

  /** @returns {Generator<void>} */
  *#copyInSteps() {
    const { live } = this.#table;
    // A copy: the table closes the gaps of its own order when it needs space.
    const order = live?.order.slice(0, live.length);
    const count = order === undefined ? this.#table.rowCount : order.length;
    yield;
    for (let start = 0; start < count; start += ROWS_PER_STEP) {
      const end = Math.min(start + ROWS_PER_STEP, count);
      for (let i = start; i < end; i++) {
        const old = order === undefined ? i : order[i];
        if (old >= 0 && this.#newRows[old] === NOT_MOVED) this.#copy(old);
      }
      yield;
    }
    // A program that writes to more rows than are copied would never let this end.
    for (let step = 0; step * ROWS_PER_STEP < count && this.#left > ROWS_OF_LAST_STEP; step++) {
      this.#copyWritten(ROWS_PER_STEP);
      yield;
    }
  }

  /** @param {number} old a live row that is about to be written to, or has just become live */
  rowWritten(old) {
    if (old >= this.#newRows.length) this.#growRows(old);
    if (this.#places[old] === 0) this.#places[old] = this.#written.push(old);
  }

  /** @param {number} old a live row that is removed */
  rowRemoved(old) {
    if (old >= this.#newRows.length) this.#growRows(old);
    this.#places[old] = 0;
    const row = this.#newRows[old] - 1;
    if (row < 0) {
      this.#newRows[old] = REMOVED;
      return;
    }
    this.#live ??= LiveRows.all(this.index.rowCount);
    if (this.#live.has(row)) this.#live.remove(row);
  }

  /**
   * Copies the rows that are left.
   *
   * @returns {LiveRows | undefined} the live rows by their new numbers; undefined if they are all, in order
   */
  finish() {
    this.#copyWritten(this.#left);
    this.#move?.finish(this.index.rowCount);
    return this.#live;
  }

  /**
   * @param {number} old
   * @returns {number} its new number; negative if it was not moved
   */
  newRowOf(old) {
    return old < this.#newRows.length ? this.#newRows[old] - 1 : -1;
  }

  /** How many rows are to be copied (again). */
  get #left() {
    return this.#written.length - this.#copied;
  }

  /** @param {number} count of rows, at most */
  #copyWritten(count) {
    const end = Math.min(this.#copied + count, this.#written.length);
    for (let i = this.#copied; i < end; i++) {
      const old = this.#written[i];
      // Otherwise it was removed after that.
      if (this.#places[old] !== i + 1) continue;
      this.#places[old] = 0;
      this.#copy(old);
    }
    this.#copied = end;
  }

  /** @param {number} old a row of which all is copied. It gets a new number the first time */
  #copy(old) {
    let row = this.#newRows[old] - 1;
    if (row < 0) row = this.#add(old);
    if (this.#live !== undefined && !this.#live.has(row)) this.#live.append(row);
    this.#copyNumbers(old, row);
    this.rowForms.set(row, this.#table.formOf(old));
    this.#move?.copy(old, row);
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
    this.#newRows[old] = row + 1;
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

  /** @param {number} old */
  #growRows(old) {
    this.#newRows = grown(this.#newRows, old + 1);
    this.#places = grown(this.#places, old + 1);
  }
}

module.exports = { Compaction };
