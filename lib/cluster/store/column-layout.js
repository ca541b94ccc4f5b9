'use strict';

// The numbers of a row, by layout, and how rows with different bounds are combined.
//
//   value      [value]
//   histogram  [count per bound, not cumulative ..., count above the last bound, sum]
//   summary    [sum, count]

/**
 * @param {string} layout
 * @param {number} boundCount number of bounds; not used for a summary
 * @returns {number} numbers per row
 */
function widthOf(layout, boundCount) {
  if (layout === 'histogram') return boundCount + 2;
  return layout === 'summary' ? 2 : 1;
}

/**
 * Maps each column to a layout with more bounds. Counts are not cumulative, so a bound that a worker does not
 * have gets no count of its own; its cumulative count is that of the worker's next lower bound.
 *
 * @param {string} layout
 * @param {readonly number[]} from
 * @param {readonly number[]} to includes all of `from`
 * @returns {number[]}
 */
function columnMap(layout, from, to) {
  if (layout !== 'histogram') return layout === 'summary' ? [0, 1] : [0];
  // A Map also finds NaN, which prom-client accepts as a bound.
  const columns = new Map(to.map((bound, column) => [bound, column]));
  return [...from.map(bound => columns.get(bound) ?? -1), to.length, to.length + 1];
}

/**
 * @param {readonly (readonly number[])[]} lists of bounds or quantiles
 * @returns {number[]} the first list if all are equal, else all of their numbers, sorted
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
 * Combines two values by a rule. All rules but min and max add them.
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
