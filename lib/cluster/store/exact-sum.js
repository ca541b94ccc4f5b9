'use strict';

// Sums that do not lose what rounding cuts off. Adding workers in another order, or folding a dead one into a total,
// otherwise moves a float counter by one ulp (5.9 % of them went down), and Prometheus takes that for a reset.
//
// Each sum is a pair: the rounded sum and what it lacks (D. E. Knuth, TAOCP vol. 2, 4.2.2, theorem B: "two-sum").

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
  const part = sum - before;
  sums[at] = sum;
  errors[at] += before - (sum - part) + (value - part);
}

/**
 * The number closest to a pair. An infinity has no error term (it computes to NaN), and stands as it is.
 *
 * @param {number} sum
 * @param {number} error
 * @returns {number}
 */
function rounded(sum, error) {
  const value = sum + error;
  return Number.isNaN(value) ? sum : value;
}

/**
 * Makes the error term small again against the sum, for pairs that live long.
 *
 * @param {Float64Array} sums
 * @param {Float64Array} errors
 * @param {number} at
 */
function normalise(sums, errors, at) {
  const sum = sums[at] + errors[at];
  if (!Number.isFinite(sum)) {
    errors[at] = 0;
    if (Number.isFinite(sums[at])) sums[at] = sum;
    return;
  }
  errors[at] -= sum - sums[at];
  sums[at] = sum;
}

module.exports = { addTo, rounded, normalise };
