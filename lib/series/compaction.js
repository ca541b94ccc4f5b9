'use strict';

// Moves the live rows of a table to a new index and new pages, a few rows at a time. The table goes on recording in the
// old ones meanwhile. The last step moves what came since, copies all numbers once more and hands over.

const { LabelIndex } = require('./label-index');
const { LiveRows } = require('./live-rows');
const { MISSING } = require('./label-dictionary');

const ROWS_PER_STEP = 32;
const NOT_MOVED = -1;

/** @typedef {import('./series-table').SeriesTable} SeriesTable */

class Compaction {
  #table;
  #oldIndex;
  /** By position: whether the new index shares the dictionary of the old one. */
  #shares;
  /** @type {Int32Array} by old row */
  #newRows;
  #live;
  /** How many live rows the current pass has met, and whether their new numbers rise one by one. */
  #visited = 0;
  #isInOrder = true;

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
    this.#live = table.live ?? LiveRows.all(table.rowCount);
    this.#newRows = new Int32Array(table.rowCount).fill(NOT_MOVED);
    /** @type {number[]} the old number of each new row */
    this.rows = [];
    /** @type {Float64Array[]} */
    this.pages = [];
  }

  /** @returns {Generator<void>} ends when all rows have been moved that were live on the way */
  *steps() {
    for (let start = 0; start < this.#live.length; start += ROWS_PER_STEP) {
      const moved = this.rows.length;
      this.#moveRows(start);
      // Copied again at the end. This copy makes the kernel provide the memory, and V8 compile the loop, before that.
      this.#copyNumbers(moved, this.rows.length);
      yield;
    }
  }

  /**
   * Moves the rows that became live since, and copies the numbers of all.
   *
   * @returns {LiveRows | undefined} the live rows by their new numbers; undefined if they are all, in order
   */
  finish() {
    const { order } = this.#live;
    this.#visited = 0;
    this.#isInOrder = true;
    for (let start = 0; start < this.#live.length; start += ROWS_PER_STEP) this.#moveRows(start);
    for (let row = 0; row < this.rows.length; row += ROWS_PER_STEP) {
      this.#copyNumbers(row, Math.min(row + ROWS_PER_STEP, this.rows.length));
    }
    if (this.#isInOrder && this.#visited === this.rows.length) return undefined;
    const live = new LiveRows(this.rows.length);
    for (let i = 0; i < this.#live.length; i++) if (order[i] >= 0) live.append(this.#newRows[order[i]]);
    return live;
  }

  /**
   * @param {number} old
   * @returns {number} its new number; -1 if it was not moved
   */
  newRowOf(old) {
    return old < this.#newRows.length ? this.#newRows[old] : NOT_MOVED;
  }

  /** @param {number} start in the order of live rows, of which the next ROWS_PER_STEP are moved */
  #moveRows(start) {
    const { order } = this.#live;
    const end = Math.min(start + ROWS_PER_STEP, this.#live.length);
    for (let i = start; i < end; i++) {
      const old = order[i];
      if (old < 0) continue;
      if (old >= this.#newRows.length) this.#growNewRows(old);
      // A row that was moved before, removed and used again stays where it is.
      if (this.#newRows[old] === NOT_MOVED) this.#move(old);
      if (this.#newRows[old] !== this.#visited) this.#isInOrder = false;
      this.#visited++;
    }
  }

  /** @param {number} old */
  #move(old) {
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
    this.#newRows[old] = row;
    this.rows.push(old);
    this.#table.growPages(this.pages, row);
  }

  /** @param {number} old */
  #growNewRows(old) {
    const newRows = new Int32Array(old * 2).fill(NOT_MOVED);
    newRows.set(this.#newRows);
    this.#newRows = newRows;
  }

  /**
   * @param {number} start a new row
   * @param {number} end
   */
  #copyNumbers(start, end) {
    const { width, pages, pageShift, pageMask, labelledPageShift } = this.#table;
    const mask = (1 << labelledPageShift) - 1;
    for (let row = start; row < end; row++) {
      const old = this.rows[row];
      const source = pages[old >> pageShift];
      const target = this.pages[row >> labelledPageShift];
      const from = (old & pageMask) * width;
      const to = (row & mask) * width;
      for (let i = 0; i < width; i++) target[to + i] = source[from + i];
    }
  }
}

module.exports = { Compaction };
