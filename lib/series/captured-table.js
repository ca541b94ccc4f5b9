'use strict';

const { SeriesTable } = require('./series-table');
const { startsAreRead, startOf, copyOfStarts } = require('./row-starts');

/** @type {readonly string[]} */
const NO_NAMES = Object.freeze([]);

/**
 * A table as it was at one moment, to be read piece by piece: its rows, their labels, numbers and starts.
 * Takes about 0.3 ms for 100,000 numbers. Numbers, order and starts are copied. The label sets are
 * not, because a row keeps its label set as long as the index exists. If it is removed and comes back, only
 * the order of its labels may be another one.
 */
class CapturedTable extends SeriesTable {
  #live;

  /** @param {SeriesTable} table */
  constructor({ width, index, forms, pages, pageShift, pageMask, rowCount, live, starts }) {
    super(NO_NAMES, width);
    this.index = index;
    const { names, list, rows } = forms;
    this.forms = /** @type {any} */ ({ names, list, rows });
    this.pages = pages.map(page => page.slice());
    this.pageShift = pageShift;
    this.pageMask = pageMask;
    this.rowCount = rowCount;
    this.#live = live?.rows();
    this.starts = starts && copyOfStarts(starts, rowCount);
    startsAreRead();
  }

  /** @returns {Generator<number>} */
  liveRows() {
    return this.#live === undefined ? super.liveRows() : /** @type {any} */ (this.#live.values());
  }

  /** @param {number} row */
  startAt(row) {
    return startOf(this.starts ?? 0, row);
  }
}

module.exports = { CapturedTable };
