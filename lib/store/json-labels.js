'use strict';

// Reads the label sets and exemplars of a metric in prom-client's JSON, which may contain anything.

const { isValidLabelName } = require('../registry/names');
const { beginningOf } = require('../options/thrown');
const { SnapshotError } = require('../source/byte-buffers');

// Far more than a metric needs. Each name takes some 300 bytes.
const MAX_LABEL_NAMES = 10_000;
const MAX_LABELS_OF_SAMPLE = 1000;

// Maximum length of a metric's or label's name, because each sample of a page repeats them.
const MAX_NAME_CHARACTERS = 10_000;

// Maximum number of metrics, samples and labels in one answer. Reading this many takes seconds.
const MAX_PARTS = 2 ** 25;

/** @typedef {import('./row-map').LabelSets} LabelSets */

/**
 * Limits the time for reading an answer. With the serialization `advanced`, a short message can contain a
 * list of billions of holes, or the same list many times.
 */
class ReadBudget {
  #left;

  /** @param {number} [bytes] of the answer: a long one may have more parts */
  constructor(bytes = 0) {
    this.#left = Math.max(MAX_PARTS, bytes);
  }

  /**
   * @param {number} parts to be read next
   * @throws {SnapshotError} if there are too many, and in each later call
   */
  spend(parts) {
    this.#left -= parts;
    if (this.#left < 0) throw new SnapshotError('length', 'too many metrics, samples and labels');
  }
}

/**
 * Numbers label sets in the order in which they first appear.
 *
 * @implements {LabelSets}
 */
class RowsByLabels {
  #budget;
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

  /** @param {ReadBudget} budget */
  constructor(budget) {
    this.#budget = budget;
  }

  /**
   * @param {Record<string, unknown>} labels
   * @param {string} [except]
   */
  rowOf(labels, except) {
    const names = Object.keys(labels ?? {}).filter(name => name !== except && labels[name] !== undefined);
    this.#budget.spend(names.length);
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

/** Collects the complete exemplars of a metric in JSON. */
class PlacedExemplars {
  /** @type {import('../source/exemplars').PlacedExemplar[]} */
  #list = [];

  /**
   * @param {number} row
   * @param {number} column
   * @param {any} exemplar
   */
  add(row, column, exemplar) {
    if (!isObject(exemplar) || !isObject(exemplar.labelSet) || isIndexed(exemplar.labelSet)) return;
    const { value, timestamp } = exemplar;
    if (typeof value !== 'number' || typeof timestamp !== 'number') return;
    const labels = Object.entries(exemplar.labelSet).map(([name, text]) => [name, String(text)]);
    if (!labels.every(([name]) => isValidLabelName(name)))
      throw new TypeError('exemplar with an invalid label');
    this.#list.push({ row, column, exemplar: { labelSet: Object.fromEntries(labels), value, timestamp } });
  }

  get reader() {
    const list = this.#list;
    return list.length === 0 ? undefined : () => list;
  }
}

/**
 * @param {any} value
 * @returns {boolean}
 */
function isObject(value) {
  return typeof value === 'object' && value !== null;
}

/**
 * Whether it is a text or a list instead of an object with labels: such a value may have millions of keys.
 *
 * @param {unknown} labels
 */
function isIndexed(labels) {
  return Object.hasOwn(Object(labels ?? {}), '0');
}

module.exports = { ReadBudget, RowsByLabels, PlacedExemplars, isObject, isIndexed, MAX_NAME_CHARACTERS };
