'use strict';

// The base of every family of default metrics: metrics that are registered, sampled and stopped together.

const { Registry } = require('../../registry/registry');
const { Counter } = require('../../metric/counter');
const { Gauge } = require('../../metric/gauge');
const { Histogram } = require('../../metric/histogram');
const { addToRegistries } = require('../../metric/metric');
const { REMOVED, MEASURED } = require('../../registry/metric-view');
const { debug } = require('../../options/debug-log');
const { textOf } = require('../../options/thrown');
const { sampleLater } = require('./sample-queue');

/**
 * The options of all families. A family ignores options of others. `null` means the default.
 *
 * @typedef {object} FamilyConfig
 * @property {string | null} [prefix] in front of every name
 * @property {Record<string, string | number> | null} [labels] added to every sample, after the family's own
 *   labels
 * @property {readonly number[] | null} [gcDurationBuckets]
 * @property {number | null} [eventLoopMonitoringPrecision] milliseconds
 * @property {readonly number[] | null} [eventLoopDelayBuckets]
 * @property {boolean | null} [enableExemplars]
 */

/**
 * Registers a family. Undefined if the runtime or the system does not have what it measures. A file of
 * prom-client assigns `module.exports.metricNames` itself: `import { metricNames }` finds only what the text
 * of a file assigns.
 *
 * @typedef {((registry?: Registry | null, config?: FamilyConfig | null, ...more: any[]) => MetricGroup
 *   | undefined) & {metricNames?: string[]}} Family
 */

/** @typedef {{labelNames?: string[], aggregator?: string}} MetricOptions */

/** Stops the observers of a group whose registry is garbage. */
const abandoned = new FinalizationRegistry(stopAll);

/** Metrics of one registry that are sampled together. */
class MetricGroup {
  #helps;
  #prefix;
  #measured;
  /** @type {any[]} */
  #metrics = [];
  /** @type {(() => void)[]} */
  #stops = [];

  /**
   * @param {Record<string, string>} helps HELP texts by the names of all metrics that the group may have
   * @param {Registry | null | undefined} registry default: the global one
   * @param {FamilyConfig | null | undefined} config
   * @param {boolean} isOfProcess whether all threads of the process would measure the same
   */
  constructor(helps, registry, config, isOfProcess) {
    this.#helps = helps;
    /** Names of the metrics, without the prefix. */
    this.names = Object.keys(helps);
    /** @type {Registry} */
    this.registry = registry ?? Registry.globalRegistry;
    this.#prefix = config?.prefix || '';
    /** The labels of every sample. A copy, which later changes to the caller's object do not affect. */
    this.labels = Object.freeze({ ...config?.labels });
    this.#measured = { ofProcess: isOfProcess, labels: this.labels, isStopped: false };
    abandoned.register(this, this.#stops);
  }

  /**
   * @param {string} name one of `names`
   * @param {MetricOptions & {enableExemplars?: boolean}} [options]
   * @returns {Counter}
   */
  counter(name, options) {
    return this.#add(Counter, name, options);
  }

  /**
   * @param {string} name one of `names`
   * @param {MetricOptions} [options]
   * @returns {Gauge}
   */
  gauge(name, options) {
    return this.#add(Gauge, name, options);
  }

  /**
   * @param {string} name one of `names`
   * @param {MetricOptions & {buckets?: readonly number[]}} [options]
   * @returns {Histogram}
   */
  histogram(name, options) {
    return this.#add(Histogram, name, options);
  }

  /**
   * Samples metrics once per scrape, whichever of them are read and in whatever order. What cannot be read at
   * the moment keeps its last value: the process may be out of file descriptors.
   *
   * @param {{collect?: Function}[]} metrics of this group
   * @param {() => void | Promise<void>} sample sets their values
   */
  collectTogether(metrics, sample) {
    /** @type {void | Promise<void>} */
    let result;
    let isSampled = false;
    const collect = () => {
      if (this.#measured.isStopped) return undefined;
      if (!isSampled) {
        isSampled = true;
        // A scrape calls all its hooks synchronously, so one sample serves until the next microtask. Fake
        // timers replace queueMicrotask(), and would make the first sample serve for ever.
        Promise.resolve().then(() => (isSampled = false));
        result = undefined;
        result = attempt(sample);
      }
      return result;
    };
    for (const metric of metrics) metric.collect = collect;
  }

  /**
   * Like collectTogether(), but samples in one of the next turns of the event loop.
   *
   * @param {{collect?: Function}[]} metrics of this group
   * @param {() => void} sample sets their values
   */
  collectLater(metrics, sample) {
    this.collectTogether(metrics, () =>
      sampleLater(() => {
        if (!this.#measured.isStopped) attempt(sample);
      }),
    );
  }

  /**
   * Registers a function that stops an observer or a timer.
   *
   * @param {() => void} stop must not reference a metric of the group, or the metrics would never be garbage.
   *   Nor may another closure of the scope that it is written in: all closures of a scope hold what one of
   *   them captures
   */
  onStop(stop) {
    this.#stops.push(stop);
  }

  /**
   * Stops observers and timers. The metrics keep their values until the registry is cleared or a new group
   * registers their names.
   */
  stop() {
    this.#measured.isStopped = true;
    stopAll(this.#stops);
  }

  /** Stops, and removes the metrics from the registry. */
  remove() {
    this.stop();
    for (const metric of this.#metrics.filter(metric => this.#holds(metric))) {
      this.registry.removeSingleMetric(metric.name);
    }
  }

  /**
   * @param {any} MetricClass
   * @param {string} ownName without the prefix
   * @param {MetricOptions} [options]
   */
  #add(MetricClass, ownName, options) {
    const registry = this.registry;
    const name = this.#prefix + ownName;
    // Metrics of a stopped group keep their last values until then.
    if (/** @type {any} */ (registry.getSingleMetric?.(name))?.[MEASURED]?.isStopped)
      registry.removeSingleMetric(name);
    // A set, because a configured label may replace one of the metric's own labels.
    const labelNames = [...new Set([...(options?.labelNames ?? []), ...Object.keys(this.labels)])];
    const help = this.#helps[ownName];
    const metric = new MetricClass({ ...options, name, help, labelNames, registers: [] });
    // Before an observer of the registry sees the metric.
    Object.defineProperty(metric, MEASURED, { value: this.#measured });
    metric.registers = [registry];
    addToRegistries(metric);
    this.#metrics.push(metric);
    Object.defineProperty(metric, REMOVED, { value: this.#stopIfRemoved.bind(this) });
    return metric;
  }

  /** Stops when the registry holds none of the metrics any more. */
  #stopIfRemoved() {
    if (!this.#metrics.some(metric => this.#holds(metric))) this.stop();
  }

  /** @param {any} metric */
  #holds(metric) {
    return this.registry.getSingleMetric?.(metric.name) === metric;
  }
}

/**
 * Adds the metrics of a family to a group; false if there is nothing to measure. If it throws, no metric
 * stays registered and nothing stays running.
 *
 * @typedef {(group: MetricGroup, config: FamilyConfig, ...more: any[]) => void | false} Build
 */

/**
 * Defines a family that measures the thread that it is sampled in: its heap or event loop, for example.
 *
 * @param {Record<string, string>} helps HELP texts by the names of the metrics
 * @param {Build} build
 * @param {boolean} [isOfProcess] see defineProcessFamily()
 * @returns {Family}
 */
function defineFamily(helps, build, isOfProcess = false) {
  return (registry, config, ...more) => {
    const group = new MetricGroup(helps, registry, config, isOfProcess);
    try {
      if (build(group, config ?? {}, ...more) === false) return undefined;
    } catch (error) {
      group.remove();
      throw error;
    }
    return group;
  };
}

/**
 * Defines a family that measures the whole process. The page of all threads has that of the main thread.
 *
 * @param {Record<string, string>} helps HELP texts by the names of the metrics
 * @param {Build} build
 * @returns {Family}
 */
function defineProcessFamily(helps, build) {
  return defineFamily(helps, build, true);
}

/** @param {() => void | Promise<void>} sample */
function attempt(sample) {
  try {
    return sample();
  } catch (error) {
    debug('default metrics keep their last values: %s', textOf(error));
    return undefined;
  }
}

/** @param {(() => void)[]} stops each is called once: the array is emptied */
function stopAll(stops) {
  for (const stop of stops.splice(0)) stop();
}

module.exports = { MetricGroup, defineFamily, defineProcessFamily };
