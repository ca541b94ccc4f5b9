'use strict';

const {
  PROMETHEUS_CONTENT_TYPE,
  OPENMETRICS_CONTENT_TYPE,
  isSupported,
} = require('../exposition/content-type');
const { joinFamilies } = require('../exposition/text-format');
const { scrapeText, scrapeBytes, scrapeOne } = require('./scrape');
const { DEFAULT_LABELS, METRICS_BYTES, REMOVED } = require('./metric-view');

/**
 * Something that a registry holds: one of our metrics, or any object with a name and a get().
 *
 * @typedef {object} RegisteredMetric
 * @property {string} name
 * @property {() => any} get
 * @property {() => any} [getForPromString] preferred to get() where text is written
 * @property {() => void} [reset]
 * @property {Function} [collect]
 */

/**
 * Where a registry keeps what it holds: no private field, so that it works behind a Proxy or as somebody's prototype.
 */
const INSIDE = Symbol('inside');

/** @typedef {{metrics: Map<string, RegisteredMetric>, defaultLabels: Record<string, unknown>, contentType: string}} Inside */

/**
 * A set of metrics that are exposed together.
 */
class Registry {
  /**
   * @param {string} [contentType] the format that metrics() writes, default Prometheus text
   * @throws {TypeError} where the format is not known
   */
  constructor(contentType = PROMETHEUS_CONTENT_TYPE) {
    if (!isSupported(contentType)) throw new TypeError(`Content type ${contentType} is unsupported`);
    /** @type {Inside} */
    const inside = { metrics: new Map(), defaultLabels: {}, contentType };
    Object.defineProperty(this, INSIDE, { value: inside, configurable: true });
  }

  /**
   * Everything as text, after all `collect` hooks have run.
   *
   * @returns {Promise<string>}
   */
  async metrics() {
    const metrics = this.getMetricsAsArray();
    if (this.getMetricsAsString !== Registry.prototype.getMetricsAsString) {
      // A subclass or a spy has its own way with single metrics.
      const texts = await Promise.all(metrics.map(metric => this.getMetricsAsString(metric)));
      return joinFamilies(texts, isOpenMetrics(this));
    }
    return scrapeText(metrics, () => settingOf(this));
  }

  /**
   * One metric as text, without a line feed at its end. It need not be in this registry.
   *
   * @param {RegisteredMetric} metric
   * @returns {Promise<string>}
   */
  async getMetricsAsString(metric) {
    return scrapeOne(metric, () => settingOf(this));
  }

  /**
   * @param {string} name
   * @returns {Promise<string>} rejected with a TypeError where there is no metric of that name
   */
  async getSingleMetricAsString(name) {
    const metric = this.getSingleMetric(name);
    if (metric === undefined) throw new TypeError(`There is no metric with the name ${name}.`);
    return this.getMetricsAsString(metric);
  }

  /**
   * Everything as objects, with default labels where a sample does not have them.
   *
   * @param {string} [aggregator] only metrics of that aggregator
   * @returns {Promise<any[]>}
   */
  async getMetricsAsJSON(aggregator) {
    const { defaultLabels } = insideOf(this);
    const hasDefaults = Object.keys(defaultLabels).length > 0;
    return Promise.all(
      this.getMetricsAsArray(aggregator).map(async metric => {
        const json = await metric.get();
        return hasDefaults && json?.values
          ? { ...json, values: withDefaults(json.values, defaultLabels) }
          : json;
      }),
    );
  }

  /**
   * @param {string} [aggregator] only metrics of that aggregator
   * @returns {any[]} the metrics themselves, in order of registration
   */
  getMetricsAsArray(aggregator) {
    /** @type {any[]} */
    const metrics = [...insideOf(this).metrics.values()];
    if (aggregator === undefined) return metrics;
    return metrics.filter(metric => /** @type {any} */ (metric.aggregator ?? 'sum') === aggregator);
  }

  /**
   * @param {string} name
   * @returns {any} the metric, or undefined
   */
  getSingleMetric(name) {
    return insideOf(this).metrics.get(name);
  }

  /**
   * @param {RegisteredMetric} metric
   * @throws {Error} where another metric has that name
   */
  registerMetric(metric) {
    const { metrics } = insideOf(this);
    const known = metrics.get(metric.name);
    if (known !== undefined && known !== metric) throw alreadyRegistered(metric.name);
    metrics.set(metric.name, metric);
  }

  /** @param {string} name */
  removeSingleMetric(name) {
    const { metrics } = insideOf(this);
    const metric = metrics.get(name);
    metrics.delete(name);
    tellRemoved(metric);
  }

  /** Drops all metrics and the default labels. */
  clear() {
    const inside = insideOf(this);
    const removed = inside.metrics;
    inside.metrics = new Map();
    inside.defaultLabels = {};
    for (const metric of removed.values()) tellRemoved(metric);
  }

  /** Resets each metric. */
  resetMetrics() {
    for (const metric of insideOf(this).metrics.values()) /** @type {any} */ (metric).reset();
  }

  /**
   * Labels for every sample that does not have them. Replaces those set before.
   *
   * @param {Record<string, unknown>} labels
   */
  setDefaultLabels(labels) {
    insideOf(this).defaultLabels = labels ?? {};
  }

  /** @returns {string} the format that metrics() writes */
  get contentType() {
    return insideOf(this).contentType;
  }

  /**
   * @param {string} contentType
   * @throws {Error} where the format is not known
   */
  setContentType(contentType) {
    if (!isSupported(contentType)) throw new Error(`Content type ${contentType} is unsupported`);
    insideOf(this).contentType = contentType;
  }

  /**
   * A new registry with the metrics of several. Their default labels are left behind.
   *
   * @param {Registry[]} registries
   * @returns {Registry}
   * @throws {TypeError} where the list is empty
   * @throws {Error} where they differ in content type, or have different metrics of one name
   */
  static merge(registries) {
    const { contentType } = registries[0];
    if (registries.some(registry => registry.contentType !== contentType)) {
      throw new Error('Registers can only be merged if they have the same content type');
    }
    const merged = new Registry(contentType);
    for (const registry of registries) {
      for (const metric of registry.getMetricsAsArray()) merged.registerMetric(metric);
    }
    return merged;
  }

  /**
   * The metrics by name, as programs read and delete them in prom-client's registries, where this is the store.
   *
   * @returns {Record<string, RegisteredMetric>}
   */
  get _metrics() {
    return new Proxy(Object.fromEntries(insideOf(this).metrics), {
      set: (byName, name, metric) => {
        insideOf(this).metrics.set(String(name), metric);
        return Reflect.set(byName, name, metric);
      },
      deleteProperty: (byName, name) => {
        this.removeSingleMetric(String(name));
        return Reflect.deleteProperty(byName, name);
      },
    });
  }

  /**
   * What metrics() returns as UTF-8, for those who send it: a page of megabytes then never is one string. Undefined where
   * a subclass or a spy has its own way of writing.
   *
   * @returns {Promise<Buffer> | undefined}
   */
  [METRICS_BYTES]() {
    const { metrics, getMetricsAsString } = Registry.prototype;
    if (this.metrics !== metrics || this.getMetricsAsString !== getMetricsAsString) return undefined;
    return scrapeBytes(this.getMetricsAsArray(), () => settingOf(this));
  }

  /** What the cluster's snapshot writer needs beside the metrics. */
  get [DEFAULT_LABELS]() {
    return insideOf(this).defaultLabels;
  }
}

/**
 * @param {Registry} registry
 * @returns {Inside}
 */
function insideOf(registry) {
  return /** @type {any} */ (registry)[INSIDE];
}

/** @param {Registry} registry */
function isOpenMetrics(registry) {
  return registry.contentType === OPENMETRICS_CONTENT_TYPE;
}

/**
 * @param {Registry} registry
 * @returns {import('./scrape').Setting}
 */
function settingOf(registry) {
  return { defaultLabels: insideOf(registry).defaultLabels, openMetrics: isOpenMetrics(registry) };
}

/**
 * Lets a metric that is fed by an observer or a timer end these.
 *
 * @param {any} metric that left a registry, or undefined
 */
function tellRemoved(metric) {
  metric?.[REMOVED]?.();
}

/** @param {string} name */
function alreadyRegistered(name) {
  return new Error(`A metric with the name ${name} has already been registered.`);
}

/**
 * Fresh samples with the default labels that each does not have.
 *
 * @param {any[]} values
 * @param {Record<string, unknown>} defaultLabels
 */
function withDefaults(values, defaultLabels) {
  return values.map(sample => {
    const labels = { ...sample.labels };
    for (const name of Object.keys(defaultLabels)) {
      if (!Object.hasOwn(labels, name)) labels[name] = defaultLabels[name];
    }
    return { ...sample, labels };
  });
}

/** The registry that metrics are in unless told otherwise. */
Registry.globalRegistry = new Registry();
Registry.PROMETHEUS_CONTENT_TYPE = PROMETHEUS_CONTENT_TYPE;
Registry.OPENMETRICS_CONTENT_TYPE = OPENMETRICS_CONTENT_TYPE;

module.exports = { Registry, alreadyRegistered };
