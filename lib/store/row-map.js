'use strict';

// Maps a worker's rows to the family's rows. A row is translated once, by integers: each label value of a
// worker is looked up once in the family's dictionary, and each row once in the family's index.

const { grown } = require('../series/row-array');

const NOTHING = new Int32Array(0);

/** A row whose family row has not been looked up yet. */
const UNMAPPED = -1;

/**
 * The label that holds a sample's name if it differs from the family's. Prometheus reserves this label name.
 */
const NAME_LABEL = '__name__';

/** @typedef {import('./family-rows').FamilyRows} FamilyRows */
/** @typedef {import('./worker-dictionary').WorkerMetric} WorkerMetric */
/** @typedef {TableRowMap | LabelRowMap} RowMap */

/** Maps the rows of a metric whose label sets were sent as integers. */
class TableRowMap {
  #generation = -1;
  /** @type {WorkerMetric} */
  #metric;
  #defaults;
  /**
   * @type {(Int32Array | undefined)[]} by label: the family's integer by the worker's; 0 if not looked up yet
   */
  #ids = [];
  /** @type {number[]} the family's number of each label */
  #labels = [];
  /** @type {{label: number, id: number, name: string, value: string}[]} */
  #defaultIds = [];

  /**
   * @param {WorkerMetric} metric
   * @param {[string, string][]} defaults default labels, for rows that do not have them
   */
  constructor(metric, defaults) {
    this.#metric = metric;
    this.#defaults = defaults;
    this.rows = new Int32Array(0);
  }

  /**
   * Makes space for the rows of a snapshot.
   *
   * @param {WorkerMetric} metric
   * @param {number} rowCount of its numbers
   */
  extend(metric, rowCount) {
    this.#metric = metric;
    if (this.rows.length < rowCount) this.rows = grown(this.rows, rowCount, UNMAPPED);
  }

  /**
   * To be called before rows are translated. Discards rows that were translated for another family, or before
   * the family's rows were renumbered.
   *
   * @param {FamilyRows} family
   */
  bind(family) {
    if (this.#generation === family.generation) return;
    this.#generation = family.generation;
    this.rows.fill(UNMAPPED);
    const { labelNames } = this.#metric.definition;
    const { index } = family;
    this.#labels = labelNames.map(name => index.labelOf(name));
    this.#ids = labelNames.map(() => undefined);
    this.#defaultIds = this.#defaults.map(([name, value]) => ({
      label: index.labelOf(name),
      id: 0,
      name,
      value,
    }));
  }

  /**
   * @param {FamilyRows} family
   * @param {number} row
   */
  translate(family, row) {
    const { definition, values, forms, tuples } = this.#metric;
    const { labelNames } = definition;
    const start = row * (labelNames.length + 1);
    const { index } = family;
    index.begin();
    /** @type {string[]} */
    const names = [];
    const texts = [];
    for (const label of forms[tuples[start]] ?? []) {
      const id = tuples[start + 1 + label];
      if (id === 0 || !index.put(this.#labels[label], this.#idOf(family, label, id))) continue;
      names.push(labelNames[label]);
      texts.push(values[label][id]);
    }
    for (const own of this.#defaultIds) {
      // Looked up with the first row: a metric without rows must not leave a worker's own value (its pid) in
      // the index.
      own.id ||= index.idOf(own.label, own.value.toWellFormed());
      if (!index.put(own.label, own.id)) continue;
      names.push(own.name);
      texts.push(own.value);
    }
    this.rows[row] = family.rowOfSet(names, texts);
  }

  /**
   * @param {FamilyRows} family
   * @param {number} label
   * @param {number} id the worker's
   */
  #idOf(family, label, id) {
    const values = this.#metric.values[label];
    let ids = this.#ids[label];
    if (ids === undefined || id >= ids.length) ids = this.#ids[label] = grown(ids ?? NOTHING, values.length);
    if (ids[id] === 0) ids[id] = family.index.idOf(this.#labels[label], values[id].toWellFormed());
    return ids[id];
  }
}

/** Maps the rows of a metric that was sent as JSON, with its label sets as strings. */
class LabelRowMap {
  #generation = -1;
  #labels;

  /** @param {{names: string[], values: string[]}[]} labels by row */
  constructor(labels) {
    this.#labels = labels;
    this.rows = new Int32Array(labels.length).fill(UNMAPPED);
  }

  /** @param {FamilyRows} family */
  bind(family) {
    if (this.#generation === family.generation) return;
    this.#generation = family.generation;
    this.rows.fill(UNMAPPED);
  }

  /**
   * @param {FamilyRows} family
   * @param {number} row
   */
  translate(family, row) {
    const { names, values } = this.#labels[row];
    this.rows[row] = family.rowOf(names, values);
  }
}

module.exports = { TableRowMap, LabelRowMap, UNMAPPED, NAME_LABEL };
