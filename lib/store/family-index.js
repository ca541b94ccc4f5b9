'use strict';

// The label sets of a family, each with a row number. A label set is a list of pairs of integers, one for the
// label name and one for the value. Labels that a series lacks take no memory, even if label names differ
// from series to series.

const { grown } = require('../series/row-array');

/** @typedef {number} LabelNumber numbers the label names of a family */

// Most families have a single row without labels, for which nothing is allocated. V8 allocates an array of up
// to 64 bytes together with its object.
const NOTHING = new Int32Array(0);
const FIRST_ROWS = 4;
const FIRST_PAIRS = 16;
const FIRST_SLOTS = 16;

class FamilyIndex {
  /** @type {Map<string, LabelNumber> | undefined} undefined without labels */
  #labels = undefined;
  /** @type {Map<string, number>[]} by label: the integer of each value */
  #ids = [];
  /**
   * @type {number[]} by label; random, because label values come from clients, who could provoke collisions
   */
  #multipliers = [];
  /** Label and value of each label of each row; labels ascend within a row. */
  #pairs = NOTHING;
  /** By row: where its pairs end. */
  #ends = NOTHING;
  #hashes = NOTHING;
  /** An open-addressing table of row number + 1, or 0; empty if no row but one without labels exists. */
  #slots = NOTHING;
  /** @type {number[]} the label set that is being looked up, as pairs */
  #set = [];

  constructor() {
    /** @type {string[]} label names */
    this.names = [];
    /** @type {string[][]} by label: the text of each value; index 0 is never read */
    this.values = [];
    this.rowCount = 0;
  }

  /**
   * @param {string} name
   * @returns {LabelNumber} of a label name; a new one if needed
   */
  labelOf(name) {
    this.#labels ??= new Map();
    let label = this.#labels.get(name);
    if (label === undefined) {
      label = this.names.push(name) - 1;
      this.#labels.set(name, label);
      this.#ids.push(new Map());
      this.#multipliers.push((Math.random() * 2 ** 32) | 1);
      this.values.push(['']);
    }
    return label;
  }

  /**
   * @param {string} name
   * @returns {LabelNumber | undefined} undefined if no row has ever had that label
   */
  findLabel(name) {
    return this.#labels?.get(name);
  }

  /**
   * @param {LabelNumber} label
   * @param {string} text
   * @returns {number} the integer of a value; a new one if needed
   */
  idOf(label, text) {
    const ids = this.#ids[label];
    let id = ids.get(text);
    if (id === undefined) {
      id = this.values[label].push(text) - 1;
      ids.set(text, id);
    }
    return id;
  }

  /** Starts a label set, without labels. */
  begin() {
    this.#set.length = 0;
  }

  /**
   * Adds a label to the label set.
   *
   * @param {LabelNumber} label
   * @param {number} id of its value
   * @returns {boolean} false if it has that label already
   */
  put(label, id) {
    const set = this.#set;
    let at = set.length;
    while (at > 0 && set[at - 2] >= label) at -= 2;
    if (set[at] === label) return false;
    if (at === set.length) set.push(label, id);
    else set.splice(at, 0, label, id);
    return true;
  }

  /** @returns {number} the row of the label set; a new one if needed */
  row() {
    const set = this.#set;
    let sum = 0;
    for (let i = 0; i < set.length; i += 2)
      sum = (sum + Math.imul(set[i + 1], this.#multipliers[set[i]])) | 0;
    const product = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
    const hash = product ^ (product >>> 13);
    if (this.#slots.length === 0) return this.rowCount === 1 && set.length === 0 ? 0 : this.#add(hash, 0);
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const row = this.#slots[slot] - 1;
      if (this.#hashes[row] === hash && this.#isRow(row)) return row;
    }
    return this.#add(hash, slot);
  }

  /**
   * Calls a function with each label of a row.
   *
   * @param {number} row
   * @param {(label: LabelNumber, id: number) => void} visit
   */
  eachLabel(row, visit) {
    const end = this.#ends[row];
    for (let at = this.#startOf(row); at < end; at += 2) visit(this.#pairs[at], this.#pairs[at + 1]);
  }

  /**
   * @param {number} row
   * @param {LabelNumber} label
   * @returns {string | undefined} undefined if the row does not have that label
   */
  valueAt(row, label) {
    const end = this.#ends[row];
    for (let at = this.#startOf(row); at < end; at += 2) {
      if (this.#pairs[at] === label) return this.values[label][this.#pairs[at + 1]];
    }
    return undefined;
  }

  /** @param {number} row */
  #startOf(row) {
    return row === 0 ? 0 : this.#ends[row - 1];
  }

  /** @param {number} row that may have the label set */
  #isRow(row) {
    const set = this.#set;
    const start = this.#startOf(row);
    if (this.#ends[row] - start !== set.length) return false;
    for (let i = 0; i < set.length; i++) if (this.#pairs[start + i] !== set[i]) return false;
    return true;
  }

  /**
   * @param {number} hash
   * @param {number} slot that is free
   */
  #add(hash, slot) {
    const row = this.rowCount++;
    // Its end and its hash are 0, as in a new array, so nothing is written.
    if (row === 0 && this.#set.length === 0) return row;
    if (row >= this.#ends.length) {
      this.#ends = grown(this.#ends, Math.max(row + 1, FIRST_ROWS));
      this.#hashes = grown(this.#hashes, Math.max(row + 1, FIRST_ROWS));
    }
    const start = this.#startOf(row);
    const end = start + this.#set.length;
    if (end > this.#pairs.length) this.#pairs = grown(this.#pairs, Math.max(end, FIRST_PAIRS));
    this.#pairs.set(this.#set, start);
    this.#ends[row] = end;
    this.#hashes[row] = hash;
    if (this.rowCount * 2 > this.#slots.length) this.#rehash();
    else this.#slots[slot] = row + 1;
    return row;
  }

  #rehash() {
    const slots = new Int32Array(Math.max(this.#slots.length * 2, FIRST_SLOTS));
    const mask = slots.length - 1;
    for (let row = 0; row < this.rowCount; row++) {
      let slot = this.#hashes[row] & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = row + 1;
    }
    this.#slots = slots;
  }
}

module.exports = { FamilyIndex };
