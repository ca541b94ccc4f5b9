'use strict';

// Runs in the process's hub. What threads that have ended had counted becomes a part of the retired totals.
//
// Adding up many label sets takes long, so it is done in slices. Each row moves from the thread's table to
// the totals in one step, so a page that is read meanwhile has it once.

const { viewOf, DEFAULT_LABELS } = require('../registry/metric-view');
const { readableDefaults } = require('../registry/readable-defaults');
const { readableMetrics } = require('../source/readable-metrics');
const { RetiredSource } = require('../store/retired-source');
const { kindOf } = require('../series/layouts');
const { runThrough } = require('../event-loop/slices');

const DEFAULT_MAX_AGE = 3_600_000;
/** Which label sets living threads have is found out so often within the maximum age. */
const CHECKS_PER_AGE = 10;
const ROWS_PER_STEP = 64;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./thread-mirror').MirrorRegistry} MirrorRegistry */
/** @typedef {Pick<import('./thread-mirror').ThreadMirror, 'registries' | 'read'>} Mirror */

class EndedThreads {
  /** @type {Mirror[]} of threads whose counts are not all in the totals yet */
  mirrors = [];
  /** @type {WeakSet<object>} metrics of theirs that are */
  #merged = new WeakSet();
  #retired;
  #maxAge;
  #now;
  #nextCheck = 0;

  /**
   * @param {number} [maxAge] milliseconds that a label set stays which no living thread has
   * @param {() => number} [now] milliseconds of a clock that never jumps
   */
  constructor(maxAge = DEFAULT_MAX_AGE, now = () => performance.now()) {
    this.#retired = new RetiredSource(now);
    this.#maxAge = maxAge;
    this.#now = now;
  }

  /** @returns {MirrorRegistry[]} */
  get registries() {
    for (const mirror of this.mirrors) runThrough(mirror.read());
    const left = this.#registriesLeft().map(registry => this.#remainderOf(registry));
    if (this.#retired.isEmpty) return left;
    return [...left, { [DEFAULT_LABELS]: {}, getMetricsAsArray: () => this.#retired.metrics }];
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
        for (const metric of this.#remainderOf(registry).getMetricsAsArray()) {
          const view = /** @type {MetricView} */ (viewOf(metric));
          if (!(yield* this.#moveRows(view, registry[DEFAULT_LABELS]))) return;
          this.#merged.add(metric);
        }
      }
    }
  }

  /** @returns {MirrorRegistry[]} */
  #registriesLeft() {
    return this.mirrors.flatMap(({ registries }) => registries);
  }

  /**
   * @param {MirrorRegistry} registry of a thread that has ended
   * @returns {MirrorRegistry} what is not in the totals yet, and stays
   */
  #remainderOf(registry) {
    const isLeft = (/** @type {any} */ metric) => {
      const view = viewOf(metric);
      return !this.#merged.has(metric) && view !== undefined && RetiredSource.keeps(view);
    };
    return {
      [DEFAULT_LABELS]: registry[DEFAULT_LABELS],
      getMetricsAsArray: () => registry.getMetricsAsArray().filter(isLeft),
    };
  }

  /**
   * @param {MetricView} view of a thread
   * @param {Record<string, string>} defaults its registry's default labels
   * @returns {Generator<void, boolean>} yields where a slice may end; returns whether all is in the totals
   */
  *#moveRows(view, defaults) {
    const { table } = view;
    const rows = table.liveRows();
    for (let next = rows.next(); !next.done; yield) {
      if (table.captures !== undefined) return false;
      // Not before the pause, because expire() may drop them.
      const totals = this.#totalsOf(view, defaults);
      for (let i = 0; i < ROWS_PER_STEP && !next.done; i++, next = rows.next()) {
        const row = next.value;
        const labels = labelsWith(defaults, view, row);
        const digest = view.windowed ? undefined : view.digestOf?.(row);
        const centroids = digest?.slices()[0]?.centroids();
        // First: if there is no memory for one of them, the row is lost, and not there twice.
        table.removeRow(row);
        totals.add(labels, table.pageOf(row), table.offsetOf(row), centroids, this.#now());
      }
    }
    this.#totalsOf(view, defaults).table.overflows += table.overflowCount;
    return true;
  }

  /**
   * @param {MetricView} view
   * @param {Record<string, string>} defaults
   */
  #totalsOf({ name, help, type, aggregator, layout, windowed = false, table }, defaults) {
    const labelNames = [...new Set([...table.labelNames, ...Object.keys(defaults)])];
    const definition = { name, help, type, aggregator, layout, windowed, labelNames };
    return this.#retired.totalsOf(definition, labelNames);
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
    // A thread that has just ended has them, too.
    for (const registry of [...live, ...this.#registriesLeft()]) {
      const defaults = readableDefaults(registry);
      for (const metric of readableMetrics(registry)) {
        const view = viewOf(metric);
        if (view !== undefined) yield* this.#touch(view, defaults, now);
      }
    }
    yield* this.#retired.expire(now - this.#maxAge);
  }

  /**
   * @param {MetricView} view of a living thread
   * @param {Record<string, string>} defaults
   * @param {number} now
   * @returns {Generator<void>}
   */
  *#touch(view, defaults, now) {
    const same = this.#retired.totals.filter(({ definition }) => definition.name === view.name);
    if (same.length === 0) return;
    let count = 0;
    for (const row of view.table.liveRows()) {
      const labels = labelsWith(defaults, view, row);
      for (const totals of same) totals.seen(labels, now);
      if (++count % ROWS_PER_STEP === 0) yield;
    }
  }
}

/**
 * @param {Record<string, string>} defaults
 * @param {MetricView} view
 * @param {number} row
 * @returns {Record<string, string>} the labels of a row, in the order of the page
 */
function labelsWith(defaults, { table, layout }, row) {
  const labels = table.labelsOf(row);
  const missing = Object.fromEntries(
    Object.entries(defaults).filter(([name]) => !Object.hasOwn(labels, name)),
  );
  return kindOf(layout).startsWithDefaults ? { ...missing, ...labels } : { ...labels, ...missing };
}

module.exports = { EndedThreads };
