'use strict';

// What labels() of the four types shares. A child is an object of closures over its metric and the handle of
// its series, so its methods work when detached, and test libraries can replace them. The closures of metrics
// with few rows are cached: a program that calls labels() for each recording gets a new object each time, so
// what it replaces there stays there, but with the same closures.

const { SeriesHandle } = require('../series/series-handle');
const { OTHER_ORDER } = require('../series/label-index');
const { labelSetOf, checkLabelNames } = require('./label-sets');

/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('./metric').Metric} Metric */

/**
 * Metrics with more rows have none cached. To follow closures that are not in the CPU's cache takes longer
 * than to create them: with 2,000 cached ones, used at random, labels(...).inc() took up to 1.5 times as long
 * as with new ones, with 250 it took 0.7 to 0.9 times as long.
 */
const MOST_CACHED = 256;

/**
 * The row of a child.
 *
 * @param {Metric} metric
 * @param {SeriesTable} table the metric's
 * @param {any[]} args of labels(): one object of labels, or all values in the order of `labelNames`
 * @returns {number} the row; -1 if there is none yet; OTHER_ORDER if handleOf() has to look at `args`
 */
function rowOfArguments({ labelNames }, { index }, args) {
  if (index === undefined) return OTHER_ORDER;
  return typeof args[0] === 'object'
    ? index.findInOrder(labelNames, args[0])
    : index.findByPosition(labelNames, args);
}

/**
 * The cached child of a row that rowOfArguments() has just found.
 *
 * @template {Metric} M
 * @template {object} C
 * @param {M} metric
 * @param {SeriesTable} table the metric's
 * @param {number} row
 * @param {(metric: M, handle: SeriesHandle) => C} create
 * @returns {C} of which the caller has to copy the methods
 */
function cachedChild(metric, table, row, create) {
  const index = /** @type {import('../series/label-index').LabelIndex} */ (table.index);
  const cached = index.children;
  // A child that is bound to the overflow series is counted once, but each call of labels() has to be. So a
  // metric that is full gets new children.
  const isFull = table.liveCount >= table.fullAt;
  const isCached = cached?.metric === metric && cached.numbers[row] === index.numbers && !isFull;
  return isCached ? cached.children[row] : cacheChild(metric, table, row, create);
}

/**
 * @template {Metric} M
 * @template {object} C
 * @param {M} metric
 * @param {SeriesTable} table
 * @param {number} row
 * @param {(metric: M, handle: SeriesHandle) => C} create
 * @returns {C}
 */
function cacheChild(metric, table, row, create) {
  const index = /** @type {import('../series/label-index').LabelIndex} */ (table.index);
  const child = create(metric, new SeriesHandle(table, index.foundValues(), row));
  const cached = (index.children ??= { metric, children: [], numbers: [] });
  // An object that has the metric as its prototype may have methods of its own, which its children call.
  if (cached.metric === metric) {
    cached.children[row] = child;
    cached.numbers[row] = index.numbers;
  }
  return child;
}

/**
 * A handle for a child.
 *
 * @param {Metric} metric
 * @param {SeriesTable} table the metric's
 * @param {any[]} args of labels()
 * @param {number} row that rowOfArguments() has just returned
 * @param {boolean} checksNames whether the type refuses unknown labels here; otherwise they are refused at
 *   the first use
 * @returns {SeriesHandle}
 * @throws {Error} if the number of values does not fit, or a label that is checked is not one of `labelNames`
 */
function handleOf(metric, table, args, row, checksNames) {
  if (row !== OTHER_ORDER && typeof args[0] !== 'object') return new SeriesHandle(table, args, row);
  const { index } = table;
  if (row >= 0 && index !== undefined) return new SeriesHandle(table, index.foundValues(), row);
  return new SeriesHandle(table, labelSetOf(metric, args, checksNames));
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

module.exports = { MOST_CACHED, rowOfArguments, cachedChild, handleOf, bind, callReplaced };
