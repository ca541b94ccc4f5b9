'use strict';

// The dictionary of one worker: its metrics and label sets, each of which the worker sends once.

const { SnapshotError } = require('../source/byte-buffers');
const { RowMap } = require('./row-map');
const { grown } = require('../series/row-array');

const MAX_ROW_MAPS = 8;

/** @typedef {import('../source/snapshot-decoder').Snapshot} Snapshot */
/** @typedef {import('./row-map').LabelSets} LabelSets */
/** @typedef {import('../source/dictionary-decoder').Definition} Definition */

/**
 * One metric of the worker's dictionary.
 *
 * @typedef {object} WorkerMetric
 * @property {Definition} definition
 * @property {string[][]} values by label and integer
 * @property {number[][]} forms
 * @property {Int32Array} tuples by row: its form, then its integer of each label
 * @property {number} rows
 * @property {boolean} isDropped for good: its number is not used again
 * @property {Map<string, RowMap>} maps to the family's rows, by the default labels that were added
 */

/**
 * The dictionary with a snapshot's part added. The given one is not changed, because the rest of the snapshot
 * may still turn out to be invalid.
 *
 * @param {readonly WorkerMetric[]} present
 * @param {Snapshot} snapshot
 * @returns {WorkerMetric[]}
 */
function stageDictionary(present, { dictionary }) {
  const metrics = [...present];
  /** @type {Set<WorkerMetric>} made here: their lists may be changed */
  const own = new Set();
  for (const record of dictionary) {
    const before = metrics[record.metric];
    // The part begins before the drop: a checkpoint begins where the reader was before the last answer.
    if (before?.isDropped) continue;
    const { definition } = record;
    if (definition !== undefined && before !== undefined && !isSameMetric(definition, before.definition)) {
      throw new SnapshotError('dictionary', `metric ${record.metric} is not the one defined earlier`);
    }
    if (definition !== undefined && before === undefined) {
      if (record.metric !== metrics.length)
        throw new SnapshotError('dictionary', `metric ${record.metric} is not the next`);
      metrics[record.metric] = withoutRows({ definition });
    }
    const metric = metrics[record.metric];
    if (metric === undefined || record.fromRow > metric.rows) {
      throw new SnapshotError('dictionary', `rows of metric ${record.metric} are missing`);
    }
    const changed = record.dropped
      ? { ...withoutRows(metric), isDropped: true }
      : withRows(metric, record, own.has(metric));
    if (changed !== metric) own.add(changed);
    metrics[record.metric] = changed;
  }
  return metrics;
}

/**
 * @param {{definition: Definition}} metric
 * @returns {WorkerMetric}
 */
function withoutRows({ definition }) {
  const values = definition.labelNames.map(() => ['']);
  const isDropped = false;
  return { definition, values, forms: [], tuples: new Int32Array(0), rows: 0, isDropped, maps: new Map() };
}

/**
 * @param {Definition} left
 * @param {Definition} right
 */
function isSameMetric(left, right) {
  return (
    left.name === right.name &&
    left.layout.kind === right.layout.kind &&
    left.layout.marks.length === right.layout.marks.length &&
    left.labelNames.join() === right.labelNames.join()
  );
}

/**
 * Adds rows. A snapshot that a worker sends after hours may have thousands of records of one metric, so the
 * lists are copied for the first one only.
 *
 * @param {WorkerMetric} metric
 * @param {import('../source/dictionary-decoder').DictionaryRecord} record
 * @param {boolean} isOwn whether the metric's lists may be changed
 * @returns {WorkerMetric} the metric itself if it has the rows
 */
function withRows(metric, { fromRow, rows, values, forms, tuples }, isOwn) {
  if (fromRow + rows <= metric.rows) return metric;
  const allValues = metric.values.map((list, label) => {
    const { from, values: more } = values[label];
    if (from > list.length) throw new SnapshotError('dictionary', 'label values are missing');
    // Its memory has no spare capacity, unlike that of a list to which values are pushed one by one.
    if (!isOwn) return list.slice(0, from).concat(more);
    list.length = from;
    for (const value of more) list.push(value);
    return list;
  });
  const width = allValues.length + 1;
  for (let i = 0; i < tuples.length; i++) {
    const column = i % width;
    const limit = column === 0 ? Math.max(forms.length, 1) : allValues[column - 1].length;
    if (tuples[i] < 0 || tuples[i] >= limit)
      throw new SnapshotError('dictionary', `integer ${tuples[i]} of ${limit}`);
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
  return { ...metric, values: allValues, forms, tuples: allTuples, rows: fromRow + rows };
}

/**
 * The label sets of a metric of a dictionary.
 *
 * @implements {LabelSets}
 */
class DictionaryLabels {
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
 * The default labels of a snapshot as text, made once for all metrics that have them.
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
    // A bound, because default labels may change with each scrape.
    if (metric.maps.size >= MAX_ROW_MAPS) metric.maps.clear();
    map = new RowMap(defaults);
    metric.maps.set(key, map);
  }
  map.extend(new DictionaryLabels(metric), rowCount);
  return map;
}

module.exports = { stageDictionary, rowMapOf };
