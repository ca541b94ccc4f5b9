'use strict';

// From a worker's rows to those of the family. A row is translated when it is first met, by integers: each label value
// of a worker is looked up once in the family's dictionary, each row once in the family's index.

/** In place of a family row that was not looked up yet. */
const UNMAPPED = -1;

/** A sample that goes by another name than its family carries it as this label, which Prometheus reserves for it. */
const NAME_LABEL = '__name__';

/** @typedef {import('./family-rows').FamilyRows} FamilyRows */
/** @typedef {import('./worker-series').KnownMetric} KnownMetric */
/** @typedef {TableRowMap | LabelRowMap} RowMap */

/** The rows of a metric whose label sets came as integers. */
class TableRowMap {
  #generation = -1;
  /** @type {KnownMetric} */
  #metric;
  #defaults;
  /** @type {(Int32Array | undefined)[]} by label: the family's integer by the worker's, 0 where not looked up */
  #ids = [];
  /** @type {number[]} */
  #positions = [];
  /** @type {{position: number, id: number, name: string, value: string}[]} */
  #defaultIds = [];

  /**
   * @param {KnownMetric} metric
   * @param {[string, string][]} defaults default labels, for rows that do not have them
   */
  constructor(metric, defaults) {
    this.#metric = metric;
    this.#defaults = defaults;
    this.rows = new Int32Array(0);
  }

  /**
   * Follows the metric as its rows grow.
   *
   * @param {KnownMetric} metric
   */
  extend(metric) {
    this.#metric = metric;
    if (this.rows.length >= metric.rows) return;
    const rows = new Int32Array(Math.max(metric.rows, this.rows.length * 2)).fill(UNMAPPED);
    rows.set(this.rows);
    this.rows = rows;
  }

  /**
   * To be called before rows are translated: what was translated for another family, or before its rows got new
   * numbers, is forgotten.
   *
   * @param {FamilyRows} family
   */
  bind(family) {
    if (this.#generation === family.generation) return;
    this.#generation = family.generation;
    this.rows.fill(UNMAPPED);
    const { labelNames } = this.#metric.definition;
    this.#positions = family.positionsOf(labelNames);
    this.#ids = labelNames.map(() => undefined);
    const positions = family.positionsOf(this.#defaults.map(([name]) => name));
    this.#defaultIds = this.#defaults.map(([name, value], i) => {
      return { position: positions[i], id: 0, name, value };
    });
  }

  /**
   * @param {FamilyRows} family
   * @param {number} row
   */
  translate(family, row) {
    const { definition, values, forms, tuples } = this.#metric;
    const { labelNames } = definition;
    const start = row * (labelNames.length + 1);
    const { ids } = family.index;
    ids.fill(0);
    /** @type {string[]} */
    const names = [];
    const texts = [];
    for (const label of forms[tuples[start]] ?? []) {
      const id = tuples[start + 1 + label];
      if (id === 0) continue;
      ids[this.#positions[label]] = this.#idOf(family, label, id);
      names.push(labelNames[label]);
      texts.push(values[label][id]);
    }
    for (const label of this.#defaultIds) {
      if (ids[label.position] !== 0) continue;
      // Looked up with the first row: a metric without rows must leave no value of a worker's own (its pid) behind.
      label.id ||= family.index.dictionaries[label.position].add(label.value);
      ids[label.position] = label.id;
      names.push(label.name);
      texts.push(label.value);
    }
    this.rows[row] = family.rowOfIds(names, texts);
  }

  /**
   * @param {FamilyRows} family
   * @param {number} label
   * @param {number} id the worker's
   */
  #idOf(family, label, id) {
    const values = this.#metric.values[label];
    let ids = this.#ids[label];
    if (ids === undefined || id >= ids.length) {
      const longer = new Int32Array(Math.max(values.length, (ids?.length ?? 0) * 2));
      if (ids !== undefined) longer.set(ids);
      ids = this.#ids[label] = longer;
    }
    if (ids[id] === 0) ids[id] = family.index.dictionaries[this.#positions[label]].add(values[id]);
    return ids[id];
  }
}

/** The rows of a metric that came as JSON, with its label sets written out. */
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
