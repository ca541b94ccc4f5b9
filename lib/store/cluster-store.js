'use strict';

// Runs with the aggregator, in its thread or in place; no files, timers or messages. The numbers of the whole
// cluster: each worker's newest columns, the memory of this process's threads, the retired totals of what has
// ended, and the families in which all are merged.

const { WorkerSeries, jsonSource } = require('./worker-series');
const { ThreadSeries } = require('./thread-series');
const { ClusterFamily } = require('./cluster-family');
const { RetiredSource } = require('./retired-source');
const { encodeRetired, restoreRetired } = require('./retired-snapshot');
const { runThrough } = require('../event-loop/slices');
const { STARTS } = require('../series/layouts');
const { FailureCounts } = require('../source/failure-counts');
const { beginningOf } = require('../options/thrown');
const { debug } = require('../options/debug-log');

const DEFAULT_RETIRED_MAX_AGE = 3_600_000;

// Dead workers whose ids are remembered, so that a worker is not added to the totals again after a thread was
// replaced.
const REMEMBERED_DEATHS = 4096;

/** @typedef {import('../exposition/text-format').Family} Family */

/**
 * A family that is ready to be written, or, if only the primary can aggregate it, its metrics as JSON, one
 * for each worker.
 *
 * @typedef {{view: Family} | {aggregator: string, name: string, metrics: any[]}} MergedFamily
 */

class ClusterStore {
  /** @type {Map<number, WorkerSeries>} */
  #workers = new Map();
  #retired;
  /** @type {Map<number, ThreadSeries>} of this process; none has the id of a worker */
  #threads = new Map();
  /** @type {Map<string, ClusterFamily>} by name, type and layout */
  #families = new Map();
  /** @type {Set<number>} ids of workers that were retired */
  #closed = new Set();
  #scrape = 1;
  /** Failures in dead workers. */
  #retiredFailures = new FailureCounts();
  /** Failures of this store itself. */
  #ownFailures = new FailureCounts();

  /**
   * @param {{retiredMaxAge?: number, now?: () => number}} [options] in milliseconds; `now` never jumps, as
   *   the wall clock may
   */
  constructor({ retiredMaxAge = DEFAULT_RETIRED_MAX_AGE, now = () => performance.now() } = {}) {
    this.retiredMaxAge = retiredMaxAge;
    this.now = now;
    this.#retired = new RetiredSource(now);
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
   * @returns {boolean} whether the worker was retired; nothing of it is applied any more
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

  /** @param {ThreadSeries} thread that has ended */
  *#captured(thread) {
    yield* thread.read();
    thread.capture();
    yield* thread.readDigests();
  }

  get #all() {
    return [...this.#workers.values(), ...this.#threads.values()];
  }

  /** Failures, and the age of the numbers. */
  state() {
    const workers = this.#all;
    // A kind that is shown by name is so after its worker's death, too: the common count must not fall.
    for (const worker of workers)
      for (const [stage, name] of worker.failures) this.#retiredFailures.add(stage, name, 0);
    const ofWorkers = [...this.#retiredFailures.entries, ...workers.flatMap(worker => worker.failures)];
    const failures = new FailureCounts([...this.#ownFailures.entries, ...ofWorkers]).entries;
    return {
      // Those that no worker has any more have a count of 0.
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
   * @throws {import('../source/byte-buffers').SnapshotError} if it is invalid or does not fit; the worker's
   *   earlier numbers stay then
   */
  apply(workerId, buffer, readLog) {
    const worker = this.#workers.get(workerId) ?? this.#newWorker(workerId);
    worker.apply(buffer, readLog);
    this.#workers.set(workerId, worker);
  }

  /**
   * Adds what a thread of this process has shared.
   *
   * @param {number} id the thread's, as that of a worker
   * @param {import('./thread-series').ThreadParts} parts
   */
  share(id, parts) {
    let thread = this.#threads.get(id);
    if (thread === undefined) {
      thread = new ThreadSeries(id, (stage, name, error) => this.countFailure(stage, name, error));
      this.#threads.set(id, thread);
    }
    thread.add(parts);
  }

  /**
   * Reads the logs of all threads of this process, so that a page has little left to read.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *readLogs() {
    for (const thread of [...this.#threads.values()]) yield* thread.read();
  }

  /**
   * Reads all threads of this process as they are now.
   *
   * @returns {Generator<void>} yields where a slice may end
   */
  *readThreads() {
    yield* this.readLogs();
    const threads = [...this.#threads.values()];
    for (const thread of threads) thread.capture();
    for (const thread of threads) yield* thread.readDigests();
  }

  /**
   * Applies what a worker with prom-client has sent.
   *
   * @param {number} workerId
   * @param {unknown} registries
   */
  applyJson(workerId, registries) {
    const worker = this.#workers.get(workerId) ?? this.#newWorker(workerId);
    worker.applyJson(registries, Date.now());
    this.#workers.set(workerId, worker);
  }

  /** @param {number} workerId */
  #newWorker(workerId) {
    return new WorkerSeries(workerId, (stage, name, error) => this.countFailure(stage, name, error));
  }

  /**
   * Counts a metric that is left out.
   *
   * @param {string} stage
   * @param {unknown} name the metric's
   * @param {unknown} reason for the debug log
   */
  countFailure(stage, name, reason) {
    debug('%s %o failed: %s', stage, name, reason);
    const text = typeof name === 'string' ? beginningOf(name) : '';
    this.#ownFailures.add(stage, text);
  }

  /** @param {number} workerId of a worker or thread that counts as if it had sent nothing, from now on */
  forget(workerId) {
    this.#workers.delete(workerId);
    this.#threads.delete(workerId);
  }

  /**
   * Adds a dead worker's last numbers to the retired totals, once.
   *
   * @param {number} workerId
   * @returns {boolean} whether something was added
   */
  retire(workerId) {
    if (this.#closed.has(workerId)) return false;
    this.#close(workerId);
    const thread = this.#threads.get(workerId);
    if (thread !== undefined) runThrough(this.#captured(thread));
    const worker = thread ?? this.#workers.get(workerId);
    this.forget(workerId);
    if (worker === undefined) return false;
    for (const failure of worker.failures) this.#retiredFailures.add(...failure);
    const lasting = worker.sources.filter(
      ({ definition, ended }) => ended === undefined && RetiredSource.keeps(definition),
    );
    for (const source of lasting) {
      try {
        const family = this.#familyOf(source.definition);
        // Label sets that are too long are left out.
        runThrough(family.translate(source));
        this.#retired.add(source, row => family.bucketsOf(row));
      } catch (error) {
        this.countFailure('merge', source.definition.name, error);
      }
    }
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
    return this.#retired.remove(labels, name);
  }

  /**
   * Merges the last numbers of all workers.
   *
   * @param {ReadonlySet<string>} custom names of aggregators that only the primary can run
   * @returns {Generator<void, MergedFamily[]>} yields where a slice may end
   */
  *merge(custom) {
    this.#tidy();
    const families = this.#gather();
    const now = this.now();
    /** @type {MergedFamily[]} */
    const merged = [];
    for (const family of families) {
      const { aggregator, name } = family.definition;
      try {
        if (custom.has(aggregator)) {
          merged.push({ aggregator, name, metrics: family.sources.map(source => family.toJson(source)) });
        } else if (Object.hasOwn(STARTS, aggregator)) {
          yield* family.merge(aggregator, now);
          merged.push({ view: family.view() });
        } else if (aggregator !== 'omit') {
          // Old code in the primary and new code in a worker, for example.
          this.countFailure('aggregator', name, `'${aggregator}' is not a defined aggregator`);
        }
      } catch (error) {
        // Numbers beyond what memory can hold, for example. This costs the metric and not the page.
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
      const family = new ClusterFamily(source.definition, reason =>
        this.countFailure('merge', metric.name, reason),
      );
      family.begin(1);
      family.addSource(source);
      runThrough(family.merge('sum', this.now()));
      return [family.view()];
    } catch (error) {
      this.countFailure('aggregator', metric.name, error);
      return [];
    }
  }

  /** Encodes the retired totals. */
  encodeRetired() {
    return encodeRetired(this.#retired, this.#closed, this.#retiredFailures.entries);
  }

  /**
   * Restores the retired totals of an earlier thread.
   *
   * @param {Buffer} buffer
   */
  restoreRetired(buffer) {
    const { workers, failures } = restoreRetired(buffer, this.#retired, (stage, name, error) =>
      this.countFailure(stage, name, error),
    );
    for (const workerId of workers) this.#close(workerId);
    for (const failure of failures) this.#retiredFailures.add(...failure);
  }

  /** @returns {Set<ClusterFamily>} in the order of exposition, with the sources of this scrape */
  #gather() {
    this.#scrape++;
    for (const family of this.#families.values()) family.begin(this.#scrape);
    /** @type {Map<string, ClusterFamily>} */
    const byName = new Map();
    // By id and not in the order of answers, so that the same cluster gives the same page.
    for (const worker of this.#all.sort((a, b) => a.id - b.id)) {
      for (const source of worker.sources) {
        if (source.ended !== undefined) continue;
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
    for (const totals of this.#retired.totals) {
      const family = this.#familyOf(totals.definition);
      const { name } = totals.definition;
      if (!byName.has(name)) byName.set(name, family);
      if (byName.get(name) === family) family.addRetired(totals);
    }
    return new Set(byName.values());
  }

  /**
   * Drops what the last scrape did not contain. Not at the end of that scrape, because its families are still
   * written.
   */
  #tidy() {
    for (const [key, family] of this.#families) {
      family.compactIfSparse();
      if (family.isEmpty) this.#families.delete(key);
    }
  }

  /**
   * @param {import('../source/log-decoder').Definition} definition
   * @returns {ClusterFamily}
   */
  #familyOf(definition) {
    // The layout differs from the type if the samples of a custom metric object do not fit its type.
    const key = `${definition.layout.kind} ${definition.type} ${definition.name}`;
    let family = this.#families.get(key);
    if (family === undefined) {
      const { name } = definition;
      family = new ClusterFamily(definition, reason => this.countFailure('merge', name, reason));
      family.begin(this.#scrape);
      this.#families.set(key, family);
    }
    return family;
  }

  /** @param {number} workerId */
  #close(workerId) {
    this.#closed.add(workerId);
    // Ids only rise, so the oldest ones are those that will not come up again.
    if (this.#closed.size > REMEMBERED_DEATHS)
      this.#closed.delete(/** @type {number} */ (this.#closed.values().next().value));
  }
}

module.exports = { ClusterStore };
