'use strict';

// The limit on the series of one table (the option `maxSeries`). Once the table is full, all other label sets
// share the overflow series. They use no memory, because clients may send any number of them.

/** The value of all labels of the overflow series. */
const OVERFLOW = 'overflow';

const NO_ROW = -1;

/** @typedef {import('./series-table').SeriesTable} SeriesTable */
/** @typedef {import('./label-index').LabelIndex} LabelIndex */

class SeriesLimit {
  #table;
  #maxSeries;
  #onFirstOverflow;

  /**
   * @param {SeriesTable} table with labels
   * @param {number} maxSeries how many label sets get their own series; the overflow series is not counted
   * @param {() => void} [onFirstOverflow] called when a label set shares the overflow series for the first
   *   time
   */
  constructor(table, maxSeries, onFirstOverflow) {
    this.#table = table;
    this.#maxSeries = maxSeries;
    this.#onFirstOverflow = onFirstOverflow;
    /** The overflow series while it is live, else -1. */
    this.row = NO_ROW;
    /**
     * How many look-ups returned the overflow series because the table was full. Its memory may be replaced.
     *
     * @type {Float64Array}
     */
    this.counter = new Float64Array(1);
  }

  /**
   * The row of a label set in a table that is full.
   *
   * @param {Record<string, unknown>} labels
   * @returns {number} the row, or -1 if a label is not one of the names
   */
  locate(labels) {
    const table = this.#table;
    const row = table.find(labels);
    if (row !== -1) {
      table.touch(row);
      return row;
    }
    for (const name in labels) if (!this.#index.positions.has(name)) return -1;
    if (this.row === NO_ROW) {
      const overflow = Object.fromEntries(this.#index.names.map(name => [name, OVERFLOW]));
      // What a program adds to Object.prototype is not a label.
      table.start(Object.setPrototypeOf(overflow, null));
      // Looked up again, because the label set may be that of the overflow series.
      return table.locate(labels);
    }
    if (++this.counter[0] === 1) this.#onFirstOverflow?.();
    table.touch(this.row);
    return this.row;
  }

  /** @param {number} row that has become live */
  rowStarted(row) {
    for (const position of this.#index.positions.values()) {
      if (this.#table.labelText(row, position) !== OVERFLOW) return;
    }
    this.setRow(row);
  }

  /** @param {number} row of the overflow series; -1 for none */
  setRow(row) {
    this.row = row;
    this.#table.fullAt = row === NO_ROW ? this.#maxSeries : this.#maxSeries + 1;
  }

  get #index() {
    return /** @type {LabelIndex} */ (this.#table.index);
  }
}

module.exports = { SeriesLimit };
