'use strict';

// What the primary has of one worker: its metrics and label sets (each is sent once), and its last numbers. A
// snapshot is applied as a whole or not at all.

const { decodeSnapshot, columnsOf, extrasOf } = require('../source/snapshot-decoder');
const { SnapshotError } = require('../source/byte-buffers');
const { ONE_PAGE } = require('../series/number-pages');
const { widthOf } = require('../series/layouts');
const { readJsonMetric } = require('./json-source');
const { ReadBudget, MAX_NAME_CHARACTERS } = require('./json-labels');
const { RowMap } = require('./row-map');
const { stageDictionary, rowMapOf } = require('./worker-dictionary');
const { isValidMetricName } = require('../registry/names');

// Far more than a metric needs.
const MAX_HELP_CHARACTERS = 2 ** 20;

// So many default labels may be on each row, however many rows there are: each row has at least 8 bytes of
// numbers in each snapshot.
const FREE_DEFAULTS = 64;

/** @typedef {import('../source/snapshot-decoder').Snapshot} Snapshot */
/** @typedef {import('../source/dictionary-decoder').Definition} Definition */
/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('./worker-dictionary').WorkerMetric} WorkerMetric */

/** @typedef {Omit<Source, 'rows'> & {metric: WorkerMetric, defaults: [string, string][]}} CheckedEntry */

class WorkerSeries {
  /** @type {WorkerMetric[]} by number */
  #metrics = [];
  #incarnation = '';
  #epoch = 0;
  #sequence = 0;
  #series = 0;
  #isDictionaryValid = true;
  /** Whether the full dictionary is requested once more, although this one is valid. */
  #requestsFullDictionary = false;

  #onUnreadable;

  /**
   * @param {number} id the worker's
   * @param {(stage: string, name: unknown, error: unknown) => void} [onUnreadable] called for each metric
   *   that is left out because it cannot be read, with what it has as its name
   */
  constructor(id, onUnreadable = () => {}) {
    this.id = id;
    this.#onUnreadable = onUnreadable;
    /** @type {Source[]} the last numbers, in the worker's order */
    this.sources = [];
    /** @type {Snapshot['failures']} */
    this.failures = [];
    /** Milliseconds since the epoch. */
    this.capturedAt = 0;
    this.snapshotBytes = 0;
  }

  /** How much of the worker's journal is here; undefined if the worker has to send all of it. */
  get journalPosition() {
    if (!this.#isDictionaryValid || this.#requestsFullDictionary) return undefined;
    return { incarnation: this.#incarnation, epoch: this.#epoch, series: this.#series };
  }

  /**
   * Applies a snapshot.
   *
   * @param {Buffer} buffer in an ArrayBuffer of its own, which this object uses from now on
   * @throws {SnapshotError} if it is invalid or does not fit; then nothing changes. The code is
   *   'dictionary-start' if the worker has to send an earlier part of its dictionary
   */
  apply(buffer) {
    let replacesDictionary = false;
    const snapshot = decodeSnapshot(
      buffer,
      metric => (replacesDictionary ? undefined : this.#metrics[metric]?.definition.labelNames.length),
      header => {
        this.#checkOrder(header);
        const isRequested = this.#requestsFullDictionary && header.dictionaryStart === 0;
        replacesDictionary = header.epoch !== this.#epoch || !this.#isDictionaryValid || isRequested;
      },
    );
    const metrics = stageDictionary(replacesDictionary ? [] : this.#metrics, snapshot);
    // All of the snapshot is checked before anything of it is applied.
    const checked = this.#checkedEntries(snapshot, metrics);
    this.sources = checked.map(entry => ('metric' in entry ? sourceOf(entry) : entry));
    this.#metrics = metrics;
    this.#incarnation = snapshot.incarnation;
    this.#epoch = snapshot.epoch;
    this.#sequence = snapshot.sequence;
    this.#series = snapshot.dictionaryEnd;
    this.#isDictionaryValid = true;
    if (replacesDictionary) this.#requestsFullDictionary = false;
    this.failures = snapshot.failures;
    this.capturedAt = snapshot.capturedAt;
    this.snapshotBytes = snapshot.bytes;
  }

  /** A snapshot did not fit the dictionary, so the next one has to contain all of it. The numbers stay. */
  invalidateDictionary() {
    this.#isDictionaryValid = false;
  }

  /**
   * The worker's answer names another process, or comes before the last one, which cannot be: what is stored
   * of its identity is wrong. The next snapshot is taken as the first one. The numbers stay.
   */
  forgetIdentity() {
    this.#isDictionaryValid = false;
    this.#incarnation = '';
    this.#epoch = 0;
    this.#sequence = 0;
  }

  /**
   * The next request asks for the full dictionary. A snapshot that continues the present one is still
   * accepted, because an earlier round may have requested it.
   */
  requestFullDictionary() {
    this.#requestsFullDictionary = true;
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

  /** @param {import('../source/snapshot-decoder').SnapshotHeader} header */
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
    const position = epoch === this.#epoch && this.#isDictionaryValid ? this.#series : 0;
    if (dictionaryStart > position) {
      throw new SnapshotError(
        'dictionary-start',
        `starts at ${dictionaryStart}, expected at most ${position}`,
      );
    }
  }

  /**
   * @param {Snapshot} snapshot
   * @param {WorkerMetric[]} metrics
   * @returns {(Source | CheckedEntry)[]}
   */
  #checkedEntries(snapshot, metrics) {
    // Many rows could have the same thousands of default labels, and many entries the same label names.
    const budget = new ReadBudget(snapshot.bytes);
    return snapshot.entries.flatMap(
      /** @returns {(Source | CheckedEntry)[] | CheckedEntry} */ entry => {
        const defaults = snapshot.defaultLabels[entry.defaults];
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
          rowCount: entry.rowCount,
          order: entry.order,
          pages: [columnsOf(snapshot, entry, widthOf(layout))],
          pageShift: ONE_PAGE,
          extras: extrasOf(snapshot, entry),
        };
      },
    );
  }
}

/**
 * Lists the properties: objects that are made with `...entry` have a hidden class each, of 376 bytes.
 *
 * @param {CheckedEntry} entry
 * @returns {Source}
 */
function sourceOf({ workerId, definition, metric, defaults, rowCount, order, pages, pageShift, extras }) {
  const rows = rowMapOf(metric, defaults, rowCount);
  return { workerId, definition, rows, rowCount, order, pages, pageShift, extras };
}

/**
 * @param {Pick<Definition, 'name' | 'help' | 'type'>} definition
 * @returns {string | undefined} why it would make the page unreadable, or very long
 */
function problemOf({ name, help, type }) {
  // Length first: many entries of a snapshot may be of one metric.
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
  const { definition, rows: sets, columns, extras } = readJsonMetric(metric, budget);
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
    extras,
  };
}

module.exports = { WorkerSeries, jsonSource, problemOf };
