'use strict';

// A metric's numbers: rows of `width` numbers in pages of Float64Array, found through a label index. Pages, because
// growing never copies much (doubling one array of 100 MB takes 31-52 ms, in the middle of somebody's request).

const { LabelIndex } = require('./label-index');
const { LabelForms, valueOfKind, setLabel } = require('./label-form');
const { CapturedTable } = require('./captured-table');
const { numbersInBlock } = require('./number-blocks');

const PAGE_NUMBERS = 16384; // 128 KB
const FIRST_ROWS = 4; // applications have hundreds of metrics with a handful of series each
const NOT_LIVE = -1;
const COMPACT_FROM_ROWS = 1024;
const COMPACT_AT_ONCE_ROWS = 8192;

/** As the limit of a table that has none: more rows than an index can number, and an integer that is quickly compared. */
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
 * @property {(row: number) => void} rowStarted told of each row that starts (again) from zero
 * @property {(rows: number[]) => void} rowsMoved told of the rows that compaction keeps: the old number of each, in
 *   their new order
 */

class SeriesTable {
  /** @type {Int32Array | undefined} each row's form; undefined while all rows have form 0 */
  #formOfRow = undefined;
  /** How many live rows leave no room for another label set. */
  #fullAt;

  /**
   * @param {readonly string[]} labelNames
   * @param {number} width numbers a row
   * @param {number} [maxSeries] how many label sets are told apart; all others share the overflow series, which is not
   *   among these
   */
  constructor(labelNames, width, maxSeries = NO_LIMIT) {
    this.width = width;
    this.maxSeries = maxSeries;
    this.#fullAt = maxSeries;
    /** The overflow series while it is live and there is a limit, else -1. */
    this.overflowRow = -1;
    /** How many look-ups were given the overflow series because there was no room. */
    this.overflowCount = 0;
    /** @type {(() => void) | undefined} told of the first of these */
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
    /**
     * The live rows in order of first use, NOT_LIVE where one was removed; undefined while every row is live and in
     * order, as in most tables always.
     *
     * @type {Int32Array | undefined}
     */
    this.order = undefined;
    this.orderLength = 0;
    /** @type {Int32Array | undefined} where in `order` a row stands, or NOT_LIVE */
    this.position = undefined;
    this.liveCount = 0;
    /** Row numbers are stable within an epoch. */
    this.epoch = 0;
    /** Changes whenever a page or offset that somebody holds may have become wrong. */
    this.generation = 0;
    /** @type {RowListener | undefined} who keeps more of each row than numbers */
    this.listener = undefined;
  }

  /**
   * The live row of a label set; created, or revived from zero, if need be. Where there is no room for it, that of the
   * overflow series.
   *
   * @param {Labels} labels
   * @returns {number} the row, or -1 where a label is not one of the names
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
    return row !== -1 && row < this.rowCount && this.isLive(row) ? row : -1;
  }

  /**
   * The live row of a label set that is given by its values.
   *
   * @param {readonly unknown[]} values one for each label name, in their order
   * @returns {number} the row, or -1 if there is none, or if a value is neither a string nor a number
   */
  findByPosition(values) {
    if (this.index === undefined) return -1;
    const row = this.index.findByPosition(values);
    return row !== -1 && row < this.rowCount && this.isLive(row) ? row : -1;
  }

  /** @param {number} row */
  isLive(row) {
    return this.position === undefined || this.position[row] !== NOT_LIVE;
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
    if (this.order === undefined) {
      for (let row = 0; row < this.rowCount; row++) yield row;
    } else {
      for (let i = 0; i < this.orderLength; i++) if (this.order[i] !== NOT_LIVE) yield this.order[i];
    }
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
   * A fresh object with a row's labels as they were given (text for what was no primitive).
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
   * Forgets a label set; it starts from zero, at the end, when it returns.
   *
   * @param {number} row a live one
   */
  removeRow(row) {
    if (row === this.overflowRow) this.#setOverflowRow(-1);
    if (this.order === undefined) this.#startOrder();
    const order = /** @type {Int32Array} */ (this.order);
    const position = /** @type {Int32Array} */ (this.position);
    order[position[row]] = NOT_LIVE;
    position[row] = NOT_LIVE;
    this.liveCount--;
    this.generation++;
    if (this.liveCount === 0) this.orderLength = 0;
  }

  /** Forgets every label set. Rows are kept for those that return, as those of a gauge that is refilled do. */
  clear() {
    if (this.liveCount === 0) return;
    this.#setOverflowRow(-1);
    if (this.position === undefined) this.#startOrder();
    /** @type {Int32Array} */ (this.position).fill(NOT_LIVE);
    this.orderLength = 0;
    this.liveCount = 0;
    this.generation++;
  }

  /**
   * Drops rows that are not live when they are more than half of a large table. Rows get new numbers, the epoch rises.
   *
   * @returns {boolean} whether that was the case
   */
  compactIfSparse() {
    if (!this.isSparse) return false;
    this.#rebuild(this.labelNames);
    return true;
  }

  /**
   * Lets label sets have labels that they could not have so far. Where there are any, rows get new numbers, and the epoch
   * rises.
   *
   * @param {readonly string[]} names new ones and known ones
   */
  addLabelNames(names) {
    const added = names.filter(name => !this.labelNames.includes(name));
    if (added.length > 0) this.#rebuild([...this.labelNames, ...added]);
  }

  /** Whether the table is large, and rows that are not live are more than half of it. */
  get isSparse() {
    return this.rowCount >= COMPACT_FROM_ROWS && this.liveCount * 2 < this.rowCount;
  }

  /**
   * The row of a label set in a table that has no room for another. Nothing of a label set that is folded is kept: they
   * come from strangers, without end.
   *
   * @param {LabelIndex} index
   * @param {Labels} labels
   * @returns {number} the row, or -1 where a label is not one of the names
   */
  #locateWhenFull(index, labels) {
    const row = this.find(labels);
    if (row !== -1) return row;
    if (index.unknownLabel(labels) !== undefined) return -1;
    if (this.overflowRow === -1) {
      this.#startOverflow(index);
      // Once more: it may be the overflow series that was asked for.
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
    if (this.position !== undefined && this.position[row] === NOT_LIVE) this.#revive(row, labels);
    return row;
  }

  /**
   * @param {number} row the next row number
   * @param {Labels} labels
   */
  #addRow(row, labels) {
    // A table that is about to grow while most of it is dead is compacted instead, so that label sets which come and
    // go do not pile up in a process that nobody scrapes. Here somebody's request is waiting: a table of which much is
    // live is left to the next scrape, within bounds.
    if (this.rowCount >= COMPACT_FROM_ROWS && (this.rowCount & (this.rowCount - 1)) === 0) {
      const isQuick = this.liveCount <= COMPACT_AT_ONCE_ROWS;
      if (this.liveCount * (isQuick ? 2 : 8) < this.rowCount) {
        this.#rebuild(this.labelNames);
        row = /** @type {LabelIndex} */ (this.index).findOrAdd(labels);
      }
    }
    this.rowCount = row + 1;
    this.#growPages(row);
    this.#append(row, labels);
    return row;
  }

  /** @param {number} row */
  #growPages(row) {
    const number = row >> this.pageShift;
    const rowsPerPage = this.pageMask + 1;
    const page = this.pages[number];
    if (page === undefined) {
      const added = this.#newPage(number, rowsPerPage);
      // Pushing to an empty array makes room for 17.
      if (number === 0) this.pages = [added];
      else this.pages.push(added);
    } else if (this.offsetOf(row) >= page.length) {
      const grown = new Float64Array(page.length * 2);
      grown.set(page);
      this.pages[number] = grown;
      this.generation++;
    }
  }

  /**
   * @param {number} number of the page
   * @param {number} rowsPerPage
   */
  #newPage(number, rowsPerPage) {
    if (this.index === undefined) return numbersInBlock(this.width);
    return new Float64Array((number === 0 ? Math.min(FIRST_ROWS, rowsPerPage) : rowsPerPage) * this.width);
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
    if (this.position !== undefined) {
      if (row >= this.position.length) this.position = grownRows(this.position, row + 1);
      this.#makeRoomInOrder();
      this.position[row] = this.orderLength;
      /** @type {Int32Array} */ (this.order)[this.orderLength++] = row;
    }
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

  /** From now on the order is written down. */
  #startOrder() {
    const order = new Int32Array(Math.max(this.rowCount, FIRST_ROWS)).fill(NOT_LIVE, this.rowCount);
    for (let row = 0; row < this.rowCount; row++) order[row] = row;
    this.order = order;
    this.position = order.slice();
    this.orderLength = this.rowCount;
  }

  /** Squeezes out the gaps of removed rows before the order would grow. */
  #makeRoomInOrder() {
    const order = /** @type {Int32Array} */ (this.order);
    const position = /** @type {Int32Array} */ (this.position);
    if (this.orderLength < order.length) return;
    if (this.liveCount * 2 > order.length) {
      this.order = grownRows(order, order.length + 1);
      return;
    }
    let length = 0;
    for (let i = 0; i < this.orderLength; i++) {
      const row = order[i];
      if (row === NOT_LIVE) continue;
      position[row] = length;
      order[length++] = row;
    }
    this.orderLength = length;
  }

  /**
   * Moves the live rows to a new index and new pages.
   *
   * @param {readonly string[]} labelNames those so far, and perhaps more
   */
  #rebuild(labelNames) {
    const old = this.index;
    const index = new LabelIndex(labelNames);
    const dictionaries = old === undefined ? [] : old.dictionaries;
    // Giving every value a new integer takes most of the time: only where most values are gone it is worth it.
    const keeps = dictionaries.map(({ values }) => values.length <= this.liveCount * 2);
    keeps.forEach((keep, i) => {
      if (keep) index.dictionaries[i] = dictionaries[i];
    });
    const { pages, pageShift, pageMask } = this;
    const forms = this.#formOfRow;
    const rows = [...this.liveRows()];
    if (old === undefined) {
      this.forms = new LabelForms(index.names, index.positions);
      // Its row has no labels.
      this.forms.numberOf({});
    }
    this.index = index;
    this.labelNames = this.forms.names = index.names;
    this.forms.positions = index.positions;
    this.pages = [];
    this.pageShift = pageShiftOf(this.width);
    this.pageMask = (1 << this.pageShift) - 1;
    this.#formOfRow = forms === undefined ? undefined : new Int32Array(Math.max(rows.length, FIRST_ROWS));
    this.order = this.position = undefined;
    this.orderLength = 0;
    this.rowCount = 0;
    for (const row of rows) {
      index.ids.fill(0);
      for (let i = 0; i < dictionaries.length; i++) {
        const id = /** @type {LabelIndex} */ (old).idAt(row, i);
        index.ids[i] = id === 0 || keeps[i] ? id : index.dictionaries[i].add(dictionaries[i].values[id]);
      }
      const moved = index.findOrAddTuple();
      this.rowCount = moved + 1;
      this.#growPages(moved);
      const from = (row & pageMask) * this.width;
      this.pageOf(moved).set(pages[row >> pageShift].subarray(from, from + this.width), this.offsetOf(moved));
      if (forms !== undefined) /** @type {Int32Array} */ (this.#formOfRow)[moved] = forms[row];
    }
    if (this.overflowRow !== -1) this.overflowRow = rows.indexOf(this.overflowRow);
    if (this.listener !== undefined) this.listener.rowsMoved(rows);
    this.liveCount = rows.length;
    this.epoch++;
    this.generation++;
  }
}

/**
 * @param {number} width numbers a row
 * @returns {number} a page has 2 to the power of this rows
 */
function pageShiftOf(width) {
  return Math.floor(Math.log2(Math.max(PAGE_NUMBERS / width, 1)));
}

/** @param {Labels} labels */
function isEmpty(labels) {
  for (const _ in labels) return false;
  return true;
}

/**
 * @param {Int32Array} rows
 * @param {number} needed
 */
function grownRows(rows, needed) {
  const grown = new Int32Array(Math.max(rows.length * 2, needed)).fill(NOT_LIVE, rows.length);
  grown.set(rows);
  return grown;
}

module.exports = { SeriesTable, NO_LIMIT };
