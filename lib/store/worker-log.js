'use strict';

// What a log says: the metrics and label sets of one source. A log only grows, and so does what is read of
// it: sources that were made of an earlier part of it stay valid.

const { SnapshotError } = require('../source/byte-buffers');
const { RowMap } = require('./row-map');
const { grown } = require('../series/row-array');
const { isSame } = require('../series/layouts');
const { RowStarts, UNKNOWN } = require('../series/row-starts');

const MAX_ROW_MAPS = 8;

const NO_ROWS = new Int32Array(0);

/** @typedef {import('./row-map').LabelSets} LabelSets */
/** @typedef {import('../source/log-decoder').Definition} Definition */
/** @typedef {import('../source/log-decoder').RowsRecord} RowsRecord */

/**
 * One metric of a log.
 *
 * @implements {LabelSets}
 */
class LogMetric {
  /** @type {string[][]} by label and integer */
  #values;
  /** @type {number[][]} */
  #forms = [];
  /** By row: its form, then its integer of each label. */
  #tuples = NO_ROWS;
  /** @type {Map<string, RowMap>} maps to the family's rows, by the default labels that were added */
  #maps = new Map();

  /** @param {Definition} definition */
  constructor(definition) {
    this.definition = definition;
    this.labelNames = definition.labelNames;
    this.#values = definition.labelNames.map(() => ['']);
    this.rows = 0;
    /** @type {RowStarts | undefined} */
    this.starts = undefined;
  }

  /** @param {number} row */
  positionsOf(row) {
    return this.#forms[this.#tuples[row * (this.labelNames.length + 1)]] ?? [];
  }

  /**
   * @param {number} row
   * @param {number} position
   */
  idAt(row, position) {
    return this.#tuples[row * (this.labelNames.length + 1) + 1 + position];
  }

  /** @param {number} position */
  valuesOf(position) {
    return this.#values[position];
  }

  /**
   * @param {RowsRecord} record
   * @throws {SnapshotError} if it does not continue the log
   */
  addRows({ fromRow, rows, values, forms, tuples, starts }) {
    if (fromRow !== this.rows) throw new SnapshotError('log', 'rows do not follow those before them');
    this.#values.forEach((list, label) => {
      const { from, values: more } = values[label];
      if (from !== list.length)
        throw new SnapshotError('log', 'label values do not follow those before them');
      for (const value of more) list.push(value);
    });
    if (!this.#forms.every((form, i) => isSame(form, forms[i] ?? [])))
      throw new SnapshotError('log', 'rows before have other labels');
    const width = this.labelNames.length + 1;
    const limits = [Math.max(forms.length, 1), ...this.#values.map(({ length }) => length)];
    for (let i = 0; i < tuples.length; i++) {
      if (tuples[i] < 0 || tuples[i] >= limits[i % width])
        throw new SnapshotError('log', `integer ${tuples[i]} of ${limits[i % width]}`);
    }
    this.#forms = forms;
    const end = (fromRow + rows) * width;
    if (this.#tuples.length < end) this.#tuples = grown(this.#tuples, end);
    this.#tuples.set(tuples, fromRow * width);
    this.rows = fromRow + rows;
    this.#addStarts(fromRow, rows, starts);
  }

  /**
   * @param {number} fromRow
   * @param {number} rows
   * @param {RowsRecord['starts']} added
   */
  #addStarts(fromRow, rows, added) {
    if (added.length === 0 && this.starts === undefined) return;
    for (let i = 0; i < rows; i++) this.#setStart(fromRow + i, added[added.length === 1 ? 0 : i] ?? UNKNOWN);
  }

  /**
   * @param {number} row
   * @param {number} second
   */
  #setStart(row, second) {
    this.starts ??= new RowStarts(NO_ROWS);
    this.starts.set(row, second);
  }

  /**
   * @param {import('../source/log-decoder').StartsRecord} record
   * @throws {SnapshotError} if there is no such row
   */
  restart({ restarted, starts }) {
    restarted.forEach((row, i) => {
      if (row < 0 || row >= this.rows)
        throw new SnapshotError('log', `row ${row} of ${this.rows} has started`);
      this.#setStart(row, starts[i]);
    });
  }

  /**
   * @param {[string, string][]} defaults default labels
   * @param {string} key the same as text
   * @param {number} rowCount of the numbers
   * @returns {RowMap} the map to the family's rows, one for each list of default labels
   */
  mapWith(defaults, key, rowCount) {
    let map = this.#maps.get(key);
    if (map === undefined) {
      // A bound, because default labels may change with each scrape.
      if (this.#maps.size >= MAX_ROW_MAPS) this.#maps.clear();
      this.#maps.set(key, (map = new RowMap(this, defaults)));
    }
    map.extend(rowCount);
    return map;
  }
}

/**
 * Adds records to what has been read of the log.
 *
 * @param {(LogMetric | undefined)[]} metrics by number; undefined for one that was dropped
 * @param {import('../source/log-decoder').LogRecord[]} records
 * @throws {SnapshotError} if they do not continue the log, of which nothing can be used then
 */
function applyRecords(metrics, records) {
  for (const record of records) {
    const number = record.metric;
    if ('definition' in record) {
      if (number !== metrics.length) throw new SnapshotError('log', `metric ${number} is not the next`);
      metrics.push(new LogMetric(record.definition));
      continue;
    }
    const metric = metrics[number];
    if (metric === undefined) throw new SnapshotError('log', `metric ${number} is not defined`);
    if ('dropped' in record) metrics[number] = undefined;
    else if ('restarted' in record) metric.restart(record);
    else metric.addRows(record);
  }
}

module.exports = { LogMetric, applyRecords };
