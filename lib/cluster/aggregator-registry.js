'use strict';

const { Registry } = require('../registry/registry');
const { DEFAULT_LABELS } = require('../registry/metric-view');
const { aggregators } = require('./primary/json-aggregators');
const { TAKING_PART, joinCopies, joinOthers, registriesOfAllCopies } = require('./package-copies');
const { hookIntoWorker, handOver } = require('./worker/worker-hook');
const { RELEASE } = require('../exposition/pooled-page');
const { timedSection } = require('../event-loop/timed-section');

const DEFAULT_TIMEOUT = 5000;
const MAX_TIMER = 2 ** 31 - 1; // a longer one would be up at once

/** A symbol and no private field, as what a Registry holds. */
const TIMEOUT = Symbol('timeout');

/** The process's one ClusterPrimary, shared by all copies of this package. */
const SHARED = Symbol.for('prom-client-cluster.primary.v1');

/** @type {Registry[]} those that take part in the cluster, in a worker */
let registries = [Registry.globalRegistry];

/** Who still holds the shared primary. */
/** @typedef {{primary: import('./primary/cluster-primary').ClusterPrimary, holders: WeakSet<object>, count: number}} SharedPrimary */

/**
 * The metrics of all workers of a cluster, in its primary. In a worker it is a registry like any other: workers answer
 * from the moment that the library is loaded.
 */
class AggregatorRegistry extends Registry {
  /**
   * @param {string} [contentType] the format of clusterMetrics(), default Prometheus text
   * @param {object} [options] those of the first AggregatorRegistry of a process count for all, except `timeout`
   * @param {number} [options.timeout] milliseconds that clusterMetrics() waits for workers, default 5000
   * @param {string} [options.directory] where the directory of snapshot files is made; default os.tmpdir(), and
   *   /dev/shm where that cannot be written
   * @param {number} [options.retiredMaxAge] milliseconds that a dead worker's series stays which no live worker
   *   exposes, default one hour
   * @param {boolean} [options.inPlace] aggregate in slices on this loop instead of in a thread
   * @param {boolean} [options.includePrimary] whether the primary's own registries (see setRegistries) are added up
   *   with the workers', default false
   * @param {number} [options.checkpointInterval] milliseconds after which a worker that has recorded something writes
   *   it down, at least 100; a worker that is killed loses no more than that. Default 0: only at its end
   * @throws {TypeError} where the content type is not known, or an option is not what it should be
   */
  constructor(contentType, options = {}) {
    super(contentType);
    checkOptions(options);
    Object.defineProperty(this, TIMEOUT, { value: options.timeout ?? DEFAULT_TIMEOUT, configurable: true });
    const cluster = /** @type {import('node:cluster').Cluster} */ (
      /** @type {unknown} */ (require('node:cluster'))
    );
    if (!cluster.isPrimary) return;
    joinCopies(AggregatorRegistry);
    const shared = /** @type {{[SHARED]?: SharedPrimary}} */ (globalThis);
    if (shared[SHARED] === undefined) {
      const { ClusterPrimary } = require('./primary/cluster-primary');
      const primary = new ClusterPrimary(cluster, options, registriesOfAllCopies);
      shared[SHARED] = { primary, holders: new WeakSet(), count: 0 };
    }
    // Weakly: programs make one for each scrape.
    shared[SHARED].holders.add(this);
    shared[SHARED].count++;
  }

  /**
   * The metrics of all workers as text. Workers that do not answer in time are served from their last numbers.
   *
   * @param {{timeout?: number, selfMetrics?: boolean} | unknown} [options] as of clusterMetricsBytes(); a function is
   *   ignored, as prom-client does
   * @returns {Promise<string>} '' where there are no workers
   * @throws {TypeError} where timeout is no number of milliseconds
   * @throws {Error} where nobody answered in time and nothing is known
   */
  async clusterMetrics(options) {
    const { timeout, selfMetrics } = /** @type {any} */ (typeof options === 'object' ? (options ?? {}) : {});
    const body = await this.clusterMetricsBytes({ timeout, selfMetrics });
    if (body === undefined) return '';
    // Only ASCII can be taken byte by byte, which is several times faster.
    const text = timedSection('primary:string', () => body.bytes.toString(body.ascii ? 'latin1' : 'utf8'));
    // Missing where the primary's object is an older copy's.
    body[RELEASE]?.();
    return text;
  }

  /**
   * The same as bytes: the primary's loop then never touches the text.
   *
   * @param {object} [options]
   * @param {boolean} [options.gzip] compress, off the primary's loop
   * @param {number} [options.timeout] milliseconds, default that of the registry
   * @param {boolean} [options.selfMetrics] whether metrics of the scrape itself are added: workers by state, the age of
   *   the numbers, failures
   * @returns {Promise<import('../exposition/pooled-page').PageBytes | undefined>} undefined where there are no workers
   * @throws {TypeError} where timeout is no number of milliseconds
   * @throws {Error} as clusterMetrics()
   */
  async clusterMetricsBytes({ gzip = false, timeout = this.timeout, selfMetrics = false } = {}) {
    checkOptions({ timeout });
    const shared = /** @type {{[SHARED]?: SharedPrimary}} */ (globalThis)[SHARED];
    if (shared === undefined) return undefined;
    const openMetrics = this.contentType === Registry.OPENMETRICS_CONTENT_TYPE;
    return shared.primary.collect({ openMetrics, gzip, selfMetrics }, timeout);
  }

  /**
   * How the last scrape went: silent workers, refused answers, failed hooks.
   *
   * @returns {import('./primary/cluster-primary').ClusterState | undefined} undefined where this process is no primary
   */
  clusterState() {
    return /** @type {{[SHARED]?: SharedPrimary}} */ (globalThis)[SHARED]?.primary.state();
  }

  /** @returns {number} milliseconds that clusterMetrics() waits for workers */
  get timeout() {
    return /** @type {any} */ (this)[TIMEOUT];
  }

  /**
   * Makes the end of a process orderly; to be awaited before `process.exit()`. A worker's `collect` hooks run once more
   * and its numbers are left to the primary. In the primary, scrapes that are under way are answered, and what
   * dead workers have left is added to the totals. The registry can still be used.
   *
   * @param {number} [timeout] milliseconds, default 5000
   * @returns {Promise<void>} resolved when that is done, or the time is up
   * @throws {TypeError} where timeout is no number of milliseconds
   */
  async shutdown(timeout = DEFAULT_TIMEOUT) {
    checkOptions({ timeout });
    const shared = /** @type {{[SHARED]?: SharedPrimary}} */ (globalThis)[SHARED];
    const done = shared === undefined ? handOver(timeout) : shared.primary.drained();
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    // Not unref'd: whoever awaits this in a process with nothing else to do wants to see it done.
    const timeIsUp = new Promise(resolve => (timer = setTimeout(resolve, Math.min(timeout, MAX_TIMER))));
    await Promise.race([done, timeIsUp]);
    clearTimeout(timer);
  }

  /**
   * Lets go of the cluster. The last AggregatorRegistry that does ends the thread and removes the directory.
   *
   * @returns {Promise<void>}
   */
  async close() {
    const global = /** @type {{[SHARED]?: SharedPrimary}} */ (globalThis);
    const shared = global[SHARED];
    if (!shared?.holders.delete(this) || --shared.count > 0) return;
    delete global[SHARED];
    await shared.primary.close();
  }

  /**
   * Names the registries that a worker answers with; default the global one.
   *
   * @param {Registry | Registry[]} list
   * @throws {TypeError} where one of them is no Registry
   */
  static setRegistries(list) {
    const all = Array.isArray(list) ? list : [list];
    for (const registry of all) {
      if (!isRegistry(registry)) throw new TypeError(`Expected Registry, got ${typeof registry}`);
    }
    registries = all;
  }

  /** @returns {Registry[]} those of this copy of the package that take part in the cluster */
  static [TAKING_PART]() {
    return registries;
  }

  /**
   * Aggregates metrics that are there as JSON, one list for each process.
   *
   * @param {any[][]} lists of metrics as getMetricsAsJSON() returns them
   * @param {string} [contentType] of the registry that is returned, default Prometheus text
   * @returns {Registry} whose metrics are plain objects with a get()
   * @throws {Error} where a metric names an unknown aggregator
   */
  static aggregate(lists, contentType = Registry.PROMETHEUS_CONTENT_TYPE) {
    /** @type {Map<string, any[]>} */
    const byName = new Map();
    for (const metric of lists.flat()) {
      const same = byName.get(metric.name);
      if (same === undefined) byName.set(metric.name, [metric]);
      else same.push(metric);
    }
    const registry = new Registry(contentType);
    for (const metrics of byName.values()) {
      const name = metrics[0].aggregator ?? 'sum';
      const aggregator = Object.hasOwn(aggregators, name) ? aggregators[name] : undefined;
      if (typeof aggregator !== 'function') throw new Error(`'${name}' is not a defined aggregator.`);
      const metric = aggregator(metrics);
      if (metric) registry.registerMetric(/** @type {any} */ ({ get: () => metric, ...metric }));
    }
    return registry;
  }
}

/**
 * @param {any} value
 * @returns {boolean} also for a Registry of another copy of this package
 */
function isRegistry(value) {
  return value instanceof Registry || (typeof value === 'object' && value?.[DEFAULT_LABELS] !== undefined);
}

/** @param {Record<string, unknown>} options */
function checkOptions({ timeout, directory, retiredMaxAge, checkpointInterval }) {
  for (const [name, value] of Object.entries({ timeout, retiredMaxAge, checkpointInterval })) {
    if (value !== undefined && !(typeof value === 'number' && value >= 0)) {
      throw new TypeError(`${name} must be a number of milliseconds`);
    }
  }
  if (typeof checkpointInterval === 'number' && checkpointInterval > 0 && checkpointInterval < 100) {
    throw new TypeError('checkpointInterval must be 0 or at least 100 milliseconds');
  }
  if (directory !== undefined && (typeof directory !== 'string' || directory === '')) {
    throw new TypeError('directory must be a path');
  }
}

joinOthers(AggregatorRegistry);
hookIntoWorker(() => registries);

module.exports = { AggregatorRegistry };
