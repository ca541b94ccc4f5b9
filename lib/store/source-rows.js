'use strict';

// The rows of a source, and where their numbers are.

const { grown } = require('../series/row-array');

/** @typedef {import('./cluster-family').Source} Source */

/** All row numbers up to the largest source's. */
let numbers = new Int32Array(0);

/**
 * @param {number} rowCount
 * @returns {Int32Array} all rows; must not be changed
 */
function allRows(rowCount) {
  if (numbers.length < rowCount) numbers = grown(numbers, rowCount).map((_, row) => row);
  return numbers.subarray(0, rowCount);
}

/**
 * Consecutive rows whose numbers are in one page: positions `from` to `to` in the source's order. `first` is
 * the first row of the page.
 *
 * @typedef {{columns: Float64Array, first: number, from: number, to: number}} Stretch
 */

/**
 * @param {Pick<Source, 'order' | 'pages' | 'pageShift'>} source
 * @returns {Generator<Stretch>} all of its live rows, in order
 */
function* stretchesOf({ order, pages, pageShift }) {
  for (let from = 0, to = 0; from < order.length; from = to) {
    const page = order[from] >> pageShift;
    if (pages.length === 1) to = order.length;
    while (to < order.length && order[to] >> pageShift === page) to++;
    yield { columns: pages[page], first: page << pageShift, from, to };
  }
}

module.exports = { allRows, stretchesOf };
