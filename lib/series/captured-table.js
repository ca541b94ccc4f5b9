'use strict';

const { startsAreRead, startOf, copyOfStarts } = require('./row-starts');

/** @typedef {import('./label-index').LabelIndex} LabelIndex */

/**
 * A table as it was at one moment, to be read piece by piece. Numbers, order and forms are copied. The label
 * sets are not, because a row keeps its label set as long as the index exists.
 */
class CapturedTable {
  /** @param {import('./series-table').SeriesTable} table */
  constructor(table) {
    this.labelNames = table.labelNames;
    this.index = table.index;
    this.forms = table.forms;
    this.rowForms = table.forms.rows.copy();
    this.pages = table.pages.map(page => page.slice());
    this.pageShift = table.pageShift;
    this.pageMask = table.pageMask;
    this.width = table.width;
    this.rowCount = table.rowCount;
    this.liveCount = table.liveCount;
    this.order = table.order?.slice(0, table.orderLength);
    this.orderLength = table.orderLength;
    this.starts = table.starts && copyOfStarts(table.starts, table.rowCount);
    startsAreRead();
  }

  /** @param {number} row */
  startAt(row) {
    return startOf(this.starts ?? 0, row);
  }

  /** @returns {Generator<number>} */
  *liveRows() {
    if (this.order === undefined) for (let row = 0; row < this.rowCount; row++) yield row;
    else for (const row of this.order) if (row >= 0) yield row;
  }

  /** @param {number} row */
  pageOf(row) {
    return this.pages[row >> this.pageShift];
  }

  /** @param {number} row */
  offsetOf(row) {
    return (row & this.pageMask) * this.width;
  }

  /** @param {number} row */
  formOf(row) {
    return this.rowForms.of(row);
  }

  /**
   * @param {number} row
   * @param {number} position
   */
  labelText(row, position) {
    const index = /** @type {LabelIndex} */ (this.index);
    return index.dictionaries[position].values[index.idAt(row, position)];
  }
}

module.exports = { CapturedTable };
