'use strict';

// What every family of default metrics is made of: metrics that are registered together, sampled together and stopped
// together.

const { Registry } = require('../../registry/registry');
const { Counter } = require('../../metric/counter');
const { Gauge } = require('../../metric/gauge');
const { Histogram } = require('../../metric/histogram');
const { REMOVED } = require('../../registry/metric-view');
const { sampleLater } = require('./sample-queue');

/**
 * The options that all families take. A family ignores those that it does not know.
 *
 * @typedef {object} FamilyConfig
 * @property {string | null} [prefix] in front of every name
 * @property {Record<string, string | number> | null} [labels] added to every sample, behind the family's own labels
 */

/** @typedef {{name: string, help: string, labelNames?: string[], aggregator?: string}} MetricOptions */

/** Metrics of groups that were stopped: they stand with their last values until a new group wants their names. */
const stopped = new WeakSet();

/** Stops what a group left running whose registry was dropped without having been cleared. */
const abandoned = new FinalizationRegistry(stopAll);

/**
 * Some metrics in one registry that get their values together.
 */
class MetricGroup {
  /** @type {Registry} */
  #registry;
  #prefix;
  /** @type {any[]} */
  #metrics = [];
  /** @type {(() => void)[]} */
  #stops = [];
  #isStopped = false;

  /**
   * @param {Registry | null | undefined} registry default: the global one
   * @param {FamilyConfig | null | undefined} config
   */
  constructor(registry, config) {
    this.#registry = registry ?? Registry.globalRegistry;
    this.#prefix = config?.prefix || '';
    /** The labels that every sample gets. A copy: what the caller does with its object later changes nothing. */
    this.labels = Object.freeze({ ...config?.labels });
  }

  /**
   * A group with all the metrics that `build` makes; none of them, and nothing that runs, where it throws.
   *
   * @param {Registry | null | undefined} registry default: the global one
   * @param {FamilyConfig | null | undefined} config
   * @param {(group: MetricGroup) => void} build
   * @returns {MetricGroup}
   * @throws {Error} where a name is taken, or a prefix or label is not valid
   */
  static build(registry, config, build) {
    const group = new MetricGroup(registry, config);
    try {
      build(group);
    } catch (error) {
      group.remove();
      throw error;
    }
    abandoned.register(group, group.#stops);
    return group;
  }

  /**
   * @param {MetricOptions & {enableExemplars?: boolean}} options `name` without the prefix
   * @returns {Counter}
   */
  counter(options) {
    return this.#add(Counter, options);
  }

  /**
   * @param {MetricOptions} options `name` without the prefix
   * @returns {Gauge}
   */
  gauge(options) {
    return this.#add(Gauge, options);
  }

  /**
   * @param {MetricOptions & {buckets?: readonly number[]}} options `name` without the prefix
   * @returns {Histogram}
   */
  histogram(options) {
    return this.#add(Histogram, options);
  }

  /**
   * Has metrics sampled once per scrape, whichever of them is read and in whatever order.
   *
   * @param {{collect?: Function}[]} metrics of this group
   * @param {() => void | Promise<void>} sample sets their values
   */
  collectTogether(metrics, sample) {
    /** @type {void | Promise<void>} */
    let result;
    let isSampled = false;
    const collect = () => {
      if (this.#isStopped) return undefined;
      if (!isSampled) {
        isSampled = true;
        // A scrape calls all its hooks in one go, so one sample serves until the next microtask. Not
        // queueMicrotask(): fake timers replace it, and the first sample would stand for ever.
        Promise.resolve().then(() => (isSampled = false));
        result = undefined;
        result = sample();
      }
      return result;
    };
    for (const metric of metrics) metric.collect = collect;
  }

  /**
   * The same in one of the next turns of the event loop.
   *
   * @param {{collect?: Function}[]} metrics of this group
   * @param {() => void} sample sets their values
   */
  collectLater(metrics, sample) {
    this.collectTogether(metrics, () =>
      sampleLater(() => {
        if (!this.#isStopped) sample();
      }),
    );
  }

  /**
   * Notes how to end something that runs.
   *
   * @param {() => void} stop must not lead to a metric of the group, or these would never be garbage. Nor may the
   *   scope that it is written in: what one closure of a scope captures, all of them hold
   */
  onStop(stop) {
    this.#stops.push(stop);
  }

  /**
   * Ends what runs. The metrics stand as they are, until the registry is cleared or a new group takes over their
   * names.
   */
  stop() {
    this.#isStopped = true;
    for (const metric of this.#metrics) stopped.add(metric);
    stopAll(this.#stops);
  }

  /** Stops, and takes the metrics out of the registry. */
  remove() {
    this.stop();
    for (const metric of this.#metrics.filter(metric => this.#holds(metric))) {
      this.#registry.removeSingleMetric(metric.name);
    }
  }

  /**
   * @param {any} MetricClass
   * @param {MetricOptions} options
   */
  #add(MetricClass, options) {
    const registry = this.#registry;
    const name = this.#prefix + options.name;
    if (stopped.has(registry.getSingleMetric?.(name))) registry.removeSingleMetric(name);
    // A set: a label of the configuration may have the name of one of the metric's own, whose value it replaces.
    const labelNames = [...new Set([...(options.labelNames ?? []), ...Object.keys(this.labels)])];
    const metric = new MetricClass({ ...options, name, labelNames, registers: [registry] });
    this.#metrics.push(metric);
    Object.defineProperty(metric, REMOVED, { value: this.#noteRemoval.bind(this) });
    return metric;
  }

  /** A group whose last metric has left its registry has no reader any more. */
  #noteRemoval() {
    if (!this.#metrics.some(metric => this.#holds(metric))) this.stop();
  }

  /** @param {any} metric */
  #holds(metric) {
    return this.#registry.getSingleMetric?.(metric.name) === metric;
  }
}

/** @param {(() => void)[]} stops emptied, for one of them is called once */
function stopAll(stops) {
  for (const stop of stops.splice(0)) stop();
}

module.exports = { MetricGroup };
