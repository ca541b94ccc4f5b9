'use strict';

// The label sets of one family: a row number for each, and its labels as text. A row stays as long as a
// worker or the retired totals have it. A label set is a list of integers, one for each of its labels: each
// pair of a name and a value has its own. Labels that a series does not have take no memory, so a family
// whose label names differ from series to series costs no more than another one.
//
// An unpaired surrogate cannot be encoded in UTF-8 and becomes U+FFFD. Label values that differ only in such
// characters are one value (toWellFormed); otherwise the page would show their series twice.

const { NAME_LABEL } = require('./row-map');
const { grown } = require('../series/row-array');
const { hashOf } = require('../series/tuple-table');

/** @typedef {import('../exposition/label-text').LabelPair} LabelPair */
/** @typedef {number} LabelNumber numbers the label names of a family */

const NO_IDS = new Int32Array(0);

class FamilyRows {
  /** @type {Map<string, LabelNumber>} */
  #labels = new Map();
  /** @type {string[]} label names */
  #names = [];
  /** @type {Map<string, number>[]} by label: the integer of each value */
  #ids = [];
  /** @type {LabelNumber[]} by integer; that of 0 is never read */
  #labelOf = [0];
  /** By integer. */
  #values = [''];
  /**
   * By the hash of a label set, or the next free number after it. A Map of texts takes three times as long.
   * The hash has a seed, so clients, who choose values, cannot provoke collisions.
   *
   * @type {Map<number, number>}
   */
  #rows = new Map();
  /** The label sets of all rows, one after the other. */
  #sets = NO_IDS;
  /** By row: where its label set begins, which is where that of the row before ends. */
  #starts = [0];
  /** @type {string[]} by row */
  #texts = [];
  /** @type {number[]} the label set that is being looked up, its labels in rising order */
  #set = [];

  get count() {
    return this.#texts.length;
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
      id = this.#values.push(text) - 1;
      this.#labelOf.push(label);
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
   * @param {number} id of the label and its value
   */
  put(id) {
    const set = this.#set;
    const label = this.#labelOf[id];
    let at = set.length;
    while (at > 0 && this.#labelOf[set[at - 1]] >= label) at--;
    if (at === set.length) set.push(id);
    else if (this.#labelOf[set[at]] !== label) set.splice(at, 0, id);
  }

  /**
   * @param {() => string} textOf makes the text of its labels if it is new
   * @returns {number} the row of the label set, a new one if need be
   */
  row(textOf) {
    let hash = hashOf(this.#set, 0, this.#set.length);
    let row = this.#rows.get(hash);
    while (row !== undefined && !this.#has(row)) {
      hash = (hash + 1) | 0;
      row = this.#rows.get(hash);
    }
    if (row !== undefined) return row;
    row = this.#texts.push(textOf().toWellFormed()) - 1;
    this.#rows.set(hash, row);
    const end = this.#starts[row] + this.#set.length;
    if (this.#sets.length < end) this.#sets = grown(this.#sets, end);
    this.#sets.set(this.#set, this.#starts[row]);
    this.#starts.push(end);
    return row;
  }

  /**
   * @param {number} row
   * @returns {boolean} whether it has the label set that is being looked up
   */
  #has(row) {
    const set = this.#set;
    const start = this.#starts[row];
    let i = this.#starts[row + 1] - start === set.length ? 0 : NaN;
    while (i < set.length && this.#sets[start + i] === set[i]) i++;
    return i === set.length;
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
    const ids = this.#sets.subarray(this.#starts[row], this.#starts[row + 1]);
    return Array.from(ids, id => [this.#names[this.#labelOf[id]], this.#values[id]]);
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
   * @returns {string | undefined} the name of its sample, if it has one of its own
   */
  nameOf(row) {
    return this.#allPairsOf(row).find(([name]) => name === NAME_LABEL)?.[1];
  }
}

module.exports = { FamilyRows };
