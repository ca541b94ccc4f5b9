'use strict';

// A table whose rows are those of another one: of a thread, which records them in shared memory
// (thread-mirror.js), or copies of rows that have ended (ended-rows.js). Its label sets are only read.

const { SeriesTable } = require('../series/series-table');
const { LiveRows } = require('../series/live-rows');
const { grown } = require('../series/row-array');

/** The label sets by row. They are only read, so no look-up from a label set to its row is needed. */
class MirrorIndex {
  #tuples = new Int32Array(0);

  /** @param {readonly string[]} names */
  constructor(names) {
    this.names = names;
    this.width = names.length;
    /** @type {{values: string[]}[]} the first value of each means a missing label */
    this.dictionaries = names.map(() => ({ values: [''] }));
  }

  /**
   * @param {number} row the next one
   * @param {(position: number) => number} idAt the number of its value of each label
   * @param {() => string} newValue the value that is the next one of its label, if there is one
   * @throws {Error} if there is no such value
   */
  add(row, idAt, newValue) {
    const start = row * this.width;
    if (start + this.width > this.#tuples.length) this.#tuples = grown(this.#tuples, start + this.width);
    for (let position = 0; position < this.width; position++) {
      const id = idAt(position);
      const { values } = this.dictionaries[position];
      if (id > values.length) throw new RangeError('a row has an unknown value');
      if (id === values.length) values.push(newValue());
      this.#tuples[start + position] = id;
    }
  }

  /**
   * @param {number} row
   * @param {number} position
   */
  idAt(row, position) {
    return this.#tuples[row * this.width + position];
  }
}

class MirrorTable extends SeriesTable {
  /** @type {Float64Array} */
  #overflowCount = new Float64Array(1);
  #maxIdleSeconds;
  #expiredCount;

  /**
   * @param {readonly string[]} labelNames
   * @param {number} width
   * @param {number} pageShift
   * @param {{maxIdleSeconds: number, expiredCount: number}} expiry of the thread's table, when it was
   *   published
   */
  constructor(labelNames, width, pageShift, { maxIdleSeconds, expiredCount }) {
    super(labelNames, width);
    this.#maxIdleSeconds = maxIdleSeconds;
    this.#expiredCount = expiredCount;
    this.resets = NaN;
    this.pageShift = pageShift;
    this.pageMask = (1 << pageShift) - 1;
    this.labelSets = this.index && new MirrorIndex(this.labelNames);
    this.index = /** @type {any} */ (this.labelSets);
  }

  /** The thread compacts the table itself, and publishes it again. */
  get isSparse() {
    return false;
  }

  get maxIdleSeconds() {
    return this.#maxIdleSeconds;
  }

  get expiredCount() {
    return this.#expiredCount;
  }

  /**
   * @param {number} number of the page
   * @param {SharedArrayBuffer} memory
   * @param {number} byteOffset
   * @param {number} length numbers
   * @throws {Error} if the memory does not have them
   */
  setPage(number, memory, byteOffset, length) {
    const isShorter = number < this.pages.length && length < this.pages[number].length;
    if (number > this.pages.length || isShorter || length > (1 << this.pageShift) * this.width)
      throw new RangeError('a page is not valid');
    // Throws if the memory does not have them.
    this.pages[number] = new Float64Array(memory, byteOffset, length);
  }

  /**
   * @param {SharedArrayBuffer} memory
   * @param {number} byteOffset
   * @throws {Error} if the memory does not have it
   */
  setOverflowCount(memory, byteOffset) {
    this.#overflowCount = new Float64Array(memory, byteOffset, 1);
  }

  get overflowCount() {
    return this.#overflowCount[0];
  }

  /**
   * @param {number[]} positions of the labels that rows of the next form have
   * @throws {Error} if there are no such labels
   */
  addForm(positions) {
    const isTwice = new Set(positions).size < positions.length;
    if (isTwice || positions.some(position => position >= this.labelNames.length))
      throw new RangeError('a form is not valid');
    this.forms.list.push({ positions, kinds: positions.map(() => 'string') });
  }

  /**
   * @param {number} position
   * @param {string} text the next value of the label at that position
   * @throws {Error} if there is no such label
   */
  addValue(position, text) {
    const dictionary = this.labelSets?.dictionaries[position];
    if (dictionary === undefined) throw new RangeError('a value is not valid');
    dictionary.values.push(text);
  }

  /**
   * Follows a row that has started in the thread.
   *
   * @param {number} row
   * @param {number} form
   * @param {(position: number) => number} idAt the number of its value of each label
   * @param {() => string} newValue the value that is the next one of its label, if there is one
   * @throws {Error} if it is neither the next row nor one that may start again
   */
  follow(row, form, idAt, newValue) {
    const isNew = row === this.rowCount;
    if (row > this.rowCount || (!isNew && this.isLive(row)))
      throw new Error('a row does not follow from those before it');
    const page = this.pages[row >> this.pageShift];
    if (page === undefined || this.offsetOf(row) + this.width > page.length)
      throw new Error('a row has no memory');
    if (this.labelSets !== undefined) {
      if (form >= this.forms.list.length) throw new RangeError('a row has an unknown form');
      if (isNew) this.labelSets.add(row, idAt, newValue);
      this.forms.rows.set(row, form);
    }
    if (isNew) this.rowCount++;
    this.liveCount++;
    this.live?.append(row);
  }

  /**
   * @param {number} row
   * @param {boolean} isExpired
   * @throws {Error} if it is not live
   */
  removeLive(row, isExpired) {
    if (row >= this.rowCount || !this.isLive(row)) throw new Error('a row is not live');
    if (isExpired) this.#expiredCount++;
    this.removeRow(row, isExpired);
  }

  /**
   * @param {number[]} rows the live ones, in order
   * @throws {Error} if one of them does not exist, or occurs twice
   */
  setOrder(rows) {
    const live = new LiveRows(this.rowCount);
    for (const row of rows) {
      if (row >= this.rowCount || live.has(row)) throw new Error('an order of rows is not valid');
      live.append(row);
    }
    this.live = live;
    this.liveCount = rows.length;
    this.generation++;
  }
}

module.exports = { MirrorTable };
