'use strict';

// The object that curry() of the four types returns: some labels are bound, and its methods take the others.
// Its recording methods are those of children (children.js), which are cached by the values of the other
// labels: a recording looks up neither the bound labels nor the series.

const { plainLabels } = require('../series/label-index');
const { MISSING } = require('../series/label-dictionary');
const { SeriesHandle } = require('../series/series-handle');
const { stateOf, tableOf, isObject, STATE } = require('./metric');
const { isRecordForm } = require('./exemplar');
const { NO_LABELS, labelSetOf, mergedLabels, checkLabelNames, checkLabelSet } = require('./label-sets');

/** @typedef {import('./metric').Metric} Metric */
/** @typedef {import('./label-sets').Labels} Labels */

const RECORDING = ['inc', 'dec', 'set', 'observe'];

/** These methods of metrics use nothing but recording methods, the state and `labelNames`. */
const BORROWED = ['setToCurrentTime', 'startTimer', 'time', 'trackInProgress'];

/** Maximum length of all lists of a recording method. */
const MOST_SLOTS = 2048;

/** @typedef {(value?: number | null) => any} Method of a child */
/** @typedef {import('../series/label-dictionary').LabelDictionary} LabelDictionary */

/**
 * Methods of children by the ids of the label values of calls, in lists of lists: one level for each label.
 * All calls have the same labels in the same order, or else are not cached.
 */
class MethodsByIds {
  #table;
  /**
   * The table's generation. Methods are valid only for this generation, because a child that has lost its
   * series may share the overflow series.
   */
  #generation = -1;
  /** @type {string[]} */
  #names = [];
  /** @type {LabelDictionary[]} by the place of the name: those of the table's index */
  #dictionaries = [];
  #slots = 0;
  /** @type {any} a list, or the method if there are no names */
  #root = [];

  /** @param {import('../series/series-table').SeriesTable} table */
  constructor(table) {
    this.#table = table;
  }

  /**
   * @param {Labels} given with a call
   * @returns {Method | undefined} undefined if it is not cached
   */
  of(given) {
    if (this.#generation !== this.#table.generation) this.#clear([]);
    const names = this.#names;
    let found = this.#root;
    let next = 0;
    for (const name in given) {
      const value = given[name];
      if (found === undefined || value === undefined || names[next] !== name) return undefined;
      found = found[this.#dictionaries[next++].find(value)];
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
    if (names.length > this.#names.length) this.#clear(names);
    if (names.join() !== this.#names.join()) return;
    const ids = names.map((name, i) =>
      labels[name] === undefined ? MISSING : this.#dictionaries[i].find(labels[name]),
    );
    const most = ids.reduce((sum, id) => sum + id, this.#slots);
    if (ids.includes(MISSING) || most > MOST_SLOTS) return;
    if (ids.length === 0) this.#root = method;
    let list = this.#root;
    ids.forEach((id, i) => {
      this.#slots += Math.max(id + 1 - list.length, 0);
      list = list[id] ??= i === ids.length - 1 ? method : [];
    });
  }

  /** @param {string[]} names that the table has */
  #clear(names) {
    const { generation, index } = this.#table;
    this.#generation = generation;
    this.#names = names;
    this.#dictionaries = names.map(
      name => /** @type {any} */ (index).dictionaries[/** @type {any} */ (index).positions.get(name)],
    );
    this.#slots = 0;
    this.#root = [];
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
  checkLabelNames({ labelNames: otherNames(metric, bound) }, labels);
  const all = mergedLabels(bound, plainLabels(labels));
  const withBound = (/** @type {any[]} */ args) =>
    mergedLabels(all, labelSetOf({ labelNames: otherNames(metric, all) }, args));
  /** @type {Record<string, any>} */
  const methods = {
    get labelNames() {
      return otherNames(metric, all);
    },
    labels: (/** @type {any[]} */ ...args) => metric.labels(withBound(args)),
    remove: (/** @type {any[]} */ ...args) => metric.remove(withBound(args)),
    value: (/** @type {Labels} */ others) => metric.value(withBound([others ?? NO_LABELS])),
    curry: (/** @type {Labels} */ others) => curried(metric, others, createChild, all),
  };
  Object.defineProperty(methods, STATE, { value: stateOf(metric) });
  if ('setTotal' in metric)
    methods.setTotal = (/** @type {any} */ others, /** @type {number} */ total) => {
      const hasLabels = isObject(others);
      metric.setTotal(withBound([hasLabels ? others : NO_LABELS]), hasLabels ? total : others);
    };
  const child = createChild(metric, new SeriesHandle(tableOf(metric), all));
  for (const method of RECORDING)
    if (method in child) methods[method] = recorder(metric, withBound, createChild, method);
  for (const method of BORROWED) if (method in metric) methods[method] = metric[method].bind(methods);
  return methods;
}

/**
 * @param {Metric} metric
 * @param {Labels} bound
 * @returns {string[]} the label names that are not bound. The program may add some
 */
function otherNames({ labelNames }, bound) {
  return labelNames.filter(name => !Object.hasOwn(bound, name));
}

/**
 * @param {Metric} metric
 * @param {(args: any[]) => Labels} withBound the labels of a call with the bound ones. Throws an error if one
 *   is bound or unknown, or the number of values does not fit
 * @param {(metric: any, handle: SeriesHandle) => Record<string, any>} createChild of the type
 * @param {string} name of a method of its children
 * @returns {(labels?: any, value?: any) => any} the same with labels, which may be left out
 */
function recorder(metric, withBound, createChild, name) {
  const table = tableOf(metric);
  const { exemplars } = stateOf(metric);
  const methods = new MethodsByIds(table);
  return (labels, value) => {
    if (!isObject(labels)) {
      if (value === undefined) value = labels;
      labels = NO_LABELS;
    } else if (exemplars !== undefined && value === undefined && isRecordForm(labels, metric.labelNames)) {
      const all = withBound([labels.labels ?? NO_LABELS]);
      return /** @type {any} */ (metric)[name]({ ...labels, labels: all });
    }
    const cached = methods.of(labels);
    if (cached !== undefined) return cached(value);
    const handle = new SeriesHandle(table, withBound([labels]));
    const method = createChild(metric, handle)[name];
    const result = method(value);
    // Not cached: each recording in the overflow series must be counted, but a child counts only once.
    if (handle.row !== -1 && handle.row !== table.overflowRow) methods.add(labels, handle.labels, method);
    return result;
  };
}

module.exports = { curried };
