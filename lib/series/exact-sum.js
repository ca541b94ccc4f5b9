'use strict';

// Sums with their rounding error. A plain sum of floats may change by one ulp if workers are added in another
// order, or when a dead worker is added to the retired totals. In a measurement, that made 5.9 % of float
// counters fall, and Prometheus treats a falling counter as a reset.
//
// Each sum is a pair: the rounded sum and its error (D. E. Knuth, TAOCP vol. 2, 4.2.2, theorem B: "two-sum").

/**
 * Adds a number to a pair.
 *
 * @param {Float64Array} sums
 * @param {Float64Array} errors
 * @param {number} at
 * @param {number} value
 */
function addTo(sums, errors, at, value) {
  const before = sums[at];
  const sum = before + value;
  sums[at] = sum;
  errors[at] += roundingError(before, value, sum);
}

/**
 * @param {number} before
 * @param {number} value
 * @param {number} sum of both, as rounded
 * @returns {number} the rounding error
 */
function roundingError(before, value, sum) {
  const part = sum - before;
  return before - (sum - part) + (value - part);
}

/**
 * The number closest to a pair. The error of an infinity computes to NaN, so an infinity is returned
 * unchanged.
 *
 * @param {number} sum
 * @param {number} error
 * @returns {number}
 */
function rounded(sum, error) {
  const value = sum + error;
  return Number.isNaN(value) ? sum : value;
}

module.exports = { addTo, roundingError, rounded };
