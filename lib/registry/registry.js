'use strict';

const {
  TEXT,
  OPENMETRICS,
  PROTOBUF,
  formatOf,
  isSupported,
  contentTypesOf,
} = require('../exposition/formats');
const { scrapeText, scrapePages, pagesOf, scrapeOne, joinFamilies } = require('./scrape');
const { DEFAULT_LABELS, PAGES, REGISTRY_STATE: STATE, REMOVED, OBSERVER } = require('./metric-view');
const { isMetric, differenceOf, nameTaken } = require('./metric-definition');
const { isValidLabelName } = require('./names');
const { withDefaultLabels } = require('./json-defaults');
const { ownProcessState } = require('./process-state');
const { warnOfCall } = require('../options/warnings');
const { codedError, invalidOption } = require('../options/coded-error');
const { checkedMaxIdle } = require('../options/max-idle');
const { checkOptionNames } = require('../options/option-names');

const BYTES_OPTIONS = new Set(['gzip']);

/**
 * A member of a registry: a metric of this library, or any object with a get().
 *
 * @typedef {object} RegisteredMetric
 * @property {string} name undefined if only what get() returns has one
 * @property {() => any} get
 * @property {() => any} [getForPromString] used instead of get() for text
 * @property {() => void} [reset]
 * @property {Function} [collect]
 */

/**
 * Not a private field, so a registry works behind a Proxy and as the prototype of another object.
 *
 * @typedef {object} State
 * @property {Map<string, RegisteredMetric>} metrics by name
 * @property {Record<string, unknown>} defaultLabels
 * @property {string} contentType
 * @property {string[]} [contentTypes] in which endpoints serve the page, if not in that one only
 * @property {number} [maxIdleSeconds] of metrics that do not have this option
 */

/**
 * A set of metrics that are exposed together.
 */
class Registry {
  /**
   * @param {string} [contentType] the format that metrics() writes, default Prometheus text
   * @throws {TypeError} if the format is unknown
   */
  constructor(contentType = TEXT.contentType) {
    if (!isSupported(contentType)) throw invalidOption(`Content type ${contentType} is unsupported`);
    /** @type {State} */
    const state = { metrics: new Map(), defaultLabels: {}, contentType };
    Object.defineProperty(this, STATE, { value: state, configurable: true });
  }

  /**
   * All metrics as text, after all `collect` hooks have run.
   *
   * @returns {Promise<string>} a Buffer if the registry's format is protobuf
   */
  async metrics() {
    if (this.getMetricsAsString === getMetricsAsString) return scrapeText(this);
    // A subclass or a spy renders single metrics itself.
    const texts = await Promise.all(this.getMetricsAsArray().map(metric => this.getMetricsAsString(metric)));
    return joinFamilies(texts, formatOf(this.contentType));
  }

  /**
   * The text of metrics() as UTF-8, for sending: a large page is then never one string.
   *
   * @param {{gzip?: boolean} | null} [options] `gzip`: compress, off the event loop
   * @returns {Promise<Buffer>}
   */
  async metricsBytes(options) {
    checkOptionNames('metricsBytes()', options, BYTES_OPTIONS);
    const { gzip = false } = options ?? {};
    const [page] = await pagesOf(this, [{ format: formatOf(this.contentType).name, gzip }]);
    return page;
  }

  /**
   * One metric as text, without a line feed at its end. It need not be in this registry.
   *
   * @param {RegisteredMetric} metric
   * @returns {Promise<string>}
   */
  async getMetricsAsString(metric) {
    return scrapeOne(metric, this);
  }

  /**
   * @param {string} name
   * @returns {Promise<string>} rejects with a TypeError if there is no metric of that name
   */
  async getSingleMetricAsString(name) {
    const metric = this.getSingleMetric(name);
    if (metric === undefined)
      throw codedError('INVALID_NAME', TypeError, `There is no metric with the name ${name}.`);
    return this.getMetricsAsString(metric);
  }

  /**
   * All metrics as objects. Default labels are added to samples that do not have a label of that name.
   *
   * @param {string} [aggregator] only metrics with this aggregator
   * @returns {Promise<any[]>}
   */
  async getMetricsAsJSON(aggregator) {
    const { defaultLabels } = stateOf(this);
    const hasDefaults = Object.keys(defaultLabels).length > 0;
    return Promise.all(
      this.getMetricsAsArray(aggregator).map(async metric => {
        const json = await metric.get();
        return hasDefaults && json?.values ? withDefaultLabels(json, defaultLabels) : json;
      }),
    );
  }

  /**
   * @param {string} [aggregator] only metrics with this aggregator
   * @returns {any[]} the metrics themselves, in order of registration
   */
  getMetricsAsArray(aggregator) {
    /** @type {any[]} */
    const metrics = [...stateOf(this).metrics.values()];
    if (aggregator === undefined) return metrics;
    return metrics.filter(metric => /** @type {any} */ (metric.aggregator ?? 'sum') === aggregator);
  }

  /**
   * @param {string} name
   * @returns {any} the metric, or undefined
   */
  getSingleMetric(name) {
    return stateOf(this).metrics.get(name);
  }

  /**
   * An object without a `get()` has nothing to show, so it is not registered.
   *
   * @param {RegisteredMetric} metric
   * @throws {TypeError} if it is undefined or null
   * @throws {Error} if another metric has that name
   */
  registerMetric(metric) {
    if (metric == null) throw invalidOption('registerMetric() expected an object with a get()');
    const { metrics } = stateOf(this);
    const existing = metrics.get(metric.name);
    if (existing !== undefined && existing !== metric) throw nameTaken(metric.name);
    if (!isMetric(metric)) {
      warnOfCall('registerMetric()', 'left out, because it has no get()', metric);
      return;
    }
    metrics.set(metric.name, metric);
    notifyObserver(this, metric);
  }

  /**
   * Returns the metric with the configured name, or creates it.
   *
   * @template {new (config: any) => any} Type
   * @param {Type} Type Counter, Gauge, Histogram, Summary, or a class derived from one of them
   * @param {ConstructorParameters<Type>[0]} config of a new metric; `registers` is this registry
   * @returns {InstanceType<Type>}
   * @throws {TypeError} if Type is not a class
   * @throws {Error} if the metric that exists has another type, other label names, or other buckets or
   *   percentiles
   */
  getOrCreate(Type, config) {
    if (typeof Type !== 'function' || Type.prototype === undefined)
      throw invalidOption('getOrCreate() expected a class of metrics and options');
    const existing = this.getSingleMetric(config?.name);
    if (existing === undefined) return new Type({ ...config, registers: [this] });
    const difference = differenceOf(existing, Type, config);
    if (difference === undefined) return existing;
    throw codedError('ALREADY_REGISTERED', Error, `${nameTaken(config.name).message} It ${difference}`);
  }

  /** @param {string} name */
  removeSingleMetric(name) {
    const { metrics } = stateOf(this);
    const metric = metrics.get(name);
    metrics.delete(name);
    dropped(metric);
    notifyObserver(this);
  }

  /** Drops all metrics, the default labels, and what setMaxIdleSeconds() has set. */
  clear() {
    const state = ownStateOf(this);
    const removed = state.metrics;
    state.metrics = new Map();
    state.defaultLabels = {};
    state.maxIdleSeconds = undefined;
    removed?.forEach(dropped);
    notifyObserver(this);
  }

  /** Resets each metric. */
  resetMetrics() {
    for (const metric of stateOf(this).metrics.values()) /** @type {any} */ (metric).reset();
  }

  /**
   * Sets labels that are added to every sample without a label of that name. Replaces earlier default labels.
   * Labels whose name is not valid are left out: Prometheus would refuse the page.
   *
   * @param {Record<string, unknown>} labels
   */
  setDefaultLabels(labels) {
    ownStateOf(this).defaultLabels = withValidNames(labels ?? {});
    notifyObserver(this);
  }

  /**
   * Sets the option `maxIdleSeconds` of the metrics that are created from now on with this registry as the
   * first of their `registers`, unless they have that option themselves. It does not apply to default
   * metrics.
   *
   * @param {number} seconds after which an unused series expires
   * @throws {RangeError} if it is not a positive finite number
   */
  setMaxIdleSeconds(seconds) {
    ownStateOf(this).maxIdleSeconds = checkedMaxIdle(seconds);
  }

  /** @returns {string} the format that metrics() writes */
  get contentType() {
    return stateOf(this).contentType;
  }

  /**
   * @param {string} contentType
   * @throws {Error} if the format is unknown
   */
  setContentType(contentType) {
    if (!isSupported(contentType)) throw invalidOption(`Content type ${contentType} is unsupported`, Error);
    ownStateOf(this).contentType = contentType;
  }

  /**
   * Sets the formats in which endpoints serve this registry: the request's Accept header chooses one of them,
   * or else the first is used. With `openmetrics` or `protobuf`, metrics that are created from now on in this
   * process may have exemplars, whatever `contentType` is. The format of metrics() stays.
   *
   * @param {readonly string[]} formats of `text`, `openmetrics` and `protobuf`
   * @throws {TypeError} if it is another value
   */
  setFormats(formats) {
    ownStateOf(this).contentTypes = offeredTypes(formats);
  }

  /**
   * Returns the registry with that name, which all copies of this package in the process (or thread) share:
   * bundlers create a copy for each entry, and reload it in development. Create its metrics with
   * getOrCreate().
   *
   * @param {string} [name]
   * @returns {Registry} created by the first copy that asked for it
   */
  static shared(name = 'default') {
    const registries = (ownProcessState().registries ??= new Map());
    if (!registries.has(name)) registries.set(name, new Registry());
    return registries.get(name);
  }

  /**
   * Creates a registry with the metrics of several others, without their default labels. Endpoints serve it
   * in all formats that setFormats() has set for one of them.
   *
   * @param {Registry[]} registries
   * @returns {Registry}
   * @throws {TypeError} if the list is empty
   * @throws {Error} if content types differ, or different metrics have the same name
   */
  static merge(registries) {
    const { contentType } = registries[0];
    if (registries.some(registry => registry.contentType !== contentType)) {
      throw invalidOption('Registers can only be merged if they have the same content type', Error);
    }
    const merged = new Registry(contentType);
    const formats = new Set(registries.flatMap(registry => stateOf(registry).contentTypes ?? []));
    if (formats.size > 0) stateOf(merged).contentTypes = [...formats];
    for (const registry of registries) {
      for (const metric of registry.getMetricsAsArray()) merged.registerMetric(metric);
    }
    return merged;
  }

  /**
   * The metrics by name. Programs read and delete them here, because in prom-client this is the storage.
   *
   * @returns {Record<string, RegisteredMetric>}
   */
  get _metrics() {
    const registered = stateOf(this).metrics;
    if (registered === undefined) return registered;
    return new Proxy(Object.fromEntries(registered), {
      set: (byName, name, metric) => {
        stateOf(this).metrics.set(String(name), metric);
        notifyObserver(this);
        return Reflect.set(byName, name, metric);
      },
      deleteProperty: (byName, name) => {
        this.removeSingleMetric(String(name));
        return Reflect.deleteProperty(byName, name);
      },
    });
  }

  set _metrics(byName) {
    ownStateOf(this).metrics ??= new Map();
    const metrics = this._metrics;
    for (const name of Object.keys(metrics)) delete metrics[name];
    Object.assign(metrics, byName);
  }

  /**
   * The default labels. Programs and their tests read them here, because in prom-client this is the storage.
   *
   * @returns {Record<string, unknown>}
   */
  get _defaultLabels() {
    return stateOf(this).defaultLabels;
  }

  set _defaultLabels(labels) {
    // Not by setDefaultLabels(): a subclass may assign them in its own.
    ownStateOf(this).defaultLabels = labels ?? {};
    notifyObserver(this);
  }

  /**
   * Writes the page in several formats, with one run of the `collect` hooks. Undefined if a subclass or a spy
   * replaces the rendering.
   *
   * @returns {((formats: import('../exposition/page-format').PageFormat[]) => Promise<Buffer[]>) | undefined}
   */
  get [PAGES]() {
    if (this.metrics !== metrics || this.getMetricsAsString !== getMetricsAsString) return undefined;
    return formats => scrapePages([this], formats);
  }

  /** For the snapshot writer of a cluster. */
  get [DEFAULT_LABELS]() {
    return stateOf(this).defaultLabels;
  }
}

/** The methods as they are here, whatever replaces them later. */
const { metrics, getMetricsAsString } = Registry.prototype;

/**
 * The state of an object that has nothing but the prototype, as createStubInstance() of sinon makes: its
 * properties are undefined, as in prom-client.
 */
const NO_STATE = Object.freeze({});

/**
 * @param {Registry} registry
 * @returns {State}
 */
function stateOf(registry) {
  return /** @type {any} */ (registry)[STATE] ?? NO_STATE;
}

/**
 * The state to be changed. The object may have none yet: in prom-client, clear() makes it a registry.
 *
 * @param {Registry} registry
 * @returns {State}
 */
function ownStateOf(registry) {
  if (stateOf(registry) === NO_STATE)
    Object.defineProperty(registry, STATE, { value: {}, configurable: true });
  return stateOf(registry);
}

/**
 * The content types of formats in which endpoints serve a page. If one of them has exemplars, metrics of this
 * process may have some, whatever their registries write.
 *
 * @param {unknown} formats
 * @returns {string[]}
 * @throws {TypeError} if it is not a list of names, or is empty
 */
function offeredTypes(formats) {
  const contentTypes = contentTypesOf(formats);
  if (contentTypes.some(each => formatOf(each).hasExemplars)) ownProcessState().allowsExemplars = true;
  return contentTypes;
}

/** @param {any} metric that may have observers and timers to stop; undefined if there was none */
function dropped(metric) {
  metric?.[REMOVED]?.();
}

/**
 * @param {any} registry
 * @param {any} [added] the metric that was added; undefined for any other change
 */
function notifyObserver(registry, added) {
  registry[OBSERVER]?.(added);
}

/**
 * @param {Record<string, unknown>} labels
 * @returns {Record<string, unknown>} the same object or, if a name is not valid, a copy without such labels
 */
function withValidNames(labels) {
  if (Object.keys(labels).every(isValidLabelName)) return labels;
  warnOfCall('setDefaultLabels()', 'labels are left out whose name is not valid', labels);
  return Object.fromEntries(Object.entries(labels).filter(([name]) => isValidLabelName(name)));
}

/** The default registry of metrics. */
Registry.globalRegistry = new Registry();
Registry.PROMETHEUS_CONTENT_TYPE = TEXT.contentType;
Registry.OPENMETRICS_CONTENT_TYPE = OPENMETRICS.contentType;
Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE = PROTOBUF.contentType;

module.exports = { Registry, offeredTypes };
