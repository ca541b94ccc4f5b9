'use strict';

// Runs with the aggregator. When the rows of a family began to count: as early as the oldest number in their
// sums, so it does not become later as long as that number is in them.

const { startOf } = require('../series/row-starts');
const { liveRows } = require('./source-rows');

/**
 * @param {import('./cluster-family').Source[]} sources whose rows are translated
 * @param {number} rowCount of the family
 * @returns {Float64Array} by row of the family, seconds since 1970; UNKNOWN if that of one source is
 */
function oldestStarts(sources, rowCount) {
  const counting = sources.filter(({ starts }) => starts !== undefined);
  const oldest = new Float64Array(counting.length === 0 ? 0 : rowCount).fill(Infinity);
  for (const source of counting) {
    const starts = source.starts ?? 0;
    const { rows } = source.rows;
    for (const row of liveRows(source)) oldest[rows[row]] = Math.min(oldest[rows[row]], startOf(starts, row));
  }
  return oldest;
}

module.exports = { oldestStarts };
