'use strict';

const { median } = require('../shared/statistics.js');

const CONFIDENCE = 0.95;

/**
 * @typedef {object} Interval
 * @property {number} median
 * @property {number} low
 * @property {number} high
 * @property {number} confidence probability that the true median is in the interval; at least 0.95 from six
 *   values on
 */

/**
 * A confidence interval of the median for any distribution: the true median is below the smallest of n values
 * with a probability of 2^-n, and so on for the next ones (the interval of the sign test).
 *
 * @param {number[]} values at least one, independent of each other
 * @returns {Interval}
 */
function intervalOfMedian(values) {
  const sorted = Float64Array.from(values).sort();
  const count = sorted.length;
  let confidence = 1 - 2 * chanceOfAtMost(0, count);
  let left = 0;
  for (;;) {
    const next = 1 - 2 * chanceOfAtMost(left + 1, count);
    if (next < CONFIDENCE) break;
    left += 1;
    confidence = next;
  }
  return { median: median(values), low: sorted[left], high: sorted[count - 1 - left], confidence };
}

/** The probability of at most that many heads in that many throws of a coin. */
function chanceOfAtMost(heads, throws) {
  let ways = 1;
  let chance = 0;
  for (let count = 0; count <= heads; count++) {
    chance += ways * 2 ** -throws;
    ways = (ways * (throws - count)) / (count + 1);
  }
  return chance;
}

module.exports = { intervalOfMedian };
