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
const { isList, MAX_NAME_CHARACTERS } = require('./json-labels');
const { RowMap } = require('./row-map');
const { allRows } = require('./source-rows');
const { applyRecords } = require('./worker-log');
const { isValidMetricName } = require('../registry/names');

// Far more than a metric needs.
const MAX_HELP_CHARACTERS = 2 ** 20;

// The log is read as a whole, if need be. One of so many bytes has some ten million label sets.
const MAX_LOG_BYTES = 2 ** 30;

// Default labels are sent once, but each row has them: so many are allowed whatever the number of rows, which
// have at least 8 bytes of numbers each. Of more than those, all rows together may have so many.
const FREE_DEFAULT_LABELS = 64;
const MAX_DEFAULT_LABELS = 2 ** 25;

const NO_BYTES = Buffer.alloc(0);

/**
 * What is here of a log of which nothing was read.
 *
 * @type {Readonly<{log: string, bytes: number, checksum: number}>}
 */
const NOTHING = Object.freeze({ log: '', bytes: 0, checksum: NO_CHECKSUM });

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
/** @typedef {import('./worker-log').LogMetric} LogMetric */

class WorkerSeries {
  /** @type {(LogMetric | undefined)[]} by number */
  #metrics = [];
  #sequence = 0;
  /** What is here of the log. */
  #log = NOTHING;
  #onUnreadable;

  /**
   * @param {number} id the worker's
   * @param {(stage: string, name: unknown, error: unknown) => void} [onUnreadable] called for each metric
   *   that is left out because it cannot be read; its name may be anything
   */
  constructor(id, onUnreadable = () => {}) {
    this.id = id;
    /** The incarnation of the process, hex; '' if there are no numbers. */
    this.incarnation = '';
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
    this.#extendLog(buffer, header, readLog);
    const columns = decodeColumns(buffer, header);
    this.sources = this.#sourcesOf(columns);
    this.incarnation = header.incarnation;
    this.#sequence = header.sequence;
    this.failures = columns.failures;
    this.capturedAt = header.capturedAt;
    this.snapshotBytes = header.bytes;
    this.isLast = header.isLast;
  }

  /**
   * Reads the log as far as the columns need it.
   *
   * @param {Buffer} buffer
   * @param {ColumnsHeader} header of it
   * @param {ReadLog} readLog
   * @throws {SnapshotError} if it is missing or damaged
   */
  #extendLog(buffer, header, readLog) {
    const { log, logBytes, logChecksum } = header;
    const present = log === this.#log.log ? this.#log : NOTHING;
    const rest = logOf(buffer, header, present, readLog);
    if (present === NOTHING) this.#metrics = [];
    // If a record is not valid, nothing more can be read of the log.
    this.#log = NOTHING;
    const labelCountOf = (/** @type {number} */ metric) =>
      this.#metrics[metric]?.definition.labelNames.length;
    if (rest.length > 0)
      applyRecords(this.#metrics, decodeLog(rest, present === NOTHING ? log : undefined, labelCountOf));
    this.#log = { log, bytes: logBytes, checksum: logChecksum };
  }

  /**
   * To be called if an answer names another process or an earlier snapshot, which is impossible unless the
   * stored identity is wrong. The next columns are treated as the first ones. The numbers stay.
   */
  forgetIdentity() {
    this.incarnation = '';
    this.#sequence = 0;
  }

  /**
   * Applies what a worker with prom-client has sent.
   *
   * @param {unknown} registries each a list of metrics as JSON
   * @param {number} now milliseconds since the epoch
   */
  applyJson(registries, now) {
    const lists = isList(registries) ? registries : [registries];
    const metrics = lists.flatMap(list => (isList(list) ? list : [list]));
    this.sources = metrics.flatMap(metric => this.#jsonSources(metric, []));
    this.capturedAt = now;
  }

  /**
   * @param {any} metric
   * @param {[string, string][]} defaults
   * @returns {Source[]} none if the metric cannot be read: that affects neither other metrics nor the page
   */
  #jsonSources(metric, defaults) {
    try {
      return [jsonSource(this.id, metric, defaults)];
    } catch (error) {
      this.#onUnreadable('json', metric?.name, error);
      return [];
    }
  }

  /** @param {ColumnsHeader} header */
  #checkOrder({ workerId, incarnation, sequence, log, logBytes }) {
    if (workerId !== this.id)
      throw new SnapshotError('worker', `written by worker ${workerId}, not ${this.id}`);
    if (this.incarnation !== '' && incarnation !== this.incarnation) {
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
   * @returns {Source[]}
   * @throws {SnapshotError} if they do not fit the log
   */
  #sourcesOf(columns) {
    const keys = columns.defaultLabels.map(defaults => JSON.stringify(defaults));
    let added = 0;
    return columns.entries.flatMap(entry => {
      const defaults = columns.defaultLabels[entry.defaults];
      if ('json' in entry) return this.#jsonSources(entry.json, defaults);
      const { rowCount, order, ended } = entry;
      const metric = this.#metrics[entry.metric];
      if (metric === undefined || rowCount > metric.rows)
        throw new SnapshotError('numbers', `numbers of unknown rows of metric ${entry.metric}`);
      added += rowCount * Math.max(defaults.length - FREE_DEFAULT_LABELS, 0);
      if (added > MAX_DEFAULT_LABELS) throw new SnapshotError('length', 'too many default labels');
      const { definition, starts } = metric;
      const problem = problemOf(definition);
      if (problem !== undefined) {
        this.#onUnreadable('merge', definition.name, problem);
        return [];
      }
      return {
        workerId: this.id,
        definition,
        rows: metric.mapWith(defaults, keys[entry.defaults], rowCount),
        rowCount,
        order: order ?? allRows(rowCount),
        pages: [columnsOf(columns, entry, widthOf(definition.layout))],
        pageShift: ONE_PAGE,
        starts,
        extras: extrasOf(columns, entry),
        ended,
      };
    });
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
 * @param {number} workerId
 * @param {any} metric as JSON
 * @param {[string, string][]} defaults
 * @returns {Source}
 * @throws {Error} if it cannot be read
 */
function jsonSource(workerId, metric, defaults) {
  const { definition, rows: sets, columns, starts, extras } = readJsonMetric(metric);
  const problem = problemOf(definition);
  if (problem !== undefined) throw new RangeError(problem);
  const rows = new RowMap(sets, defaults);
  rows.extend(sets.count);
  return {
    workerId,
    definition,
    rows,
    rowCount: sets.count,
    order: allRows(sets.count),
    pages: [columns],
    pageShift: ONE_PAGE,
    starts: starts ?? (isLasting(definition.type) ? UNKNOWN : undefined),
    extras,
  };
}

module.exports = { WorkerSeries, jsonSource, problemOf };
