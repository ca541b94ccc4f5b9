'use strict';

// Maps a source's rows to the family's rows. A row is translated once, by integers: each label value of a
// source is looked up once, and each row once.

const { labelsText } = require('../exposition/label-text');
const { setLabel } = require('../series/label-form');
const { grown } = require('../series/row-array');

const NOTHING = new Int32Array(0);

/** A row whose family row has not been looked up yet. */
const UNMAPPED = -1;

/**
 * The label that holds a sample's name if it differs from the family's. Prometheus reserves this label name.
 */
const NAME_LABEL = '__name__';

/** @typedef {import('./family-rows').FamilyRows} FamilyRows */
/**
 * Label sets as integers, by row: those of a decoded log, of a table within an epoch, or of JSON.
 *
 * @typedef {object} LabelSets
 * @property {readonly string[]} labelNames
 * @property {(row: number) => readonly number[]} positionsOf the positions of the row's labels, in order
 * @property {(row: number, position: number) => number} idAt the integer of the row's value; 0 for none
 * @property {(position: number) => readonly string[]} valuesOf the values by integer
 */

class RowMap {
  /** @type {FamilyRows | undefined} the family to whose rows `rows` leads */
  #family = undefined;
  #sets;
  #defaults;
  /**
   * @type {(Int32Array | undefined)[]} by label: the family's integer for each integer of the source; 0 if
   *   not looked up yet
   */
  #ids = [];
  /** @type {number[]} the family's number of each label */
  #labels = [];
  /** @type {{label: number, id: number, value: string}[]} */
  #defaultIds = [];

  /**
   * @param {LabelSets} sets may get more rows
   * @param {[string, string][]} defaults default labels, for rows that do not have them
   */
  constructor(sets, defaults) {
    this.#sets = sets;
    this.#defaults = defaults;
    this.rows = NOTHING;
  }

  /**
   * Makes space for more rows.
   *
   * @param {number} rowCount of the numbers
   */
  extend(rowCount) {
    if (this.rows.length < rowCount) this.rows = grown(this.rows, rowCount, UNMAPPED);
  }

  /** @returns {string[]} the label names that rows may have */
  get labelNames() {
    return [...new Set([...this.#sets.labelNames, ...this.#defaults.map(([name]) => name)])];
  }

  /**
   * @param {number} row
   * @returns {Record<string, string>} its labels, with default labels
   */
  labelsOf(row) {
    const sets = this.#sets;
    /** @type {Record<string, string>} */
    const labels = {};
    for (const label of sets.positionsOf(row)) {
      const id = sets.idAt(row, label);
      if (id !== 0) setLabel(labels, sets.labelNames[label], sets.valuesOf(label)[id]);
    }
    for (const [name, value] of this.#defaults)
      if (!Object.hasOwn(labels, name)) setLabel(labels, name, value);
    return labels;
  }

  /**
   * To be called before rows are translated. Discards rows that were translated for another family.
   *
   * @param {FamilyRows} family
   */
  bind(family) {
    if (this.#family === family) return;
    this.#family = family;
    this.rows.fill(UNMAPPED);
    const { labelNames } = this.#sets;
    this.#labels = labelNames.map(name => family.labelNumber(name));
    this.#ids = labelNames.map(() => undefined);
    this.#defaultIds = this.#defaults.map(([name, value]) => ({
      label: family.labelNumber(name),
      id: 0,
      value,
    }));
  }

  /**
   * @param {FamilyRows} family
   * @param {number} row
   */
  translate(family, row) {
    const sets = this.#sets;
    family.begin();
    for (const label of sets.positionsOf(row)) {
      const id = sets.idAt(row, label);
      if (id !== 0) family.put(this.#idOf(family, label, id));
    }
    for (const own of this.#defaultIds) {
      // Looked up with the first row: a metric without rows must not leave a worker's own value (its pid) in
      // the family.
      own.id ||= family.idOf(own.label, own.value);
      family.put(own.id);
    }
    this.rows[row] = family.row(() => this.#textOf(row));
  }

  /** @param {number} row */
  #textOf(row) {
    return labelsText(Object.entries(this.labelsOf(row)).filter(([name]) => name !== NAME_LABEL));
  }

  /**
   * @param {FamilyRows} family
   * @param {number} label
   * @param {number} id the source's
   */
  #idOf(family, label, id) {
    const values = this.#sets.valuesOf(label);
    let ids = this.#ids[label];
    if (ids === undefined || id >= ids.length) ids = this.#ids[label] = grown(ids ?? NOTHING, values.length);
    if (ids[id] === 0) ids[id] = family.idOf(this.#labels[label], values[id]);
    return ids[id];
  }
}

module.exports = { RowMap, UNMAPPED, NAME_LABEL };
