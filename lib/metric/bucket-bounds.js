'use strict';

// The upper bounds of a histogram's buckets.

const { checkArray, isNumeric } = require('./metric-options');

/** @type {readonly number[]} */
const DEFAULT_BUCKETS = Object.freeze([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]);

// Up to here a linear search beats a binary one: most observations fall into one of the first buckets.
const LINEAR_SEARCH_BOUNDS = 24;

// Shared by all histograms that have them.
const defaultColumnOf = newColumnFinder(DEFAULT_BUCKETS);

/**
 * A sorted copy, because the program may change its array; the default bounds are shared. Infinity is left
 * out: every histogram has that bucket.
 *
 * @param {readonly number[]} buckets numeric strings are bounds, too
 * @param {(buckets: readonly unknown[]) => void} onLeftOut called if a bound is left out because it is not a
 *   number
 * @returns {readonly number[]}
 * @throws {TypeError} if it is not an array
 */
function boundsOf(buckets, onLeftOut) {
  if (buckets === DEFAULT_BUCKETS) return DEFAULT_BUCKETS;
  checkArray('buckets', buckets);
  const bounds = buckets.filter(isNumeric);
  if (bounds.length < buckets.length) onLeftOut(buckets);
  return Object.freeze(bounds.filter(bound => bound !== Infinity).sort((a, b) => Number(a) - Number(b)));
}

/**
 * @param {readonly number[]} bounds in rising order
 * @returns {(value: number) => number} the number of the first bound that is not below a value, or how many
 *   there are
 */
function columnFinder(bounds) {
  return bounds === DEFAULT_BUCKETS ? defaultColumnOf : newColumnFinder(bounds);
}

/**
 * @param {readonly number[]} bounds
 * @returns {(value: number) => number}
 */
function newColumnFinder(bounds) {
  const limits = Float64Array.from(bounds, Number);
  const count = limits.length;
  if (count <= LINEAR_SEARCH_BOUNDS) {
    return value => {
      let column = 0;
      while (column < count && !(value <= limits[column])) column++;
      return column;
    };
  }
  return value => {
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value <= limits[middle]) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

module.exports = { DEFAULT_BUCKETS, boundsOf, columnFinder };
