'use strict';

// The property `hashMap` of prom-client's metrics: a plain object of their series, keyed by concatenated
// labels. Here it is built on access, and nothing is stored in it.

/** The method of a metric that makes the entry of one row. */
const SERIES = Symbol('series');

/**
 * prom-client's key of a label set. Two sets whose values hold separators may share one.
 *
 * @param {Record<string, unknown>} labels
 * @param {readonly string[]} [names] which labels, in which order; default all, by name
 * @returns {string} `name:value,` for each label that is not undefined
 */
function hashObject(labels, names = Object.keys(labels).sort()) {
  return names
    .filter(name => labels[name] !== undefined)
    .map(name => `${name}:${labels[name]},`)
    .join('');
}

/**
 * @param {import('../series/series-table').SeriesTable} table
 * @param {(row: number, labels: Record<string, unknown>) => object} seriesOf
 * @returns {Record<string, object>}
 */
function hashMapOf(table, seriesOf) {
  /** @type {Record<string, object>} */
  const map = {};
  for (const row of table.liveRows()) {
    const labels = table.labelsOf(row);
    map[hashObject(labels)] = seriesOf(row, labels);
  }
  return map;
}

module.exports = { hashObject, hashMapOf, SERIES };
