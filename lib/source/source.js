'use strict';

// Runs in the worker, and in the primary for the primary's own metrics, on the application's event loop.
// Captures the registries of a process as a source: a log and columns. Everything that takes long is done in
// slices before the capture.

const { randomBytes } = require('node:crypto');
const { viewOf } = require('../registry/metric-view');
const { SourceLog } = require('./source-log');
const { BlocksAhead } = require('./blocks-ahead');
const { DigestEncoder } = require('./digest-encoder');
const { ExemplarEncoder } = require('./exemplar-encoder');
const { CollectHooks } = require('./collect-hooks');
const { CustomMetrics } = require('./custom-metrics');
const { EarlyCopies } = require('./early-copies');
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

/** @type {Pick<CaptureEntry, 'extras'>} */
const NO_EXTRAS = Object.freeze({ extras: [] });

/** @typedef {import('./source-log').LogPosition} LogPosition */
/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./columns-encoder').CaptureEntry} CaptureEntry */

class Source {
  #incarnation = randomBytes(16).toString('hex');
  #sequence = 0;
  /** @type {import('./extras').ExtraEncoder[]} */
  #encoders = [new DigestEncoder(), new ExemplarEncoder()];
  /** @type {import('./bucket-encoder').BucketEncoder | undefined} */
  #bucketEncoder = undefined;
  #hooks = new CollectHooks();
  #customMetrics = new CustomMetrics();
  #failures = new FailureCounts();
  /** @type {EarlyCopies | undefined} for a capture after asynchronous hooks */
  #copies = undefined;
  /**
   * @type {Map<any, any[]> | undefined} by registry: its metrics when the hooks of a capture were started. If
   *   a hook removes a metric, prom-client still shows it
   */
  #started = undefined;
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
   * its hook. If the capture must wait for asynchronous hooks, the numbers that the other hooks have set are
   * copied in that turn. Numbers of metrics without a hook are copied only if the program resets or removes
   * them meanwhile: a later scrape may share the capture, and must include what was recorded before it.
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
    const started = this.#metricsByRegistry();
    const hooksBegan = performance.now();
    const unfinished = timeout === undefined ? undefined : this.#runHooks(started, timeout);
    if (unfinished === undefined) return ahead && this.#afterHooks(started, () => capture?.(ahead, Infinity));
    const copies = this.#copiesWithout(unfinished.pending);
    try {
      await unfinished.ended;
      const current = this.#views();
      await this.#inSlices(this.#encodeChanged(current.filter(hasExtras), false));
      if (ahead === undefined || capture === undefined) return undefined;
      // Extends the log by what the hooks have added.
      await this.#inSlices(this.#extendLog(current, () => onProgress?.(ahead)));
    } finally {
      copies.end();
    }
    this.#copies = copies;
    return this.#afterHooks(started, () => capture(ahead, hooksBegan));
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
   * @template T
   * @param {Map<any, any[]>} started
   * @param {() => T} capture
   * @returns {T}
   */
  #afterHooks(started, capture) {
    this.#started = started;
    try {
      return capture();
    } finally {
      this.#started = this.#copies = undefined;
    }
  }

  /**
   * @param {Map<any, any[]>} metrics by registry
   * @param {number} timeout milliseconds
   */
  #runHooks(metrics, timeout) {
    // The hook of a metric that is in two registries runs only once.
    const hooks = [...new Set([...metrics.values()].flat())].map(metric =>
      viewOf(metric) === undefined ? this.#customMetrics.hookOf(metric) : metric,
    );
    return this.#hooks.run(hooks, timeout, (name, reason) => this.countFailure(COLLECT, name, reason));
  }

  /**
   * @param {ReadonlySet<any>} except metrics whose hooks have not ended
   * @returns {EarlyCopies}
   */
  #copiesWithout(except) {
    const metrics = this.#metrics().flatMap(metric => {
      const view = viewOf(metric);
      if (view === undefined || except.has(metric)) return [];
      return { view, hasHook: typeof metric.collect === 'function' };
    });
    const copies = new EarlyCopies(metrics, view => this.#extrasOf(view, true));
    // Batches up to this number are in no copy.
    copies.closedBatch = this.#ended.close();
    return copies;
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
    yield* this.#encodeBuckets(withExtras, false);
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
    for (const encoder of this.#encoders) for (const view of views) yield* encoder.encodeChanged(view);
    yield* this.#encodeBuckets(views, isAhead);
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
    /** @type {MetricView[]} */
    const views = [];
    const onUnreadable = (/** @type {unknown} */ error) => this.countFailure('capture', '', error);
    for (const [registry, metrics] of this.#metricsByRegistry(onUnreadable)) {
      const defaults = defaultLabels.push(readableDefaults(registry, onUnreadable)) - 1;
      for (const metric of this.#withRemoved(registry, metrics)) {
        const view = viewOf(metric);
        if (view !== undefined) {
          const isCurrent = isLast || typeof metric.collect === 'function';
          // Not spread into a new object, because that takes V8 2 µs instead of 0.1.
          const { numbers, extras } = this.#numbersOf(view, isCurrent);
          entries.push({ defaults, view, numbers, extras });
          views.push(view);
          continue;
        }
        const json = this.#customMetrics.jsonOf(metric);
        if (json !== undefined) entries.push({ defaults, json });
      }
    }
    const { length } = entries;
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
    for (const { view } of entries.slice(length)) views.push(/** @type {MetricView} */ (view));
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
    // Closed last, because reading a metric may remove expired rows. If a metric is shown from a copy, rows
    // that have ended since the copy follow in the next capture.
    this.#ended.close(table => this.#copyOf(table) !== undefined);
    if (this.#ended.isEmpty) return;
    for (const { defaults, view } of [...entries]) {
      for (const ended of view === undefined ? [] : this.#ended.viewsOf(view.table))
        entries.push({ defaults, view: ended, ...this.#extrasOf(ended, true) });
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
   * @param {import('../series/series-table').SeriesTable} table
   * @returns {ReturnType<EarlyCopies['of']>} also undefined if rows of the copy are already offered as ended
   */
  #copyOf(table) {
    const copies = this.#copies;
    const isOffered = copies !== undefined && this.#ended.hasClosedSince(table, copies.closedBatch);
    return isOffered ? undefined : copies?.of(table);
  }

  /**
   * @param {MetricView} view
   * @param {boolean} isCurrent see #extrasOf()
   * @returns {Pick<CaptureEntry, 'numbers' | 'extras'>}
   */
  #numbersOf(view, isCurrent) {
    const { numbers } = view;
    return numbers ? { numbers } : (this.#copyOf(view.table) ?? this.#extrasOf(view, isCurrent));
  }

  /**
   * @param {MetricView} view
   * @param {boolean} isCurrent whether to encode digests that have changed since prepare(), because hooks run
   *   later and may observe
   * @returns {Pick<CaptureEntry, 'numbers' | 'extras'>}
   */
  #extrasOf(view, isCurrent) {
    view.beforeRead?.();
    if (!hasExtras(view)) return NO_EXTRAS;
    return { extras: this.#encodersOf(view).flatMap(encoder => encoder.blocksOf(view, isCurrent)) };
  }

  /** Loaded on first use: programs without native histograms do not need this file. */
  get #buckets() {
    const { BucketEncoder } = require('./bucket-encoder');
    return (this.#bucketEncoder ??= new BucketEncoder());
  }

  /**
   * @param {MetricView[]} views
   * @param {boolean} isAhead
   * @returns {Generator<void>} yields where a slice may end
   */
  *#encodeBuckets(views, isAhead) {
    for (const view of views)
      if (view.buckets !== undefined) yield* this.#buckets.encodeChanged(view, isAhead);
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
   * @param {any} registry
   * @param {any[]} metrics of the registry now
   * @returns {any[]} the same, and those that were removed after the hooks were started
   */
  #withRemoved(registry, metrics) {
    const started = this.#started?.get(registry) ?? [];
    if (started.every((metric, i) => metric === metrics[i])) return metrics;
    const names = new Set(metrics.map(({ name }) => name));
    return [...metrics, ...started.filter(({ name }) => !names.has(name))];
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
