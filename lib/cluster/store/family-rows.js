'use strict';

// The label sets of one family: a row number for each, and its labels as text. A row stays as long as a
// worker or the retired totals have it.

const { LabelIndex } = require('../../series/label-index');
const { labelPair } = require('../../exposition/label-text');
const { NAME_LABEL } = require('./row-map');

let nextGeneration = 0;

class FamilyRows {
  /** @type {(string | undefined)[]} by row */
  #texts = [];

  constructor() {
    this.index = new LabelIndex([]);
    /** Changes when the rows are renumbered; unique among all families. */
    this.generation = nextGeneration++;
  }

  get count() {
    return this.index.rowCount;
  }

  /**
   * The row of a label set, created if it is new.
   *
   * @param {readonly string[]} names
   * @param {readonly string[]} values in the same order
   * @returns {number}
   */
  rowOf(names, values) {
    const positions = this.positionsOf(names);
    const { index } = this;
    index.ids.fill(0);
    positions.forEach((position, i) => (index.ids[position] = index.dictionaries[position].add(values[i])));
    return this.rowOfIds(names, values);
  }

  /**
   * The row of the tuple in `index.ids`, created if it is new.
   *
   * @param {readonly string[]} names of its labels, in output order
   * @param {readonly string[]} values
   * @returns {number}
   */
  rowOfIds(names, values) {
    const row = this.index.findOrAddTuple();
    if (this.#texts[row] === undefined) this.#texts[row] = textOf(names, values, undefined);
    return row;
  }

  /**
   * The positions of labels in a tuple. A name that is new to the family gets the next position.
   *
   * @param {readonly string[]} names
   * @returns {number[]}
   */
  positionsOf(names) {
    this.#ensureLabelNames(names);
    return names.map(name => /** @type {number} */ (this.index.positions.get(name)));
  }

  /**
   * @param {string} name
   * @returns {boolean} whether any row may have that label
   */
  hasLabel(name) {
    return this.index.positions.has(name);
  }

  /**
   * A row's labels as text, in the order in which they were first used.
   *
   * @param {number} row
   * @returns {string}
   */
  textOf(row) {
    return /** @type {string} */ (this.#texts[row]);
  }

  /**
   * A row's labels as text, without one of them.
   *
   * @param {number} row
   * @param {string} except
   * @returns {string}
   */
  textWithout(row, except) {
    const labels = this.labelsOf(row);
    return textOf(Object.keys(labels), Object.values(labels), except);
  }

  /**
   * @param {number} row
   * @param {string} name
   * @returns {string | undefined}
   */
  labelOf(row, name) {
    const position = this.index.positions.get(name);
    const id = position === undefined ? 0 : this.index.idAt(row, position);
    return id === 0 ? undefined : this.index.dictionaries[/** @type {number} */ (position)].values[id];
  }

  /**
   * @param {number} row
   * @returns {Record<string, string>}
   */
  labelsOf(row) {
    /** @type {Record<string, string>} */
    const labels = {};
    for (const name of this.index.names) {
      const value = this.labelOf(row, name);
      if (value !== undefined) labels[name] = value;
    }
    return labels;
  }

  /**
   * Drops all rows but the given ones, which are renumbered in that order.
   *
   * @param {number[]} rows those to keep
   */
  compact(rows) {
    const old = this.index;
    const index = new LabelIndex(old.names);
    const texts = this.#texts;
    this.#texts = [];
    for (const row of rows) {
      for (let position = 0; position < old.width; position++) {
        const id = old.idAt(row, position);
        index.ids[position] =
          id === 0 ? 0 : index.dictionaries[position].add(old.dictionaries[position].values[id]);
      }
      this.#texts[index.findOrAddTuple()] = texts[row];
    }
    this.index = index;
    this.generation = nextGeneration++;
  }

  /** @param {readonly string[]} names */
  #ensureLabelNames(names) {
    const { index } = this;
    if (names.every(name => index.positions.has(name))) return;
    const all = [...new Set([...index.names, ...names])];
    const wider = new LabelIndex(all);
    index.dictionaries.forEach((dictionary, position) => (wider.dictionaries[position] = dictionary));
    for (let row = 0; row < index.rowCount; row++) {
      wider.ids.fill(0);
      for (let position = 0; position < index.width; position++)
        wider.ids[position] = index.idAt(row, position);
      wider.findOrAddTuple();
    }
    this.index = wider;
  }
}

/**
 * @param {readonly string[]} names
 * @param {readonly string[]} values
 * @param {string | undefined} except
 */
function textOf(names, values, except) {
  const pairs = [];
  for (let i = 0; i < names.length; i++) {
    if (names[i] !== NAME_LABEL && names[i] !== except) pairs.push(labelPair(names[i], values[i]));
  }
  // join() makes a flat string; one that is built with + takes several times the memory of its characters.
  return pairs.join();
}

module.exports = { FamilyRows };
