'use strict';

// Runs in the worker, and in the primary for the primary's own metrics, on the application's event loop.
// Captures the registries of a process as a source: a log and columns. Everything that takes long is done in
// slices before the capture.

const { randomBytes } = require('node:crypto');
const { viewOf } = require('../registry/metric-view');
const { SourceLog } = require('./source-log');
const { BlocksAhead } = require('./blocks-ahead');
const { DIGEST_ROWS } = require('./digest-rows');
const { ExemplarEncoder } = require('./exemplar-encoder');
const { RowEncoder } = require('./row-encoder');
const { CollectHooks } = require('./collect-hooks');
const { CustomMetrics } = require('./custom-metrics');
const { EndedRows } = require('./ended-rows');
const { readableMetrics } = require('./readable-metrics');
const { warnOfOtherClients } = require('../registry/other-clients');
const { distinctMetrics } = require('../registry/distinct-metrics');
const { readableDefaults } = require('../registry/readable-defaults');
const { timedSection } = require('../event-loop/timed-section');
const { runInSlices, runThrough, turn } = require('../event-loop/slices');
const { encodeColumns } = require('./columns-encoder');
const { FailureCounts, COLLECT, ENDED, EXPIRED } = require('./failure-counts');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');
const { warnOnce } = require('../options/warnings');

const SLICE_MILLISECONDS = 0.3;
const MAX_NAME_LENGTH = 1000;

const HOOK_WARNING = 'PROM_CLIENT_CLUSTER_COLLECT';

/** @type {readonly import('./extras').ExtraBlock[]} */
const NO_EXTRAS = Object.freeze([]);

/** @typedef {import('./source-log').LogPosition} LogPosition */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./columns-encoder').CaptureEntry} CaptureEntry */

class Source {
  #incarnation = randomBytes(16).toString('hex');
  #sequence = 0;
  /** @type {import('./extras').ExtraEncoder[]} */
  #encoders = [new RowEncoder(DIGEST_ROWS), new ExemplarEncoder()];
  /** @type {RowEncoder | undefined} */
  #bucketEncoder = undefined;
  #hooks = new CollectHooks();
  #customMetrics = new CustomMetrics();
  #failures = new FailureCounts();
  #ended = new EndedRows();
  /** How many losses the log had when the metrics of ended rows were last checked. */
  #seenLosses = 0;

  /**
   * @param {() => Iterable<any>} registries called at each capture
   * @param {{keepsEnded?: boolean}} [options] whether captures offer the counts of ended rows until asked()
   *   reports that the reader has them; default true
   */
  constructor(registries, { keepsEnded = true } = {}) {
    this.registries = registries;
    this.log = new SourceLog(keepsEnded ? view => this.#ended.follow(view) : undefined);
    /** Milliseconds of the event loop's time that preparations have taken so far. */
    this.spent = 0;
  }

  /**
   * To be called when the reader asks for a capture.
   *
   * @param {unknown} saved the number of the last batch of ended rows that the reader has saved, from a
   *   message
   */
  asked(saved) {
    for (const [name, rows] of this.#ended.asked(saved)) {
      debug('%d ended series of %s were dropped, because nobody had asked for them', rows, name);
      this.#failures.add(ENDED, name.slice(0, MAX_NAME_LENGTH), rows);
    }
  }

  /**
   * Prepares a capture: encodes what takes long, in slices, then runs the hooks. `capture` is called in the
   * same turn as the hooks, like prom-client reads metrics, because a program may reset a metric right after
   * its hook. If some hooks are asynchronous, all metrics are read after the last one has ended.
   *
   * @template T
   * @param {number | undefined} timeout milliseconds for the hooks; undefined to run none
   * @param {object} [options]
   * @param {(ahead: BlocksAhead) => void} [options.onProgress] called when the log has grown or a block is
   *   ready
   * @param {(ahead: BlocksAhead, hooksBegan: number) => T} [options.capture] `hooksBegan`: when the
   *   asynchronous hooks were called, by performance.now(), because their values may be that old; Infinity if
   *   there were none
   * @returns {Promise<T | undefined>} what `capture` returns; only its errors reject the promise
   */
  async prepare(timeout, { onProgress, capture } = {}) {
    warnOfOtherClients(this.registries());
    const ahead = capture && new BlocksAhead();
    this.#ended.close();
    await this.#inSlices(this.#preparation(this.#views(), ahead, onProgress));
    // Otherwise the capture would run in the same turn as the last slice, and block the loop for longer.
    await turn();
    const hooksBegan = performance.now();
    const ended = timeout === undefined ? undefined : this.#runHooks(timeout);
    if (ended === undefined) return ahead && capture?.(ahead, Infinity);
    await ended;
    const current = this.#views();
    await this.#inSlices(this.#encodeChanged(current.filter(hasExtras), false));
    if (ahead === undefined || capture === undefined) return undefined;
    // Extends the log by what the hooks have added.
    await this.#inSlices(this.#extendLog(current, () => onProgress?.(ahead)));
    return capture(ahead, hooksBegan);
  }

  /** @param {Generator<void>} steps */
  async #inSlices(steps) {
    await runInSlices(steps, SLICE_MILLISECONDS, slice => {
      const start = performance.now();
      const step = slice();
      this.spent += performance.now() - start;
      return step;
    });
  }

  /**
   * @param {number} timeout milliseconds
   * @returns {Promise<void> | undefined} undefined if all have ended
   */
  #runHooks(timeout) {
    const hooks = this.#metrics().map(metric =>
      viewOf(metric) === undefined ? this.#customMetrics.hookOf(metric) : metric,
    );
    return this.#hooks.run(hooks, timeout, (name, reason) => this.countFailure(COLLECT, name, reason));
  }

  /**
   * @param {MetricView[]} views of all metrics
   * @param {BlocksAhead | undefined} ahead
   * @param {((ahead: BlocksAhead) => void) | undefined} onProgress
   * @returns {Generator<void>} yields where a slice may end
   */
  *#preparation(views, ahead, onProgress) {
    // Compaction comes first, because it renumbers rows.
    yield* compactionSteps(views);
    const withExtras = views.filter(hasExtras);
    yield* this.#encodeChanged(withExtras, true);
    if (ahead === undefined) return;
    // Offsets must follow the order of the entries.
    const blocks = withExtras.flatMap(view =>
      this.#encodersOf(view).flatMap(encoder => encoder.aheadOf?.(view) ?? []),
    );
    for (const steps = ahead.add(blocks); !steps.next().done; yield) onProgress?.(ahead);
    if (this.log.isMostlyGone) this.log.restart();
    yield* this.#extendLog(views, () => onProgress?.(ahead));
    // Encodes what was observed meanwhile; otherwise the capture would have to.
    for (const view of withExtras)
      if (view.buckets !== undefined) yield* this.#buckets.encodeChanged(view, false);
  }

  /**
   * @param {MetricView[]} views
   * @param {() => void} onProgress
   * @returns {Generator<void>} yields where a slice may end
   */
  *#extendLog(views, onProgress) {
    for (const steps = this.log.extend(views); !steps.next().done; yield) onProgress();
  }

  /**
   * Encodes digests, exemplars and buckets that have changed.
   *
   * @param {MetricView[]} views of metrics that have some
   * @param {boolean} isAhead whether blocks can still be written ahead of the capture
   * @returns {Generator<void>} yields where a slice may end
   */
  *#encodeChanged(views, isAhead) {
    for (const view of views)
      for (const encoder of this.#encodersOf(view)) yield* encoder.encodeChanged(view, isAhead);
  }

  /**
   * Encodes the current state, synchronously. The log contains the label sets that it refers to. The chunks
   * refer to the tables' memory: they are valid until the next number is recorded.
   *
   * @param {number} workerId
   * @param {object} [options]
   * @param {boolean} [options.isLast] whether the process ends: then digests that have changed since
   *   prepare() are included, however long encoding them takes
   * @param {BlocksAhead} [options.ahead] from prepare()
   * @returns {import('./columns-encoder').EncodedColumns}
   */
  capture(workerId, { isLast = false, ahead = new BlocksAhead() } = {}) {
    const defaultLabels = [];
    /** @type {CaptureEntry[]} */
    const entries = [];
    const onUnreadable = (/** @type {unknown} */ error) => this.countFailure('capture', '', error);
    for (const [registry, metrics] of this.#metricsByRegistry(onUnreadable)) {
      const defaults = defaultLabels.push(readableDefaults(registry, onUnreadable)) - 1;
      for (const metric of metrics) {
        const view = viewOf(metric);
        if (view !== undefined) {
          const isCurrent = isLast || typeof metric.collect === 'function';
          entries.push({ defaults, view, extras: this.#extrasOf(view, isCurrent) });
          continue;
        }
        const json = this.#customMetrics.jsonOf(metric);
        if (json !== undefined) entries.push({ defaults, json });
      }
    }
    this.#addEnded(entries);
    const capture = {
      workerId,
      incarnation: this.#incarnation,
      sequence: ++this.#sequence,
      capturedAt: Date.now(),
      defaultLabels,
      entries,
      failures: [...this.#failures.entries, ...tableCounts(entries)],
      isLast,
    };
    /** @type {MetricView[]} */
    const views = [];
    for (const { view } of entries) if (view !== undefined) views.push(view);
    runThrough(this.log.extend(views));
    if (this.#seenLosses !== this.log.losses) {
      this.#seenLosses = this.log.losses;
      this.#ended.keep(table => this.log.has(table));
    }
    return encodeColumns(capture, this.log, ahead);
  }

  /**
   * Adds entries for ended rows, with the default labels of their metrics.
   *
   * @param {CaptureEntry[]} entries of all metrics
   */
  #addEnded(entries) {
    // Closed last, because reading a metric may remove expired rows.
    this.#ended.close();
    if (this.#ended.isEmpty) return;
    for (const { defaults, view } of [...entries]) {
      for (const ended of view === undefined ? [] : this.#ended.viewsOf(view.table))
        entries.push({ defaults, view: ended, extras: this.#extrasOf(ended, true) });
    }
  }

  /**
   * Starts another log if the reader of a message needs bytes that are not in memory any more. To be called
   * before prepare(), because otherwise the capture would have to encode the whole log.
   *
   * @param {LogPosition | undefined} position what the reader has of the log, from a message
   * @returns {number} the position from which the reader needs it
   */
  startLogFor(position) {
    const from = positionIn(this.log, position);
    if (from >= this.log.start) return from;
    this.log.restart();
    return 0;
  }

  /**
   * The same for a reader that gets one message: the columns, followed by the part of the log that the reader
   * lacks.
   *
   * @param {number} workerId
   * @param {LogPosition | undefined} position what the reader has of the log, from a message
   * @param {Parameters<Source['capture']>[1]} [options] those of capture()
   * @returns {import('./columns-encoder').EncodedColumns}
   */
  captureWithLog(workerId, position, options) {
    const { log } = this;
    const from = this.startLogFor(position);
    log.forgetBefore(from);
    const { chunks, bytes } = this.capture(workerId, options);
    return { chunks: [...chunks, ...log.bytesFrom(from)], bytes: bytes + log.length - from };
  }

  /**
   * @param {MetricView} view
   * @param {boolean} isCurrent whether to encode digests that have changed since prepare(), because hooks run
   *   later and may observe
   * @returns {readonly import('./extras').ExtraBlock[]}
   */
  #extrasOf(view, isCurrent) {
    view.beforeRead?.();
    if (!hasExtras(view)) return NO_EXTRAS;
    return this.#encodersOf(view).flatMap(encoder => encoder.blocksOf(view, isCurrent));
  }

  /** Loaded on first use: programs without native histograms do not need this file. */
  get #buckets() {
    return (this.#bucketEncoder ??= new RowEncoder(require('./bucket-rows').BUCKET_ROWS));
  }

  /**
   * @param {MetricView} view
   * @returns {import('./extras').ExtraEncoder[]}
   */
  #encodersOf({ buckets }) {
    return buckets === undefined ? this.#encoders : [...this.#encoders, this.#buckets];
  }

  /**
   * Counts a failure. Each snapshot contains the counts. The first failure of a hook is also reported as a
   * warning, because the page silently shows the last values of its metric.
   *
   * @param {string} stage
   * @param {unknown} metric the metric's name, '' for none; a custom metric object may have anything as its
   *   name
   * @param {unknown} reason for the debug log and the warning
   */
  countFailure(stage, metric, reason) {
    debug('%s %O failed: %O', stage, metric, reason);
    const name = typeof metric === 'string' ? metric.slice(0, MAX_NAME_LENGTH) : `a ${typeof metric} as name`;
    this.#failures.add(stage, name);
    if (stage === COLLECT) warnOfHook(name, reason);
  }

  /**
   * @param {(error: unknown) => void} [onUnreadable]
   * @returns {Map<any, any[]>}
   */
  #metricsByRegistry(onUnreadable) {
    return distinctMetrics(this.registries(), registry => readableMetrics(registry, onUnreadable));
  }

  /** @returns {any[]} */
  #metrics() {
    return [...new Set([...this.#metricsByRegistry().values()].flat())];
  }

  /** @returns {MetricView[]} in the order of a capture's entries */
  #views() {
    const views = this.#metrics().flatMap(metric => viewOf(metric) ?? []);
    return this.#ended.isEmpty
      ? views
      : [...views, ...views.flatMap(({ table }) => this.#ended.viewsOf(table))];
  }
}

/**
 * @param {MetricView} view
 * @returns {boolean} whether rows may have more than numbers
 */
function hasExtras({ digestOf, exemplars, buckets }) {
  return (digestOf ?? exemplars ?? buckets) !== undefined;
}

/**
 * @param {string} name of the metric
 * @param {unknown} reason
 */
function warnOfHook(name, reason) {
  const text = `The collect hook of the metric ${name} has failed: ${textOf(reason)}`;
  const effect = 'The page shows its last values. Later failures are counted, without another warning';
  warnOnce(`collect hook of ${name}`, `${text.replace(/\.$/, '')}. ${effect}`, HOOK_WARNING);
}

/**
 * @param {SourceLog} log
 * @param {LogPosition | undefined} position from a message
 * @returns {number} 0 if it is not in this log
 */
function positionIn({ name, length }, position) {
  const isInLog = position?.log === name && Number.isInteger(position.bytes) && position.bytes <= length;
  return isInLog ? Math.max(position.bytes, 0) : 0;
}

/**
 * How many label sets of each metric exceeded its limit, and how many have expired. A metric that is in two
 * registries counts once.
 *
 * @param {import('./columns-encoder').CaptureEntry[]} entries
 * @returns {import('./failure-counts').Failure[]}
 */
function tableCounts(entries) {
  /** @type {Map<object, import('./failure-counts').Failure[]>} */
  const byTable = new Map();
  for (const { view } of entries) {
    if (view === undefined) continue;
    const { overflowCount, expiredCount } = view.table;
    // undefined if another release of this package made the table and does not count.
    if (!(overflowCount > 0 || expiredCount > 0)) continue;
    byTable.set(view.table, [
      ['max-series', view.name, overflowCount],
      [EXPIRED, view.name, expiredCount],
    ]);
  }
  return [...byTable.values()].flat().filter(([, , count]) => count > 0);
}

/**
 * @param {MetricView[]} views
 * @returns {Generator<void>} yields where a slice may end
 */
function* compactionSteps(views) {
  for (const { table } of views) {
    if (table.live === undefined) continue;
    const steps = table.compactionSteps();
    while (!timedSection('worker:compact', () => steps.next()).done) yield;
  }
}

module.exports = { Source };
