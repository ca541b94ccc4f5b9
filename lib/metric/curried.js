'use strict';

// The object that curry() of the four types returns: some labels are bound, and its methods take the others.
// Its recording methods are those of a child (children.js) for which each call selects a series. The ids of
// the bound values are kept, so only the other labels are looked up.

const { plainLabels } = require('../series/label-index');
const { LabelDictionary, MISSING } = require('../series/label-dictionary');
const { SeriesHandle } = require('../series/series-handle');
const { stateOf, tableOf, locate, isObject, STATE } = require('./metric');
const { isRecordForm } = require('./exemplar');
const { NO_LABELS, labelSetOf, mergedLabels, checkLabelNames, checkLabelSet } = require('./label-sets');

/** @typedef {import('./metric').Metric} Metric */
/** @typedef {import('./label-sets').Labels} Labels */

const RECORDING = ['inc', 'dec', 'set', 'observe'];

/** These methods of metrics use nothing but recording methods, the state and `labelNames`. */
const BORROWED = ['setToCurrentTime', 'startTimer', 'time', 'trackInProgress'];

/** Maximum number of values of a label that get their own child in each curried metric. */
const MOST_METHODS = 255;

/** The dictionary of a label that the program has added to `labelNames`, and has not used yet. */
const NO_VALUES = new LabelDictionary();

/** Takes the place of a child's handle, but is bound again for each call. */
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
    /** The labels of the call. */
    this.given = NO_LABELS;
    this.row = 0;
    /** @type {Float64Array} */
    this.page = new Float64Array(0);
    this.offset = 0;
    /** No table has it. */
    this.generation = -1;
  }

  /** The names that are not bound. The program may add some. */
  get labelNames() {
    return this.metric.labelNames.filter(name => !Object.hasOwn(this.bound, name));
  }

  /** Finds the row of the labels of the call, or creates it. */
  bind() {
    const { table } = this;
    let row = this.#find();
    if (row < 0 || !table.isLive(row)) row = locate(this.metric, table, this.labels);
    else table.touch(row);
    this.row = row;
    this.page = table.pageOf(row);
    this.offset = table.offsetOf(row);
  }

  /** @returns {number} the row; below 0 if a look-up alone cannot tell */
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
 * Caches a method of children for frequent values, if exactly one label is not bound: with its own child, a
 * recording takes half as long.
 */
class MethodByValue {
  #series;
  #create;
  #name;
  /**
   * The table's generation. Cached methods are valid only for this generation, because a child that has lost
   * its series may share the overflow series.
   */
  #generation = -1;
  /** Taken from the table's index. */
  #dictionary = NO_VALUES;
  /** @type {(((value?: number | null) => any) | undefined)[]} by the id of the value */
  #methods = [];

  /**
   * @param {SelectedSeries} series
   * @param {string} name of the label
   * @param {(handle: SeriesHandle) => (value?: number | null) => any} create makes the method of a child
   */
  constructor(series, name, create) {
    this.#series = series;
    this.#name = name;
    this.#create = create;
  }

  /**
   * @param {Labels} labels
   * @returns {((value?: number | null) => any) | undefined} undefined if there is none yet
   */
  of(labels) {
    const { table } = this.#series;
    if (this.#generation !== table.generation) this.#follow(table);
    let only;
    for (const name in labels) {
      if (name !== this.#name) return undefined;
      only = labels[name];
    }
    return only === undefined ? undefined : this.#methods[this.#dictionary.find(only)];
  }

  /** Adds that of the labels that the series has just been recorded with. */
  add() {
    const { table, given, row } = this.#series;
    const value = given[this.#name];
    for (const name in given) if (name !== this.#name) return;
    // Not cached: each recording in the overflow series must be counted, but a child counts only once.
    if (value === undefined || row === table.overflowRow) return;
    const id = this.#dictionary.find(value);
    if (id === MISSING || id > MOST_METHODS) return;
    while (this.#methods.length < id) this.#methods.push(undefined);
    this.#methods[id] = this.#create(new SeriesHandle(table, this.#series.labels));
  }

  /** @param {any} table */
  #follow({ generation, index }) {
    this.#generation = generation;
    this.#dictionary = index?.dictionaries[index.positions.get(this.#name)] ?? NO_VALUES;
    this.#methods = [];
  }
}

/**
 * @param {any} metric
 * @param {Labels} labels that are bound
 * @param {(metric: any, series: any) => Record<string, any>} createChild of the type
 * @param {Labels} [bound] are bound already
 * @returns {any}
 * @throws {TypeError} if it is not an object of labels
 * @throws {Error} if a label is bound already, or is not one of `labelNames`
 */
function curried(metric, labels, createChild, bound = NO_LABELS) {
  checkLabelSet('curry', labels);
  checkLabelNames({ labelNames: new SelectedSeries(metric, bound).labelNames }, labels);
  const series = new SelectedSeries(metric, mergedLabels(bound, plainLabels(labels)));
  const child = createChild(metric, series);
  /** @type {Record<string, any>} */
  const methods = {
    get labelNames() {
      return series.labelNames;
    },
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
  for (const method of RECORDING)
    if (method in child) methods[method] = recorder(series, createChild, method);
  for (const method of BORROWED) if (method in metric) methods[method] = metric[method].bind(methods);
  return methods;
}

/**
 * @param {SelectedSeries} series
 * @param {(metric: any, series: any) => Record<string, any>} createChild of the type
 * @param {string} method of its children
 * @returns {(labels?: any, value?: any) => any} the same with labels, which may be left out
 */
function recorder(series, createChild, method) {
  const { metric, labelNames } = series;
  /** @param {any} handle */
  const create = handle => createChild(metric, handle)[method];
  const record = create(series);
  const { exemplars } = stateOf(metric);
  const methods = labelNames.length === 1 ? new MethodByValue(series, labelNames[0], create) : undefined;
  return (labels, value) => {
    if (!isObject(labels)) {
      series.given = NO_LABELS;
      return record(value === undefined ? labels : value);
    }
    if (exemplars !== undefined && value === undefined && isRecordForm(labels, metric.labelNames))
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
