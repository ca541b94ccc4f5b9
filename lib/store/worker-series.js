'use strict';

// The state of one source in the aggregator: its metrics and label sets, from its log, and its last columns.
// Columns are applied together with the part of the log that they need, or not at all.

const { readHeader, decodeColumns, columnsOf, extrasOf } = require('../source/columns-decoder');
const { decodeLog } = require('../source/log-decoder');
const { hasChecksum, NO_CHECKSUM } = require('../source/checksum');
const { SnapshotError } = require('../source/byte-buffers');
const { ONE_PAGE } = require('../series/number-pages');
const { widthOf, isLasting } = require('../series/layouts');
const { UNKNOWN } = require('../series/row-starts');
const { readJsonMetric } = require('./json-source');
const { ReadBudget, MAX_NAME_CHARACTERS } = require('./json-labels');
const { RowMap } = require('./row-map');
const { withRecords, rowMapOf } = require('./worker-log');
const { isValidMetricName } = require('../registry/names');

// Far more than a metric needs.
const MAX_HELP_CHARACTERS = 2 ** 20;

// Each row may have this many default labels, whatever the number of rows, because a row has at least 8 bytes
// of numbers in each snapshot.
const FREE_DEFAULTS = 64;

// A log may have to be read as a whole. One of this size has some ten million label sets.
const MAX_LOG_BYTES = 2 ** 30;

const NO_BYTES = Buffer.alloc(0);

/**
 * @callback ReadLog
 * @param {string} name of the log, hex
 * @param {number} from position of the first byte
 * @param {number} to position after the last one
 * @returns {Buffer} in an ArrayBuffer of its own
 */

/** @typedef {import('../source/log-decoder').Definition} Definition */
/** @typedef {import('../source/columns-decoder').ColumnsHeader} ColumnsHeader */
/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('./worker-log').WorkerMetric} WorkerMetric */

/**
 * @typedef {Omit<Source, 'rows' | 'starts'> & {metric: WorkerMetric, defaults: [string, string][]}}
 *   CheckedEntry
 */

class WorkerSeries {
  /** @type {WorkerMetric[]} by number */
  #metrics = [];
  #incarnation = '';
  #sequence = 0;
  /** How much of the log has been applied. */
  #log = { log: '', bytes: 0, checksum: NO_CHECKSUM };

  #onUnreadable;

  /**
   * @param {number} id the worker's
   * @param {(stage: string, name: unknown, error: unknown) => void} [onUnreadable] called for each metric
   *   that is left out because it cannot be read; its name may be anything
   */
  constructor(id, onUnreadable = () => {}) {
    this.id = id;
    this.#onUnreadable = onUnreadable;
    /** @type {Source[]} the last numbers, in the worker's order */
    this.sources = [];
    /** @type {import('../source/failure-counts').Failure[]} */
    this.failures = [];
    /** Milliseconds since the epoch. */
    this.capturedAt = 0;
    this.snapshotBytes = 0;
    /** Whether the worker records nothing after the last columns. */
    this.isLast = false;
  }

  /** The incarnation of the process, hex; '' if there are no numbers. */
  get incarnation() {
    return this.#incarnation;
  }

  /** @returns {import('../source/source-log').LogPosition | undefined} undefined if there is nothing */
  get position() {
    const { log, bytes } = this.#log;
    return log === '' ? undefined : { log, bytes };
  }

  /**
   * Applies columns, and the part of their log that was not applied yet.
   *
   * @param {Buffer} buffer with its own ArrayBuffer, which this object uses from now on: the columns and, if
   *   they came in a message, the part of the log
   * @param {ReadLog} [readLog] reads the log of columns from a file; without it, there is none
   * @throws {SnapshotError} if something is invalid or does not fit; then nothing changes. The error's `log`
   *   is the name of the columns' log
   */
  apply(buffer, readLog = () => NO_BYTES) {
    const header = readHeader(buffer);
    this.#checkOrder(header);
    try {
      this.#apply(buffer, header, readLog);
    } catch (error) {
      throw Object.assign(/** @type {Error} */ (error), { log: header.log });
    }
  }

  /**
   * @param {Buffer} buffer
   * @param {ColumnsHeader} header of it
   * @param {ReadLog} readLog
   */
  #apply(buffer, header, readLog) {
    const { log, logBytes } = header;
    const present = log === this.#log.log ? this.#log : { log, bytes: 0, checksum: NO_CHECKSUM };
    const rest = logOf(buffer, header, present, readLog);
    // Everything is checked before anything is applied.
    const metrics = this.#metricsWith(rest, header, present.bytes);
    const columns = decodeColumns(buffer, header);
    const checked = this.#checkedEntries(columns, header.bytes, metrics);
    this.sources = checked.map(entry => ('metric' in entry ? sourceOf(entry) : entry));
    this.#metrics = metrics;
    this.#incarnation = header.incarnation;
    this.#sequence = header.sequence;
    this.#log = { log, bytes: logBytes, checksum: header.logChecksum };
    this.failures = columns.failures;
    this.capturedAt = header.capturedAt;
    this.snapshotBytes = header.bytes;
    this.isLast = header.isLast;
  }

  /**
   * @param {Buffer} rest of the log
   * @param {ColumnsHeader} header
   * @param {number} from position of its first byte
   * @returns {WorkerMetric[]}
   */
  #metricsWith(rest, { log }, from) {
    const metrics = from === 0 ? [] : this.#metrics;
    if (rest.length === 0) return metrics;
    const labelCountOf = (/** @type {number} */ metric) => metrics[metric]?.definition.labelNames.length;
    return withRecords(metrics, decodeLog(rest, from === 0 ? log : undefined, labelCountOf));
  }

  /**
   * To be called if an answer names another process or an earlier snapshot, which is impossible unless the
   * stored identity is wrong. The next columns are treated as the first ones. The numbers stay.
   */
  forgetIdentity() {
    this.#incarnation = '';
    this.#sequence = 0;
  }

  /**
   * Applies what a worker with prom-client has sent.
   *
   * @param {unknown} registries each a list of metrics as JSON
   * @param {number} now milliseconds since the epoch
   */
  applyJson(registries, now) {
    const budget = new ReadBudget();
    this.sources = [];
    this.capturedAt = now;
    try {
      for (const metric of metricsIn(registries, budget))
        this.sources.push(...this.#jsonSources(metric, [], budget));
    } catch (error) {
      this.#onUnreadable('json', '', error);
    }
  }

  /**
   * @param {any} metric
   * @param {[string, string][]} defaults
   * @param {ReadBudget} budget
   * @returns {Source[]} none if the metric cannot be read: that affects neither other metrics nor the page
   */
  #jsonSources(metric, defaults, budget) {
    try {
      return [jsonSource(this.id, metric, defaults, budget)];
    } catch (error) {
      this.#onUnreadable('json', metric?.name, error);
      return [];
    }
  }

  /** @param {ColumnsHeader} header */
  #checkOrder({ workerId, incarnation, sequence, log, logBytes }) {
    if (workerId !== this.id)
      throw new SnapshotError('worker', `written by worker ${workerId}, not ${this.id}`);
    if (this.#incarnation !== '' && incarnation !== this.#incarnation) {
      throw new SnapshotError('incarnation', 'written by another process of that worker id');
    }
    if (!(sequence > this.#sequence))
      throw new SnapshotError('sequence', `${sequence} is not after ${this.#sequence}`);
    const known = log === this.#log.log ? this.#log.bytes : 0;
    const isLength = logBytes >= known && logBytes <= MAX_LOG_BYTES && logBytes % 8 === 0;
    if (!isLength) throw new SnapshotError('log', `a log of ${logBytes} bytes`);
  }

  /**
   * @param {import('../source/columns-decoder').Columns} columns
   * @param {number} bytes of them
   * @param {WorkerMetric[]} metrics
   * @returns {(Source | CheckedEntry)[]}
   */
  #checkedEntries(columns, bytes, metrics) {
    // Limited, because many rows could have the same thousands of default labels, and many entries the same
    // label names.
    const budget = new ReadBudget(bytes);
    return columns.entries.flatMap(
      /** @returns {(Source | CheckedEntry)[] | CheckedEntry} */ entry => {
        const defaults = columns.defaultLabels[entry.defaults];
        if ('json' in entry) return this.#jsonSources(entry.json, defaults, budget);
        const metric = metrics[entry.metric];
        if (metric === undefined || entry.rowCount > metric.rows) {
          throw new SnapshotError('numbers', `numbers of unknown rows of metric ${entry.metric}`);
        }
        const { definition } = metric;
        const { labelNames, layout } = definition;
        const onRows = Math.max(defaults.length - FREE_DEFAULTS, 0) * entry.rowCount;
        budget.spend(labelNames.length + layout.marks.length + defaults.length + onRows);
        const problem = problemOf(definition);
        if (problem !== undefined) {
          this.#onUnreadable('merge', definition.name, problem);
          return [];
        }
        return {
          workerId: this.id,
          definition,
          metric,
          defaults,
          ended: entry.ended,
          rowCount: entry.rowCount,
          order: entry.order,
          pages: [columnsOf(columns, entry, widthOf(layout))],
          pageShift: ONE_PAGE,
          extras: extrasOf(columns, entry),
        };
      },
    );
  }
}

/**
 * @param {Buffer} buffer
 * @param {ColumnsHeader} header of it
 * @param {{bytes: number, checksum: number}} present the part of the log that was applied
 * @param {ReadLog} readLog
 * @returns {Buffer} the rest of the log
 * @throws {SnapshotError} if it is missing or damaged
 */
function logOf(buffer, { bytes, log, logBytes, logChecksum }, present, readLog) {
  const missing = logBytes - present.bytes;
  const tail = buffer.subarray(bytes);
  const rest =
    tail.length > 0 || missing === 0
      ? tail.subarray(Math.max(tail.length - missing, 0))
      : readLog(log, present.bytes, logBytes);
  if (rest.length !== missing || tail.length % 8 !== 0)
    throw new SnapshotError('log', `${rest.length} bytes of ${missing}`);
  if (!hasChecksum(rest, present.checksum, logChecksum))
    throw new SnapshotError('checksum', 'the log is damaged');
  return rest;
}

/**
 * Lists the properties, because each object created with `...entry` gets its own hidden class of 376 bytes.
 *
 * @param {CheckedEntry} entry
 * @returns {Source}
 */
function sourceOf({
  workerId,
  definition,
  metric,
  defaults,
  rowCount,
  order,
  pages,
  pageShift,
  extras,
  ended,
}) {
  const rows = rowMapOf(metric, defaults, rowCount);
  const { starts } = metric;
  return { workerId, definition, rows, rowCount, order, pages, pageShift, starts, extras, ended };
}

/**
 * @param {Pick<Definition, 'name' | 'help' | 'type'>} definition
 * @returns {string | undefined} why the definition would make the page unreadable or very long
 */
function problemOf({ name, help, type }) {
  // The length is checked first, because many entries of a snapshot may belong to one metric.
  if (Math.max(name.length, type.length) > MAX_NAME_CHARACTERS || help.length > MAX_HELP_CHARACTERS)
    return 'its name, type or help is too long';
  return isValidMetricName(name) && /^\w+$/.test(type) ? undefined : 'its name or type is not valid';
}

/**
 * @param {unknown} registries lists of metrics, or metrics
 * @param {ReadBudget} budget
 * @returns {Generator<unknown>} metrics as JSON
 * @throws {SnapshotError} if there are too many
 */
function* metricsIn(registries, budget) {
  if (!Array.isArray(registries)) return;
  budget.spend(registries.length);
  for (const registry of registries) {
    if (!Array.isArray(registry)) {
      yield registry;
      continue;
    }
    budget.spend(registry.length);
    yield* registry;
  }
}

/**
 * @param {number} workerId
 * @param {any} metric as JSON
 * @param {[string, string][]} defaults
 * @param {ReadBudget} [budget]
 * @returns {Source}
 * @throws {Error} if it cannot be read
 */
function jsonSource(workerId, metric, defaults, budget = new ReadBudget()) {
  const { definition, rows: sets, columns, starts, extras } = readJsonMetric(metric, budget);
  const problem = problemOf(definition);
  if (problem !== undefined) throw new RangeError(problem);
  budget.spend(defaults.length * sets.count);
  const rows = new RowMap(defaults);
  rows.extend(sets, sets.count);
  return {
    workerId,
    definition,
    rows,
    rowCount: sets.count,
    order: undefined,
    pages: [columns],
    pageShift: ONE_PAGE,
    starts: starts ?? (isLasting(definition.type) ? UNKNOWN : undefined),
    extras,
  };
}

module.exports = { WorkerSeries, jsonSource, problemOf };
