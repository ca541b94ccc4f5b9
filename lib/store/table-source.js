'use strict';

// A metric's table as a source. The retired totals are tables, and so are the metrics that other threads
// share.

const { RowMap } = require('./row-map');
const { allRows } = require('./source-rows');

/** @type {import('../source/extras').RowExtras} */
const NO_EXTRAS = Object.freeze({});

/** @type {readonly number[]} */
const NO_LABELS = Object.freeze([]);

/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('./row-map').LabelSets} LabelSets */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('../series/label-index').LabelIndex} LabelIndex */

/**
 * @param {SeriesTable} table
 * @returns {LabelSets} of its rows as they are numbered now
 */
function labelSetsOf(table) {
  const index = /** @type {LabelIndex} */ (table.index);
  return {
    labelNames: table.labelNames,
    positionsOf: row => (index === undefined ? NO_LABELS : table.forms.list[table.formOf(row)].positions),
    idAt: (row, position) => index.idAt(row, position),
    valuesOf: position => index.dictionaries[position].values,
  };
}

/**
 * @param {MetricView} view of a table
 * @returns {import('../source/log-decoder').Definition}
 */
function definitionOf({ name, help, type, aggregator, layout, windowed = false, maxIdleSeconds, table }) {
  const labelNames = [...table.labelNames];
  maxIdleSeconds ??= table.maxIdleSeconds;
  return { name, help, type, aggregator, layout, windowed, maxIdleSeconds, labelNames };
}

class TableSource {
  #view;
  #workerId;
  #defaults;
  /** The table's epoch when its label sets were read. */
  #epoch = NaN;
  /** @type {any} of this epoch, as the next one */
  #definition;
  /** @type {any} */
  #rows;

  /**
   * @param {MetricView} view
   * @param {number} workerId in the sources
   * @param {[string, string][]} [defaults] default labels, for rows that do not have them
   */
  constructor(view, workerId, defaults = []) {
    this.#view = view;
    this.#workerId = workerId;
    this.#defaults = defaults;
  }

  /**
   * @param {import('../source/extras').RowExtras} [extras]
   * @returns {Source} the table as it is now. Later changes of its numbers are visible, other changes are not
   */
  read(extras = NO_EXTRAS) {
    const { table } = this.#view;
    if (table.epoch !== this.#epoch) this.#startEpoch(table);
    this.#rows.extend(table.rowCount);
    return {
      workerId: this.#workerId,
      definition: this.#definition,
      rows: this.#rows,
      rowCount: table.rowCount,
      order: table.live?.rows() ?? allRows(table.rowCount),
      pages: table.pages.slice(),
      pageShift: table.pageShift,
      starts: table.starts,
      extras,
    };
  }

  /** @param {SeriesTable} table */
  #startEpoch(table) {
    this.#epoch = table.epoch;
    this.#definition = definitionOf(this.#view);
    this.#rows = new RowMap(labelSetsOf(table), this.#defaults);
  }
}

module.exports = { TableSource, definitionOf };
