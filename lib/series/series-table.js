'use strict';

// A metric's numbers: rows of `width` numbers in pages, found through a label index. The path of a recording
// is locate() or find(), pageOf() and offsetOf().

const { LabelIndex } = require('./label-index');
const { LabelForms, valueOfKind, setLabel } = require('./label-form');
const { CapturedTable } = require('./captured-table');
const { LiveRows } = require('./live-rows');
const { Compaction } = require('./compaction');
const { numbersInBlock } = require('./number-blocks');
const { firstPage, growPages, pageShiftOf } = require('./number-pages');

const FIRST_ROWS = 4;
const COMPACT_FROM_ROWS = 1024;
/** No table has this generation. */
const NEVER = -2;
/** Up to this many live rows are compacted in one go, more in steps. */
const COMPACT_AT_ONCE_ROWS = 2048;

/** Stands for no limit: more rows than an index can number, and an integer, which is compared quickly. */
const NO_LIMIT = 2 ** 31 - 1;
/** The value that all labels of the overflow series have. */
const OVERFLOW = 'overflow';

/** @type {readonly string[]} */
const NO_NAMES = Object.freeze([]);

/** What all tables without labels share: applications have hundreds of them. */
const NO_FORMS = new LabelForms(NO_NAMES, new Map());

/** @typedef {Record<string, unknown>} Labels */

/**
 * @typedef {object} RowListener
 * @property {(row: number) => void} rowStarted called for each row that starts (again) from zero
 * @property {() => RowMove} startMove called when the rows are about to get new numbers
 */

/**
 * What a listener has of each row is copied with the row. A row may be copied several times; the last copy
 * counts.
 *
 * @typedef {object} RowMove
 * @property {(old: number, row: number) => void} copy
 * @property {(rowCount: number) => void} finish called last: the rows have their new numbers from now on
 */

class SeriesTable {
  /** @type {Int32Array | undefined} each row's form; undefined while all rows have form 0 */
  #formOfRow = undefined;
  /** @type {Compaction | undefined} while one is under way */
  #compaction = undefined;
  /** @type {Generator<void> | undefined} its steps */
  #steps = undefined;
  /** At how many live rows the table is full. */
  #fullAt;

  /**
   * @param {readonly string[]} labelNames
   * @param {number} width numbers a row
   * @param {number} [maxSeries] how many label sets have a series of their own; all others share the overflow
   *   series, which is not counted
   */
  constructor(labelNames, width, maxSeries = NO_LIMIT) {
    this.width = width;
    this.maxSeries = maxSeries;
    this.#fullAt = maxSeries;
    /** The overflow series while it is live and there is a limit, else -1. */
    this.overflowRow = -1;
    /** How many lookups returned the overflow series because the table was full. */
    this.overflowCount = 0;
    /** @type {(() => void) | undefined} called at the first of these */
    this.onFirstOverflow = undefined;
    /** undefined for a metric without labels: it has one row, 0 */
    this.index = labelNames.length === 0 ? undefined : new LabelIndex(labelNames);
    /** A copy: the metric's own array is the program's, which may change it. */
    this.labelNames = this.index === undefined ? NO_NAMES : this.index.names;
    this.forms = this.index === undefined ? NO_FORMS : new LabelForms(this.index.names, this.index.positions);
    this.pageShift = this.index === undefined ? 0 : pageShiftOf(width);
    this.pageMask = (1 << this.pageShift) - 1;
    /** @type {Float64Array[]} */
    this.pages = [];
    /** Rows that exist, live or not. */
    this.rowCount = 0;
    /** @type {LiveRows | undefined} undefined while all rows are live and in order, as in most tables */
    this.live = undefined;
    this.liveCount = 0;
    /** Row numbers are stable within an epoch. */
    this.epoch = 0;
    /** Changes whenever a page or offset that a handle has cached may have become wrong. */
    this.generation = 0;
    /** @type {RowListener | undefined} has more of each row than numbers */
    this.listener = undefined;
  }

  /**
   * The live row of a label set; created, or revived from zero, if need be. If the table is full, that of the
   * overflow series.
   *
   * @param {Labels} labels
   * @returns {number} the row, or -1 if a label is not one of the names
   */
  locate(labels) {
    const { index } = this;
    let row = 0;
    if (index === undefined) {
      for (const _ in labels) return -1;
    } else {
      if (this.liveCount >= this.#fullAt) return this.#locateWhenFull(index, labels);
      row = index.findOrAdd(labels);
      if (row === -1) return -1;
    }
    return this.#started(row, labels);
  }

  /**
   * The live row of a label set.
   *
   * @param {Labels} labels
   * @returns {number} the row, or -1
   */
  find(labels) {
    const row = this.index === undefined ? (isEmpty(labels) ? 0 : -1) : this.index.find(labels);
    if (row === -1 || row >= this.rowCount || !this.isLive(row)) return -1;
    if (this.#compaction !== undefined) this.#compaction.rowWritten(row);
    return row;
  }

  /**
   * The live row of a label set that is given as a list of values.
   *
   * @param {readonly unknown[]} values
   * @param {readonly string[]} names of the values
   * @returns {number} the row, or -1; also if the names are not those of the table, or a value is not a string or number
   */
  findByPosition(values, names) {
    const { index } = this;
    if (index === undefined || !index.hasNames(names)) return -1;
    const row = index.findByPosition(values);
    if (row === -1 || row >= this.rowCount || !this.isLive(row)) return -1;
    if (this.#compaction !== undefined) this.#compaction.rowWritten(row);
    return row;
  }

  /** @param {number} row */
  isLive(row) {
    return this.live === undefined || this.live.has(row);
  }

  /** @param {number} row */
  pageOf(row) {
    return this.pages[row >> this.pageShift];
  }

  /** @param {number} row */
  offsetOf(row) {
    return (row & this.pageMask) * this.width;
  }

  /**
   * The live rows in order of first use since the last removal.
   *
   * @returns {Generator<number>}
   */
  *liveRows() {
    if (this.live !== undefined) yield* this.live;
    else for (let row = 0; row < this.rowCount; row++) yield row;
  }

  /** The live rows in order, with negative numbers for removed ones; undefined if all rows are live. */
  get order() {
    return this.live?.order;
  }

  /** How much of `order` is in use. */
  get orderLength() {
    return this.live?.length ?? 0;
  }

  /** The table as it is now, to be read later. Takes about 0.3 ms for 100,000 numbers. */
  captured() {
    const { labelNames, index, forms, rowCount, pages, pageShift, pageMask, width } = this;
    const order = this.order?.subarray(0, this.orderLength);
    const formOfRow = this.#formOfRow;
    const numbers = { rowCount, order, pages, pageShift, pageMask, width };
    return new CapturedTable({ labelNames, index, forms, formOfRow, ...numbers });
  }

  /**
   * @param {number} row
   * @returns {number} the number of its form in `this.forms.list`
   */
  formOf(row) {
    return this.#formOfRow === undefined ? 0 : this.#formOfRow[row];
  }

  /**
   * @param {number} row
   * @param {number} position
   * @returns {string} the row's value of the label at that position, which it must have
   */
  labelText(row, position) {
    const index = /** @type {LabelIndex} */ (this.index);
    return index.dictionaries[position].values[index.idAt(row, position)];
  }

  /**
   * A fresh object with a row's labels as they were given (as text if they were not primitives).
   *
   * @param {number} row
   * @returns {Record<string, any>}
   */
  labelsOf(row) {
    /** @type {Record<string, any>} */
    const labels = {};
    if (this.index === undefined) return labels;
    const { positions, kinds } = this.forms.list[this.formOf(row)];
    for (let i = 0; i < positions.length; i++) {
      setLabel(
        labels,
        this.labelNames[positions[i]],
        valueOfKind(this.labelText(row, positions[i]), kinds[i]),
      );
    }
    return labels;
  }

  /**
   * Removes a label set. If it is used again, it starts from zero, at the end.
   *
   * @param {number} row a live one
   */
  removeRow(row) {
    if (row === this.overflowRow) this.#setOverflowRow(-1);
    this.live ??= LiveRows.all(this.rowCount);
    this.live.remove(row);
    if (this.#compaction !== undefined) this.#compaction.rowRemoved(row);
    this.liveCount--;
    this.generation++;
  }

  /** Removes every label set. Their rows stay, because a gauge that is refilled uses them again. */
  clear() {
    if (this.liveCount === 0) return;
    this.#setOverflowRow(-1);
    this.live ??= new LiveRows(this.rowCount);
    this.live.clear();
    // Nothing is left to move.
    this.#compaction = this.#steps = undefined;
    this.liveCount = 0;
    this.generation++;
  }

  /**
   * Drops the rows that are not live if they are more than half of a large table, in one go. Rows get new
   * numbers, and the epoch rises.
   *
   * @returns {boolean} whether that was the case
   */
  compactIfSparse() {
    const { epoch } = this;
    const steps = this.compactionSteps();
    while (!steps.next().done);
    return this.epoch !== epoch;
  }

  /** The same, unless so many rows are live that it is left to compactionSteps(). */
  compactIfQuick() {
    if (this.liveCount <= COMPACT_AT_ONCE_ROWS) this.compactIfSparse();
  }

  /**
   * The same in steps of 32 rows. The table can be used between steps.
   *
   * @returns {Generator<void>}
   */
  *compactionSteps() {
    while (this.#steps !== undefined || this.isSparse) {
      this.#stepCompaction();
      yield;
    }
  }

  #stepCompaction() {
    if (this.#compaction === undefined || this.#steps === undefined) {
      this.#compaction = new Compaction(this, this.labelNames);
      this.#steps = this.#compaction.steps();
      // Handles must report what they write from now on.
      this.generation++;
    }
    if (this.#steps.next().done) this.#takeOver(this.#compaction);
  }

  /** What a bound handle compares with `generation`; during a compaction it binds again with each use. */
  get bindingGeneration() {
    return this.#compaction === undefined ? this.generation : NEVER;
  }

  /** @param {number} row a live one, to which a handle is about to write */
  rowWritten(row) {
    if (this.#compaction !== undefined) this.#compaction.rowWritten(row);
  }

  /**
   * Adds label names. If one of them is new, rows get new numbers, and the epoch rises.
   *
   * @param {readonly string[]} names may include names that the table already has
   */
  addLabelNames(names) {
    const added = names.filter(name => !this.labelNames.includes(name));
    if (added.length === 0) return;
    const compaction = new Compaction(this, [...this.labelNames, ...added]);
    const steps = compaction.steps();
    while (!steps.next().done);
    this.#takeOver(compaction);
  }

  /** Whether the table is large, and rows that are not live are more than half of it. */
  get isSparse() {
    return this.rowCount >= COMPACT_FROM_ROWS && this.liveCount * 2 < this.rowCount;
  }

  /**
   * The row of a label set in a table that is full. A label set that shares the overflow series uses no
   * memory: clients may send any number of them.
   *
   * @param {LabelIndex} index
   * @param {Labels} labels
   * @returns {number} the row, or -1 if a label is not one of the names
   */
  #locateWhenFull(index, labels) {
    const row = this.find(labels);
    if (row !== -1) return row;
    if (index.unknownLabel(labels) !== undefined) return -1;
    if (this.overflowRow === -1) {
      this.#startOverflow(index);
      // Once more: the label set may be the overflow series itself.
      return this.locate(labels);
    }
    this.overflowCount++;
    if (this.overflowCount === 1 && this.onFirstOverflow !== undefined) this.onFirstOverflow();
    return this.overflowRow;
  }

  /** @param {LabelIndex} index */
  #startOverflow(index) {
    const labels = Object.fromEntries(index.names.map(name => [name, OVERFLOW]));
    this.#started(index.findOrAdd(labels), labels);
  }

  /** @param {number} row that is the overflow series from now on; -1 for none */
  #setOverflowRow(row) {
    this.overflowRow = row;
    this.#fullAt = row === -1 ? this.maxSeries : this.maxSeries + 1;
  }

  /** @param {number} row */
  #isOverflow(row) {
    const index = /** @type {LabelIndex} */ (this.index);
    for (const position of index.positions.values()) {
      if (this.labelText(row, position) !== OVERFLOW) return false;
    }
    return true;
  }

  /**
   * @param {number} row of the index
   * @param {Labels} labels
   * @returns {number} the row, which is live
   */
  #started(row, labels) {
    if (row >= this.rowCount) return this.#addRow(row, labels);
    if (this.live !== undefined) {
      if (!this.live.has(row)) this.#revive(row, labels);
      else if (this.#compaction !== undefined) this.#compaction.rowWritten(row);
    }
    return row;
  }

  /**
   * @param {number} row the next row number
   * @param {Labels} labels
   */
  #addRow(row, labels) {
    // Label sets that come and go must not pile up in a process that nobody scrapes. So a large table that is
    // about to grow while most of it is dead is compacted: at once if few rows are live, else a step with
    // each new row.
    if (this.#compaction !== undefined || ((row & (row - 1)) === 0 && this.isSparse)) {
      const { epoch } = this;
      if (this.liveCount <= COMPACT_AT_ONCE_ROWS) this.compactIfSparse();
      else this.#stepCompaction();
      if (this.epoch !== epoch) {
        return this.#started(/** @type {LabelIndex} */ (this.index).findOrAdd(labels), labels);
      }
    }
    this.rowCount = row + 1;
    // Pushing to an empty array reserves space for 17 elements, in each of hundreds of metrics.
    if (row === 0)
      this.pages = [this.index === undefined ? numbersInBlock(this.width) : firstPage(this.width)];
    else if (growPages(this.pages, row, this.width)) this.generation++;
    this.#append(row, labels);
    return row;
  }

  /**
   * @param {number} row
   * @param {Labels} labels
   */
  #revive(row, labels) {
    const offset = this.offsetOf(row);
    this.pageOf(row).fill(0, offset, offset + this.width);
    this.#append(row, labels);
  }

  /**
   * Makes a row live, at the end of the order.
   *
   * @param {number} row
   * @param {Labels} labels
   */
  #append(row, labels) {
    if (this.index !== undefined) {
      this.#setForm(row, this.forms.numberOf(labels));
      if (this.maxSeries < NO_LIMIT && this.#isOverflow(row)) this.#setOverflowRow(row);
    }
    this.liveCount++;
    if (this.live !== undefined) this.live.append(row);
    if (this.#compaction !== undefined) this.#compaction.rowWritten(row);
    if (this.listener !== undefined) this.listener.rowStarted(row);
  }

  /**
   * @param {number} row
   * @param {number} form
   */
  #setForm(row, form) {
    if (this.#formOfRow === undefined) {
      if (form === 0) return;
      this.#formOfRow = new Int32Array(Math.max(this.rowCount, FIRST_ROWS));
    }
    if (row >= this.#formOfRow.length) {
      const grown = new Int32Array(this.#formOfRow.length * 2);
      grown.set(this.#formOfRow);
      this.#formOfRow = grown;
    }
    this.#formOfRow[row] = form;
  }

  /**
   * Goes on with the index and the pages of a compaction.
   *
   * @param {Compaction} compaction
   */
  #takeOver(compaction) {
    const live = compaction.finish();
    const { index, pages, pageShift, rows } = compaction;
    if (this.index === undefined) {
      this.forms = new LabelForms(index.names, index.positions);
      // Its row has no labels.
      this.forms.numberOf({});
    }
    this.#formOfRow = compaction.formOfRow;
    if (this.overflowRow !== -1) this.overflowRow = compaction.newRowOf(this.overflowRow);
    this.index = index;
    this.labelNames = this.forms.names = index.names;
    this.forms.positions = index.positions;
    this.pages = pages;
    this.pageShift = pageShift;
    this.pageMask = (1 << pageShift) - 1;
    this.live = live;
    this.liveCount = live?.count ?? rows.length;
    this.rowCount = rows.length;
    this.#compaction = this.#steps = undefined;
    this.epoch++;
    this.generation++;
  }
}

/** @param {Labels} labels */
function isEmpty(labels) {
  for (const _ in labels) return false;
  return true;
}

module.exports = { SeriesTable, NO_LIMIT };
