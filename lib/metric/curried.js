'use strict';

// What curry() of the four types returns: some labels are bound, its methods take the others. Its recording
// methods are those of a child (children.js) whose series each call selects: the ids of the bound values are
// kept, so only the other labels are looked up.

const { plainLabels } = require('../series/label-index');
const { MISSING } = require('../series/label-dictionary');
const { stateOf, tableOf, locate, isObject, STATE } = require('./metric');
const { isRecordForm } = require('./exemplar');
const { NO_LABELS, labelSetOf, mergedLabels, checkLabelNames, checkLabelSet } = require('./label-sets');

/** @typedef {import('./metric').Metric} Metric */
/** @typedef {import('./label-sets').Labels} Labels */

const RECORDING = ['inc', 'dec', 'set', 'observe'];

/** These methods of metrics use nothing but recording methods, the state and `labelNames`. */
const BORROWED = ['setToCurrentTime', 'startTimer', 'time', 'trackInProgress'];

/** So many values of a label have children of their own in each curried metric. */
const MOST_METHODS = 255;

/** Stands for the handle of a child: it has to be bound for each call. */
class SelectedSeries {
  /** @type {import('../series/label-index').PartOfTuple | undefined} undefined while a bound value is new */
  #part = undefined;

  /**
   * @param {Metric} metric
   * @param {Labels} bound
   */
  constructor(metric, bound) {
    this.metric = metric;
    this.table = tableOf(metric);
    this.bound = bound;
    /** The names that are not bound. */
    this.labelNames = metric.labelNames.filter(name => !Object.hasOwn(bound, name));
    /** The labels of the call. */
    this.given = NO_LABELS;
    this.row = 0;
    /** @type {Float64Array} */
    this.page = new Float64Array(0);
    this.offset = 0;
    /** No table has it. */
    this.generation = -1;
  }

  /** Finds the row of the labels of the call, or creates it. */
  bind() {
    const { table } = this;
    let row = this.#find();
    if (row < 0 || !table.isLive(row)) row = locate(this.metric, table, this.labels);
    this.row = row;
    this.page = table.pageOf(row);
    this.offset = table.offsetOf(row);
  }

  /** @returns {number} the row; below 0 if it takes more than a look-up to tell */
  #find() {
    const { index } = this.table;
    if (index === undefined) return -1;
    if (this.#part?.index !== index) {
      this.#part = index.partOf(this.bound);
      if (this.#part === undefined) return -1;
    }
    return index.findRest(this.#part, this.given);
  }

  /** All labels of the call. */
  get labels() {
    return this.labelsOf([this.given]);
  }

  /**
   * @param {any[]} args one object of labels, or all values in the order of `labelNames`
   * @returns {Labels} with the bound ones
   * @throws {Error} if a label is bound or unknown, or the number of values does not fit
   */
  labelsOf(args) {
    return mergedLabels(this.bound, labelSetOf(this, args));
  }
}

/**
 * A method of the children of the label sets that are used most, if one label is not bound: with a child
 * of its own, a recording takes half as long.
 */
class MethodByValue {
  #series;
  #method;
  #name;
  /** @type {import('../series/label-index').LabelIndex | undefined} */
  #index = undefined;
  /** @type {any} of `#index` */
  #dictionary = undefined;
  /** @type {(((value?: number | null) => any) | undefined)[]} by the id of the value */
  #methods = [];
  /** The value of the last call: of most requests, the status is that of the one before. */
  #last = /** @type {unknown} */ (undefined);
  #lastMethod = /** @type {((value?: number | null) => any) | undefined} */ (undefined);

  /**
   * @param {SelectedSeries} series
   * @param {string} method
   */
  constructor(series, method) {
    this.#series = series;
    this.#method = method;
    this.#name = series.labelNames[0];
  }

  /**
   * @param {Labels} labels
   * @returns {((value?: number | null) => any) | undefined} undefined if there is none yet
   */
  of(labels) {
    const { index } = this.#series.table;
    if (this.#index !== index) this.#follow(index);
    let only;
    for (const name in labels) {
      if (name !== this.#name) return undefined;
      only = labels[name];
    }
    if (only === this.#last) return this.#lastMethod;
    if (only === undefined) return undefined;
    this.#last = only;
    return (this.#lastMethod = this.#methods[this.#dictionary.find(only)]);
  }

  /** Adds that of the labels that the series has just been recorded with. */
  add() {
    const { metric, table, given, labels, row } = this.#series;
    const value = given[this.#name];
    // Each recording that goes to the overflow series is counted, but a child only once.
    if (value === undefined || row === table.overflowRow) return;
    const id = this.#dictionary.find(value);
    if (id === MISSING || id > MOST_METHODS) return;
    while (this.#methods.length < id) this.#methods.push(undefined);
    this.#methods[id] = /** @type {any} */ (metric).labels(labels)[this.#method];
    this.#last = undefined;
  }

  /** @param {any} index that has ids of its own */
  #follow(index) {
    this.#index = index;
    this.#dictionary = index.dictionaries[index.positions.get(this.#name)];
    this.#methods = [];
    this.#last = this.#lastMethod = undefined;
  }
}

/**
 * @param {any} metric
 * @param {Labels} labels that are bound
 * @param {(metric: any, series: any) => Record<string, any>} createChild of the type
 * @param {Labels} [bound] are bound already
 * @returns {any}
 * @throws {TypeError} if it is no object of labels
 * @throws {Error} if a label is bound already, or is not one of `labelNames`
 */
function curried(metric, labels, createChild, bound = NO_LABELS) {
  checkLabelSet('curry', labels);
  checkLabelNames({ labelNames: new SelectedSeries(metric, bound).labelNames }, labels);
  const series = new SelectedSeries(metric, mergedLabels(bound, plainLabels(labels)));
  const child = createChild(metric, series);
  const { labelNames } = series;
  /** @type {Record<string, any>} */
  const methods = {
    labelNames,
    labels: (/** @type {any[]} */ ...args) => metric.labels(series.labelsOf(args)),
    remove: (/** @type {any[]} */ ...args) => metric.remove(series.labelsOf(args)),
    value: (/** @type {Labels} */ others) => metric.value(series.labelsOf([others ?? NO_LABELS])),
    curry: (/** @type {Labels} */ others) => curried(metric, others, createChild, series.bound),
  };
  Object.defineProperty(methods, STATE, { value: stateOf(metric) });
  if ('setTotal' in metric)
    methods.setTotal = (/** @type {any} */ others, /** @type {number} */ total) => {
      const hasLabels = isObject(others);
      metric.setTotal(series.labelsOf([hasLabels ? others : NO_LABELS]), hasLabels ? total : others);
    };
  for (const method of RECORDING) if (method in child) methods[method] = recorder(series, child, method);
  for (const method of BORROWED) if (method in metric) methods[method] = metric[method].bind(methods);
  return methods;
}

/**
 * @param {SelectedSeries} series
 * @param {Record<string, (value?: number | null) => any>} child
 * @param {string} method of the child
 * @returns {(labels?: any, value?: any) => any} the same with labels, which may be left out
 */
function recorder(series, child, method) {
  const { metric, labelNames } = series;
  const record = child[method];
  const { exemplars } = stateOf(metric);
  const methods = labelNames.length === 1 ? new MethodByValue(series, method) : undefined;
  return (labels, value) => {
    if (!isObject(labels)) {
      series.given = NO_LABELS;
      return record(value === undefined ? labels : value);
    }
    if (exemplars !== undefined && value === undefined && isRecordForm(labels, labelNames))
      return /** @type {any} */ (metric)[method]({
        ...labels,
        labels: series.labelsOf([labels.labels ?? NO_LABELS]),
      });
    const own = methods?.of(labels);
    if (own !== undefined) return own(value);
    series.given = labels;
    const result = record(value);
    methods?.add();
    return result;
  };
}

module.exports = { curried };
