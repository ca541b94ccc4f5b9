'use strict';

// How a child finds its row. A handle binds to its row: it caches page and offset, so that recording is one
// comparison and one addition. A child whose label set shares the overflow series looks its row up again
// after each removal, because the table may then have space for it.

const { labelsFrom } = require('./label-form');

/** @typedef {import('./series-table').SeriesTable} SeriesTable */
/** @typedef {Record<string, unknown>} Labels */

class SeriesHandle {
  /**
   * @param {SeriesTable} table
   * @param {Labels | readonly unknown[]} labels a label set, or the value of each label name of the table in
   *   their order; the handle owns it
   * @param {number} [row] its live row; -1 if there is none
   */
  constructor(table, labels, row = -1) {
    this.table = table;
    this.labelsOrValues = labels;
    // An existing series is bound at once. A new one is created when the child is first used.
    if (row >= 0) {
      this.row = row;
      this.page = table.pageOf(row);
      this.offset = table.offsetOf(row);
      this.epoch = table.epoch;
      // If rows expire, or are being moved, the handle binds again at its first use: that notes the use.
      const isNoted = table.live?.compaction !== undefined || table.maxIdleSeconds !== 0;
      this.generation = isNoted ? -1 : table.generation;
    } else {
      this.row = -1;
      /** @type {Float64Array} */
      this.page = NO_PAGE;
      this.offset = 0;
      this.epoch = -1;
      this.generation = -1;
    }
  }

  /** @returns {Labels} */
  get labels() {
    const { labelsOrValues, table } = this;
    if (!Array.isArray(labelsOrValues)) return /** @type {Labels} */ (labelsOrValues);
    return (this.labelsOrValues = labelsFrom(table.labelNames, labelsOrValues));
  }

  /** Corrects row, page and offset after `table.generation` has changed. */
  bind() {
    const { table, row } = this;
    const isLost =
      row === -1 || row === table.overflowRow || this.epoch !== table.epoch || !table.isLive(row);
    if (isLost) this.row = table.locate(this.labels);
    table.touch(this.row);
    this.page = table.pageOf(this.row);
    this.offset = table.offsetOf(this.row);
    this.epoch = table.epoch;
    this.generation = table.generation;
  }
}

const NO_PAGE = new Float64Array(0);

module.exports = { SeriesHandle };
