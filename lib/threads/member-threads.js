'use strict';

// Runs on the event loop of a member of a cluster or group, which sends its numbers to another process. The
// member's threads are read here, as further registries of this process.
//
// The counts of its ended threads become part of retired totals, which stay as long as the process: they are
// part of sums over several processes, and Prometheus would treat a falling sum as a reset. Rows of a metric
// with `maxIdleSeconds` expire there after that time, like any rows of this process. Rows that end while
// their thread lives are added to separate totals, and end there at once.

const { viewOf, DEFAULT_LABELS } = require('../registry/metric-view');
const { ThreadMirror } = require('../source/thread-mirror');
const { RetiredSource } = require('../store/retired-source');
const { FOLDED } = require('../store/retired-totals');
const { runInSlices, runThrough } = require('../event-loop/slices');
const { debug } = require('../options/debug-log');

const ROWS_PER_STEP = 64;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../source/thread-mirror').MirrorRegistry} MirrorRegistry */
/** @typedef {Pick<ThreadMirror, 'registries' | 'read'>} Mirror */
/** @typedef {import('./thread-record').ThreadRecord} ThreadRecord */

class MemberThreads {
  /** @type {Set<Mirror>} of living threads, in the order in which they were shown */
  #live = new Set();
  /** @type {Set<Mirror>} of threads whose counts are not all in the totals yet: merge() adds them */
  ended = new Set();
  #retired = new RetiredSource();
  /** Rows that have ended in live threads. */
  #endings = new RetiredSource();
  #isReading = false;

  /** @returns {any[]} as they are now */
  get registries() {
    for (const mirror of [...this.#live, ...this.ended]) runThrough(mirror.read());
    for (const totals of this.#endings.totals) this.#end(totals);
    for (const totals of this.#retired.totals) {
      const { maxIdleSeconds } = totals.definition;
      if (maxIdleSeconds > 0) runThrough(totals.expire(performance.now() - maxIdleSeconds * 1000));
    }
    const totals = [this.#retired, this.#endings].filter(source => !source.isEmpty);
    return [
      // First, because if two metrics with the same name have different types, the first one is shown.
      ...registriesOf(this.#live),
      ...registriesOf(this.ended).map(lastingOf),
      ...totals.map(source => ({ [DEFAULT_LABELS]: {}, getMetricsAsArray: () => source.metrics })),
    ];
  }

  /**
   * @param {ThreadRecord} record
   * @param {import('../source/thread-mirror').SharedParts} parts
   */
  share(record, parts) {
    if (record.mirror === undefined) this.#live.add((record.mirror = new ThreadMirror(this.addRow)));
    record.mirror.add(parts);
    void this.#readSoon();
  }

  /**
   * @param {ThreadRecord} record of a thread that has ended
   * @param {boolean} isReplaced whether it is shown as another one now: only rows that have ended in it stay
   */
  end({ mirror }, isReplaced) {
    if (mirror === undefined) return;
    this.#live.delete(mirror);
    if (isReplaced) runThrough(mirror.read());
    else this.ended.add(mirror);
    void this.#readSoon();
  }

  /**
   * Adds a row that has ended in a live thread.
   *
   * @type {import('../source/thread-mirror').OnEnded}
   */
  addRow = (view, row, isRemoved, defaults) => {
    if (!RetiredSource.keeps(view)) return;
    try {
      const totals = this.#endings.totalsFor(view, defaults);
      totals.addRow(view, row, defaults, isRemoved ? FOLDED : performance.now());
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
   * Reads what the threads have published, in slices, because many label sets would block the loop.
   *
   * @returns {Promise<void>}
   */
  async read() {
    try {
      for (const mirror of this.#live) await runInSlices(mirror.read());
      await runInSlices(this.merge());
    } catch (error) {
      debug('what a thread has counted cannot be added up: %O', error);
    }
  }

  /** Reads ahead, so that a capture has little left to read. */
  async #readSoon() {
    if (this.#isReading) return;
    this.#isReading = true;
    await undefined;
    await this.read();
    this.#isReading = false;
  }

  /**
   * Adds the counts of ended threads to the totals. Each row moves there in one step, so a page that is read
   * meanwhile includes it once. The next call continues, even if this one has not ended.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *merge() {
    for (const mirror of this.ended) {
      yield* mirror.read();
      for (const registry of mirror.registries) {
        for (const metric of lastingOf(registry).getMetricsAsArray()) {
          const view = /** @type {MetricView} */ (viewOf(metric));
          yield* this.#moveRows(view, registry[DEFAULT_LABELS]);
        }
      }
      this.ended.delete(mirror);
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

/** @param {Iterable<Mirror>} mirrors */
function registriesOf(mirrors) {
  return Array.from(mirrors, ({ registries }) => registries).flat();
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

module.exports = { MemberThreads };
