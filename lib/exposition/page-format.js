'use strict';

/**
 * What a page is: its format, whether it is compressed, and which families it has.
 *
 * @typedef {object} PageFormat
 * @property {string} format its name
 * @property {string} [nativeFormat] that of a page with native histograms, default `format`
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
 * The formats for these families.
 *
 * @template {Pick<PageFormat, 'format' | 'nativeFormat'>} P
 * @param {P[]} formats
 * @param {import('./text-format').Family[]} families
 * @returns {P[]}
 */
function formatsFor(formats, families) {
  const hasNative = families.some(isNative);
  return formats.map(format => ({ ...format, format: (hasNative && format.nativeFormat) || format.format }));
}

/** @param {import('./text-format').Family} family */
function isNative({ bucketsAt }) {
  return bucketsAt !== undefined;
}

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
 * @param {Pick<PageFormat, 'format' | 'names'>} format
 * @returns {string} equal for pages with the same text
 */
function textKeyOf({ format, names }) {
  return JSON.stringify([format, names]);
}

/**
 * @param {Iterable<PageFormat>} formats of concurrent callers
 * @param {PageFormat} format of one more
 * @returns {boolean} whether they have enough selections of families without this one
 */
function hasTooManySelections(formats, format) {
  if (format.names === undefined) return false;
  const keys = new Set([...formats].filter(({ names }) => names !== undefined).map(textKeyOf));
  return keys.size >= MAX_SELECTIONS && !keys.has(textKeyOf(format));
}

module.exports = {
  TOO_MANY_SELECTIONS,
  formatsFor,
  isNative,
  hasTooManySelections,
  selectFamilies,
  textKeyOf,
};
