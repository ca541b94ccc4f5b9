'use strict';

// A table whose rows are those of another one: of a thread, which records them in shared memory
// (thread-mirror.js), or copies of rows that have ended (ended-rows.js). Its label sets are only read.

const { SeriesTable } = require('../series/series-table');
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
   */
  add(row, idAt, newValue) {
    const start = row * this.width;
    if (start + this.width > this.#tuples.length) this.#tuples = grown(this.#tuples, start + this.width);
    for (let position = 0; position < this.width; position++) {
      const id = idAt(position);
      const { values } = this.dictionaries[position];
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
  /** @type {Float64Array} how many label sets there were beyond the limit */
  overflows = new Float64Array(1);
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

  get overflowCount() {
    return this.overflows[0];
  }

  /**
   * Follows a row that has started in the thread.
   *
   * @param {number} row the next one, or one that starts again
   * @param {number} form
   * @param {(position: number) => number} idAt the number of its value of each label
   * @param {() => string} newValue the value that is the next one of its label, if there is one
   */
  follow(row, form, idAt, newValue) {
    const isNew = row === this.rowCount;
    if (this.labelSets !== undefined) {
      if (isNew) this.labelSets.add(row, idAt, newValue);
      this.forms.rows.set(row, form);
    }
    if (isNew) this.rowCount++;
    this.liveCount++;
    this.live?.append(row);
  }

  /**
   * @param {number} row a live one
   * @param {boolean} isExpired
   */
  removeRow(row, isExpired = false) {
    if (isExpired) this.#expiredCount++;
    super.removeRow(row, isExpired);
  }
}

module.exports = { MirrorTable };
