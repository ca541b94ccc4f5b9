'use strict';

// Runs in the process's hub. What threads that have ended had counted: counters, histograms and summaries
// with the aggregator `sum`, added up. Gauges end with their thread. As in a cluster, totals of label sets
// that no living thread has are dropped some time later.
//
// Adding up many label sets takes long, so it is done in slices. Each row moves from the thread's table to
// the totals in one step, so a page that is read meanwhile has it once.

const { viewOf, VIEW, DEFAULT_LABELS } = require('../registry/metric-view');
const { readableDefaults } = require('../registry/readable-defaults');
const { readableMetrics } = require('../source/readable-metrics');
const { mergeCentroids } = require('../metric/centroids');
const { isLasting, rulesOf, combined } = require('../series/layouts');
const { roundingError } = require('../series/exact-sum');
const { SeriesTable } = require('../series/series-table');
const { runThrough } = require('../event-loop/slices');

const DELTA = 0.01; // as lib/metric/observations.js has it
const DEFAULT_MAX_AGE = 3_600_000;
/** Which label sets living threads have is found out so often within the maximum age. */
const CHECKS_PER_AGE = 10;
const ROWS_PER_STEP = 64;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./thread-mirror').MirrorRegistry} MirrorRegistry */
/** @typedef {Pick<import('./thread-mirror').ThreadMirror, 'registries' | 'read'>} Mirror */

/**
 * Totals of one metric. `rest` has the rounding error of each total: the page adds it up with the totals, so
 * that a sum never falls when a thread becomes a part of it.
 *
 * @typedef {object} Totals
 * @property {string} registry
 * @property {MetricView & {table: TotalsTable}} view
 * @property {MetricView} rest
 * @property {RowDigest[]} digests by row
 * @property {number[]} lastSeen by row: when a thread with it ended, or was found to have it, by the clock;
 *   Infinity if it was dropped
 */

/**
 * The digest of one row of totals. It never changes: a thread's observations become part of another one. So a
 * capture that has encoded it already sees that, and has each of them once.
 */
class RowDigest {
  version = 0;

  /** @param {Float64Array} centroids */
  constructor(centroids) {
    this.centroids = centroids;
  }

  /** @returns {any[]} as TimeWindowQuantiles.slices() */
  slices() {
    return [{ isEmpty: this.centroids.length === 0, centroids: () => this.centroids }];
  }
}

const NO_OBSERVATIONS = new RowDigest(new Float64Array(0));

class TotalsTable extends SeriesTable {
  /** That of the threads. */
  overflows = 0;

  get overflowCount() {
    return this.overflows;
  }
}

class RetiredThreads {
  /** @type {Mirror[]} of threads that have ended, whose counts are not all in the totals yet */
  mirrors = [];
  /** @type {WeakSet<object>} metrics of theirs that are */
  #merged = new WeakSet();
  /** @type {Map<string, Totals>} by definition */
  #totals = new Map();
  /** @type {Map<string, MirrorRegistry>} by default labels */
  #registries = new Map();
  #maxAge;
  #now;
  #nextCheck = 0;

  /**
   * @param {number} [maxAge] milliseconds that a label set stays which no living thread has
   * @param {() => number} [now] milliseconds of a clock that never jumps
   */
  constructor(maxAge = DEFAULT_MAX_AGE, now = () => performance.now()) {
    this.#maxAge = maxAge;
    this.#now = now;
  }

  /** @returns {MirrorRegistry[]} */
  get registries() {
    for (const mirror of this.mirrors) runThrough(mirror.read());
    const ended = this.mirrors.flatMap(({ registries }) => registries);
    return [...ended.map(registry => this.#remainderOf(registry)), ...this.#registries.values()];
  }

  /** @param {Mirror} mirror of a thread that has ended. merge() adds what it has to the totals */
  add(mirror) {
    this.mirrors.push(mirror);
  }

  /**
   * Ends early while a capture waits for hooks, because it may have copied rows that would be in the totals,
   * too: the next call goes on.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *merge() {
    for (let mirror; (mirror = this.mirrors[0]) !== undefined; this.mirrors.shift()) {
      yield* mirror.read();
      for (const registry of mirror.registries) {
        const metrics = this.#remainderOf(registry).getMetricsAsArray();
        for (const metric of metrics)
          if (!(yield* this.#mergeMetric(metric, registry[DEFAULT_LABELS]))) return;
      }
    }
  }

  /**
   * @param {MirrorRegistry} registry of a thread that has ended
   * @returns {MirrorRegistry} what is not in the totals yet, and stays
   */
  #remainderOf(registry) {
    return {
      [DEFAULT_LABELS]: registry[DEFAULT_LABELS],
      getMetricsAsArray: () => {
        const left = registry.getMetricsAsArray().filter(metric => !this.#merged.has(metric));
        return left.flatMap(metric => {
          const view = viewOf(metric);
          return view?.aggregator === 'sum' && isLasting(view.type) ? metric : [];
        });
      },
    };
  }

  /**
   * Drops the label sets that have been without a living thread for too long.
   *
   * @param {any[]} live registries
   * @returns {Generator<void>} yields where a slice may end
   */
  *expire(live) {
    const now = this.#now();
    if (now < this.#nextCheck) return;
    this.#nextCheck = now + this.#maxAge / CHECKS_PER_AGE;
    const oldest = now - this.#maxAge;
    const isOld = (/** @type {Totals} */ { lastSeen }) => lastSeen.some(time => time < oldest);
    const old = [...this.#totals].filter(([, totals]) => isOld(totals));
    if (old.length === 0) return;
    // A thread that has just ended has them, too.
    for (const registry of [...live, ...this.mirrors.flatMap(({ registries }) => registries)]) {
      const labels = textOf(readableDefaults(registry));
      for (const metric of readableMetrics(registry)) {
        const same = old.filter(([, { registry, view }]) => registry === labels && view.name === metric.name);
        for (const [, totals] of same) yield* touch(totals, viewOf(metric)?.table, now);
      }
    }
    for (const [key, totals] of old) {
      yield* dropOld(totals, oldest);
      const { liveCount, overflowCount } = totals.view.table;
      if (liveCount + overflowCount === 0) this.#totals.delete(key);
    }
    const used = new Set(Array.from(this.#totals.values(), ({ registry }) => registry));
    for (const key of this.#registries.keys()) if (!used.has(key)) this.#registries.delete(key);
  }

  /**
   * @param {MetricView} view
   * @param {Record<string, string>} defaultLabels
   * @returns {Totals}
   */
  #totalsOf(view, defaultLabels) {
    const { name, type, layout, windowed } = view;
    const registry = textOf(defaultLabels);
    const key = JSON.stringify([registry, name, type, windowed, layout, view.table.labelNames]);
    let totals = this.#totals.get(key);
    if (totals === undefined) {
      totals = emptyTotals(view, registry);
      this.#totals.set(key, totals);
      this.#addRegistry(registry, defaultLabels);
    }
    return totals;
  }

  /**
   * @param {string} key
   * @param {Record<string, string>} defaultLabels
   */
  #addRegistry(key, defaultLabels) {
    if (this.#registries.has(key)) return;
    this.#registries.set(key, {
      [DEFAULT_LABELS]: defaultLabels,
      getMetricsAsArray: () => {
        const all = [...this.#totals.values()].filter(({ registry }) => registry === key);
        return all.flatMap(({ view, rest }) =>
          (rest.table.liveCount === 0 ? [view] : [view, rest]).map(asMetric),
        );
      },
    });
  }

  /**
   * @param {any} metric of a thread that has ended
   * @param {Record<string, string>} defaultLabels
   * @returns {Generator<void, boolean>} yields where a slice may end; returns whether all is in the totals
   */
  *#mergeMetric(metric, defaultLabels) {
    const view = /** @type {MetricView} */ (viewOf(metric));
    const rows = view.table.liveRows();
    for (let next = rows.next(); !next.done; yield) {
      if (view.table.captures !== undefined) return false;
      // Not before the pause, because expire() may drop them.
      const totals = this.#totalsOf(view, defaultLabels);
      for (let i = 0; i < ROWS_PER_STEP && !next.done; i++, next = rows.next()) {
        this.#moveRow(totals, view, next.value);
      }
    }
    this.#totalsOf(view, defaultLabels).view.table.overflows += view.table.overflowCount;
    this.#merged.add(metric);
    return true;
  }

  /**
   * Whatever needs memory comes first. So if there is none, the row has not moved.
   *
   * @param {Totals} totals
   * @param {MetricView} view of a thread
   * @param {number} from its row
   * @throws {RangeError} if there is no memory
   */
  #moveRow(totals, view, from) {
    const { table, windowed } = totals.view;
    const rest = totals.rest.table;
    const labels = view.table.labelsOf(from);
    const rules = rulesOf(view.layout);
    const isNew = rules !== undefined && table.find(labels) === -1;
    const row = table.start(labels);
    // Not before that, because it may replace them.
    const { digests, lastSeen } = totals;
    lastSeen[row] = this.#now();
    const page = table.pageOf(row);
    const offset = table.offsetOf(row);
    const source = view.table.pageOf(from);
    const start = view.table.offsetOf(from);
    const ruleOf = (/** @type {number} */ column) => rules?.[column] ?? 'sum';
    const errorOf = (/** @type {number} */ column) => {
      if (ruleOf(column) !== 'sum') return 0;
      const [before, added] = [page[offset + column], source[start + column]];
      const error = roundingError(before, added, before + added);
      return Number.isFinite(error) ? error : 0;
    };
    let restRow = -1;
    for (let column = 0; column < table.width && restRow === -1; column++)
      if (errorOf(column) !== 0) restRow = rest.start(labels);
    const centroids = windowed ? undefined : view.digestOf?.(from).slices()[0]?.centroids();
    const digest = digests[row] ?? NO_OBSERVATIONS;
    const merged =
      centroids === undefined || centroids.length === 0
        ? digest
        : new RowDigest(mergeCentroids([digest.centroids, centroids], DELTA));
    view.table.removeRow(from);
    for (let column = 0; column < table.width; column++) {
      const [error, added] = [errorOf(column), source[start + column]];
      const rule = isNew ? 'sum' : ruleOf(column);
      page[offset + column] = combined(rule, page[offset + column], added);
      if (restRow === -1) continue;
      const at = rest.offsetOf(restRow) + column;
      // The page combines both by the same rule.
      if (ruleOf(column) === 'sum') rest.pageOf(restRow)[at] += error;
      else rest.pageOf(restRow)[at] = page[offset + column];
    }
    if (merged === digest) return;
    digests[row] = merged;
    // A digest that was encoded has been replaced.
    table.generation++;
  }
}

/**
 * @param {MetricView} view of a thread's metric
 * @param {string} registry
 * @returns {Totals}
 */
function emptyTotals({ name, help, type, aggregator, layout, windowed, digestOf, table }, registry) {
  const withTable = (/** @type {(row: number) => RowDigest} */ ownDigestOf) => {
    const more = digestOf === undefined ? {} : { digestOf: ownDigestOf, windowed };
    const totals = new TotalsTable(table.labelNames, table.width);
    return /** @type {any} */ ({ name, help, type, aggregator, layout, table: totals, ...more });
  };
  /** @type {Totals} */
  const totals = {
    registry,
    view: withTable(row => totals.digests[row] ?? NO_OBSERVATIONS),
    // The digests belong to the totals alone.
    rest: withTable(() => NO_OBSERVATIONS),
    digests: [],
    lastSeen: [],
  };
  totals.view.table.listener = {
    // Also if it was dropped: a compaction under way may have copied its digest before.
    rowStarted: row => void (totals.digests[row] = NO_OBSERVATIONS),
    startMove: () => moveOf(totals),
  };
  return totals;
}

/**
 * @param {Totals} totals
 * @returns {import('../series/series-table').RowMove}
 */
function moveOf(totals) {
  /** @type {Pick<Totals, 'digests' | 'lastSeen'>} */
  const moved = { digests: [], lastSeen: [] };
  return {
    copy: (old, row) => {
      if (totals.digests[old] !== undefined) moved.digests[row] = totals.digests[old];
      moved.lastSeen[row] = totals.lastSeen[old];
    },
    finish: () => void Object.assign(totals, moved),
  };
}

/**
 * @param {Totals} totals
 * @param {SeriesTable | undefined} table of a living thread
 * @param {number} now
 * @returns {Generator<void>}
 */
function* touch(totals, table, now) {
  let count = 0;
  for (const own of table?.liveRows() ?? []) {
    const row = totals.view.table.find(/** @type {SeriesTable} */ (table).labelsOf(own));
    if (row !== -1) totals.lastSeen[row] = now;
    if (++count % ROWS_PER_STEP === 0) yield;
  }
}

/**
 * Drops the label sets that were not seen since. Ends early while a capture waits for hooks, because it would
 * not have what is added to the totals afterwards.
 *
 * @param {Totals} totals
 * @param {number} oldest
 * @returns {Generator<void>}
 */
function* dropOld(totals, oldest) {
  const { table } = totals.view;
  const rest = totals.rest.table;
  for (let row = 0; row < totals.lastSeen.length; row++) {
    if (row % ROWS_PER_STEP === 0) yield;
    if (table.captures !== undefined) return;
    if (!(totals.lastSeen[row] < oldest)) continue;
    const restRow = rest.find(table.labelsOf(row));
    if (restRow !== -1) rest.removeRow(restRow);
    table.removeRow(row);
    totals.lastSeen[row] = Infinity;
    if (totals.digests[row] !== undefined) totals.digests[row] = NO_OBSERVATIONS;
  }
}

/** @param {Record<string, unknown>} defaultLabels */
function textOf(defaultLabels) {
  return JSON.stringify(Object.keys(defaultLabels).map(name => [name, String(defaultLabels[name])]));
}

/** @param {MetricView} view */
function asMetric(view) {
  return { number: 0, name: view.name, [VIEW]: () => view };
}

module.exports = { RetiredThreads };
