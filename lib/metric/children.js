'use strict';

// The common part of labels() of the four types. A child is an object of closures over its metric and the
// handle of its series, so its methods work when detached, and test libraries can replace them. For metrics
// with few rows, the closures are cached: each call of labels() returns a new object, so replaced methods
// affect only that object, but with the same closures.

const { SeriesHandle } = require('../series/series-handle');
const { UNUSUAL } = require('../series/label-index');
const { labelSetOf, checkLabelNames } = require('./label-sets');

/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('./metric').Metric} Metric */

/**
 * With more rows, nothing is cached. Loading closures that are not in the CPU's cache takes longer than
 * creating them: with 2,000 cached children, used at random, labels(...).inc() took up to 1.5 times as long
 * as with new ones; with 250 it took 0.7 to 0.9 times as long.
 */
const MOST_CACHED = 256;

/**
 * The closures of a child.
 *
 * @template {Metric} M
 * @template {object} C
 * @param {M} metric
 * @param {SeriesTable} table the metric's
 * @param {any[]} args of labels(): one object of labels, or all values in the order of `labelNames`
 * @param {(metric: M, handle: SeriesHandle) => C} create
 * @param {boolean} [checksNames] whether the type refuses unknown labels here; otherwise they are refused at
 *   the first use
 * @returns {C} perhaps a cached one, so the caller must copy the methods
 * @throws {Error} if the number of values does not fit, or a label that is checked is not one of `labelNames`
 */
function closuresOf(metric, table, args, create, checksNames) {
  const { index } = table;
  let row = -1;
  if (index !== undefined) row = typeof args[0] === 'object' ? index.find(args[0]) : index.findValues(args);
  if (row < 0 || !table.isLive(row)) return newClosures(metric, table, args, -1, create, checksNames);
  const cached = index?.children;
  // A child that is bound to the overflow series counts only once in `overflowCount`, but each call of
  // labels() must count. So a full metric gets new children.
  const isFull = table.liveCount >= table.fullAt;
  // A removed series that comes back gets its labels in the form in which its child was given them.
  const isCached = cached?.metric === metric && cached.numbers[row] === index?.numbers && !isFull;
  return isCached ? cached.children[row] : newClosures(metric, table, args, row, create, checksNames);
}

/**
 * @template {Metric} M
 * @template {object} C
 * @param {M} metric
 * @param {SeriesTable} table
 * @param {any[]} args
 * @param {number} row -1 if there is none
 * @param {(metric: M, handle: SeriesHandle) => C} create
 * @param {boolean} [checksNames]
 * @returns {C}
 */
function newClosures(metric, table, args, row, create, checksNames) {
  const child = create(metric, new SeriesHandle(table, labelsOf(metric, args, row, checksNames), row));
  const { rowCount, index } = table;
  if (row < 0 || index === undefined || index.numbers === UNUSUAL || rowCount > MOST_CACHED) return child;
  const cached = (index.children ??= { metric, children: [], numbers: [] });
  // An object that has the metric as its prototype may have methods of its own, which its children call.
  if (cached.metric === metric) {
    cached.children[row] = child;
    cached.numbers[row] = index.numbers;
  }
  return child;
}

/**
 * @param {Metric} metric
 * @param {any[]} args
 * @param {number} row -1 if there is none
 * @param {boolean} [checksNames]
 * @returns {import('../metric/label-sets').Labels | unknown[]} a copy
 */
function labelsOf(metric, args, row, checksNames) {
  if (row < 0) return labelSetOf(metric, args, checksNames);
  return typeof args[0] === 'object' ? { ...args[0] } : args;
}

/**
 * Binds a child to its row again. Labels are checked here and not when the child is made, as in prom-client.
 *
 * @param {Metric} metric
 * @param {SeriesHandle} handle
 * @throws {Error} if a label is not one of `labelNames`
 */
function bind(metric, handle) {
  if (handle.row === -1) {
    checkLabelNames(metric, handle.labels);
    handle.table.addLabelNames(metric.labelNames);
  }
  handle.bind();
}

/**
 * Calls a method that a subclass, a spy or a bridge to another system has replaced, as a child of prom-client
 * does: without a second argument if the child's method was called without a value.
 *
 * @template {unknown} V
 * @param {(labels: import('./label-sets').Labels, value?: V) => any} method
 * @param {Metric} metric
 * @param {SeriesHandle} handle
 * @param {V} [value]
 * @returns {any} what the method returns: a promise, for example, which the caller handles
 */
function callReplaced(method, metric, { labels }, value) {
  return value === undefined ? method.call(metric, labels) : method.call(metric, labels, value);
}

module.exports = { closuresOf, bind, callReplaced };
