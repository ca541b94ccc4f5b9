'use strict';

// The timers of startTimer().

const { inspect } = require('util');
const { NO_LABELS, labelSetOf, mergedLabels, checkLabelSet } = require('./label-sets');
const { invalidOption } = require('../options/coded-error');

/** Missing in runtimes that are older than `using`, where an unused symbol takes its place. */
const DISPOSE = Symbol.dispose ?? Symbol('dispose');

/** @typedef {import('./label-sets').Labels} Labels */

/**
 * Starts measuring time. The clock is looked up at each call, so that tests with fake timers see theirs.
 *
 * @returns {() => number} the seconds since
 */
function stopwatch() {
  const start = process.hrtime();
  return () => {
    const [seconds, nanoseconds] = process.hrtime(start);
    return seconds + nanoseconds / 1e9;
  };
}

/**
 * A running timer.
 *
 * @param {Labels | undefined} labels of the start
 * @param {(labels: Labels, seconds: number, exemplarLabels?: Labels) => void} record takes them with those of
 *   the end, which win
 * @returns {(labels?: Labels, exemplarLabels?: Labels) => number} records the seconds since the start, and
 *   returns them. `using` ends a timer that has not been ended
 */
function timer(labels, record) {
  const elapsed = stopwatch();
  let isRunning = true;
  /** @type {any} */
  const end = (/** @type {Labels} */ endLabels, /** @type {Labels} */ exemplarLabels) => {
    const seconds = elapsed();
    isRunning = false;
    record(mergedLabels(labels, endLabels), seconds, exemplarLabels);
    return seconds;
  };
  end[DISPOSE] = () => {
    if (isRunning) end();
  };
  return end;
}

/**
 * Calls a function, and another one when it has ended: returned or thrown or, if it returns a promise, when
 * that is settled.
 *
 * @param {() => any} call
 * @param {() => void} onEnd
 * @returns {any} what the function returns; a promise of the same result if it returns a promise
 */
function callAndThen(call, onEnd) {
  let result;
  try {
    result = call();
  } catch (error) {
    onEnd();
    throw error;
  }
  if (!isThenable(result)) {
    onEnd();
    return result;
  }
  return Promise.resolve(result).finally(onEnd);
}

/** @param {any} result possibly one that throws, as a Proxy may: it is returned as it is */
function isThenable(result) {
  try {
    return typeof result?.then === 'function';
  } catch {
    return false;
  }
}

/**
 * The arguments of a method that takes labels, which may be left out, and a function.
 *
 * @param {{labelNames: readonly string[]}} metric
 * @param {string} method
 * @param {unknown} labels
 * @param {unknown} call
 * @returns {{labels: Labels, call: () => any}} a copy of the labels
 * @throws {TypeError} if there is no function, or the labels are not an object
 * @throws {Error} if a label is not one of `labelNames`
 */
function labelsAndCall(metric, method, labels, call) {
  if (typeof labels === 'function') [labels, call] = [undefined, labels];
  if (typeof call !== 'function') throw invalidOption(`${method}() expected a function: ${inspect(call)}`);
  if (labels != null) checkLabelSet(method, labels);
  // Before the call, because after it its result would be lost.
  const labelSet = labelSetOf(metric, [labels ?? NO_LABELS]);
  return { labels: labelSet, call: /** @type {() => any} */ (call) };
}

/**
 * The method `time()` of histograms and summaries.
 *
 * @param {{labelNames: readonly string[], startTimer: (labels?: Labels) => () => number}} metric
 * @param {unknown} labels or the function
 * @param {unknown} call
 * @returns {any} what the function returns
 */
function timeCall(metric, labels, call) {
  const given = labelsAndCall(metric, 'time', labels, call);
  const end = metric.startTimer(given.labels);
  return callAndThen(given.call, () => void end());
}

module.exports = { stopwatch, timer, timeCall, callAndThen, labelsAndCall };
