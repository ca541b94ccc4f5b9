'use strict';

const { median } = require('../shared/statistics.js');

const CONFIDENCE = 0.95;

/**
 * @typedef {object} Interval
 * @property {number} median
 * @property {number} low
 * @property {number} high
 * @property {number} confidence that the median of all there could be lies between the two; at least 0.95 from six
 *   values on
 */

/**
 * Where the median lies, whatever the values are distributed like: that of so many more values is below the smallest of
 * n with a chance of 2^-n only, and so on for the next ones (the sign test's interval).
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

/** Of so many heads of a coin in so many throws, or fewer. */
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
