'use strict';

// Runs in a member of a cluster or group. The counts of its ended threads become part of retired totals,
// which stay as long as the process: they are part of sums over several processes, and Prometheus would treat
// a falling sum as a reset. Rows of a metric with `maxIdleSeconds` expire there after that time, like any
// rows of this process. Rows that end while their thread lives are added to separate totals, and end there at
// once.
//
// Adding up many label sets takes long, so it is done in slices. Each row moves from the thread's table to
// the totals in one step, so a page that is read meanwhile includes it once.

const { viewOf, DEFAULT_LABELS } = require('../registry/metric-view');
const { RetiredSource } = require('../store/retired-source');
const { FOLDED } = require('../store/retired-totals');
const { runThrough } = require('../event-loop/slices');
const { debug } = require('../options/debug-log');

const ROWS_PER_STEP = 64;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {Omit<import('../source/thread-mirror').MirrorRegistry, 'defaults'>} MirrorRegistry */
/** @typedef {Pick<import('../source/thread-mirror').ThreadMirror, 'registries' | 'read'>} Mirror */

class EndedThreads {
  /** @type {Set<Mirror>} of threads whose counts are not all in the totals yet: merge() adds them */
  mirrors = new Set();
  #retired = new RetiredSource();
  /** Rows that have ended in live threads. */
  #endings = new RetiredSource();

  /** @returns {MirrorRegistry[]} */
  get registries() {
    for (const mirror of this.mirrors) runThrough(mirror.read());
    const ended = [...this.mirrors].flatMap(({ registries }) => registries);
    for (const totals of this.#endings.totals) this.#end(totals);
    for (const totals of this.#retired.totals) {
      const { maxIdleSeconds } = totals.definition;
      if (maxIdleSeconds > 0) runThrough(totals.expire(performance.now() - maxIdleSeconds * 1000));
    }
    const totals = [this.#retired, this.#endings].filter(source => !source.isEmpty);
    return [
      ...ended.map(lastingOf),
      ...totals.map(source => ({ [DEFAULT_LABELS]: {}, getMetricsAsArray: () => source.metrics })),
    ];
  }

  /**
   * Adds a row that has ended in a live thread.
   *
   * @type {import('../source/thread-mirror').OnEnded}
   */
  addRow = (metric, row, isRemoved, defaults) => {
    const view = /** @type {MetricView} */ (viewOf(metric));
    if (!RetiredSource.keeps(view)) return;
    try {
      const labels = Object.fromEntries(defaults);
      const totals = this.#endings.totalsFor(view, labels);
      totals.addRow(view, row, labels, isRemoved ? FOLDED : performance.now());
      this.#end(totals);
    } catch (error) {
      debug('a row of a thread is lost: %O', error);
    }
  };

  /** @param {import('../store/retired-totals').RetiredTotals} totals */
  #end({ table, lastSeen }) {
    // The first capture follows the table, so they end with the second one.
    if (table.followers.length === 0) return;
    for (const row of [...table.liveRows()]) table.removeRow(row, lastSeen[row] !== FOLDED);
  }

  /**
   * The next call continues, even if this one has not ended.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *merge() {
    for (const mirror of this.mirrors) {
      yield* mirror.read();
      for (const registry of mirror.registries) {
        for (const metric of lastingOf(registry).getMetricsAsArray()) {
          const view = /** @type {MetricView} */ (viewOf(metric));
          yield* this.#moveRows(view, registry[DEFAULT_LABELS]);
        }
      }
      this.mirrors.delete(mirror);
    }
  }

  /**
   * @param {MetricView} view of a thread
   * @param {Record<string, string>} defaults its registry's default labels
   * @returns {Generator<void>} yields where a slice may end
   */
  *#moveRows(view, defaults) {
    const table = /** @type {import('../source/mirror-table').MirrorTable} */ (view.table);
    const totals = this.#retired.totalsFor(view, defaults);
    let count = 0;
    for (const row of table.liveRows()) {
      if (!table.isLive(row)) continue;
      // Removed first: if memory runs out, the row is lost, but not counted twice.
      table.removeRow(row);
      totals.addRow(view, row, defaults, performance.now());
      if (++count % ROWS_PER_STEP === 0) yield;
    }
    totals.table.overflows += table.overflowCount;
    table.overflows = new Float64Array(1);
  }
}

/**
 * @param {MirrorRegistry} registry of a thread that has ended
 * @returns {MirrorRegistry} the metrics whose counts must be kept
 */
function lastingOf(registry) {
  const isLasting = (/** @type {any} */ metric) => {
    const view = viewOf(metric);
    return view !== undefined && RetiredSource.keeps(view);
  };
  return {
    [DEFAULT_LABELS]: registry[DEFAULT_LABELS],
    getMetricsAsArray: () => registry.getMetricsAsArray().filter(isLasting),
  };
}

module.exports = { EndedThreads };
