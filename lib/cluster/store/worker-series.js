'use strict';

// What the primary knows of one worker: its metrics and label sets (told once), and its last numbers. A snapshot is
// taken as a whole or not at all.

const { decodeSnapshot, columnsOf, digestsOf, exemplarsOf } = require('../wire/snapshot-decoder');
const { SnapshotError } = require('../wire/byte-buffers');
const { widthOf } = require('./column-layout');
const { readJsonMetric } = require('./json-source');
const { TableRowMap, LabelRowMap } = require('./row-map');

const MAX_ROW_MAPS = 8;

/** @typedef {import('../wire/snapshot-decoder').Snapshot} Snapshot */
/** @typedef {import('../wire/snapshot-decoder').Definition} Definition */
/** @typedef {import('./cluster-family').Source} Source */

/**
 * One metric of the worker's dictionary.
 *
 * @typedef {object} KnownMetric
 * @property {Definition} definition
 * @property {string[][]} values by label and integer
 * @property {number[][]} forms
 * @property {Int32Array} tuples by row: its form, then its integer of each label
 * @property {number} rows
 * @property {Map<string, TableRowMap>} maps to the family's rows, by the default labels that were added
 */

/** @typedef {Omit<Source, 'rows'> & {metric: KnownMetric, defaults: [string, string][]}} CheckedEntry */

class WorkerSeries {
  /** @type {KnownMetric[]} by number */
  #metrics = [];
  #incarnation = '';
  #epoch = 0;
  #sequence = 0;
  #series = 0;
  #isTrusted = true;
  /** Whether all of the dictionary is wanted once more, although it is known. */
  #asksForAll = false;

  /** @param {number} id the worker's */
  constructor(id) {
    this.id = id;
    /** @type {Source[]} the last numbers, in the worker's order */
    this.sources = [];
    /** @type {Snapshot['failures']} */
    this.failures = [];
    /** Milliseconds since the epoch. */
    this.capturedAt = 0;
    this.snapshotBytes = 0;
  }

  /** What a request tells the worker; nothing where it has to tell all. */
  get known() {
    if (!this.#isTrusted || this.#asksForAll) return undefined;
    return { incarnation: this.#incarnation, epoch: this.#epoch, series: this.#series };
  }

  /**
   * Takes over a snapshot.
   *
   * @param {Buffer} buffer whose memory starts at a multiple of 8, and is nobody else's from now on
   * @throws {SnapshotError} where it does not fit; what was known stands then. The code is 'dictionary-start' where the
   *   worker has to tell more.
   */
  apply(buffer) {
    let anew = false;
    const snapshot = decodeSnapshot(
      buffer,
      metric => (anew ? undefined : this.#metrics[metric]?.definition.labelNames.length),
      header => {
        this.#checkOrder(header);
        const isWhole = this.#asksForAll && header.dictionaryStart === 0;
        anew = header.epoch !== this.#epoch || !this.#isTrusted || isWhole;
      },
    );
    const metrics = stageDictionary(anew ? [] : this.#metrics, snapshot);
    // Only when all of it was found right is anything of it taken over.
    const checked = this.#checkedEntries(snapshot, metrics);
    this.sources = checked.map(entry =>
      'metric' in entry ? { ...entry, rows: rowMapOf(entry.metric, entry.defaults) } : entry,
    );
    this.#metrics = metrics;
    this.#incarnation = snapshot.incarnation;
    this.#epoch = snapshot.epoch;
    this.#sequence = snapshot.sequence;
    this.#series = snapshot.dictionaryEnd;
    this.#isTrusted = true;
    if (anew) this.#asksForAll = false;
    this.failures = snapshot.failures;
    this.capturedAt = snapshot.capturedAt;
    this.snapshotBytes = snapshot.bytes;
  }

  /** A snapshot did not fit what is known of the dictionary: the next one has to tell all of it. Numbers stand. */
  distrust() {
    this.#isTrusted = false;
  }

  /**
   * The next request asks for the whole dictionary. A snapshot that goes on from what is known is good all the same: another
   * round may have asked for it before.
   */
  askForAll() {
    this.#asksForAll = true;
  }

  /**
   * Takes over what a stock worker sent.
   *
   * @param {unknown} registries each a list of metrics as JSON
   * @param {number} now milliseconds since the epoch
   */
  applyJson(registries, now) {
    const metrics = Array.isArray(registries) ? registries.flat() : [];
    this.sources = metrics.flatMap(metric => jsonSource(this.id, metric, []) ?? []);
    this.capturedAt = now;
  }

  /** @param {import('../wire/snapshot-decoder').SnapshotHeader} header */
  #checkOrder({ workerId, incarnation, epoch, sequence, dictionaryStart }) {
    if (workerId !== this.id)
      throw new SnapshotError('worker', `written by worker ${workerId}, not ${this.id}`);
    if (this.#incarnation !== '' && incarnation !== this.#incarnation) {
      throw new SnapshotError('incarnation', 'written by another process of that worker id');
    }
    if (epoch < this.#epoch || (epoch === this.#epoch && sequence <= this.#sequence)) {
      throw new SnapshotError(
        'sequence',
        `${epoch}.${sequence} is not after ${this.#epoch}.${this.#sequence}`,
      );
    }
    const known = epoch === this.#epoch && this.#isTrusted ? this.#series : 0;
    if (dictionaryStart > known) {
      throw new SnapshotError('dictionary-start', `starts at ${dictionaryStart}, known is ${known}`);
    }
  }

  /**
   * @param {Snapshot} snapshot
   * @param {KnownMetric[]} metrics
   * @returns {(Source | CheckedEntry)[]}
   */
  #checkedEntries(snapshot, metrics) {
    return snapshot.entries.flatMap(entry => {
      const defaults = snapshot.defaultLabels[entry.defaults];
      if ('json' in entry) return jsonSource(this.id, entry.json, defaults) ?? [];
      const metric = metrics[entry.metric];
      if (metric === undefined || entry.rowCount > metric.rows) {
        throw new SnapshotError('numbers', `numbers of metric ${entry.metric}, whose rows are not known`);
      }
      const { definition } = metric;
      return {
        workerId: this.id,
        definition,
        metric,
        defaults,
        rowCount: entry.rowCount,
        order: entry.order,
        columns: columnsOf(snapshot, entry, widthOf(definition.layout, definition.marks.length)),
        digestOf: digestReader(snapshot, entry),
        exemplars: entry.exemplarCount > 0 ? () => exemplarsOf(snapshot, entry) : undefined,
      };
    });
  }
}

/**
 * @param {Snapshot} snapshot
 * @param {import('../wire/snapshot-decoder').TableEntry} entry
 */
function digestReader(snapshot, entry) {
  if (entry.digestsStart === undefined) return undefined;
  const { versions, centroids } = digestsOf(snapshot, entry);
  return (/** @type {number} */ row) => ({ version: versions[row], centroids: centroids[row] });
}

/**
 * The dictionary with a snapshot's part added. What is known already is not changed, so that nothing has happened if
 * the snapshot turns out to be wrong further on.
 *
 * @param {readonly KnownMetric[]} known
 * @param {Snapshot} snapshot
 * @returns {KnownMetric[]}
 */
function stageDictionary(known, { dictionary }) {
  const metrics = [...known];
  for (const record of dictionary) {
    const before = metrics[record.metric];
    const { definition } = record;
    if (definition !== undefined && before !== undefined && !isSameMetric(definition, before.definition)) {
      throw new SnapshotError('dictionary', `metric ${record.metric} is another one than before`);
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
 * @returns {KnownMetric}
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
    left.marks.length === right.marks.length &&
    left.labelNames.join() === right.labelNames.join()
  );
}

/**
 * @param {KnownMetric} metric
 * @param {import('../wire/snapshot-decoder').DictionaryRecord} record
 * @returns {KnownMetric}
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
 * The map from a metric's rows to its family's. It lives as long as the default labels stay what they are.
 *
 * @param {KnownMetric} metric
 * @param {[string, string][]} defaults
 * @returns {TableRowMap}
 */
function rowMapOf(metric, defaults) {
  const key = JSON.stringify(defaults);
  let map = metric.maps.get(key);
  if (map === undefined) {
    // Default labels that change with each scrape must not leave a map behind each.
    if (metric.maps.size >= MAX_ROW_MAPS) metric.maps.clear();
    map = new TableRowMap(metric, defaults);
    metric.maps.set(key, map);
  }
  map.extend(metric);
  return map;
}

/**
 * @param {number} workerId
 * @param {any} metric as JSON
 * @param {[string, string][]} defaults
 * @returns {Source | undefined}
 */
function jsonSource(workerId, metric, defaults) {
  const read = readJsonMetric(metric);
  if (read === undefined) return undefined;
  const { definition, columns, digestOf, exemplars } = read;
  const labels = read.labels.map(({ names, values }) => {
    const missing = defaults.filter(([name]) => !names.includes(name));
    return {
      names: [...names, ...missing.map(([name]) => name)],
      values: [...values, ...missing.map(([, value]) => value)],
    };
  });
  const rows = new LabelRowMap(labels);
  return {
    workerId,
    definition,
    rows,
    rowCount: labels.length,
    order: undefined,
    columns,
    digestOf,
    exemplars,
  };
}

module.exports = { WorkerSeries };
