'use strict';

// The label sets of one family: a row number for each, and its labels as text. A row stays as long as a
// worker or the retired totals have it. A label set is a list of integers: one for each of its label names,
// and one for the value. Labels that a series does not have take no memory, so a family whose label names
// differ from series to series costs no more than another one.
//
// An unpaired surrogate cannot be encoded in UTF-8 and becomes U+FFFD. Label values that differ only in such
// characters are one value (toWellFormed); otherwise the page would show their series twice.

const { NAME_LABEL } = require('./row-map');

/** @typedef {import('../exposition/label-text').LabelPair} LabelPair */
/** @typedef {number} LabelNumber numbers the label names of a family */

let nextGeneration = 0;

class FamilyRows {
  /** @type {Map<string, LabelNumber>} */
  #labels = new Map();
  /** @type {string[]} label names */
  #names = [];
  /** @type {Map<string, number>[]} by label: the integer of each value */
  #ids = [];
  /** @type {string[][]} by label: the text of each value; that of 0 is never read */
  #values = [];
  /**
   * By label set: a character for each half of the integers of each label and its value. V8 hashes texts with
   * a seed, so clients, who choose values, cannot provoke collisions.
   *
   * @type {Map<string, number>}
   */
  #rows = new Map();
  /** @type {string[]} by row, as the texts */
  #keys = [];
  /** @type {string[]} */
  #texts = [];
  /** @type {number[]} the label set that is being looked up: each label, in rising order, and its value */
  #set = [];

  constructor() {
    /** Changes when the rows are renumbered; unique among all families. */
    this.generation = nextGeneration++;
  }

  get count() {
    return this.#keys.length;
  }

  /**
   * @param {string} name
   * @returns {LabelNumber} of a label name, a new one if need be
   */
  labelNumber(name) {
    let label = this.#labels.get(name);
    if (label === undefined) {
      label = this.#names.push(name) - 1;
      this.#labels.set(name, label);
      this.#ids.push(new Map());
      this.#values.push(['']);
    }
    return label;
  }

  /**
   * @param {LabelNumber} label
   * @param {string} value
   * @returns {number} its integer, a new one if need be
   */
  idOf(label, value) {
    const text = value.toWellFormed();
    let id = this.#ids[label].get(text);
    if (id === undefined) {
      id = this.#values[label].push(text) - 1;
      this.#ids[label].set(text, id);
    }
    return id;
  }

  /** Starts a label set, without labels. */
  begin() {
    this.#set.length = 0;
  }

  /**
   * Adds a label to the label set, unless that has it already.
   *
   * @param {LabelNumber} label
   * @param {number} id of its value
   */
  put(label, id) {
    const set = this.#set;
    let at = set.length;
    while (at > 0 && set[at - 2] >= label) at -= 2;
    if (at === set.length) set.push(label, id);
    else if (set[at] !== label) set.splice(at, 0, label, id);
  }

  /**
   * @param {() => string} textOf makes the text of its labels if it is new
   * @returns {number} the row of the label set, a new one if need be
   */
  row(textOf) {
    const key = keyOf(this.#set);
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = this.#keys.push(key) - 1;
      this.#rows.set(key, row);
      this.#texts.push(textOf().toWellFormed());
    }
    return row;
  }

  /**
   * @param {string} name
   * @returns {boolean} whether any row may have that label
   */
  hasLabel(name) {
    return this.#labels.has(name);
  }

  /**
   * A row's labels as text, in the order in which they were first used.
   *
   * @param {number} row
   * @returns {string}
   */
  textOf(row) {
    return this.#texts[row];
  }

  /**
   * @param {number} row
   * @returns {LabelPair[]} its labels, with the name of a sample
   */
  #allPairsOf(row) {
    /** @type {LabelPair[]} */
    const pairs = [];
    eachOf(this.#keys[row], (label, id) => pairs.push([this.#names[label], this.#values[label][id]]));
    return pairs;
  }

  /**
   * @param {number} row
   * @param {string} [except] name of a label to leave out
   * @returns {LabelPair[]} its labels, without the name of a sample
   */
  pairsOf(row, except) {
    return this.#allPairsOf(row).filter(([name]) => name !== NAME_LABEL && name !== except);
  }

  /**
   * @param {number} row
   * @returns {Record<string, string>}
   */
  labelsOf(row) {
    // Not by assignment: a label may be called __proto__.
    return Object.fromEntries(this.#allPairsOf(row));
  }

  /**
   * @param {number} row
   * @returns {string | undefined} the name of its sample, if it has one of its own
   */
  nameOf(row) {
    return this.#allPairsOf(row).find(([name]) => name === NAME_LABEL)?.[1];
  }

  /**
   * The same rows with other numbers, and without the label names and values that none of them has.
   *
   * @param {number[]} rows those to keep, in the order of their new numbers
   * @returns {FamilyRows}
   */
  compacted(rows) {
    const compacted = new FamilyRows();
    for (const row of rows) {
      compacted.begin();
      for (const [name, value] of this.#allPairsOf(row)) {
        const label = compacted.labelNumber(name);
        compacted.put(label, compacted.idOf(label, value));
      }
      compacted.row(() => this.#texts[row]);
    }
    return compacted;
  }
}

/** @param {number[]} set */
function keyOf(set) {
  /** @type {number[]} */
  const halves = [];
  for (const integer of set) halves.push(integer & 0xffff, integer >>> 16);
  return String.fromCharCode(...halves);
}

/**
 * @param {string} key
 * @param {(label: LabelNumber, id: number) => void} visit called for each label
 */
function eachOf(key, visit) {
  const integerAt = (/** @type {number} */ at) => key.charCodeAt(at) | (key.charCodeAt(at + 1) << 16);
  for (let at = 0; at < key.length; at += 4) visit(integerAt(at), integerAt(at + 2));
}

module.exports = { FamilyRows };
