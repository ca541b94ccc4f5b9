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
 * @param {readonly number[]} to `from` itself, or a union that includes it
 * @returns {number[]}
 */
function columnMap(layout, from, to) {
  if (layout !== 'histogram') return layout === 'summary' ? [0, 1] : [0];
  const columns = isSame(from, to) ? from.keys() : from.map(bound => columnOf(bound, to));
  return [...columns, to.length, to.length + 1];
}

/**
 * A binary search: a Map of all bounds, made for each worker, would take quadratic time.
 *
 * @param {number} bound
 * @param {readonly number[]} union includes it
 * @returns {number}
 */
function columnOf(bound, union) {
  if (Number.isNaN(bound)) return union.length - 1;
  let [low, high] = [0, union.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (union[middle] < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * @param {readonly (readonly number[])[]} lists of bounds or quantiles
 * @returns {number[]} the first list if all are equal, else all of their numbers once, in ascending order
 */
function unionOf(lists) {
  const first = lists[0] ?? [];
  if (lists.every(list => isSame(list, first))) return [...first];
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const list of lists) {
    all.set(list, end);
    end += list.length;
  }
  // NaN, which prom-client accepts as a bound, comes last.
  all.sort();
  /** @type {number[]} */
  const union = [];
  for (const number of all) {
    if (union.length === 0 || !isEqual(number, union[union.length - 1])) union.push(number);
  }
  return union;
}

/**
 * @param {number} left
 * @param {number} right
 */
function isEqual(left, right) {
  return left === right || (Number.isNaN(left) && Number.isNaN(right));
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
