'use strict';

// Runs in a member of a cluster or group. What its threads that have ended had counted becomes a part of
// retired totals, which stay as long as the process: they are part of sums over several processes, and
// Prometheus would take a sum that falls for a reset.
//
// Adding up many label sets takes long, so it is done in slices. Each row moves from the thread's table to
// the totals in one step, so a page that is read meanwhile has it once.

const { viewOf, DEFAULT_LABELS } = require('../registry/metric-view');
const { RetiredSource } = require('../store/retired-source');
const { kindOf } = require('../series/layouts');
const { runThrough } = require('../event-loop/slices');

const ROWS_PER_STEP = 64;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {Omit<import('../source/thread-mirror').MirrorRegistry, 'defaults'>} MirrorRegistry */
/** @typedef {Pick<import('../source/thread-mirror').ThreadMirror, 'registries' | 'read'>} Mirror */

class EndedThreads {
  /** @type {Mirror[]} of threads whose counts are not all in the totals yet */
  mirrors = [];
  /** @type {WeakSet<object>} metrics of theirs that are */
  #merged = new WeakSet();
  #retired = new RetiredSource(() => performance.now());

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
      const totals = this.#totalsOf(view, defaults);
      for (let i = 0; i < ROWS_PER_STEP && !next.done; i++, next = rows.next()) {
        const row = next.value;
        const labels = labelsWith(defaults, view, row);
        const digest = view.windowed ? undefined : view.digestOf?.(row);
        const centroids = digest?.slices()[0]?.centroids();
        // First: if there is no memory for one of them, the row is lost, and not there twice.
        table.removeRow(row);
        totals.add(labels, table.pageOf(row), table.offsetOf(row), centroids, performance.now());
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
