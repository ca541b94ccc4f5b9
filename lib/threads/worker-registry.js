'use strict';

// The public class WorkerRegistry, in the thread that serves the page and in the threads that have joined.

const { Registry } = require('../registry/registry');
const { UNAVAILABLE } = require('../registry/unavailable');
const { PUSH_TARGET } = require('../registry/push-target');
const { AggregatorRegistry } = require('../cluster/aggregator-registry');
const {
  clusterOptions,
  isOptions,
  checkOptions,
  pageRequest,
  checkCallOptions,
  warnIfOptionsDiffer,
} = require('../cluster/cluster-options');
const { groupOfProcess } = require('../cluster/group-of-process');
const { joinCopies, registriesOfAllCopies } = require('../cluster/package-copies');
const { formatOf } = require('../exposition/formats');
const { pageText, pageOrNothing } = require('../exposition/page-bytes');
const { processState, ownProcessState } = require('../registry/process-state');
const { settledWithin } = require('../event-loop/timers');
const { codedError } = require('../options/coded-error');

const DEFAULT_TIMEOUT = 5000;
const SHARED_OPTIONS = ['retiredMaxAge', 'inPlace', 'thread', 'activeSeries'];
const OPTIONS = new Set(['timeout', 'formats', 'maxIdleSeconds', ...SHARED_OPTIONS]);

const PUSH_IN_MAIN_THREAD =
  'This thread does not serve the metrics: RemoteWrite pushes the metrics of all threads in the main thread.';

/**
 * The state that all WorkerRegistry objects of a thread share, including those of other copies of this
 * package.
 *
 * @typedef {object} SharedThreads
 * @property {import('./thread-hub').ThreadHub} [hub] of a thread that serves the page
 * @property {import('../cluster/primary/cluster-primary').ClusterPrimary} [primary] aggregates for the page
 * @property {import('./thread-publisher').ThreadPublisher} [publisher] of a thread that has joined
 * @property {Record<string, unknown>} options of the first object
 * @property {boolean} hasWarned whether options that differ were reported
 * @property {WeakSet<object>} users
 * @property {number} count of these
 */

/**
 * In the main thread, shows its own metrics added up with those of all threads of the process that have
 * created a WorkerRegistry. Creating one in a worker thread adds that thread's metrics.
 */
class WorkerRegistry extends Registry {
  /**
   * An option that is not passed is read from the environment, if it is set there:
   * PROM_CLIENT_CLUSTER_TIMEOUT, _FORMATS and _RETIRED_MAX_AGE.
   *
   * @param {string | object} [contentType] the format of workerMetrics(), default Prometheus text; or the
   *   options
   * @param {boolean | object} [primary] whether this thread serves the page, default in the main thread only;
   *   or the options
   * @param {object} [options] `timeout`, `formats` and `maxIdleSeconds` apply to this object; the others are
   *   shared by all WorkerRegistry objects of a thread, and the first object sets them
   * @param {number} [options.timeout] milliseconds that workerMetrics() waits for `collect` hooks, default
   *   5000
   * @param {readonly string[]} [options.formats] as setFormats()
   * @param {number} [options.maxIdleSeconds] as setMaxIdleSeconds()
   * @param {number} [options.retiredMaxAge] milliseconds for which label sets of ended threads stay if no
   *   thread has them, default one hour; in a cluster or group they stay for good
   * @param {boolean} [options.inPlace] aggregate in slices on this loop instead of in a thread
   * @param {string | URL} [options.thread] as that of AggregatorRegistry
   * @param {boolean} [options.activeSeries] as that of AggregatorRegistry
   * @throws {TypeError} if the content type is unknown, or an option is not valid
   * @throws {RangeError} if `maxIdleSeconds` is not a positive finite number
   */
  constructor(contentType, primary, options) {
    super(isOptions(contentType) ? undefined : /** @type {any} */ (contentType));
    const given = /** @type {any} */ ([contentType, primary, options].find(isOptions) ?? {});
    const serves = primary === undefined || isOptions(primary) ? isMain() : primary;
    const effective = /** @type {any} */ (clusterOptions(given, 'WorkerRegistry', OPTIONS));
    /** @type {number} milliseconds that workerMetrics() waits by default */
    this.timeout = effective.timeout ?? DEFAULT_TIMEOUT;
    if (effective.formats !== undefined) this.setFormats(effective.formats);
    if (effective.maxIdleSeconds !== undefined) this.setMaxIdleSeconds(effective.maxIdleSeconds);
    joinCopies(/** @type {any} */ (Registry));
    const threads = (ownProcessState().threads ??= {
      ...{ options: effective, hasWarned: false, users: new WeakSet(), count: 0 },
    });
    warnIfOptionsDiffer('WorkerRegistry', SHARED_OPTIONS, threads, given);
    if (serves) serve(threads, effective);
    else join(threads);
    threads.users.add(this);
    threads.count++;
  }

  /**
   * Returns the metrics of this thread and of all threads that have joined, as text. Threads that are
   * computing or sleeping are included with their current numbers.
   *
   * @param {{timeout?: number, selfMetrics?: boolean} | unknown} [options] those of workerMetricsBytes()
   * @returns {Promise<string>} '' if there are no metrics, and in a thread that does not serve the page
   * @throws {TypeError} if an option is not valid
   */
  async workerMetrics(options) {
    const { timeout, selfMetrics } = /** @type {any} */ (typeof options === 'object' ? (options ?? {}) : {});
    checkCallOptions(options, 'workerMetrics()');
    const page = await this.workerMetricsBytes({ timeout, selfMetrics });
    return pageText(page, formatOf(this.contentType));
  }

  /**
   * The same page as bytes, which are written outside this thread's loop.
   *
   * @param {object} [options]
   * @param {boolean} [options.gzip] compress, outside this thread's loop
   * @param {number} [options.timeout] milliseconds, default the registry's timeout
   * @param {boolean} [options.selfMetrics] add metrics about the scrape itself
   * @param {string} [options.contentType] the format, default that of the registry
   * @param {readonly string[]} [options.names] the metrics to show, default all
   * @returns {Promise<Buffer>} empty if there are no metrics, and in a thread that does not serve the page
   * @throws {TypeError} if an option is not valid
   */
  async workerMetricsBytes(/** @type {any} */ options) {
    const { format, timeout } = pageRequest(options, this, 'workerMetricsBytes()');
    const { threads } = processState();
    return pageOrNothing(threads && (await pageOf(threads, format, timeout)));
  }

  /**
   * For RemoteWrite.
   *
   * @returns {Promise<import('../registry/push-target').PushTarget>}
   * @throws {Error} in a thread that does not serve the page
   */
  async [PUSH_TARGET]() {
    const { primary } = processState().threads ?? {};
    if (primary === undefined) throw codedError('NO_AGGREGATOR', Error, PUSH_IN_MAIN_THREAD);
    return { primary };
  }

  /** Called by an endpoint. */
  clusterMetricsBytes(/** @type {any} */ options) {
    return this.workerMetricsBytes(options);
  }

  /** @returns {number} how many threads have joined, without this one */
  workerCount() {
    return WorkerRegistry.workerCount();
  }

  /**
   * Releases the threads' metrics. In a thread that serves the page, the last release stops following the
   * threads. In a thread that has joined, the last one publishes what was recorded so far, and the thread
   * leaves: its counts stay on the page.
   *
   * @returns {Promise<void>}
   */
  async close() {
    await release(this, 0);
  }

  /**
   * In a thread that serves the page, waits for scrapes under way; then does the same as close(). This is
   * what shutdown() does in prom-client's successor. (AggregatorRegistry's shutdown() saves, and does not
   * release.) Nothing has to be saved here, because the numbers of threads are in shared memory.
   *
   * @param {number} [timeout] milliseconds, default 5000
   * @returns {Promise<void>} resolves when that is done, or after the timeout
   * @throws {TypeError} if `timeout` is not a number of milliseconds
   */
  async shutdown(timeout = DEFAULT_TIMEOUT) {
    checkOptions({ timeout });
    await release(this, timeout);
  }

  /** Why an endpoint has nothing to show. */
  get [UNAVAILABLE]() {
    const { threads } = processState();
    if (threads === undefined) return 'The WorkerRegistry was closed.';
    if (threads.primary === undefined)
      return 'This thread does not serve the metrics: serve a WorkerRegistry in the main thread.';
    return 'There are no metrics in this process.';
  }

  /** @returns {number} how many threads have joined, without this one; 0 in a thread that does not serve */
  static workerCount() {
    return processState().threads?.hub?.count ?? 0;
  }

  /**
   * Sets the registries with which this thread joins, like AggregatorRegistry.setRegistries().
   *
   * @param {Registry | Registry[]} list
   * @throws {TypeError} if one of them is not a Registry
   */
  static setRegistries(list) {
    AggregatorRegistry.setRegistries(list);
    processState().threads?.publisher?.sync();
  }

  /**
   * Aggregates metrics given as JSON, like AggregatorRegistry.aggregate().
   *
   * @param {any[][]} lists of metrics as getMetricsAsJSON() returns them
   * @param {string} [contentType] of the returned registry, default Prometheus text
   * @returns {Registry}
   * @throws {Error} if a metric names an unknown aggregator
   */
  static aggregate(lists, contentType) {
    return AggregatorRegistry.aggregate(lists, contentType);
  }
}

/**
 * Not a method, because a derived class may override close() and call shutdown() in it, or the reverse.
 *
 * @param {WorkerRegistry} registry
 * @param {number} timeout milliseconds for scrapes under way
 */
async function release(registry, timeout) {
  const threads = processState().threads;
  if (!threads?.users.delete(registry)) return;
  if (--threads.count > 0) return;
  ownProcessState().threads = undefined;
  const { publisher, hub, primary } = threads;
  publisher?.close();
  if (primary === undefined) return;
  await settledWithin(primary.drained(), timeout);
  hub?.close();
  await primary.close();
}

/** Node's modules are loaded at the first use. */
function isMain() {
  return require('node:worker_threads').isMainThread;
}

/**
 * @param {SharedThreads} threads
 * @param {import('../cluster/cluster-options').ClusterOptions} options
 */
function serve(threads, options) {
  if (threads.hub !== undefined) return;
  const { EventEmitter } = require('node:events');
  const { ThreadHub } = require('./thread-hub');
  const { ClusterPrimary } = require('../cluster/primary/cluster-primary');
  // A member's threads are on the page of its cluster or group.
  const isMember = () =>
    /** @type {any} */ (require('node:cluster')).isWorker || groupOfProcess() !== undefined;
  const hub = new ThreadHub(() => threads.primary, isMember);
  threads.hub = hub;
  // This page shows only this process. If it is a cluster's primary, its workers are on the page of
  // AggregatorRegistry.
  const noWorkers = /** @type {any} */ (new EventEmitter());
  threads.primary = new ClusterPrimary(
    noWorkers,
    { ...options, includePrimary: true, inMemory: true },
    () => new Set([...registriesOfAllCopies(), ...hub.registries()]),
    hub,
  );
}

/**
 * @param {SharedThreads} threads
 * @param {any} format of the page, as ClusterPrimary.collect() takes it
 * @param {number} timeout
 * @returns {Promise<import('../exposition/page-bytes').PageBytes | undefined>} undefined if there are no
 *   metrics, and in a thread that does not serve the page
 */
async function pageOf({ hub, primary }, format, timeout) {
  if (hub === undefined || primary === undefined) return undefined;
  if (!format.selfMetrics && hub.isEmpty && ![...registriesOfAllCopies()].some(hasMetrics)) return undefined;
  return primary.collect(format, timeout);
}

/** @param {Registry} registry */
function hasMetrics(registry) {
  return registry.getMetricsAsArray().length > 0;
}

/** @param {SharedThreads} threads */
function join(threads) {
  if (threads.publisher !== undefined) return;
  const { ThreadPublisher, warnOfMissing } = require('./thread-publisher');
  try {
    threads.publisher = new ThreadPublisher(registriesOfAllCopies);
  } catch (error) {
    // Without shared memory or SharedArrayBuffer, the application continues, but this thread is not on the
    // page.
    warnOfMissing(error);
  }
}

module.exports = { WorkerRegistry };
