'use strict';

// How a child finds its row. A handle binds to its row: it caches page and offset, so that recording is one comparison
// and one addition. A child of a label set that shares the overflow series looks again after each removal, because the
// table may have room for it then.

const { labelsFrom } = require('./label-form');

/** @typedef {import('./series-table').SeriesTable} SeriesTable */
/** @typedef {Record<string, unknown>} Labels */

class SeriesHandle {
  /** @type {Labels | undefined} */
  #labels;

  /**
   * @param {SeriesTable} table
   * @param {Labels | undefined} labels of known names; undefined if `values` are given
   * @param {readonly unknown[]} [values] one for each label name of the table, in their order
   */
  constructor(table, labels, values) {
    this.table = table;
    this.#labels = labels;
    this.values = values;
    this.row = -1;
    /** @type {Float64Array} */
    this.page = NO_PAGE;
    this.offset = 0;
    this.epoch = -1;
    this.generation = -1;
    // An existing series is bound at once. A new one is created when the child is first used.
    if (values !== undefined) {
      const row = table.findByPosition(values);
      if (row !== -1) this.#bindTo(row);
    }
  }

  /** @returns {Labels} */
  get labels() {
    return (this.#labels ??= labelsFrom(this.table.labelNames, /** @type {unknown[]} */ (this.values)));
  }

  /** Corrects row, page and offset after `table.generation` has changed. */
  bind() {
    const { table, row } = this;
    const isLost =
      row === -1 || row === table.overflowRow || this.epoch !== table.epoch || !table.isLive(row);
    this.#bindTo(isLost ? table.locate(this.labels) : row);
  }

  /** @param {number} row */
  #bindTo(row) {
    const { table } = this;
    this.row = row;
    this.page = table.pageOf(row);
    this.offset = table.offsetOf(row);
    this.epoch = table.epoch;
    this.generation = table.generation;
  }
}

const NO_PAGE = new Float64Array(0);

module.exports = { SeriesHandle };
