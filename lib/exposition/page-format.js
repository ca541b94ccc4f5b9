'use strict';

/**
 * What a page is: its text format, whether it is compressed, and which families it has.
 *
 * @typedef {object} PageFormat
 * @property {boolean} openMetrics
 * @property {boolean} gzip
 * @property {readonly string[]} [names] of the families, default all
 */

/**
 * How many selections of families a scrape writes for concurrent callers. Each is a page of its own, and any
 * client can ask for one.
 */
const MAX_SELECTIONS = 10;

const TOO_MANY_SELECTIONS = 'There are too many scrapes of different metrics at the moment.';

/**
 * @template {{name: string}} F
 * @param {F[]} families
 * @param {readonly string[] | undefined} names
 * @returns {F[]} those with one of the names; all if there are no names
 */
function selectFamilies(families, names) {
  if (names === undefined) return families;
  const selected = new Set(names);
  return families.filter(({ name }) => selected.has(name));
}

/**
 * @param {PageFormat} format
 * @returns {string} equal for pages with the same text
 */
function textKeyOf({ openMetrics, names }) {
  return JSON.stringify([openMetrics, names]);
}

module.exports = { MAX_SELECTIONS, TOO_MANY_SELECTIONS, selectFamilies, textKeyOf };
