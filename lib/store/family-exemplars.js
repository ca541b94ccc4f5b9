'use strict';

// Runs with the aggregator. Reads the newest exemplar of each row and column of a family.

const { columnMap, widthOf } = require('../series/layouts');
const { debug } = require('../options/debug-log');

/** The default of `nativeHistogramMaxExemplars`. */
const MOST_OF_ROW = 10;

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
  for (const source of sources) {
    const columnOf = columnMap(source.definition.layout, marks);
    for (const { row, column, exemplar } of exemplarsIn(source)) {
      if (columnOf[column] === undefined) continue;
      const position = row * width + columnOf[column];
      const other = newest.get(position);
      if (other === undefined || other.timestamp < exemplar.timestamp) newest.set(position, exemplar);
    }
  }
  return newest;
}

/**
 * Reads the exemplars of sparse buckets, which are in columns after those of the layout. They are collected
 * at the first call.
 *
 * @param {readonly Source[]} all of a family
 * @returns {(row: number) => Exemplar[]} the newest ones of a row, oldest first: at most MOST_OF_ROW, or as
 *   many as the source with most of them has
 */
function nativeExemplarReader(all) {
  const sources = all.filter(({ extras }) => extras.exemplars !== undefined);
  /** @type {Map<number, Exemplar[]> | undefined} */
  let byRow;
  return row => (byRow ??= nativeExemplars(sources)).get(row) ?? [];
}

/**
 * @param {readonly Source[]} sources
 * @returns {Map<number, Exemplar[]>} by row
 */
function nativeExemplars(sources) {
  /** @type {Map<number, {exemplars: Exemplar[], most: number}>} */
  const found = new Map();
  for (const source of sources) {
    const width = widthOf(source.definition.layout);
    /** @type {Map<number, number>} */
    const counts = new Map();
    for (const { row, column, exemplar } of exemplarsIn(source)) {
      if (column < width) continue;
      let ofRow = found.get(row);
      if (ofRow === undefined) found.set(row, (ofRow = { exemplars: [], most: MOST_OF_ROW }));
      ofRow.exemplars.push(exemplar);
      const count = (counts.get(row) ?? 0) + 1;
      counts.set(row, count);
      ofRow.most = Math.max(ofRow.most, count);
    }
  }
  return new Map(
    Array.from(found, ([row, { exemplars, most }]) => [
      row,
      exemplars.sort((a, b) => a.timestamp - b.timestamp).slice(-most),
    ]),
  );
}

/**
 * @param {Source} source
 * @returns {Generator<import('../source/exemplars').PlacedExemplar>} by the family's rows
 */
function* exemplarsIn({ extras, rows, rowCount, order }) {
  const live = order === undefined ? undefined : new Set(order);
  for (const { row, column, exemplar } of readable(extras)) {
    if (row >= rowCount) continue;
    // The exemplars of a removed series stay until its row is used again.
    if (live !== undefined && !live.has(row)) continue;
    yield { row: rows.rows[row], column, exemplar };
  }
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

module.exports = { exemplarReader, nativeExemplarReader };
