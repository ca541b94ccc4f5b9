'use strict';

// Runs in workers and in the primary, on their event loops. The public class AggregatorRegistry.

const { Registry } = require('../registry/registry');
const { DEFAULT_LABELS } = require('../registry/metric-view');
const { processState } = require('../registry/process-state');
const { UNAVAILABLE } = require('../registry/unavailable');
const { PUSH_TARGET } = require('../registry/push-target');
const { checkLabelSet } = require('../metric/label-sets');
const { aggregateJson } = require('./aggregate-json');
const { ownPage, ownRegistries, shownRegistries } = require('./own-page');
const { JOINED, joinCopies, joinOthers, registriesOfProcess } = require('./package-copies');
const { groupOfProcess, joinGroup, joinByEnvironment } = require('./group-of-process');
const { primaryOfProcess, usePrimary, releasePrimary } = require('./primary-of-process');
const { hookIntoWorker, clusterPage } = require('./worker/worker-hook');
const {
  clusterOptions,
  isOptions,
  checkOptions,
  pageRequest,
  checkCallOptions,
  warnIfMissing,
} = require('./cluster-options');
const { formatOf } = require('../exposition/formats');
const { pageText, pageOrNothing } = require('../exposition/page-bytes');
const { timedSection } = require('../event-loop/timed-section');
const { settledWithin } = require('../event-loop/timers');
const { codedError, invalidOption } = require('../options/coded-error');

const DEFAULT_TIMEOUT = 5000;

const PUSH_IN_PRIMARY =
  'This process is a worker: RemoteWrite pushes the metrics of a cluster in its primary.';

/** @type {Registry[]} the registries with which this process has joined the cluster */
let registries = [Registry.globalRegistry];

/**
 * Shows the metrics of all workers of a cluster, in its primary and in any worker. In a process that has
 * never had a worker, it shows the metrics of that process. A worker gets the page from its primary, which
 * needs an AggregatorRegistry, too.
 */
class AggregatorRegistry extends Registry {
  /**
   * An option that is not passed is read from the environment, if it is set there:
   * PROM_CLIENT_CLUSTER_TIMEOUT, _FORMATS, _DIRECTORY, _RETIRED_MAX_AGE, _INCLUDE_PRIMARY,
   * _CHECKPOINT_INTERVAL and _GROUP.
   *
   * @param {string | object} [contentType] the format of clusterMetrics(), default Prometheus text; or the
   *   options
   * @param {object} [options] `timeout`, `formats` and `maxIdleSeconds` apply to this object; the others are
   *   shared by all AggregatorRegistry objects of a process, and the first object sets them
   * @param {number} [options.timeout] milliseconds that clusterMetrics() waits for workers, default 5000
   * @param {readonly string[]} [options.formats] as in setFormats()
   * @param {number} [options.maxIdleSeconds] as in setMaxIdleSeconds()
   * @param {string} [options.directory] in which the directory of snapshot files is created; default
   *   os.tmpdir(), or /dev/shm if that is not writable
   * @param {number} [options.retiredMaxAge] milliseconds for which series of dead workers stay on the page if
   *   no live worker has them, default one hour
   * @param {boolean} [options.inPlace] aggregate in slices on this loop instead of in a thread
   * @param {string | URL} [options.thread] path or file: URL of the bundle of
   *   `prom-client-cluster/aggregator-thread`, if this library is bundled with the application and that file
   *   is not next to the bundle
   * @param {boolean} [options.includePrimary] include the primary's own registries (see setRegistries),
   *   default false
   * @param {number} [options.checkpointInterval] milliseconds between checkpoints of each worker, at least
   *   100; a killed worker loses no more than this time. Default 1000, or longer, so that they take at most a
   *   thousandth of the worker's event loop; 0 for none. Given in a worker, it applies to this worker
   * @param {boolean} [options.activeSeries] add the number of series of each metric to the self-metrics,
   *   default false
   * @param {string | false} [options.group] name of a group of processes that share one page, or the absolute
   *   path of its directory; false for none. Default: the instances of an application in PM2's cluster mode
   * @throws {TypeError} if the content type is unknown, or an option is not valid
   * @throws {RangeError} if `maxIdleSeconds` is not a positive finite number
   */
  constructor(contentType, options) {
    const isFirst = isOptions(contentType);
    super(isFirst ? undefined : /** @type {any} */ (contentType));
    /** @type {import('./cluster-options').ClusterOptions} */
    const given = /** @type {any} */ (isFirst ? contentType : options) ?? {};
    const effective = clusterOptions(given);
    /** @type {number} milliseconds that clusterMetrics() waits for workers by default */
    this.timeout = effective.timeout ?? DEFAULT_TIMEOUT;
    if (effective.formats !== undefined) this.setFormats(effective.formats);
    if (effective.maxIdleSeconds !== undefined) this.setMaxIdleSeconds(effective.maxIdleSeconds);
    const group = joinGroup(effective, registriesOfProcess);
    if (group !== undefined) {
      joinCopies(Registry);
      group.configure(effective);
      return;
    }
    const cluster = clusterModule();
    if (!cluster.isPrimary) {
      processState().worker?.requestCheckpoints(given.checkpointInterval);
      return;
    }
    joinCopies(Registry);
    usePrimary(this, given, effective, () => {
      const { ClusterPrimary } = require('./primary/cluster-primary');
      warnIfMissing(effective.directory);
      return new ClusterPrimary(cluster, effective, registriesOfProcess);
    });
  }

  /**
   * Returns the metrics of all workers as text, or those of this process if it has never had a worker.
   * Workers that do not answer in time are shown with their last numbers. A metric with an unknown aggregator
   * is left out.
   *
   * @param {{timeout?: number, selfMetrics?: boolean} | unknown} [options] those of clusterMetricsBytes(); a
   *   function is ignored, as in prom-client
   * @returns {Promise<string>} '' if there are no metrics; a Buffer if the registry's format is protobuf
   * @throws {TypeError} if `timeout` is not a number of milliseconds
   * @throws {Error} if no worker answered in time and there are no earlier numbers; if an aggregator of the
   *   application throws; without workers, if a `collect` hook fails; in a worker, if its primary does not
   *   aggregate
   */
  async clusterMetrics(options) {
    const { timeout, selfMetrics } = /** @type {any} */ (typeof options === 'object' ? (options ?? {}) : {});
    checkCallOptions(options, 'clusterMetrics()');
    const page = await this.clusterMetricsBytes({ timeout, selfMetrics });
    return timedSection('primary:string', () => pageText(page, formatOf(this.contentType)));
  }

  /**
   * The same page as bytes: the primary's loop never processes the text.
   *
   * @param {object} [options]
   * @param {boolean} [options.gzip] compress, outside the primary's loop
   * @param {number} [options.timeout] milliseconds, default the registry's timeout
   * @param {boolean} [options.selfMetrics] add metrics about the scrape itself: workers by state, the age of
   *   the numbers, failures
   * @param {string} [options.contentType] the format, default that of the registry
   * @param {readonly string[]} [options.names] the metrics to show, default all
   * @returns {Promise<Buffer>} empty if there are no metrics
   * @throws {TypeError} if an option is not valid
   * @throws {Error} as clusterMetrics()
   */
  async clusterMetricsBytes(/** @type {any} */ options) {
    const { format, timeout } = pageRequest(options, this);
    return pageOrNothing(await pageOf(this, format, timeout));
  }

  /**
   * For RemoteWrite.
   *
   * @returns {Promise<import('../registry/push-target').PushTarget | undefined>} undefined if another process
   *   of the group aggregates
   * @throws {Error} if this process never aggregates
   */
  async [PUSH_TARGET]() {
    const group = groupOfProcess();
    if (group !== undefined) return group.pushTarget(this.timeout);
    const primary = primaryOfProcess();
    if (primary === undefined)
      throw codedError(
        'NO_AGGREGATOR',
        Error,
        clusterModule().isWorker ? PUSH_IN_PRIMARY : this[UNAVAILABLE],
      );
    return primary.isAlone ? { registries: await shownRegistries(this) } : { primary };
  }

  /**
   * Returns where the metrics are aggregated. The self-metrics show the state of the workers, failures and
   * refusals.
   *
   * @returns {import('./primary/cluster-state').ClusterState | undefined} undefined if it is not a primary,
   *   and in no group
   */
  clusterState() {
    return (groupOfProcess() ?? primaryOfProcess())?.state();
  }

  /** Why an endpoint has nothing to show. */
  get [UNAVAILABLE]() {
    const primary = primaryOfProcess();
    if (primary?.isAlone) return 'There are no metrics: this process has no workers, and none of its own.';
    if (primary === undefined && clusterModule().isPrimary) return 'The AggregatorRegistry was closed.';
    return 'There are no metrics: no worker is running, and no dead worker has left any.';
  }

  /**
   * Drops the series of dead workers that have these labels. To be called in the primary. Living workers drop
   * their own series with `metric.removeMatching()`.
   *
   * @param {Record<string, unknown>} labels a value of undefined stands for series without that label; `{}`
   *   for all series
   * @param {string} [name] of the metric, default all metrics
   * @returns {Promise<number>} how many series were dropped
   * @throws {TypeError} if the labels are not an object
   * @throws {Error} if this process is not a primary
   */
  async removeMatching(labels, name) {
    checkLabelSet('removeMatching', labels);
    const primary = groupOfProcess()?.primary ?? primaryOfProcess();
    if (primary === undefined)
      throw codedError(
        'NO_AGGREGATOR',
        Error,
        'removeMatching() drops series of dead workers in a primary only',
      );
    return primary.removeRetired({ labels: textsOf(labels), name });
  }

  /**
   * Saves the numbers of a process that is about to end; await it before `process.exit()`. In a worker,
   * `collect` hooks run once more, and the last columns are written for the primary. In the primary, scrapes
   * under way are answered, and dead workers are added to the retired totals. The registry can still be used.
   *
   * @param {number} [timeout] milliseconds, default 5000
   * @returns {Promise<void>} resolves when that is done, or after the timeout
   * @throws {TypeError} if `timeout` is not a number of milliseconds
   */
  async shutdown(timeout = DEFAULT_TIMEOUT) {
    checkOptions({ timeout });
    const primary = primaryOfProcess();
    const done = primary === undefined ? processState().worker?.handOver(timeout) : primary.drained();
    const inGroup = groupOfProcess()?.handOver(timeout);
    await settledWithin(Promise.all([done, inGroup]), timeout);
  }

  /**
   * Releases the cluster's aggregator. The last release stops the thread and removes the directory.
   *
   * @returns {Promise<void>}
   */
  async close() {
    await releasePrimary(this);
  }

  /**
   * Sets the registries to aggregate; default the global registry.
   *
   * @param {Registry | Registry[]} list
   * @throws {TypeError} if one of them is not a Registry
   */
  static setRegistries(list) {
    const all = Array.isArray(list) ? list : [list];
    for (const registry of all) {
      if (!isRegistry(registry)) throw invalidOption(`Expected Registry, got ${typeof registry}`);
    }
    registries = all;
  }

  /**
   * Aggregates metrics given as JSON, one list per process.
   *
   * @param {any[][]} lists of metrics as getMetricsAsJSON() returns them
   * @param {string} [contentType] of the returned registry, default Prometheus text
   * @returns {Registry} whose metrics are plain objects with a get()
   * @throws {Error} if a metric names an unknown aggregator
   */
  static aggregate(lists, contentType) {
    return aggregateJson(lists, contentType);
  }
}

/**
 * @param {AggregatorRegistry} registry
 * @param {import('./wire/scrape-callers').Format} format
 * @param {number} timeout milliseconds
 * @returns {Promise<any>} undefined if there are no metrics
 */
async function pageOf(registry, format, timeout) {
  const group = groupOfProcess();
  if (group !== undefined) return group.collect(format, timeout);
  const primary = primaryOfProcess();
  if (primary === undefined) return clusterModule().isWorker ? clusterPage(format, timeout) : undefined;
  if (!primary.isAlone) return primary.collect(format, timeout);
  return ownRegistries(registry).length === 0 ? undefined : ownPage(registry, format);
}

/** @returns {import('node:cluster').Cluster} */
function clusterModule() {
  return /** @type {any} */ (require('node:cluster'));
}

/**
 * @param {Record<string, unknown>} labels
 * @returns {[string, string | undefined][]} as the aggregator has them
 */
function textsOf(labels) {
  return Object.entries(labels).map(([name, value]) => [
    name,
    value === undefined ? undefined : `${value}`.toWellFormed(),
  ]);
}

/**
 * @param {any} value
 * @returns {boolean} also for a Registry of another copy of this package
 */
function isRegistry(value) {
  return value instanceof Registry || (typeof value === 'object' && value?.[DEFAULT_LABELS] !== undefined);
}

// @prometheus-io/client has the method there.
Object.defineProperty(Registry, 'aggregate', {
  value: AggregatorRegistry.aggregate,
  configurable: true,
  writable: true,
});
Object.defineProperty(Registry, JOINED, { value: () => registries });
if (hookIntoWorker(registriesOfProcess)) joinCopies(Registry);
else joinOthers(Registry);
joinByEnvironment(registriesOfProcess, () => {
  joinCopies(Registry);
  return clusterOptions({});
});

module.exports = { AggregatorRegistry };
