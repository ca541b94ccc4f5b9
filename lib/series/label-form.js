'use strict';

// The form of a label set is how the program wrote it at its first use: which labels, in which order, and the
// types of the values. It is not part of the identity of a series: {a, z} and {z, a} are one series, printed
// as first seen, and 200 stays a number in JSON. A label that is undefined is not part of the identity
// either: only the form contains it, and other processes and threads leave it out, as JSON does. Nearly every
// metric has only one form.

const { grown } = require('./row-array');

const FEWEST_ROWS = 4;
const NO_ROWS = new Int32Array(0);

/** @typedef {'string' | 'number' | 'boolean' | 'bigint' | 'null' | 'undefined'} ValueKind */

/**
 * @typedef {object} LabelForm
 * @property {number[]} positions of the labels that the set has, in the order they are printed
 * @property {ValueKind[]} kinds of their values as they were given
 */

/**
 * @param {unknown} value
 * @returns {ValueKind}
 */
function kindOf(value) {
  const type = typeof value;
  if (type === 'number' || type === 'boolean' || type === 'bigint' || type === 'undefined') return type;
  return value === null ? 'null' : 'string';
}

/**
 * A label value as it was given, from its text.
 *
 * @param {string} text
 * @param {ValueKind} kind
 */
function valueOfKind(text, kind) {
  switch (kind) {
    case 'number':
      return Number(text);
    case 'boolean':
      return text === 'true';
    case 'bigint':
      return BigInt(text);
    case 'null':
      return null;
    case 'undefined':
      return undefined;
    default:
      return text;
  }
}

/**
 * @param {readonly string[]} names
 * @param {readonly unknown[]} values of the first names, in their order
 * @returns {Record<string, any>} a label set
 */
function labelsFrom(names, values) {
  /** @type {Record<string, any>} */
  const labels = {};
  values.forEach((value, i) => setLabel(labels, names[i], value));
  return labels;
}

/**
 * @param {Record<string, unknown>} labels
 * @param {string} name
 * @param {unknown} value
 */
function setLabel(labels, name, value) {
  if (name === '__proto__') setOwn(labels, name, value);
  else labels[name] = value;
}

/**
 * Sets an own property of an object, whatever its prototypes define by that name.
 *
 * @param {object} object
 * @param {string} key
 * @param {unknown} value
 */
function setOwn(object, key, value) {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** The number of each row's form. */
class RowForms {
  /** Empty while all rows have form 0. Rows beyond its end have form 0, too. */
  #numbers = NO_ROWS;

  /** @param {number} row */
  of(row) {
    return row < this.#numbers.length ? this.#numbers[row] : 0;
  }

  /**
   * @param {number} row
   * @param {number} form
   */
  set(row, form) {
    if (form === 0 && this.#numbers === NO_ROWS) return;
    if (row >= this.#numbers.length) this.#numbers = grown(this.#numbers, Math.max(row + 1, FEWEST_ROWS));
    this.#numbers[row] = form;
  }
}

class LabelForms {
  /** @type {Map<string, number> | undefined} only once there are two */
  #byKey = undefined;

  /**
   * @param {readonly string[]} names
   * @param {Map<string, number>} positions of the names
   */
  constructor(names, positions) {
    this.names = names;
    this.positions = positions;
    /** @type {LabelForm[]} */
    this.list = [];
    /** The form of each row of the table. */
    this.rows = new RowForms();
  }

  /**
   * The number of a label set's form.
   *
   * @param {Record<string, unknown>} labels of known names
   * @returns {number}
   */
  numberOf(labels) {
    if (this.list.length > 0 && this.#fits(this.list[0], labels)) return 0;
    /** @type {LabelForm} */
    const form = { positions: [], kinds: [] };
    for (const name in labels) {
      form.positions.push(/** @type {number} */ (this.positions.get(name)));
      form.kinds.push(kindOf(labels[name]));
    }
    if (this.list.length === 0) return this.list.push(form) - 1;
    return this.#findOrAdd(form);
  }

  /**
   * @param {LabelForm} form
   * @param {Record<string, unknown>} labels
   */
  #fits(form, labels) {
    let i = 0;
    for (const name in labels) {
      const value = labels[name];
      if (i === form.positions.length || this.names[form.positions[i]] !== name) return false;
      if (typeof value === 'string' ? form.kinds[i] !== 'string' : form.kinds[i] !== kindOf(value))
        return false;
      i++;
    }
    return i === form.positions.length;
  }

  /** @param {LabelForm} form */
  #findOrAdd(form) {
    if (this.#byKey === undefined) this.#byKey = new Map([[keyOf(this.list[0]), 0]]);
    const key = keyOf(form);
    let number = this.#byKey.get(key);
    if (number === undefined) {
      number = this.list.push(form) - 1;
      this.#byKey.set(key, number);
    }
    return number;
  }
}

/** @param {LabelForm} form */
function keyOf(form) {
  return form.positions.map((position, i) => `${position}${form.kinds[i]}`).join();
}

module.exports = { LabelForms, RowForms, valueOfKind, labelsFrom, setLabel, setOwn };
