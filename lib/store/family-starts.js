'use strict';

// Runs with the aggregator. Finds when the rows of a family started to count: the start of the oldest number
// in each sum. So a start does not become later as long as that number is part of the sum.

const { UNKNOWN, startOf } = require('../series/row-starts');

/**
 * @param {import('./cluster-family').Source[]} sources whose rows are translated
 * @param {number} rowCount of the family
 * @returns {Float64Array} by row of the family, seconds since 1970; UNKNOWN if that of any source is
 */
function oldestStarts(sources, rowCount) {
  const counting = sources.filter(({ starts }) => starts !== undefined);
  const oldest = new Float64Array(counting.length === 0 ? 0 : rowCount).fill(Infinity);
  for (const source of counting) {
    const { starts = UNKNOWN, order, rowCount } = source;
    const { rows } = source.rows;
    const count = order === undefined ? rowCount : order.length;
    for (let i = 0; i < count; i++) {
      const row = order === undefined ? i : order[i];
      oldest[rows[row]] = Math.min(oldest[rows[row]], startOf(starts, row));
    }
  }
  return oldest;
}

module.exports = { oldestStarts };
