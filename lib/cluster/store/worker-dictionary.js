'use strict';

// The dictionary of one worker: its metrics and label sets, each of which the worker sends once.

const { SnapshotError } = require('../wire/byte-buffers');
const { TableRowMap } = require('./row-map');

const MAX_ROW_MAPS = 8;

/** @typedef {import('../wire/snapshot-decoder').Snapshot} Snapshot */
/** @typedef {import('../wire/dictionary-decoder').Definition} Definition */

/**
 * One metric of the worker's dictionary.
 *
 * @typedef {object} WorkerMetric
 * @property {Definition} definition
 * @property {string[][]} values by label and integer
 * @property {number[][]} forms
 * @property {Int32Array} tuples by row: its form, then its integer of each label
 * @property {number} rows
 * @property {Map<string, TableRowMap>} maps to the family's rows, by the default labels that were added
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
  for (const record of dictionary) {
    const before = metrics[record.metric];
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
    metrics[record.metric] = record.dropped ? withoutRows(metric) : withRows(metric, record);
  }
  return metrics;
}

/**
 * @param {{definition: Definition}} metric
 * @returns {WorkerMetric}
 */
function withoutRows({ definition }) {
  const values = definition.labelNames.map(() => ['']);
  return { definition, values, forms: [], tuples: new Int32Array(0), rows: 0, maps: new Map() };
}

/**
 * @param {Definition} left
 * @param {Definition} right
 */
function isSameMetric(left, right) {
  return (
    left.name === right.name &&
    left.layout === right.layout &&
    left.boundsOrQuantiles.length === right.boundsOrQuantiles.length &&
    left.labelNames.join() === right.labelNames.join()
  );
}

/**
 * @param {WorkerMetric} metric
 * @param {import('../wire/dictionary-decoder').DictionaryRecord} record
 * @returns {WorkerMetric}
 */
function withRows(metric, { fromRow, rows, values, forms, tuples }) {
  if (fromRow + rows <= metric.rows) return metric;
  const allValues = metric.values.map((list, label) => {
    const { from, values: more } = values[label];
    if (from > list.length) throw new SnapshotError('dictionary', 'label values are missing');
    return from === list.length ? list.concat(more) : list.slice(0, from).concat(more);
  });
  const width = allValues.length + 1;
  for (let i = 0; i < tuples.length; i++) {
    const column = i % width;
    const limit = column === 0 ? Math.max(forms.length, 1) : allValues[column - 1].length;
    if (tuples[i] < 0 || tuples[i] >= limit)
      throw new SnapshotError('dictionary', `integer ${tuples[i]} of ${limit}`);
  }
  const allTuples = new Int32Array((fromRow + rows) * width);
  allTuples.set(metric.tuples.subarray(0, fromRow * width));
  allTuples.set(tuples, fromRow * width);
  return { ...metric, values: allValues, forms, tuples: allTuples, rows: fromRow + rows };
}

/**
 * The map from a metric's rows to its family's rows, one for each list of default labels.
 *
 * @param {WorkerMetric} metric
 * @param {[string, string][]} defaults
 * @returns {TableRowMap}
 */
function rowMapOf(metric, defaults) {
  const key = JSON.stringify(defaults);
  let map = metric.maps.get(key);
  if (map === undefined) {
    // A bound, because default labels may change with each scrape.
    if (metric.maps.size >= MAX_ROW_MAPS) metric.maps.clear();
    map = new TableRowMap(metric, defaults);
    metric.maps.set(key, map);
  }
  map.extend(metric);
  return map;
}

module.exports = { stageDictionary, rowMapOf };
