'use strict';

// Exemplars: one concrete case (usually a trace id) beside a counter's or bucket's number. OpenMetrics 1.0.0,
// "Exemplars": https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md#exemplars

/** @typedef {import('../series/series-table').RowListener} RowListener */

const MAX_CHARACTERS = 128;

/** The keys of the one object that recording with exemplars takes. */
const RECORD_KEYS = new Set(['labels', 'value', 'exemplarLabels']);

class Exemplar {
  /**
   * @param {Record<string, unknown>} [labelSet]
   * @param {any} [value] a number
   * @param {any} [timestamp] seconds since the epoch
   */
  constructor(labelSet = {}, value = null, timestamp = undefined) {
    this.labelSet = labelSet;
    /** @type {number} */
    this.value = value;
    /** @type {number} */
    this.timestamp = timestamp;
  }
}

/**
 * An exemplar's place. `encoded` is the snapshot writer's: its bytes, for as long as the exemplar stands there.
 *
 * @typedef {{exemplar: Exemplar, encoded: Uint8Array | undefined}} Slot
 */

/**
 * What a metric's exemplars are by row and column. An exemplar is replaced, never changed.
 *
 * @implements {RowListener}
 */
class Exemplars {
  /** @type {Map<number, (Slot | undefined)[]>} by row: by column */
  #byRow = new Map();

  constructor() {
    /** Rises with each change. */
    this.version = 0;
  }

  /**
   * @param {number} row
   * @param {number} column
   * @returns {Exemplar | undefined}
   */
  at(row, column) {
    return this.#byRow.get(row)?.[column]?.exemplar;
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {Exemplar} exemplar
   */
  put(row, column, exemplar) {
    let columns = this.#byRow.get(row);
    if (columns === undefined) {
      columns = [];
      this.#byRow.set(row, columns);
    }
    columns[column] = { exemplar, encoded: undefined };
    this.version++;
  }

  /** @param {number} row */
  drop(row) {
    if (this.#byRow.delete(row)) this.version++;
  }

  /** @param {number} row */
  rowStarted(row) {
    this.drop(row);
  }

  /** @param {number[]} rows */
  rowsMoved(rows) {
    const before = this.#byRow;
    this.#byRow = new Map();
    this.version++;
    rows.forEach((old, row) => {
      before.get(old)?.forEach((slot, column) => {
        if (slot !== undefined) this.put(row, column, slot.exemplar);
      });
    });
  }

  /** @returns {Generator<{row: number, column: number, slot: Slot}>} */
  *slots() {
    for (const [row, columns] of this.#byRow) {
      for (const [column, slot] of columns.entries()) if (slot !== undefined) yield { row, column, slot };
    }
  }
}

/**
 * Exemplars that live as long as their rows.
 *
 * @param {import('../series/series-table').SeriesTable} table
 */
function exemplarsOf(table) {
  const exemplars = new Exemplars();
  table.listener = exemplars;
  return exemplars;
}

/**
 * Whether the one argument of inc() or observe() is the object form, {labels, value, exemplarLabels}, and not a label
 * set.
 *
 * @param {unknown} argument
 * @param {readonly string[]} labelNames
 * @returns {argument is {labels?: Record<string, any> | null, value?: number | null, exemplarLabels?: Record<string, any>}}
 */
function isRecordForm(argument, labelNames) {
  if (typeof argument !== 'object' || argument === null) return false;
  const keys = Object.keys(argument);
  return keys.every(key => RECORD_KEYS.has(key)) || !keys.some(key => labelNames.includes(key));
}

/**
 * @param {Record<string, unknown>} labels
 * @param {number} value
 * @returns {Exemplar}
 * @throws {RangeError} where names and values together are longer than the format allows
 */
function createExemplar(labels, value) {
  const labelSet = { ...labels };
  let characters = 0;
  for (const name of Object.keys(labelSet)) {
    // Code points, as the format counts, and not UTF-16 units.
    characters += [...`${name}${labelSet[name]}`].length;
  }
  if (characters > MAX_CHARACTERS)
    throw new RangeError('Label set size must be smaller than 128 UTF-8 chars');
  return new Exemplar(labelSet, value, Date.now() / 1000);
}

module.exports = { Exemplar, Exemplars, exemplarsOf, isRecordForm, createExemplar };
