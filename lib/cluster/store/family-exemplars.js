'use strict';

const { debuglog } = require('node:util');
const { UNMAPPED } = require('./row-map');
const { columnMap } = require('./column-layout');

const debug = debuglog('prom-client-cluster');

/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('../../metric/exemplar').Exemplar} Exemplar */

/**
 * The newest exemplar of each place, put together when the first is asked for: only OpenMetrics shows them.
 *
 * @param {readonly Source[]} all
 * @param {readonly number[]} marks the family's bounds
 * @param {number} width numbers a row of the family
 * @returns {((row: number, column: number) => Exemplar | undefined) | undefined} undefined where there are none
 */
function exemplarReader(all, marks, width) {
  const sources = all.filter(({ exemplars }) => exemplars !== undefined);
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
 * @param {readonly number[]} marks
 * @param {number} width
 */
function newestExemplars(sources, marks, width) {
  /** @type {Map<number, Exemplar>} by row and column */
  const newest = new Map();
  for (const { definition, exemplars, rows, rowCount, order } of sources) {
    const live = order === undefined ? undefined : new Set(order);
    const columnOf = columnMap(definition.layout, definition.marks, marks);
    for (const { row, column, exemplar } of readable(exemplars)) {
      if (row >= rowCount || rows.rows[row] === UNMAPPED || columnOf[column] === undefined) continue;
      // A removed series leaves its exemplars behind until its row is used again.
      if (live !== undefined && !live.has(row)) continue;
      const place = rows.rows[row] * width + columnOf[column];
      const known = newest.get(place);
      if (known === undefined || known.timestamp < exemplar.timestamp) newest.set(place, exemplar);
    }
  }
  return newest;
}

/**
 * Exemplars are read when they are shown. Those that cannot be read cost nothing but themselves.
 *
 * @param {Source['exemplars']} exemplars
 */
function readable(exemplars) {
  try {
    return exemplars?.() ?? [];
  } catch (error) {
    debug('exemplars cannot be read: %s', error);
    return [];
  }
}

module.exports = { exemplarReader };
