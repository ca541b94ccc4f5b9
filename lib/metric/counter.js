'use strict';

const { exemplarsOf, isRecordForm, createExemplar } = require('./exemplar');
const {
  Metric,
  register,
  createTable,
  stateOf,
  tableOf,
  locate,
  isObject,
  notANumber,
  adviseOnOrder,
  warnOfValue,
} = require('./metric');
const { Gauge } = require('./gauge');
const { closuresOf, bind, callReplaced } = require('./children');
const { curried } = require('./curried');
const { VALUE_LAYOUT } = require('../series/layouts');
const { NO_LABELS, checkLabelNames } = require('./label-sets');
const { codedError } = require('../options/coded-error');

/** @typedef {import('./label-sets').Labels} Labels */

/**
 * A value that only goes up: requests served, bytes sent, errors.
 */
class Counter extends Metric {
  /**
   * @param {any} config `name` and `help` are mandatory; `labelNames`, `registers`, `aggregator`, `collect`,
   *   `enableExemplars`, `maxSeries`
   * @throws {TypeError} if config is not an object, `maxSeries` is not a positive integer, or a registry's
   *   content type does not allow exemplars and `enableExemplars` is set
   * @throws {Error} if name, help or a label name is not valid, or the name is taken
   */
  constructor(config) {
    super(config, {});
    this.type = 'counter';
    const table = createTable(this, 1);
    const exemplars = this.enableExemplars ? exemplarsOf(table, this.enableExemplars) : undefined;
    register(this, { table, layout: VALUE_LAYOUT, exemplars });
  }

  /**
   * Adds to the counter.
   *
   * @param {Labels | number | null} [labels] or the value, for the series without labels; or, where exemplars
   *   are enabled, `{labels, value, exemplarLabels}`
   * @param {number | null} [value] default 1; not negative. NaN, false and '' add nothing
   * @throws {TypeError} if the value is not a finite number
   * @throws {RangeError} if the labels of an exemplar are longer than 128 characters
   * @throws {Error} if the value is negative, or a label is not one of `labelNames`
   */
  inc(labels, value) {
    const { table, exemplars } = stateOf(this);
    /** @type {Labels | null | undefined} */
    let exemplarLabels;
    if (exemplars !== undefined && value === undefined && isRecordForm(labels, this.labelNames)) {
      const record = labels;
      ({ exemplarLabels, value } = record);
      labels = record.labels ?? NO_LABELS;
    }
    /** @type {Labels} */
    let labelSet = NO_LABELS;
    if (isObject(labels)) {
      labelSet = labels;
    } else {
      if (isObject(value)) adviseOnOrder(this, 'inc');
      value = labels;
    }
    if (value == null) value = 1;
    if (!isIncrement(value)) value = checkedIncrement(this, labelSet, value);
    // Created first, because a sample whose exemplar is refused must not be counted.
    const exemplar = exemplarLabels == null ? undefined : createExemplar(exemplarLabels, value || 1);
    const row = locate(this, table, labelSet);
    table.pageOf(row)[table.offsetOf(row)] += value;
    if (exemplar !== undefined) exemplars.put(row, 0, exemplar);
    else if (exemplars !== undefined) exemplars.putTrace(row, 0, value);
  }

  /**
   * For a total that is kept elsewhere: adds as much as the total has grown since the last call for these
   * labels. The first call adds the whole total. So does a call with a total below the last one, because its
   * source has restarted.
   *
   * @param {Labels | number} labels or the total, for the series without labels
   * @param {number} [total] not negative. NaN, false and '' add nothing. Nor does a total of a label set
   *   beyond `maxSeries`, because the overflow series would mix totals of several sources
   * @throws {TypeError} if the total is not a finite number
   * @throws {Error} if the total is negative, or a label is not one of `labelNames`
   */
  setTotal(labels, total) {
    const labelSet = isObject(labels) ? labels : NO_LABELS;
    const number = /** @type {number} */ (isObject(labels) ? total : labels);
    if (!isIncrement(number)) {
      checkedIncrement(this, labelSet, number, 'setTotal');
      return;
    }
    const state = stateOf(this);
    if (locate(this, state.table, labelSet) === state.table.overflowRow) return;
    const { name, help, labelNames } = this;
    state.totals ??= new Gauge({ name, help, labelNames, registers: [] });
    state.table.onExpiry ??= (/** @type {number} */ row) => forgetTotal(state, row);
    const last = state.totals.value(labelSet) ?? 0;
    state.totals.set(labelSet, number);
    this.inc(labelSet, number < last ? number : number - last);
  }

  /**
   * Returns a child for one label set. Recording with a reused child needs no lookup.
   *
   * @param {...any} labels one object of labels, or all values in the order of `labelNames`
   * @returns {{inc: (value?: number | null) => void}}
   * @throws {Error} if the number of values does not fit
   */
  labels(...labels) {
    const { inc } = closuresOf(this, tableOf(this), labels, childOf, false);
    return { inc };
  }

  /**
   * Binds some labels, and returns an object whose methods take the others: for code that knows some labels
   * early, such as the method and route of a request.
   *
   * @param {Labels} labels
   * @returns {any} an object with `inc()`, `labels()`, `remove()`, `value()` and `curry()`
   * @throws {TypeError} if it is not an object of labels
   * @throws {Error} if a label is not one of `labelNames`
   */
  curry(labels) {
    return curried(this, labels, childOf);
  }
}

/**
 * @param {{table: import('../series/series-table').SeriesTable, totals: Gauge}} state
 * @param {number} row of a series that expires
 */
function forgetTotal({ table, totals }, row) {
  const last = tableOf(totals);
  const total = last.find(table.labelsOf(row));
  if (total !== -1) last.removeRow(total);
}

/** The original method, even if it is replaced later. */
const { inc } = Counter.prototype;

/**
 * @param {Counter} counter
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @returns {{inc: (value?: number | null) => void}}
 */
function childOf(counter, handle) {
  const { exemplars } = stateOf(counter);
  const traces = exemplars?.areTraces ? exemplars : undefined;
  return { inc: value => incChild(counter, handle, value, traces) };
}

/**
 * @param {Counter} counter
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @param {number | null | undefined} value
 * @param {import('./exemplar').Exemplars | undefined} traces
 * @returns {any} undefined, unless the counter's method was replaced
 */
function incChild(counter, handle, value, traces) {
  if (counter.inc !== inc) return callReplaced(counter.inc, counter, handle, value);
  if (value == null) value = 1;
  if (!isIncrement(value)) value = checkedIncrement(counter, handle.labels, value);
  if (handle.generation !== handle.table.generation) bind(counter, handle);
  handle.page[handle.offset] += value;
  if (traces !== undefined) traces.putTrace(handle.row, 0, value);
  return undefined;
}

/** @param {unknown} value */
function isIncrement(value) {
  return typeof value === 'number' && value >= 0 && value < Infinity;
}

/**
 * Handles an increment that is not a valid number. A wrong label is reported before a wrong value. NaN, false
 * and '' add nothing: they are often the result of a computation in a listener, where an error would end the
 * process.
 *
 * @param {Counter} counter
 * @param {Labels} labels
 * @param {unknown} value
 * @param {string} [method] that was called
 * @returns {number} 0
 * @throws {TypeError} if it is anything else that is not a finite number
 * @throws {Error} if it is negative
 */
function checkedIncrement(counter, labels, value, method = 'inc') {
  checkLabelNames(counter, labels);
  if (Number.isNaN(value) || value === false || value === '') {
    warnOfValue(counter, `${method}() adds nothing`, value);
    return 0;
  }
  if (!Number.isFinite(value)) throw notANumber(value);
  throw codedError('INVALID_VALUE', Error, 'It is not possible to decrease a counter');
}

module.exports = { Counter };
