'use strict';

/** @typedef {import('./label-index').LabelIndex} LabelIndex */
/** @typedef {import('./label-form').LabelForm} LabelForm */

/**
 * A table as it was at one instant, to be read piece by piece. Numbers, order and forms are copied. The label
 * sets are not: a row has the same label set as long as its index exists.
 */
class CapturedTable {
  /**
   * @param {object} table
   * @param {readonly string[]} table.labelNames
   * @param {LabelIndex | undefined} table.index
   * @param {{list: LabelForm[]}} table.forms
   * @param {Int32Array | undefined} table.formOfRow
   * @param {number} table.rowCount
   * @param {Int32Array | undefined} table.order the rows in their order, with negative gaps; undefined for
   *   all of them
   * @param {Float64Array[]} table.pages
   * @param {number} table.pageShift
   * @param {number} table.pageMask
   * @param {number} table.width
   */
  constructor({ labelNames, index, forms, formOfRow, rowCount, order, pages, pageShift, pageMask, width }) {
    this.labelNames = labelNames;
    this.index = index;
    this.forms = forms;
    this.pages = pages.map(page => page.slice());
    this.pageShift = pageShift;
    this.pageMask = pageMask;
    this.width = width;
    this.rowCount = rowCount;
    this.order = order?.slice();
    this.formOfRow = formOfRow?.slice();
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
    return this.formOfRow === undefined ? 0 : this.formOfRow[row];
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
