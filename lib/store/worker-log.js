'use strict';

// The content of a log: the metrics and label sets of one source.

const { SnapshotError } = require('../source/byte-buffers');
const { RowMap } = require('./row-map');
const { grown } = require('../series/row-array');
const { startsByRow } = require('../series/row-starts');

const MAX_ROW_MAPS = 8;

const NO_ROWS = new Int32Array(0);

/** @typedef {import('./row-map').LabelSets} LabelSets */
/** @typedef {import('../source/log-decoder').Definition} Definition */

/**
 * One metric of the worker's log.
 *
 * @typedef {object} WorkerMetric
 * @property {Definition} definition
 * @property {string[][]} values by label and integer
 * @property {number[][]} forms
 * @property {Int32Array} tuples by row: its form, then its integer of each label
 * @property {number} rows
 * @property {import('../series/row-starts').Starts | undefined} starts
 * @property {boolean} isDropped whether the metric is gone; its number is not used again
 * @property {Map<string, RowMap>} maps to the family's rows, by the default labels that were added
 */

/**
 * Returns the content of a log, extended by further records. The given content is not changed, because the
 * columns that come with the records may still turn out to be invalid.
 *
 * @param {readonly WorkerMetric[]} present
 * @param {import('../source/log-decoder').LogRecord[]} records
 * @returns {WorkerMetric[]}
 * @throws {SnapshotError} if they do not continue the log
 */
function withRecords(present, records) {
  const metrics = [...present];
  /** @type {Set<WorkerMetric>} metrics created here: their lists may be changed */
  const own = new Set();
  for (const record of records) {
    const before = metrics[record.metric];
    const changed = changedBy(record, before, metrics.length, own.has(before));
    // Not if only its starts were copied, because it has no new rows.
    if (own.has(before) || !('restarted' in record)) own.add(changed);
    metrics[record.metric] = changed;
  }
  return metrics;
}

/**
 * @param {import('../source/log-decoder').LogRecord} record
 * @param {WorkerMetric | undefined} metric
 * @param {number} next number of the next metric
 * @param {boolean} isOwn whether the metric's lists may be changed
 * @returns {WorkerMetric}
 */
function changedBy(record, metric, next, isOwn) {
  if ('definition' in record) {
    if (record.metric !== next) throw new SnapshotError('log', `metric ${record.metric} is not the next`);
    return withoutRows(record);
  }
  if (metric === undefined || metric.isDropped)
    throw new SnapshotError('log', `metric ${record.metric} is not defined`);
  if ('dropped' in record) return { ...withoutRows(metric), isDropped: true };
  if ('restarted' in record) return withStarts(metric, record, isOwn);
  if (record.fromRow !== metric.rows)
    throw new SnapshotError('log', `rows of metric ${record.metric} do not follow those before them`);
  return withRows(metric, record, isOwn);
}

/**
 * @param {{definition: Definition}} metric
 * @returns {WorkerMetric}
 */
function withoutRows({ definition }) {
  const values = definition.labelNames.map(() => ['']);
  const [rows, starts, isDropped] = [0, undefined, false];
  return { definition, values, forms: [], tuples: NO_ROWS, rows, starts, isDropped, maps: new Map() };
}

/**
 * @param {WorkerMetric} metric
 * @param {import('../source/log-decoder').StartsRecord} record
 * @param {boolean} isOwn whether the metric's lists may be changed
 * @returns {WorkerMetric}
 */
function withStarts(metric, { restarted, starts: seconds }, isOwn) {
  const before = metric.starts ?? 0;
  const starts = isOwn && typeof before === 'object' ? before : startsByRow(before, metric.rows);
  restarted.forEach((row, i) => {
    if (row < 0 || row >= metric.rows)
      throw new SnapshotError('log', `row ${row} of ${metric.rows} has started`);
    starts.set(row, seconds[i]);
  });
  return { ...metric, starts };
}

/**
 * Adds rows. If a worker's columns come after hours, there may be thousands of records for one metric, so the
 * lists are copied only for the first of them.
 *
 * @param {WorkerMetric} metric
 * @param {import('../source/log-decoder').RowsRecord} record
 * @param {boolean} isOwn whether the metric's lists may be changed
 * @returns {WorkerMetric}
 */
function withRows(metric, record, isOwn) {
  const { fromRow, rows, values, forms, tuples } = record;
  const allValues = metric.values.map((list, label) => {
    const { from, values: more } = values[label];
    if (from !== list.length) throw new SnapshotError('log', 'label values do not follow those before them');
    // The result of concat() has no spare capacity, unlike a list to which values are pushed one by one.
    if (!isOwn) return list.concat(more);
    for (const value of more) list.push(value);
    return list;
  });
  const width = allValues.length + 1;
  for (let i = 0; i < tuples.length; i++) {
    const column = i % width;
    const limit = column === 0 ? Math.max(forms.length, 1) : allValues[column - 1].length;
    if (tuples[i] < 0 || tuples[i] >= limit)
      throw new SnapshotError('log', `integer ${tuples[i]} of ${limit}`);
  }
  const end = (fromRow + rows) * width;
  let allTuples = metric.tuples;
  if (!isOwn) {
    allTuples = new Int32Array(end);
    allTuples.set(metric.tuples.subarray(0, fromRow * width));
  } else if (allTuples.length < end) {
    allTuples = grown(allTuples, end);
  }
  allTuples.set(tuples, fromRow * width);
  const starts = startsWith(metric, record, isOwn);
  return { ...metric, values: allValues, forms, tuples: allTuples, rows: fromRow + rows, starts };
}

/**
 * @param {WorkerMetric} metric
 * @param {import('../source/log-decoder').RowsRecord} record
 * @param {boolean} isOwn whether the metric's lists may be changed
 * @returns {WorkerMetric['starts']} including those of the new rows
 */
function startsWith({ starts: before }, { fromRow, rows, starts: added }, isOwn) {
  const second = added.length === 1 ? added[0] >>> 0 : undefined;
  if (second !== undefined && (fromRow === 0 || second === before)) return second;
  if (before === undefined && added.length === 0) return undefined;
  const starts = isOwn && typeof before === 'object' ? before : startsByRow(before ?? 0, fromRow + rows);
  for (let i = 0; i < rows; i++) starts.set(fromRow + i, second ?? added[i] ?? 0);
  return starts;
}

/**
 * The label sets of a metric of a log.
 *
 * @implements {LabelSets}
 */
class LogLabels {
  #metric;

  /** @param {WorkerMetric} metric */
  constructor(metric) {
    this.#metric = metric;
    this.labelNames = metric.definition.labelNames;
  }

  /** @param {number} row */
  positionsOf(row) {
    const { forms, tuples } = this.#metric;
    return forms[tuples[row * (this.labelNames.length + 1)]] ?? [];
  }

  /**
   * @param {number} row
   * @param {number} position
   */
  idAt(row, position) {
    return this.#metric.tuples[row * (this.labelNames.length + 1) + 1 + position];
  }

  /** @param {number} position */
  valuesOf(position) {
    return this.#metric.values[position];
  }
}

/**
 * The default labels of a snapshot as text, created once for all metrics that have them.
 *
 * @type {WeakMap<[string, string][], string>}
 */
const keys = new WeakMap();

/**
 * The map from a metric's rows to its family's rows, one for each list of default labels.
 *
 * @param {WorkerMetric} metric
 * @param {[string, string][]} defaults
 * @param {number} rowCount of the numbers
 * @returns {RowMap}
 */
function rowMapOf(metric, defaults, rowCount) {
  let key = keys.get(defaults);
  if (key === undefined) keys.set(defaults, (key = JSON.stringify(defaults)));
  let map = metric.maps.get(key);
  if (map === undefined) {
    // Limited, because default labels may change with each scrape.
    if (metric.maps.size >= MAX_ROW_MAPS) metric.maps.clear();
    map = new RowMap(defaults);
    metric.maps.set(key, map);
  }
  map.extend(new LogLabels(metric), rowCount);
  return map;
}

module.exports = { withRecords, rowMapOf };
