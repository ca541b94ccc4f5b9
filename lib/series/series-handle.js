'use strict';

// A child's hold on its row. It binds when it is first used (asking for a child must not create the series) and then
// keeps page and offset, so that recording is one addition behind one comparison. A child whose label set was folded
// into the overflow series asks again after each removal: there may be room for it now.

/** @typedef {import('./series-table').SeriesTable} SeriesTable */

class SeriesHandle {
  /**
   * @param {SeriesTable} table
   * @param {Record<string, unknown>} labels of known names
   */
  constructor(table, labels) {
    this.table = table;
    this.labels = labels;
    this.row = -1;
    /** @type {Float64Array} */
    this.page = NO_PAGE;
    this.offset = 0;
    this.epoch = -1;
    this.generation = -1;
  }

  /** Makes row, page and offset right: `generation` has changed since they were. */
  bind() {
    const { table } = this;
    const { row } = this;
    if (row === -1 || row === table.overflowRow || this.epoch !== table.epoch || !table.isLive(row)) {
      this.row = table.locate(this.labels);
    }
    this.page = table.pageOf(this.row);
    this.offset = table.offsetOf(this.row);
    this.epoch = table.epoch;
    this.generation = table.generation;
  }
}

const NO_PAGE = new Float64Array(0);

module.exports = { SeriesHandle };
