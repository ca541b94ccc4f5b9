'use strict';

// Runs with the aggregator, in its thread or in place; no files, timers or messages. The numbers of the whole
// cluster: each worker's newest columns, the memory of this process's threads, the retired totals, and the
// families in which all of these are merged.

const { WorkerSeries, jsonSource } = require('./worker-series');
const { ThreadSeries } = require('./thread-series');
const { ClusterFamily } = require('./cluster-family');
const { sourceAsJson } = require('./family-json');
const { RetiredSource } = require('./retired-source');
const { FOLDED } = require('./retired-totals');
const { encodeRetired, restoreRetired } = require('./retired-snapshot');
const { runThrough } = require('../event-loop/slices');
const { STARTS, kindOf } = require('../series/layouts');
const { FailureCounts } = require('../source/failure-counts');
const { beginningOf } = require('../options/thrown');
const { debug } = require('../options/debug-log');

const DEFAULT_RETIRED_MAX_AGE = 3_600_000;

// How many ids of dead workers are remembered, so that a worker is not added to the totals again after a
// thread was replaced.
const REMEMBERED_DEATHS = 4096;

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('./cluster-family').Source} Source */

/**
 * A family that is ready to be written, or, if only the primary can aggregate it, its metrics as JSON, one
 * for each worker.
 *
 * @typedef {{view: Family} | {aggregator: string, name: string, metrics: any[]}} MergedFamily
 */

class ClusterStore {
  /** @type {Map<number, WorkerSeries>} */
  #workers = new Map();
  #retired = new RetiredSource();
  /** @type {Map<number, ThreadSeries>} of this process; none has the id of a worker */
  #threads = new Map();
  /** @type {Map<string, ClusterFamily>} by name, type and layout */
  #families = new Map();
  /** @type {Set<number>} ids of workers that were retired */
  #closed = new Set();
  /** @type {Source[]} ended rows of live processes that are not in the totals yet */
  #endings = [];
  /** @type {Generator<void> | undefined} under way */
  #folding = undefined;
  /**
   * @type {Map<string, number>} by incarnation of a process: the last batch of ended rows that was taken over
   */
  #batches = new Map();
  #scrape = 1;
  /** Failures in dead workers. */
  #retiredFailures = new FailureCounts();
  /** Failures of this store itself. */
  #ownFailures = new FailureCounts();

  /**
   * @param {{retiredMaxAge?: number, now?: () => number}} [options] in milliseconds; `now` never jumps, as
   *   the wall clock may, and is the same in all processes
   */
  constructor({ retiredMaxAge = DEFAULT_RETIRED_MAX_AGE, now = sharedClock } = {}) {
    this.retiredMaxAge = retiredMaxAge;
    this.now = now;
    /**
     * Metrics that were left out because a worker with a lower id has a metric of that name with another
     * type.
     */
    this.conflicts = 0;
  }

  /** @returns {boolean} whether there is nothing to show */
  get isEmpty() {
    return this.#all.length === 0 && this.#retired.isEmpty;
  }

  /**
   * @param {number} workerId
   * @returns {boolean} whether the worker was retired: later snapshots of it are ignored
   */
  isClosed(workerId) {
    return this.#closed.has(workerId);
  }

  /**
   * @param {number} workerId
   * @returns {WorkerSeries | undefined} undefined if it has sent nothing, or was retired
   */
  worker(workerId) {
    return this.#workers.get(workerId);
  }

  /** @returns {IterableIterator<WorkerSeries>} */
  workers() {
    return this.#workers.values();
  }

  get #all() {
    return [...this.#workers.values(), ...this.#threads.values()];
  }

  /** Failures, and the age of the numbers. */
  state() {
    const workers = this.#all;
    // A kind that is shown by name must stay so after its worker's death: otherwise the sum would fall.
    for (const worker of workers)
      for (const [stage, name] of worker.failures) this.#retiredFailures.add(stage, name, 0);
    const ofWorkers = [...this.#retiredFailures.entries, ...workers.flatMap(worker => worker.failures)];
    const failures = new FailureCounts([...this.#ownFailures.entries, ...ofWorkers]).entries;
    return {
      // Kinds that no worker has any more have a count of 0.
      failures: failures.flatMap(([stage, metric, count]) => (count > 0 ? { stage, metric, count } : [])),
      conflicts: this.conflicts,
      oldestCapture:
        workers.length === 0 ? undefined : Math.min(...workers.map(({ capturedAt }) => capturedAt)),
      snapshotBytes: workers.reduce((sum, { snapshotBytes }) => sum + snapshotBytes, 0),
    };
  }

  /**
   * Applies a worker's columns, see WorkerSeries.apply().
   *
   * @param {number} workerId
   * @param {Buffer} buffer
   * @param {import('./worker-series').ReadLog} [readLog]
   * @throws {import('../source/byte-buffers').SnapshotError} if the bytes are invalid or do not fit; the
   *   worker's earlier numbers then stay
   */
  apply(workerId, buffer, readLog) {
    const worker = this.#workers.get(workerId) ?? new WorkerSeries(workerId, this.countFailure);
    worker.apply(buffer, readLog);
    this.#workers.set(workerId, worker);
    this.#takeEnded(worker);
  }

  /**
   * Takes over the batches of ended rows that are new. A process offers a batch until it learns that the
   * batch is part of saved totals.
   *
   * @param {WorkerSeries | ThreadSeries} series
   */
  #takeEnded(series) {
    const all = series.sources.filter(({ ended }) => ended !== undefined);
    if (all.length === 0) return;
    series.sources = series.sources.filter(({ ended }) => ended === undefined);
    const taken = this.#batches.get(series.incarnation) ?? 0;
    const numberOf = (/** @type {Source} */ { ended }) => ended?.batch ?? 0;
    for (const source of all)
      if (numberOf(source) > taken && RetiredSource.keeps(source.definition)) this.#endings.push(source);
    const last = Math.max(taken, ...all.map(numberOf));
    if (last > taken) this.#retired.isUnsaved = true;
    this.#noteBatch(series.incarnation, last);
  }

  /**
   * @param {string} incarnation
   * @param {number} batch
   */
  #noteBatch(incarnation, batch) {
    this.#batches.delete(incarnation);
    this.#batches.set(incarnation, batch);
    // Live processes repeat their batches, so the oldest entries belong to dead ones.
    dropOldest(this.#batches);
  }

  /**
   * Adds all ended rows to the totals. If the totals are saved between two steps, that takes the remaining
   * steps first.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  #foldEndings() {
    this.#folding ??= this.#folds();
    return this.#folding;
  }

  /** @returns {Generator<void>} */
  *#folds() {
    for (const ending of this.#endings.splice(0)) yield* this.#addToTotals(ending, FOLDED);
    this.#folding = undefined;
  }

  /**
   * @param {Source} source
   * @param {number} seen see RetiredTotals.add()
   * @returns {Generator<void>} yields where a slice may end
   */
  *#addToTotals(source, seen) {
    try {
      const family = this.#familyOf(source.definition);
      if (kindOf(source.definition.layout).hasBuckets) yield* family.translate(source);
      yield* this.#retired.add(source, seen, family);
    } catch (error) {
      this.countFailure('merge', source.definition.name, error);
    }
  }

  /**
   * @returns {[workerId: number, batch: number][]} the last batch of each worker in the saved totals; empty
   *   if others were taken over since
   */
  get savedBatches() {
    if (this.isUnsaved) return [];
    return this.#all.flatMap(({ id, incarnation }) => {
      const batch = this.#batches.get(incarnation);
      return batch === undefined ? [] : [/** @type {[number, number]} */ ([id, batch])];
    });
  }

  /** Whether batches were taken over, or rows of the totals removed, since the last save. */
  get isUnsaved() {
    return this.#retired.isUnsaved;
  }

  /** To be called when the last encoded totals are saved where the next thread will find them. */
  noteSaved() {
    this.#retired.isUnsaved = false;
  }

  /**
   * Adds memory that a thread of this process shares.
   *
   * @param {number} id the thread's, like that of a worker
   * @param {import('../source/thread-mirror').SharedParts} parts
   */
  share(id, parts) {
    let thread = this.#threads.get(id);
    if (thread === undefined) {
      thread = new ThreadSeries(id, this.countFailure);
      thread.skippedEndings = this.#batches.get(thread.incarnation) ?? 0;
      this.#threads.set(id, thread);
    }
    thread.add(parts);
  }

  /**
   * Reads threads of this process as they are now, by default all.
   *
   * @param {ThreadSeries[]} [threads]
   * @returns {Generator<void>} yields where a slice may end
   */
  *readThreads(threads = [...this.#threads.values()]) {
    for (const thread of threads) yield* thread.read();
    for (const thread of threads) thread.capture();
    for (const thread of threads) yield* thread.readDigests();
    for (const thread of threads) this.#takeEnded(thread);
  }

  /**
   * Applies what a worker with prom-client has sent.
   *
   * @param {number} workerId
   * @param {unknown} registries
   */
  applyJson(workerId, registries) {
    const worker = this.#workers.get(workerId) ?? new WorkerSeries(workerId, this.countFailure);
    worker.applyJson(registries, Date.now());
    this.#workers.set(workerId, worker);
  }

  /**
   * Counts a metric that is left out.
   *
   * @type {(stage: string, name: unknown, reason: unknown) => void} with the metric's name, and a reason for
   *   the debug log
   */
  countFailure = (stage, name, reason) => {
    debug('%s %o failed: %s', stage, name, reason);
    const text = typeof name === 'string' ? beginningOf(name) : '';
    this.#ownFailures.add(stage, text);
  };

  /** @param {number} workerId of a worker or thread that from now on counts as having sent nothing */
  forget(workerId) {
    this.#workers.delete(workerId);
    this.#threads.delete(workerId);
  }

  /**
   * Adds a dead worker's last numbers to the retired totals, once.
   *
   * @param {number} workerId
   * @param {boolean} [isReplaced] whether it is a thread that is now shown with another id, which includes
   *   its live rows
   * @returns {boolean} whether something was added
   */
  retire(workerId, isReplaced = false) {
    if (this.#closed.has(workerId)) return false;
    this.#close(workerId);
    const thread = this.#threads.get(workerId);
    if (thread !== undefined) runThrough(this.readThreads([thread]));
    const worker = thread ?? this.#workers.get(workerId);
    this.forget(workerId);
    if (worker === undefined || isReplaced) return false;
    for (const failure of worker.failures) this.#retiredFailures.add(...failure);
    const lasting = worker.sources.filter(({ definition }) => RetiredSource.keeps(definition));
    for (const source of lasting) runThrough(this.#addToTotals(source, this.now()));
    // No longer needed, because its id is closed.
    this.#batches.delete(worker.incarnation);
    return lasting.length > 0;
  }

  /**
   * Drops the totals of dead workers for label sets that have these labels.
   *
   * @param {import('./cluster-family').Label[]} labels
   * @param {string} [name] of the metric, default all
   * @returns {number} how many label sets there were
   */
  removeRetired(labels, name) {
    runThrough(this.#foldEndings());
    return this.#retired.remove(labels, name);
  }

  /**
   * Merges the last numbers of all workers.
   *
   * @param {ReadonlySet<string>} custom names of aggregators that only the primary can run
   * @param {readonly number[]} [shown] ids of all workers that a page has shown. If a new thread lacks one of
   *   them, its label sets are unknown, so no folded row is removed
   * @returns {Generator<void, MergedFamily[]>} yields where a slice may end
   */
  *merge(custom, shown = []) {
    this.#tidy();
    yield* this.#foldEndings();
    const isComplete = shown.every(id => this.#workers.has(id) || this.#threads.has(id));
    const families = this.#gather(isComplete);
    const now = this.now();
    const retiring = { now, maxAge: this.retiredMaxAge, isComplete };
    /** @type {MergedFamily[]} */
    const merged = [];
    for (const family of families) {
      const { aggregator, name } = family.definition;
      try {
        if (custom.has(aggregator)) {
          merged.push({ aggregator, name, metrics: family.sources.map(sourceAsJson) });
        } else if (Object.hasOwn(STARTS, aggregator)) {
          yield* family.merge(aggregator, retiring);
          // Its last rows may just have been removed.
          if (family.sources.length > 0 || !family.hasNoRows) merged.push({ view: family.view() });
        } else if (aggregator !== 'omit') {
          // For example, if the primary runs older code than a worker.
          this.countFailure('aggregator', name, `'${aggregator}' is not a defined aggregator`);
        }
      } catch (error) {
        // For example, there may be not enough memory. Only the metric is left out, not the page.
        this.countFailure('merge', name, error);
      }
    }
    yield* this.#retired.expire(now - this.retiredMaxAge);
    return merged;
  }

  /**
   * A native histogram that an aggregator of the application has returned.
   *
   * @param {any} metric as JSON
   * @returns {Family[]} empty if it cannot be read
   */
  familyOf(metric) {
    try {
      const source = jsonSource(0, metric, []);
      const family = new ClusterFamily(source.definition);
      family.begin(1);
      family.addSource(source);
      runThrough(family.merge('sum'));
      return [family.view()];
    } catch (error) {
      this.countFailure('aggregator', metric.name, error);
      return [];
    }
  }

  /** Encodes the retired totals. */
  encodeRetired() {
    runThrough(this.#foldEndings());
    return encodeRetired(this.#retired, {
      workers: [...this.#closed],
      failures: this.#retiredFailures.entries,
      batches: [...this.#batches],
    });
  }

  /**
   * Restores the retired totals of an earlier thread.
   *
   * @param {Buffer} buffer
   */
  restoreRetired(buffer) {
    const { workers, failures, batches } = restoreRetired(buffer, this.#retired, this.now(), (...failure) =>
      this.countFailure(...failure),
    );
    for (const workerId of workers) this.#close(workerId);
    for (const [incarnation, batch] of batches) this.#noteBatch(incarnation, batch);
    for (const failure of failures) this.#retiredFailures.add(...failure);
  }

  /**
   * @param {boolean} isComplete whether all live sources are known
   * @returns {Set<ClusterFamily>} in the order of exposition, with the sources of this scrape
   */
  #gather(isComplete) {
    this.#scrape++;
    for (const family of this.#families.values()) family.begin(this.#scrape);
    /** @type {Map<string, ClusterFamily>} */
    const byName = new Map();
    // By id and not in the order of answers, so that the same cluster gives the same page.
    for (const worker of this.#all.sort((a, b) => a.id - b.id)) {
      for (const source of worker.sources) {
        const family = this.#familyOf(source.definition);
        const first = byName.get(source.definition.name);
        if (first !== undefined && first !== family) {
          this.conflicts++;
          debug('%s of worker %d has another type than in other workers', source.definition.name, worker.id);
          continue;
        }
        byName.set(source.definition.name, family);
        family.addSource(source);
      }
    }
    for (const { definition, hasDead } of this.#retired.totals)
      if (hasDead && !byName.has(definition.name)) byName.set(definition.name, this.#familyOf(definition));
    this.#gatherRetired(byName, isComplete);
    return new Set(byName.values());
  }

  /**
   * @param {Map<string, ClusterFamily>} byName the families of this scrape
   * @param {boolean} isComplete whether folded rows that are in none of them can be removed
   */
  #gatherRetired(byName, isComplete) {
    for (const totals of this.#retired.totals) {
      const family = byName.get(totals.definition.name);
      const isShown = family === this.#familyOf(totals.definition) && family.definition.aggregator === 'sum';
      if (isShown) family.retired.push(totals);
      else if (isComplete) runThrough(totals.removeFolded(() => true));
    }
  }

  /**
   * Drops families that the last scrape did not contain, and those most of whose rows it did not contain:
   * these get rows again as they are merged. This cannot be done at the end of a scrape, because its families
   * are written after that.
   */
  #tidy() {
    for (const [key, family] of this.#families)
      if (family.isEmpty || family.isSparse) this.#families.delete(key);
  }

  /**
   * @param {import('../source/log-decoder').Definition} definition
   * @returns {ClusterFamily}
   */
  #familyOf(definition) {
    // The layout is part of the key: it differs from the type if the samples of a custom metric object do not
    // fit its type.
    const key = `${definition.layout.kind} ${definition.type} ${definition.name}`;
    let family = this.#families.get(key);
    if (family === undefined) {
      family = new ClusterFamily(definition);
      family.begin(this.#scrape);
      this.#families.set(key, family);
    }
    return family;
  }

  /** @param {number} workerId */
  #close(workerId) {
    this.#closed.add(workerId);
    // Ids only rise, so the oldest ones will not appear again.
    dropOldest(this.#closed);
  }
}

/** @param {Map<any, unknown> | Set<any>} dead to which one was just added */
function dropOldest(dead) {
  if (dead.size > REMEMBERED_DEATHS) dead.delete(dead.keys().next().value);
}

/** Unlike performance.now(), it goes on in the next thread. */
function sharedClock() {
  return Number(process.hrtime.bigint()) / 1e6;
}

module.exports = { ClusterStore };
