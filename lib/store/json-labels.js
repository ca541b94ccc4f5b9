'use strict';

// Reads the label sets and exemplars of a metric in prom-client's JSON, which may contain anything.

const { isValidLabelName } = require('../registry/names');
const { beginningOf } = require('../options/thrown');

// Far more than a metric needs. Each name takes some 300 bytes.
const MAX_LABEL_NAMES = 10_000;
const MAX_LABELS_OF_SAMPLE = 1000;

// Maximum length of a metric's or label's name, because each sample of a page repeats them.
const MAX_NAME_CHARACTERS = 10_000;

// A message may have a list of billions of holes.
const MAX_LENGTH = 2 ** 25;

/** @typedef {import('./row-map').LabelSets} LabelSets */

/**
 * Numbers label sets in the order in which they first appear.
 *
 * @implements {LabelSets}
 */
class RowsByLabels {
  /** @type {Map<string, number>} */
  #rows = new Map();
  /** @type {Map<string, number>} by name */
  #positions = new Map();
  /** @type {string[][]} by position: the value of each row that has that label, in their order */
  #values = [];
  /** @type {Map<number, number>[]} by row: the integers of its values by position, in the row's order */
  #sets = [];
  /** @type {string[]} */
  labelNames = [];

  /**
   * @param {Record<string, unknown>} labels
   * @param {string} [except]
   */
  rowOf(labels, except) {
    const names = Object.keys(labels ?? {}).filter(name => name !== except && labels[name] !== undefined);
    if (names.length > MAX_LABELS_OF_SAMPLE) throw new RangeError(`a sample with ${names.length} labels`);
    for (const name of names) this.#check(name);
    const pairs = names.map(name => [name, String(labels[name])]);
    const key = JSON.stringify([...pairs].sort(([a], [b]) => (a < b ? -1 : 1)));
    let row = this.#rows.get(key);
    if (row === undefined) {
      const set = pairs.map(([name, value]) => {
        const position = /** @type {number} */ (this.#positions.get(name));
        return /** @type {const} */ ([position, this.#values[position].push(value) - 1]);
      });
      row = this.#sets.push(new Map(set)) - 1;
      this.#rows.set(key, row);
    }
    return row;
  }

  /** How many label sets there are. */
  get count() {
    return this.#sets.length;
  }

  /** @param {number} row */
  positionsOf(row) {
    return [...this.#sets[row].keys()];
  }

  /**
   * @param {number} row
   * @param {number} position
   */
  idAt(row, position) {
    return this.#sets[row].get(position) ?? 0;
  }

  /** @param {number} position */
  valuesOf(position) {
    return this.#values[position];
  }

  /** @param {string} name */
  #check(name) {
    if (this.#positions.has(name)) return;
    if (name.length > MAX_NAME_CHARACTERS || !isValidLabelName(name))
      throw new TypeError(`not a valid label name: ${beginningOf(name)}`);
    if (this.labelNames.length === MAX_LABEL_NAMES)
      throw new RangeError(`more than ${MAX_LABEL_NAMES} label names`);
    this.#positions.set(name, this.labelNames.push(name) - 1);
    this.#values.push(['']);
  }
}

/**
 * @param {number} row
 * @param {number} column
 * @param {any} exemplar in JSON
 * @returns {import('../source/exemplars').PlacedExemplar[]} empty if it is not complete
 */
function placedExemplar(row, column, exemplar) {
  const { labelSet, value, timestamp } = exemplar ?? {};
  if (!isObject(labelSet) || typeof value !== 'number' || typeof timestamp !== 'number') return [];
  const labels = Object.entries(labelSet).map(([name, text]) => [name, String(text)]);
  if (!labels.every(([name]) => isValidLabelName(name))) return [];
  return [{ row, column, exemplar: { labelSet: Object.fromEntries(labels), value, timestamp } }];
}

/**
 * @param {any} value
 * @returns {boolean}
 */
function isObject(value) {
  return typeof value === 'object' && value !== null;
}

/**
 * @param {unknown} value
 * @returns {value is any[]} whether it is a list that can be read
 */
function isList(value) {
  return Array.isArray(value) && value.length <= MAX_LENGTH;
}

module.exports = { RowsByLabels, placedExemplar, isObject, isList, MAX_NAME_CHARACTERS };
