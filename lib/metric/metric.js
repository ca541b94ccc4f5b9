'use strict';

// What the four metric types share: construction, registration, and finding the row of a label set.

const { format } = require('util');
const { Registry } = require('../registry/registry');
const { withAdvice } = require('../registry/metric-definition');
const { VIEW } = require('../registry/metric-view');
const { processState } = require('../registry/process-state');
const { debug } = require('../options/debug-log');
const { adviseOnce, warnOfCall } = require('../options/warnings');
const { printed } = require('../options/thrown');
const { kindOf, kindOfType, samplesOf, isLasting } = require('../series/layouts');
const { SeriesTable } = require('../series/series-table');
const { matchingRows } = require('../series/matching-rows');
const { EXPIRING, scrapeStarts, runHook } = require('../series/hook-recordings');
const { OPTIONS, applyOptions, maxSeriesOf, maxIdleOf } = require('./metric-options');
const { NO_LABELS, hashObject, labelSetOf, checkLabelNames, checkLabelSet } = require('./label-sets');
const { setOwn } = require('../series/label-form');
const { codedError, invalidOption } = require('../options/coded-error');

/** @typedef {import('./label-sets').Labels} Labels */

/**
 * The key of a metric's state: its table, and what else its type needs. A symbol is not enumerated and cannot
 * clash with a config key. A private field would not work behind a Proxy, or if a metric is the prototype of
 * an object.
 */
const STATE = Symbol('state');

/** @type {readonly string[]} */
const NO_NAMES = Object.freeze([]);

/** The method of a metric that returns its samples as JSON, and what else its JSON has. */
const VALUES = Symbol('values');

/** The method of a metric that makes the entry of one row in `hashMap`. */
const SERIES = Symbol('series');

/** The method of a metric that returns its view, whatever has become of get(). */
const READ = Symbol('read');

/**
 * The base of Counter, Gauge, Histogram and Summary.
 */
class Metric {
  /**
   * Checks a configuration and copies its keys. The subclass registers the metric as its last step.
   *
   * @param {any} config
   * @param {Record<string, unknown>} defaults of the options which only one type has
   * @param {ReadonlySet<string>} [options] names of all options of the type
   * @throws {TypeError} if config is not an object, or `labelNames` or `registers` is not an array
   * @throws {Error} if help or name is missing, or a name is not valid
   */
  constructor(config, defaults, options = OPTIONS) {
    if (typeof config !== 'object' || config === null)
      throw invalidOption('constructor expected a config object');
    /** @type {string} */
    this.name = '';
    /** @type {string} */
    this.help = '';
    /** @type {readonly string[]} */
    this.labelNames = [];
    /** @type {Registry[]} */
    this.registers = [Registry.globalRegistry];
    /** @type {string} */
    this.aggregator = 'sum';
    /** @type {boolean} */
    this.enableExemplars = false;
    Object.assign(this, defaults);
    applyOptions(this, config, options);
    if (config.collect != null) {
      // Not among the defaults: a subclass may have it as a method.
      /** @type {((this: any) => void | Promise<void>) | undefined} */
      this.collect = config.collect;
    }
    if (this.collect && typeof this.collect !== 'function') {
      throw invalidOption('Optional "collect" parameter must be a function', Error);
    }
    /** @type {readonly string[]} */
    this.sortedLabelNames = this.labelNames.length === 0 ? NO_NAMES : [...this.labelNames].sort();
  }

  /**
   * How often a label set beyond `maxSeries` was recorded in the series labelled `overflow`, since the metric
   * was created. A child counts when it binds to that series, not with each call.
   *
   * @returns {number}
   */
  get overflowCount() {
    return /** @type {any} */ (this)[STATE]?.table.overflowCount;
  }

  /**
   * How many series have expired in this process (the option `maxIdleSeconds`), since the metric was created.
   *
   * @returns {number}
   */
  get expiredCount() {
    return /** @type {any} */ (this)[STATE]?.table.expiredCount;
  }

  /**
   * How many series the metric has in this process.
   *
   * @returns {number}
   */
  get seriesCount() {
    return /** @type {any} */ (this)[STATE]?.table.liveCount;
  }

  /**
   * The series by prom-client's keys, built on access. Modifying it has no effect; assigning an object drops
   * all series, as in prom-client.
   *
   * @returns {Record<string, object> | undefined} undefined in the constructor
   */
  get hashMap() {
    if (stateOf(this) === undefined) return undefined;
    const table = tableOf(this);
    const entries = Array.from(table.liveRows(), row => {
      const labels = table.labelsOf(row);
      return [hashObject(labels), this[SERIES](row, labels)];
    });
    return Object.fromEntries(entries);
  }

  set hashMap(series) {
    if (Object.keys(series ?? {}).length > 0) warnOfValue(this, 'hashMap can only be emptied', series);
    tableOf(this).clear();
  }

  /** Drops all series; the one of a metric without labels starts again at 0. */
  reset() {
    const table = tableOf(this);
    table.clear();
    if (this.labelNames.length === 0) table.locate(NO_LABELS);
  }

  /**
   * The metric as JSON, after its `collect` hook has run.
   *
   * @returns {Promise<object>}
   */
  async get() {
    scrapeStarts(this);
    /** @type {any} */
    const hook = this.collect ? runHook(() => this.collect?.()) : undefined;
    // Without an asynchronous hook, read in the same turn, because the program may reset the metric right
    // after get().
    if (typeof hook?.then === 'function') await hook;
    const { name, help, aggregator } = this;
    const { type } = /** @type {any} */ (this);
    // The order of the keys is prom-client's.
    const head = kindOfType(type).marker === undefined ? { help, name } : { name, help };
    const { values, nativeHistograms } = this[VALUES]();
    const json = { ...head, type, values, aggregator };
    return nativeHistograms === undefined ? json : { ...json, nativeHistograms };
  }

  /** @returns {{values: object[], nativeHistograms?: object[]}} */
  [VALUES]() {
    const table = tableOf(this);
    return { values: Array.from(table.liveRows(), row => this[SERIES](row, table.labelsOf(row))) };
  }

  /**
   * @param {number} row
   * @param {Labels} labels
   * @returns {object}
   */
  [SERIES](row, labels) {
    const { table, exemplars } = stateOf(this);
    const value = table.pageOf(row)[table.offsetOf(row)];
    const exemplar = exemplars?.at(row, 0);
    return exemplar === undefined ? { value, labels } : { value, labels, exemplar };
  }

  /** @returns {import('../exposition/live-family').MetricView | undefined} */
  [VIEW]() {
    return this.get === get ? this[READ]() : undefined;
  }

  /** @returns {import('../exposition/live-family').MetricView} */
  [READ]() {
    const { name, help, type, aggregator } = /** @type {any} */ (this);
    const { table, layout, exemplars } = stateOf(this);
    return { name, help, type, aggregator, layout, table, exemplars };
  }

  /**
   * Drops the series of a label set. It starts from zero when it is used again.
   *
   * @param {...any} labels one object of labels, or all values in the order of `labelNames`
   * @throws {Error} if a label is not one of `labelNames`, or the number of values does not fit
   */
  remove(...labels) {
    const set = labelSetOf(this, labels);
    const table = tableOf(this);
    const row = table.find(set);
    if (row !== -1) table.removeRow(row);
    // Counters have totals.
    stateOf(this).totals?.remove(set);
  }

  /**
   * Drops all series that have these labels, whatever their other labels are.
   *
   * @param {Labels} labels a value of undefined stands for series without that label; `{}` for all series
   * @returns {number} how many there were
   * @throws {TypeError} if it is not an object: a value that is missing must not drop everything
   * @throws {Error} if a label is not one of `labelNames`
   */
  removeMatching(labels) {
    checkLabelSet('removeMatching', labels);
    const table = tableOf(this);
    checkLabelNames(this, labels);
    const rows = matchingRows(table, labels);
    for (const row of rows) table.removeRow(row);
    stateOf(this).totals?.removeMatching(labels);
    return rows.length;
  }

  /**
   * What a series has recorded in this process. Runs no `collect` hook.
   *
   * @param {Labels} [labels] all labels of the series
   * @returns {any} a number; of a histogram or summary `{count, sum}`; undefined if there is no such series
   * @throws {TypeError} if the labels are not an object
   * @throws {Error} if a label is not one of `labelNames`
   */
  value(labels) {
    const set = labels ?? NO_LABELS;
    checkLabelSet('value', set);
    checkLabelNames(this, set);
    const row = tableOf(this).find(set);
    if (row === -1) return undefined;
    const { value, count, sum } = /** @type {any} */ (this[SERIES](row, set));
    return count === undefined ? value : { count, sum };
  }
}

// A class that a program derives may have properties of its own with these names.
for (const name of ['overflowCount', 'expiredCount', 'seriesCount']) {
  /** @this {Metric} @param {unknown} value */
  const set = function (value) {
    setOwn(this, name, value);
  };
  Object.defineProperty(Metric.prototype, name, { set });
}

/** The method as it is here, whatever replaces it later. */
const { get } = Metric.prototype;

/**
 * Reports a call with the value first, of which the labels are ignored.
 *
 * @param {Metric} metric
 * @param {string} method
 */
function adviseOnOrder({ name }, method) {
  adviseOnce(
    'order of arguments',
    `Metric ${name}: ${method}() takes labels first, then the value. The labels of this call are ignored`,
  );
}

/**
 * Warns once per metric of a value that is of no use.
 *
 * @param {{name: string}} metric
 * @param {string} problem
 * @param {unknown} value
 */
function warnOfValue({ name }, problem, value) {
  warnOfCall(`Metric ${name}`, problem, value);
}

/**
 * Gives a metric its state, resets it, and registers it. No method: a config may well have a key `register`.
 *
 * @template {{table: SeriesTable}} State
 * @param {Metric & {reset: () => void}} metric
 * @param {State} state
 * @throws {TypeError} if exemplars are enabled, and a registry writes Prometheus text only
 * @throws {Error} if a registry has another metric of that name
 */
function register(metric, state) {
  Object.defineProperty(metric, STATE, { value: state, configurable: true });
  metric.reset();
  addToRegistries(metric);
}

/**
 * @param {Metric} metric is added to its `registers`
 * @throws {TypeError} if exemplars are enabled and a registry writes Prometheus text only
 * @throws {Error} if a registry has another metric of that name
 */
function addToRegistries(metric) {
  const { enableExemplars, registers } = metric;
  // Endpoints offer native histograms in a format that has exemplars. Metrics of lib/compat have no state.
  const isNative = stateOf(metric)?.buckets !== undefined;
  for (const registry of registers) {
    const writesText = registry.contentType === Registry.PROMETHEUS_CONTENT_TYPE;
    if (enableExemplars && writesText && !isNative && !processState().allowsExemplars) {
      throw invalidOption('Exemplars are supported only on OpenMetrics registries');
    }
  }
  /** @type {Registry[]} */
  const done = [];
  try {
    for (const registry of registers) {
      registry.registerMetric(/** @type {any} */ (metric));
      done.push(registry);
    }
  } catch (error) {
    // The constructor throws, so the metric must not stay in some of the registries.
    for (const registry of done) registry.removeSingleMetric(metric.name);
    throw withAdvice(error, 'To use the one that exists, call registry.getOrCreate()');
  }
}

/**
 * An empty table for a metric.
 *
 * @param {any} metric
 * @param {number} width numbers a series
 * @returns {SeriesTable}
 * @throws {TypeError} if `maxSeries` is not a positive integer
 * @throws {RangeError} if `maxIdleSeconds` is not a positive finite number
 */
function createTable(metric, width) {
  const { name, labelNames } = metric;
  const limit = maxSeriesOf(metric);
  const maxIdle = maxIdleOf(metric);
  const onFull = () => debug('%s has its %d series: other label sets are recorded as overflow', name, limit);
  let table;
  if (maxIdle > 0 && labelNames.length > 0) {
    // Programs without it load nothing of it.
    const { ExpiringTable } = require('../series/expiring-table');
    table = new ExpiringTable(labelNames, width, maxIdle, limit, onFull);
    Object.defineProperty(metric, EXPIRING, { value: table });
  } else {
    table = new SeriesTable(labelNames, width, limit, onFull);
  }
  if (isLasting(metric.type)) table.starts = 0;
  return table;
}

/**
 * @param {any} metric
 * @returns {any} what it was registered with
 */
function stateOf(metric) {
  return metric[STATE];
}

/**
 * @param {any} metric
 * @returns {SeriesTable}
 */
function tableOf(metric) {
  return metric[STATE].table;
}

/**
 * The row of a label set, created if need be.
 *
 * @param {Metric} metric
 * @param {SeriesTable} table the metric's
 * @param {Labels} labels
 * @returns {number}
 * @throws {Error} if a label is not one of `labelNames`
 */
function locate(metric, table, labels) {
  const row = table.locate(labels);
  return row === -1 ? locateAnew(metric, table, labels) : row;
}

/**
 * The row of a label set with labels that the table does not have: the program may have added names to
 * `labelNames` since it created the metric.
 *
 * @param {Metric} metric
 * @param {SeriesTable} table the metric's
 * @param {Labels} labels
 * @returns {number}
 * @throws {Error} if a label is not one of `labelNames`
 */
function locateAnew(metric, table, labels) {
  checkLabelNames(metric, labels);
  table.addLabelNames(metric.labelNames);
  return table.locate(labels);
}

/**
 * @typedef {{value: number, labels: Labels, metricName?: string, row: number, column?: number}} JsonSample
 */

/**
 * The samples of all series as JSON.
 *
 * @template T
 * @param {import('../exposition/live-family').MetricView} view
 * @param {(sample: JsonSample) => T} toJson has the keys in prom-client's order
 * @returns {T[]}
 */
function jsonValues({ name, layout, table, captureQuantiles }, toJson) {
  const { marker = '', read } = kindOf(layout);
  const samples = samplesOf(layout);
  const values = new Array(samples.length).fill(0);
  const quantileValues = captureQuantiles?.();
  return Array.from(table.liveRows(), row => {
    read(values, table.pageOf(row), table.offsetOf(row), quantileValues?.(row) ?? []);
    return samples.map(({ suffix, mark, column }, i) => {
      const own = table.labelsOf(row);
      const labels = mark === undefined ? own : { [marker]: mark, ...own };
      const metricName = suffix === '' ? undefined : name + suffix;
      return toJson({ value: values[i], labels, metricName, row, column });
    });
  }).flat();
}

/**
 * @param {unknown} value
 * @returns {value is Labels}
 */
function isObject(value) {
  return typeof value === 'object' && value !== null;
}

/**
 * @param {unknown} value that prom-client names
 * @param {unknown} [given] what it was made of
 * @returns {Error} a TypeError
 */
function notANumber(value, given = value) {
  const more = Object.is(value, given) ? '' : `, got ${printed(given)}`;
  return codedError('INVALID_VALUE', TypeError, `Value is not a valid number: ${format(value)}`, more);
}

module.exports = {
  Metric,
  register,
  addToRegistries,
  createTable,
  stateOf,
  tableOf,
  locate,
  jsonValues,
  STATE,
  VALUES,
  SERIES,
  READ,
  isObject,
  notANumber,
  adviseOnOrder,
  warnOfValue,
};
