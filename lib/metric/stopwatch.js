'use strict';

// The timers of startTimer().

const { mergedLabels } = require('./label-sets');

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
 * @param {(labels: Labels, seconds: number) => void} record takes them with those of the end, which win
 * @returns {(labels?: Labels) => number} records the seconds since the start, and returns them
 */
function timer(labels, record) {
  const elapsed = stopwatch();
  return endLabels => {
    const seconds = elapsed();
    record(mergedLabels(labels, endLabels), seconds);
    return seconds;
  };
}

module.exports = { stopwatch, timer };
