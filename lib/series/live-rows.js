'use strict';

// The live rows of a table, and their order. A table needs this only after the first removal: until then all
// of its rows are live, in the order of their numbers.

const { grown } = require('./row-array');

const NOT_LIVE = -1;
const FEWEST = 4;

class LiveRows {
  /** @type {import('./compaction').Compaction | undefined} the compaction of these rows that is under way */
  compaction = undefined;
  /** How many rows are live. */
  count = 0;
  /** How much of `order` is in use. */
  length = 0;
  /** @type {Int32Array} where in `order` a row is, or NOT_LIVE */
  #position;

  /** @param {number} rowCount initial capacity */
  constructor(rowCount) {
    const capacity = Math.max(rowCount, FEWEST);
    /** The live rows in order of first use, NOT_LIVE where one was removed. */
    this.order = new Int32Array(capacity);
    this.#position = new Int32Array(capacity).fill(NOT_LIVE);
  }

  /**
   * @param {number} rowCount
   * @returns {LiveRows} with that many live rows
   */
  static all(rowCount) {
    const rows = new Int32Array(rowCount);
    for (let row = 0; row < rowCount; row++) rows[row] = row;
    return LiveRows.of(rows, rowCount);
  }

  /**
   * @param {Int32Array} rows the live ones, in their order
   * @param {number} rowCount
   * @returns {LiveRows}
   */
  static of(rows, rowCount) {
    const live = new LiveRows(rowCount);
    live.order.set(rows);
    for (let i = 0; i < rows.length; i++) live.#position[rows[i]] = i;
    live.count = live.length = rows.length;
    return live;
  }

  /** @param {number} row */
  has(row) {
    return row < this.#position.length && this.#position[row] !== NOT_LIVE;
  }

  /**
   * Makes a row live, at the end of the order.
   *
   * @param {number} row that is not live
   */
  append(row) {
    if (row >= this.#position.length) this.#position = grown(this.#position, row + 1, NOT_LIVE);
    if (this.length === this.order.length) this.#makeRoom();
    this.#position[row] = this.length;
    this.order[this.length++] = row;
    this.count++;
    this.compaction?.note(row);
  }

  /** @param {number} row that is live */
  remove(row) {
    this.order[this.#position[row]] = NOT_LIVE;
    this.#position[row] = NOT_LIVE;
    if (this.compaction !== undefined) this.compaction.isReordered = true;
    this.count--;
    if (this.count === 0) this.length = 0;
  }

  clear() {
    this.#position.fill(NOT_LIVE);
    if (this.compaction !== undefined) this.compaction.isReordered = true;
    this.count = this.length = 0;
  }

  /** @returns {Generator<number>} the live rows in order of first use since their last removal */
  *[Symbol.iterator]() {
    for (let i = 0; i < this.length; i++) if (this.order[i] !== NOT_LIVE) yield this.order[i];
  }

  /** @returns {Int32Array} the same rows. This loop takes 0.1 ms for 100,000 rows, filter() 1 ms */
  rows() {
    const { order, length } = this;
    const rows = new Int32Array(this.count);
    let next = 0;
    for (let i = 0; i < length; i++) if (order[i] !== NOT_LIVE) rows[next++] = order[i];
    return rows;
  }

  /** Closes the gaps that removed rows have left, or grows if there are few gaps. */
  #makeRoom() {
    if (this.count * 2 > this.order.length) {
      this.order = grown(this.order, this.order.length + 1, NOT_LIVE);
      return;
    }
    let length = 0;
    for (let i = 0; i < this.length; i++) {
      const row = this.order[i];
      if (row === NOT_LIVE) continue;
      this.#position[row] = length;
      this.order[length++] = row;
    }
    this.length = length;
    // Starts again, because places have changed.
    if (this.compaction !== undefined) this.compaction.next = 0;
  }
}

module.exports = { LiveRows };
