'use strict';

// Runs with the aggregator. Reads the newest exemplar of each row and column of a family.

const { columnMap, kindOf, widthOf } = require('../series/layouts');
const { debug } = require('../options/debug-log');

/** The default of `nativeHistogramMaxExemplars`. */
const MOST_OF_ROW = 10;

/** @typedef {import('./cluster-family').Source} Source */
/** @typedef {import('../metric/exemplar').Exemplar} Exemplar */

/**
 * Reads the exemplars of a family. They are collected at the first call, because Prometheus text has none.
 *
 * @param {readonly Source[]} all
 * @param {import('../series/layouts').Layout} layout the family's
 * @returns {{exemplarAt?: (row: number, column: number) => Exemplar | undefined,
 *   nativeExemplarsAt?: (row: number) => Exemplar[]}} `exemplarAt`: the newest one of a row and column;
 *   undefined if there are none. `nativeExemplarsAt`: the newest ones of the sparse buckets of a row, oldest
 *   first: at most MOST_OF_ROW, or as many as the source with most of them has; undefined if there are no
 *   such buckets
 */
function exemplarReaders(all, layout) {
  const sources = all.filter(({ extras }) => extras.exemplars !== undefined);
  const width = widthOf(layout);
  /** @type {ReturnType<typeof collected> | undefined} */
  let found;
  const collect = () => (found ??= collected(sources, layout.marks, width));
  return {
    exemplarAt:
      sources.length === 0 ? undefined : (row, column) => collect().newest.get(row * width + column),
    nativeExemplarsAt: kindOf(layout).hasBuckets ? row => newestOf(collect().ofRows.get(row)) : undefined,
  };
}

/** @typedef {{exemplars: Exemplar[], most: number}} NativeExemplars of the sparse buckets of a row */

/** @param {NativeExemplars} [ofRow] */
function newestOf({ exemplars, most } = { exemplars: [], most: 0 }) {
  return exemplars.sort((a, b) => a.timestamp - b.timestamp).slice(-most);
}

/**
 * @param {readonly Source[]} sources
 * @param {readonly number[]} marks the family's
 * @param {number} width
 */
function collected(sources, marks, width) {
  /** @type {Map<number, Exemplar>} by row and column */
  const newest = new Map();
  /** @type {Map<number, NativeExemplars>} by row */
  const ofRows = new Map();
  for (const source of sources) {
    const columnOf = columnMap(source.definition.layout, marks);
    /** @type {Map<number, number>} by row */
    const counts = new Map();
    for (const { row, column, exemplar } of exemplarsIn(source)) {
      if (column < columnOf.length) {
        const position = row * width + columnOf[column];
        const other = newest.get(position);
        if (other === undefined || other.timestamp < exemplar.timestamp) newest.set(position, exemplar);
        continue;
      }
      // Those of sparse buckets are in columns after those of the layout.
      let ofRow = ofRows.get(row);
      if (ofRow === undefined) ofRows.set(row, (ofRow = { exemplars: [], most: MOST_OF_ROW }));
      ofRow.exemplars.push(exemplar);
      const count = (counts.get(row) ?? 0) + 1;
      counts.set(row, count);
      ofRow.most = Math.max(ofRow.most, count);
    }
  }
  return { newest, ofRows };
}

/**
 * @param {Source} source
 * @returns {Generator<import('../source/exemplars').PlacedExemplar>} by the family's rows
 */
function* exemplarsIn({ extras, rows, rowCount, order }) {
  const live = order.length === rowCount ? undefined : new Set(order);
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

module.exports = { exemplarReaders };
