'use strict';

// Which number of a row is what, and how rows of different bounds fit each other.
//
//   value      [value]
//   histogram  [count per bound, not cumulative ..., count above the last bound, sum]
//   summary    [sum, count]

/**
 * @param {string} layout
 * @param {number} marks how many bounds or quantiles
 * @returns {number} numbers a row
 */
function widthOf(layout, marks) {
  if (layout === 'histogram') return marks + 2;
  return layout === 'summary' ? 2 : 1;
}

/**
 * Which column of a layout with more bounds each column goes to. Counts are not cumulative, so a bound that a worker
 * does not have gets nothing, and cumulates to what the worker has at its next lower one.
 *
 * @param {string} layout
 * @param {readonly number[]} from
 * @param {readonly number[]} to which has all of them
 * @returns {number[]}
 */
function columnMap(layout, from, to) {
  if (layout !== 'histogram') return layout === 'summary' ? [0, 1] : [0];
  // Not indexOf(): prom-client takes NaN for a bound as well.
  return [...from.map(bound => to.findIndex(other => Object.is(other, bound))), to.length, to.length + 1];
}

/**
 * @param {readonly (readonly number[])[]} lists of bounds or quantiles
 * @returns {number[]} the first list where all are the same, else all of their numbers, sorted
 */
function unionOf(lists) {
  const first = lists[0] ?? [];
  if (lists.every(list => isSame(list, first))) return [...first];
  return [...new Set(lists.flat())].sort((a, b) => a - b);
}

/**
 * @param {readonly number[]} left
 * @param {readonly number[]} right
 */
function isSame(left, right) {
  return left.length === right.length && left.every((number, i) => Object.is(number, right[i]));
}

/**
 * Two values as one by a rule; those that are not min or max add up.
 *
 * @param {string} rule
 * @param {number} left
 * @param {number} right
 */
function combined(rule, left, right) {
  if (rule === 'min') return Math.min(left, right);
  if (rule === 'max') return Math.max(left, right);
  return left + right;
}

module.exports = { combined, widthOf, columnMap, unionOf, isSame };
