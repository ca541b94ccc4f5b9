'use strict';

// Exemplars: one concrete case (usually a trace id) of what a counter or bucket counts. OpenMetrics 1.0.0,
// "Exemplars": https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md#exemplars

const { activeTrace } = require('./active-trace');
const { invalidLabel } = require('../options/coded-error');

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
 * A slot for one exemplar. `encoded` caches its bytes for the snapshot writer until the exemplar is replaced;
 * `reported` is the timestamp of the one that the table's followers have got last.
 *
 * @typedef {{exemplar: Exemplar, encoded: Uint8Array | undefined, reported?: number}} Slot
 */

/** @typedef {(Slot | undefined)[]} Slots of a row, by column */

/** @typedef {import('./native-histogram').NativeExemplars} NativeExemplars */

/** Maximum age of a follower's exemplar if there are newer ones. */
const REPORT_SECONDS = 1;

/** Minimum age at which the exemplar of a series is replaced by that of another active trace. */
const TRACE_SECONDS = 0.1;

/**
 * A metric's exemplars by row and column. An exemplar is replaced, never changed.
 *
 * @implements {RowListener}
 */
class Exemplars {
  // Without gaps, because V8 makes a hash table of a long array with gaps.
  /** @type {(Slots | undefined)[]} */
  #rows = [];
  #captures = 0;
  /** @type {number[]} by row: after how many captures its list was created or copied */
  #ownSince = [];
  #table;
  #ownColumns;
  #native;

  /**
   * @param {number} width columns a row
   * @param {import('../series/series-table').SeriesTable} [table] whose followers get exemplars
   * @param {NativeExemplars} [native] of a native histogram: its sparse buckets have the columns that follow
   */
  constructor(width, table, native) {
    this.width = width + (native?.most ?? 0);
    this.#ownColumns = width;
    this.#native = native;
    this.#table = table;
    /** Rises with each change. */
    this.version = 0;
    /** Whether recordings without exemplar labels have the active trace as exemplar. */
    this.areTraces = false;
  }

  /**
   * @param {number} row
   * @param {number} column
   * @returns {Exemplar | undefined}
   */
  at(row, column) {
    return this.#rows[row]?.[column]?.exemplar;
  }

  /**
   * The exemplars as they are now, to be read later. Takes about 0.1 ms for 100,000 of them.
   *
   * @returns {(row: number, column: number) => Exemplar | undefined}
   */
  captured() {
    this.#captures++;
    const rows = this.#rows.slice();
    return (row, column) => rows[row]?.[column]?.exemplar;
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {Exemplar} exemplar
   */
  put(row, column, exemplar) {
    /** @type {Slot} */
    const slot = { exemplar, encoded: undefined };
    const { timestamp } = exemplar;
    const followers = this.#table?.followers ?? [];
    let isReported = false;
    if (followers.length > 0) {
      slot.reported = this.#rows[row]?.[column]?.reported;
      // A clock may go back.
      isReported = slot.reported === undefined || Math.abs(timestamp - slot.reported) >= REPORT_SECONDS;
      if (isReported) slot.reported = timestamp;
    }
    this.#ownSlots(row)[column] = slot;
    this.version++;
    // Called last, because a follower may read all exemplars.
    if (isReported) for (const follower of followers) follower.exemplarPut?.(row, column, exemplar);
  }

  /**
   * The exemplar of a recording: that of its column, and one of those of sparse buckets.
   *
   * @param {number} row
   * @param {number} column
   * @param {Exemplar} exemplar
   */
  record(row, column, exemplar) {
    this.put(row, column, exemplar);
    if (this.#native === undefined || this.#native.most === 0) return;
    const others = this.nativeAt(row);
    const isFull = others.length === this.#native.most;
    const place = isFull ? this.#native.replaced(others, exemplar) : others.length;
    this.put(row, this.#ownColumns + place, exemplar);
  }

  /**
   * @param {number} row
   * @returns {Exemplar[]} those of sparse buckets
   */
  nativeAt(row) {
    /** @type {Exemplar[]} */
    const exemplars = [];
    for (let column = this.#ownColumns; column < this.width; column++) {
      const exemplar = this.at(row, column);
      if (exemplar !== undefined) exemplars.push(exemplar);
    }
    return exemplars;
  }

  /**
   * For a recording without exemplar labels: takes the active trace, if these are the exemplars.
   *
   * @param {number} row
   * @param {number} column
   * @param {number} value
   */
  putTrace(row, column, value) {
    if (!this.areTraces) return;
    const trace = activeTrace();
    if (trace === undefined || !trace.isSampled) return;
    const now = Date.now() / 1000;
    const last = this.at(row, column)?.timestamp;
    // A clock may go back.
    if (last !== undefined && Math.abs(now - last) < TRACE_SECONDS) return;
    this.record(row, column, new Exemplar({ trace_id: trace.traceId, span_id: trace.spanId }, value, now));
  }

  /** @param {number} row */
  drop(row) {
    if (this.#rows[row] === undefined) return;
    this.#rows[row] = undefined;
    this.version++;
  }

  /** @param {number} row */
  rowStarted(row) {
    this.drop(row);
  }

  /** @returns {import('../series/series-table').RowMove} */
  startMove() {
    /** @type {(Slots | undefined)[]} */
    const moved = [];
    return {
      copy: (old, row) => {
        moved[row] = this.#rows[old]?.map(slot => slot && { exemplar: slot.exemplar, encoded: undefined });
      },
      finish: () => {
        this.#rows = moved;
        this.version++;
      },
    };
  }

  /**
   * @param {number} row
   * @returns {Slots} which no capture has
   */
  #ownSlots(row) {
    let slots = this.#rows[row];
    if (slots !== undefined && this.#ownSince[row] === this.#captures) return slots;
    while (this.#rows.length <= row) this.#rows.push(undefined);
    while (this.#ownSince.length <= row) this.#ownSince.push(0);
    slots = slots?.slice() ?? new Array(this.width).fill(undefined);
    this.#rows[row] = slots;
    this.#ownSince[row] = this.#captures;
    return slots;
  }

  /** @returns {Generator<{row: number, column: number, slot: Slot}>} */
  *slots() {
    for (const [row, slots] of this.#rows.entries()) {
      if (slots === undefined) continue;
      for (const [column, slot] of slots.entries()) if (slot !== undefined) yield { row, column, slot };
    }
  }
}

/**
 * Exemplars that live as long as their rows.
 *
 * @param {import('../series/series-table').SeriesTable} table
 * @param {unknown} enableExemplars the option; `'trace'` for those of the active trace
 * @param {NativeExemplars} [native] of a native histogram
 */
function exemplarsOf(table, enableExemplars, native) {
  const exemplars = new Exemplars(table.width, table, native);
  exemplars.areTraces = enableExemplars === 'trace';
  table.listeners = [...table.listeners, exemplars];
  return exemplars;
}

/**
 * Whether the one argument of inc() or observe() is the object form, {labels, value, exemplarLabels}, and not
 * a label set.
 *
 * @param {unknown} argument
 * @param {readonly string[]} labelNames
 * @returns {argument is {labels?: Record<string, any> | null, value?: number | null, exemplarLabels?:
 *   Record<string, any>}}
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
 * @throws {RangeError} if names and values together are longer than the format allows
 */
function createExemplar(labels, value) {
  const labelSet = { ...labels };
  let characters = 0;
  for (const name of Object.keys(labelSet)) {
    // Code points, as the format counts, and not UTF-16 units.
    characters += [...`${name}${labelSet[name]}`].length;
  }
  if (characters > MAX_CHARACTERS)
    throw invalidLabel('Label set size must be smaller than 128 UTF-8 chars', RangeError);
  return new Exemplar(labelSet, value, Date.now() / 1000);
}

module.exports = { Exemplar, Exemplars, exemplarsOf, isRecordForm, createExemplar };
