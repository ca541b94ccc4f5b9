'use strict';

// Runs with the aggregator. Reads the newest exemplar of each row and column of a family.

const { UNMAPPED } = require('./row-map');
const { columnMap } = require('../series/layouts');
const { debug } = require('../options/debug-log');

/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('../metric/exemplar').Exemplar} Exemplar */

/**
 * Reads the newest exemplar of each row and column. They are collected at the first call, because only
 * OpenMetrics shows exemplars.
 *
 * @param {readonly Source[]} all
 * @param {readonly number[]} marks the family's
 * @param {number} width numbers per row of the family
 * @returns {((row: number, column: number) => Exemplar | undefined) | undefined} undefined if there are none
 */
function exemplarReader(all, marks, width) {
  const sources = all.filter(({ extras }) => extras.exemplars !== undefined);
  if (sources.length === 0) return undefined;
  /** @type {Map<number, Exemplar> | undefined} */
  let newest;
  return (row, column) => {
    newest ??= newestExemplars(sources, marks, width);
    return newest.get(row * width + column);
  };
}

/**
 * @param {readonly Source[]} sources
 * @param {readonly number[]} marks the family's
 * @param {number} width
 */
function newestExemplars(sources, marks, width) {
  /** @type {Map<number, Exemplar>} by row and column */
  const newest = new Map();
  for (const { definition, extras, rows, rowCount, order } of sources) {
    const live = order === undefined ? undefined : new Set(order);
    const columnOf = columnMap(definition.layout, marks);
    for (const { row, column, exemplar } of readable(extras)) {
      if (row >= rowCount || rows.rows[row] === UNMAPPED || columnOf[column] === undefined) continue;
      // The exemplars of a removed series stay until its row is used again.
      if (live !== undefined && !live.has(row)) continue;
      const position = rows.rows[row] * width + columnOf[column];
      const other = newest.get(position);
      if (other === undefined || other.timestamp < exemplar.timestamp) newest.set(position, exemplar);
    }
  }
  return newest;
}

/**
 * Exemplars that cannot be read are left out; the rest of the page is not affected.
 *
 * @param {Source['extras']} extras
 */
function readable({ exemplars }) {
  try {
    return exemplars?.() ?? [];
  } catch (error) {
    debug('exemplars cannot be read: %s', error);
    return [];
  }
}

module.exports = { exemplarReader };
