'use strict';

const { format } = require('util');
const {
  Metric,
  register,
  createTable,
  tableOf,
  locate,
  isObject,
  notANumber,
  adviseOnOrder,
  warnOfValue,
} = require('./metric');
const { closuresOf, bind, callReplaced } = require('./children');
const { curried } = require('./curried');
const { VALUE_LAYOUT } = require('../series/layouts');
const { NO_LABELS } = require('./label-sets');
const { timer, callAndThen, labelsAndCall } = require('./stopwatch');
const { codedError } = require('../options/coded-error');

/** @typedef {import('./label-sets').Labels} Labels */

/**
 * A value that goes up and down: queue length, memory in use, temperature.
 */
class Gauge extends Metric {
  /**
   * @param {any} config `name` and `help` are mandatory; `labelNames`, `registers`, `aggregator`, `collect`,
   *   `maxSeries`
   * @throws {TypeError} if config is not an object, or `maxSeries` is not a positive integer
   * @throws {Error} if name, help or a label name is not valid, or the name is taken
   */
  constructor(config) {
    super(config, {});
    this.type = 'gauge';
    const table = createTable(this, 1);
    register(this, { table, layout: VALUE_LAYOUT });
  }

  /**
   * @param {Labels | number} labels or the value, for the series without labels
   * @param {number} [value] NaN and infinities are allowed
   * @throws {TypeError} if the value is not a number
   * @throws {Error} if a label is not one of `labelNames`
   */
  set(labels, value) {
    const hasLabels = isObject(labels);
    if (!hasLabels && isObject(value)) adviseOnOrder(this, 'set');
    const number = hasLabels ? value : labels;
    if (typeof number !== 'number') throw notANumber(number);
    const table = tableOf(this);
    const row = locate(this, table, hasLabels ? labels : NO_LABELS);
    table.pageOf(row)[table.offsetOf(row)] = number;
  }

  /**
   * @param {Labels | number} [labels] or the value, for the series without labels
   * @param {number} [value] default 1
   * @throws {TypeError} if the value is not a number
   * @throws {Error} if a label is not one of `labelNames`
   */
  inc(labels, value) {
    addToRow(this, labels, value, 1);
  }

  /**
   * @param {Labels | number} [labels] or the value, for the series without labels
   * @param {number} [value] default 1. Anything else but a BigInt is converted to a number; what has none
   *   changes nothing
   * @throws {TypeError} if the value is a BigInt
   * @throws {Error} if a label is not one of `labelNames`
   */
  dec(labels, value) {
    addToRow(this, labels, value, -1);
  }

  /**
   * Sets the gauge to the seconds since the epoch, with fraction.
   *
   * @param {Labels} [labels] as in prom-client, a number is taken for the value
   * @throws {Error} if a label is not one of `labelNames`
   */
  setToCurrentTime(labels) {
    const now = Date.now() / 1000;
    if (labels == null) this.set(now);
    else this.set(labels, now);
  }

  /**
   * Starts a timer.
   *
   * @param {Labels} [labels]
   * @returns {(labels?: Labels) => number} sets the gauge to the seconds since the start, and returns them;
   *   labels given here are added to those of the start. `using` ends it too
   */
  startTimer(labels) {
    return timer(labels, (allLabels, seconds) => this.set(allLabels, seconds));
  }

  /**
   * Adds 1 while a function runs, until its promise is settled if it returns one.
   *
   * @param {Labels | (() => any) | null} labels or the function, for the series without labels
   * @param {() => any} [call] the function
   * @returns {any} what the function returns
   * @throws {TypeError} if there is no function
   * @throws {Error} if a label is not one of `labelNames`; the function is not called then
   */
  trackInProgress(labels, call) {
    const given = labelsAndCall(this, 'trackInProgress', labels, call);
    this.inc(given.labels);
    return callAndThen(given.call, () => this.dec(given.labels));
  }

  /**
   * Returns a child for one label set. Recording with a reused child needs no lookup.
   *
   * @param {...any} labels one object of labels, or all values in the order of `labelNames`
   * @returns {{inc: (value?: number) => void, dec: (value?: number) => void, set: (value: number) => void,
   *   setToCurrentTime: () => void, startTimer: () => (labels?: Labels) => number}}
   * @throws {Error} if a label is not one of `labelNames`, or the number of values does not fit
   */
  labels(...labels) {
    return copyOf(closuresOf(this, tableOf(this), labels, childOf));
  }

  /**
   * Binds some labels, and returns an object whose methods take the others: for code that knows some labels
   * early, such as the method and route of a request.
   *
   * @param {Labels} labels
   * @returns {any} an object with recording methods, timers, `labels()`, `remove()`, `value()` and `curry()`
   * @throws {TypeError} if it is not an object of labels
   * @throws {Error} if a label is not one of `labelNames`
   */
  curry(labels) {
    return curried(this, labels, childOf);
  }

  /**
   * The value of a series; 0 if it does not exist.
   *
   * @param {Labels} [labels]
   * @returns {number}
   */
  _getValue(labels) {
    const table = tableOf(this);
    const row = table.find(labels ?? NO_LABELS);
    return row === -1 ? 0 : table.pageOf(row)[table.offsetOf(row)];
  }
}

/** The original methods, even if they are replaced later. */
const { inc, dec, set } = Gauge.prototype;

/**
 * @param {Gauge} gauge
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @returns {{inc: (value?: number) => void, dec: (value?: number) => void, set: (value: number) => void,
 *   setToCurrentTime: () => void, startTimer: () => (labels?: Labels) => number}}
 */
function childOf(gauge, handle) {
  return {
    inc: value =>
      gauge.inc === inc ? addToChild(gauge, handle, value, 1) : callReplaced(gauge.inc, gauge, handle, value),
    dec: value =>
      gauge.dec === dec
        ? addToChild(gauge, handle, value, -1)
        : callReplaced(gauge.dec, gauge, handle, value),
    set: value =>
      gauge.set === set ? setChild(gauge, handle, value) : callReplaced(gauge.set, gauge, handle, value),
    setToCurrentTime: () => gauge.setToCurrentTime(handle.labels),
    startTimer: () => gauge.startTimer(handle.labels),
  };
}

/**
 * A separate function, so that labels() is small enough for V8 to inline it.
 *
 * @param {ReturnType<typeof childOf>} child
 * @returns {ReturnType<typeof childOf>}
 */
function copyOf({ inc, dec, set, setToCurrentTime, startTimer }) {
  return { inc, dec, set, setToCurrentTime, startTimer };
}

/**
 * @param {Gauge} gauge
 * @param {unknown} labels or the delta
 * @param {unknown} delta
 * @param {1 | -1} sign
 */
function addToRow(gauge, labels, delta, sign) {
  const hasLabels = isObject(labels);
  if (!hasLabels && isObject(delta)) adviseOnOrder(gauge, sign === 1 ? 'inc' : 'dec');
  const number = deltaOf(gauge, hasLabels ? delta : labels, sign);
  const table = tableOf(gauge);
  const row = locate(gauge, table, hasLabels ? labels : NO_LABELS);
  table.pageOf(row)[table.offsetOf(row)] += sign * number;
}

/**
 * @param {Gauge} gauge
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @param {unknown} value
 */
function setChild(gauge, handle, value) {
  if (typeof value !== 'number') throw notANumber(value);
  if (handle.generation !== handle.table.generation) bind(gauge, handle);
  handle.page[handle.offset] = value;
}

/**
 * @param {Gauge} gauge
 * @param {import('../series/series-handle').SeriesHandle} handle
 * @param {unknown} delta
 * @param {1 | -1} sign
 */
function addToChild(gauge, handle, delta, sign) {
  const number = deltaOf(gauge, delta, sign);
  if (handle.generation !== handle.table.generation) bind(gauge, handle);
  handle.page[handle.offset] += sign * number;
}

/**
 * @param {Gauge} gauge
 * @param {unknown} delta
 * @param {1 | -1} sign
 * @returns {number}
 * @throws {TypeError} if it is neither a number nor left out, nor can be converted
 */
function deltaOf(gauge, delta, sign) {
  if (delta === undefined) return 1;
  return typeof delta === 'number' ? delta : convertedDelta(gauge, delta, sign);
}

/**
 * As in prom-client, `dec('5')` subtracts 5: the sign converts.
 *
 * @param {Gauge} gauge
 * @param {any} delta
 * @param {1 | -1} sign
 * @returns {number}
 * @throws {TypeError} if it is the argument of inc(), or a BigInt
 */
function convertedDelta(gauge, delta, sign) {
  const number = sign === 1 ? delta : -delta;
  if (typeof number !== 'number')
    throw codedError('INVALID_VALUE', TypeError, `Delta is not a valid number: ${format(number)}`);
  if (!Number.isNaN(number)) return sign * number;
  warnOfValue(gauge, 'dec() subtracts nothing', delta);
  return 0;
}

module.exports = { Gauge };
