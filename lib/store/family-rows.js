'use strict';

// The label sets of one family: a row number for each, and its labels as text. A row stays as long as a
// worker or the retired totals have it.
//
// An unpaired surrogate cannot be encoded in UTF-8 and becomes U+FFFD. Label values that differ only in such
// characters are one value (toWellFormed); otherwise the page would show their series twice.

const { FamilyIndex } = require('./family-index');
const { labelsText } = require('../exposition/label-text');
const { NAME_LABEL, UNMAPPED } = require('./row-map');

// Far more than labels need. Escaping this many characters takes up to 0.1 s, and each row has its own text.
const MAX_LABELS_CHARACTERS = 2 ** 20;

/** @typedef {import('../exposition/label-text').LabelPair} LabelPair */

let nextGeneration = 0;

class FamilyRows {
  /**
   * @type {(string | undefined)[]} by row; created with one element, because V8 reserves space for 17 when an
   *   element is added to an empty array
   */
  #texts = [undefined];

  constructor() {
    this.index = new FamilyIndex();
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
   * @returns {number} UNMAPPED if their text is too long
   */
  rowOf(names, values) {
    const { index } = this;
    index.begin();
    names.forEach((name, i) => {
      const label = index.labelOf(name);
      index.put(label, index.idOf(label, values[i].toWellFormed()));
    });
    return this.rowOfSet(names, values);
  }

  /**
   * The row of the label set that was put into the index, created if it is new.
   *
   * @param {readonly string[]} names of its labels, in output order
   * @param {readonly string[]} values
   * @returns {number} UNMAPPED if their text is too long
   */
  rowOfSet(names, values) {
    const row = this.index.row();
    if (this.#texts[row] !== undefined) return row;
    if (charactersOf(names) + charactersOf(values) > MAX_LABELS_CHARACTERS) return UNMAPPED;
    this.#texts[row] = textOf(names, values).toWellFormed();
    return row;
  }

  /**
   * @param {string} name
   * @returns {boolean} whether any row may have that label
   */
  hasLabel(name) {
    return this.index.findLabel(name) !== undefined;
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
   * @param {number} row
   * @param {string} [except] name of a label to leave out
   * @returns {LabelPair[]} its labels, without the name of a sample
   */
  pairsOf(row, except) {
    return Object.entries(this.labelsOf(row)).filter(([name]) => name !== NAME_LABEL && name !== except);
  }

  /**
   * @param {number} row
   * @param {string} name
   * @returns {string | undefined}
   */
  labelOf(row, name) {
    const label = this.index.findLabel(name);
    return label === undefined ? undefined : this.index.valueAt(row, label);
  }

  /**
   * @param {number} row
   * @returns {Record<string, string>}
   */
  labelsOf(row) {
    const { index } = this;
    /** @type {[string, string][]} */
    const labels = [];
    index.eachLabel(row, (label, id) => labels.push([index.names[label], index.values[label][id]]));
    // Not by assignment, because a label may be called __proto__.
    return Object.fromEntries(labels);
  }

  /**
   * Drops all rows but the given ones, which are renumbered in that order, and the label names and values
   * that none of them has.
   *
   * @param {number[]} rows those to keep
   */
  compact(rows) {
    const old = this.index;
    const index = new FamilyIndex();
    const texts = this.#texts;
    this.#texts = [];
    for (const row of rows) {
      index.begin();
      old.eachLabel(row, (oldLabel, id) => {
        const label = index.labelOf(old.names[oldLabel]);
        index.put(label, index.idOf(label, old.values[oldLabel][id]));
      });
      this.#texts[index.row()] = texts[row];
    }
    this.index = index;
    this.generation = nextGeneration++;
  }
}

/**
 * @param {readonly string[]} names
 * @param {readonly string[]} values
 */
function textOf(names, values) {
  /** @type {LabelPair[]} */
  const pairs = [];
  for (let i = 0; i < names.length; i++) if (names[i] !== NAME_LABEL) pairs.push([names[i], values[i]]);
  return labelsText(pairs);
}

/** @param {readonly string[]} texts */
function charactersOf(texts) {
  let characters = 0;
  for (const { length } of texts) characters += length;
  return characters;
}

module.exports = { FamilyRows };
