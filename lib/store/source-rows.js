'use strict';

// The rows of a source, and where their numbers are.

const { pageMaskOf } = require('../series/number-pages');

/** @typedef {import('./cluster-family').Source} Source */

/**
 * Consecutive rows whose numbers are in one page: positions `from` to `to` in the source's order or, without
 * an order, rows `from` to `to`. `first` is the first row of the page.
 *
 * @typedef {{columns: Float64Array, first: number, from: number, to: number}} Stretch
 */

/**
 * @param {Pick<Source, 'order' | 'rowCount' | 'pages' | 'pageShift'>} source
 * @returns {Generator<Stretch>} all of its live rows, in order
 */
function* stretchesOf({ order, rowCount, pages, pageShift }) {
  const count = order === undefined ? rowCount : order.length;
  if (pages.length === 1) {
    yield { columns: pages[0], first: 0, from: 0, to: count };
    return;
  }
  for (let from = 0, to = 0; from < count; from = to) {
    const page = (order === undefined ? from : order[from]) >> pageShift;
    const first = page << pageShift;
    if (order === undefined) to = Math.min(first + pageMaskOf(pageShift) + 1, count);
    else while (to < count && order[to] >> pageShift === page) to++;
    yield { columns: pages[page], first, from, to };
  }
}

/**
 * @param {Pick<Source, 'order' | 'rowCount'>} source
 * @returns {Generator<number>}
 */
function* liveRows({ order, rowCount }) {
  if (order !== undefined) yield* order;
  else for (let row = 0; row < rowCount; row++) yield row;
}

module.exports = { stretchesOf, liveRows };
