'use strict';

// The object that curry() of the four types returns: some labels are bound, and its methods take the others.
// Its recording methods are those of children (children.js), which are cached by the values of the other
// labels: a recording looks up neither the bound labels nor the series.

const { plainLabels } = require('../series/label-index');
const { isNotPrimitive } = require('../series/label-dictionary');
const { SeriesHandle } = require('../series/series-handle');
const { stateOf, tableOf, isObject, STATE } = require('./metric');
const { isRecordForm } = require('./exemplar');
const { NO_LABELS, labelSetOf, mergedLabels, checkLabelNames, checkLabelSet } = require('./label-sets');

/** @typedef {import('./metric').Metric} Metric */
/** @typedef {import('./label-sets').Labels} Labels */

const RECORDING = ['inc', 'dec', 'set', 'observe'];

/** These methods of metrics use nothing but recording methods, the state and `labelNames`. */
const BORROWED = ['setToCurrentTime', 'startTimer', 'time', 'trackInProgress'];

/** Maximum number of label sets for each recording method. */
const MOST_CACHED = 1024;

/** The labels that are bound. */
class BoundLabels {
  /**
   * @param {Metric} metric
   * @param {Labels} labels
   */
  constructor(metric, labels) {
    this.metric = metric;
    this.labels = labels;
  }

  /** The names that are not bound. The program may add some. */
  get otherNames() {
    return this.metric.labelNames.filter(name => !Object.hasOwn(this.labels, name));
  }

  /**
   * @param {any[]} args one object of labels, or all values in the order of `labelNames`
   * @returns {Labels} with the bound ones
   * @throws {Error} if a label is bound or unknown, or the number of values does not fit
   */
  with(args) {
    return mergedLabels(this.labels, labelSetOf({ labelNames: this.otherNames }, args));
  }
}

/** @typedef {(value?: number | null) => any} Method of a child */

/**
 * Methods of children by the label values of calls, in maps of maps: one level for each label. All calls have
 * the same labels in the same order, or else are not cached.
 */
class MethodsByValues {
  #table;
  /**
   * The table's generation. Methods are valid only for this generation, because a child that has lost its
   * series may share the overflow series.
   */
  #generation = -1;
  /** @type {string[]} */
  #names = [];
  #count = 0;
  /** @type {any} a Map, or the method if there are no names */
  #root = new Map();

  /** @param {import('../series/series-table').SeriesTable} table */
  constructor(table) {
    this.#table = table;
  }

  /**
   * @param {Labels} given with a call
   * @returns {Method | undefined} undefined if it is not cached
   */
  of(given) {
    if (this.#generation !== this.#table.generation) this.#clear();
    const names = this.#names;
    let found = this.#root;
    let next = 0;
    for (const name in given) {
      if (found === undefined || names[next++] !== name) return undefined;
      found = found.get(given[name]);
    }
    return next === names.length && typeof found === 'function' ? found : undefined;
  }

  /**
   * @param {Labels} given with a call for which of() has found nothing
   * @param {Labels} labels a copy, with the bound ones
   * @param {Method} method
   */
  add(given, labels, method) {
    const names = [];
    for (const name in given) names.push(name);
    if (names.some(name => isNotPrimitive(labels[name]))) return;
    if (names.length > this.#names.length) {
      this.#clear();
      this.#names = names;
    }
    if (this.#count === MOST_CACHED || names.join() !== this.#names.join()) return;
    this.#count++;
    if (names.length === 0) this.#root = method;
    let map = this.#root;
    names.forEach((name, i) => {
      const value = labels[name];
      if (i === names.length - 1) map.set(value, method);
      else map = map.get(value) ?? map.set(value, new Map()).get(value);
    });
  }

  #clear() {
    this.#generation = this.#table.generation;
    this.#names = [];
    this.#count = 0;
    this.#root = new Map();
  }
}

/**
 * @param {any} metric
 * @param {Labels} labels that are bound
 * @param {(metric: any, handle: SeriesHandle) => Record<string, any>} createChild of the type
 * @param {Labels} [bound] are bound already
 * @returns {any}
 * @throws {TypeError} if it is not an object of labels
 * @throws {Error} if a label is bound already, or is not one of `labelNames`
 */
function curried(metric, labels, createChild, bound = NO_LABELS) {
  checkLabelSet('curry', labels);
  checkLabelNames({ labelNames: new BoundLabels(metric, bound).otherNames }, labels);
  const all = new BoundLabels(metric, mergedLabels(bound, plainLabels(labels)));
  /** @type {Record<string, any>} */
  const methods = {
    get labelNames() {
      return all.otherNames;
    },
    labels: (/** @type {any[]} */ ...args) => metric.labels(all.with(args)),
    remove: (/** @type {any[]} */ ...args) => metric.remove(all.with(args)),
    value: (/** @type {Labels} */ others) => metric.value(all.with([others ?? NO_LABELS])),
    curry: (/** @type {Labels} */ others) => curried(metric, others, createChild, all.labels),
  };
  Object.defineProperty(methods, STATE, { value: stateOf(metric) });
  if ('setTotal' in metric)
    methods.setTotal = (/** @type {any} */ others, /** @type {number} */ total) => {
      const hasLabels = isObject(others);
      metric.setTotal(all.with([hasLabels ? others : NO_LABELS]), hasLabels ? total : others);
    };
  const child = createChild(metric, new SeriesHandle(tableOf(metric), all.labels));
  for (const method of RECORDING) if (method in child) methods[method] = recorder(all, createChild, method);
  for (const method of BORROWED) if (method in metric) methods[method] = metric[method].bind(methods);
  return methods;
}

/**
 * @param {BoundLabels} bound
 * @param {(metric: any, handle: SeriesHandle) => Record<string, any>} createChild of the type
 * @param {string} name of a method of its children
 * @returns {(labels?: any, value?: any) => any} the same with labels, which may be left out
 */
function recorder(bound, createChild, name) {
  const { metric } = bound;
  const table = tableOf(metric);
  const { exemplars } = stateOf(metric);
  const methods = new MethodsByValues(table);
  return (labels, value) => {
    if (!isObject(labels)) {
      if (value === undefined) value = labels;
      labels = NO_LABELS;
    } else if (exemplars !== undefined && value === undefined && isRecordForm(labels, metric.labelNames)) {
      const all = bound.with([labels.labels ?? NO_LABELS]);
      return /** @type {any} */ (metric)[name]({ ...labels, labels: all });
    }
    const cached = methods.of(labels);
    if (cached !== undefined) return cached(value);
    const handle = new SeriesHandle(table, bound.with([labels]));
    const method = createChild(metric, handle)[name];
    const result = method(value);
    // Not cached: each recording in the overflow series must be counted, but a child counts only once.
    if (handle.row !== -1 && handle.row !== table.overflowRow) methods.add(labels, handle.labels, method);
    return result;
  };
}

module.exports = { curried };
