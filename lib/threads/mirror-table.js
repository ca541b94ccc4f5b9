'use strict';

// Runs in the process's hub. A table whose numbers another thread records, in shared memory. Its rows are
// those that the thread has published; nothing is ever written to its pages.

const { SeriesTable } = require('../series/series-table');
const { LiveRows } = require('../series/live-rows');
const { setLabel } = require('../series/label-form');

const NUMBER_BYTES = 8;

class MirrorTable extends SeriesTable {
  /**
   * @param {readonly string[]} labelNames
   * @param {number} width
   * @param {number} pageShift
   */
  constructor(labelNames, width, pageShift) {
    super(labelNames, width);
    this.pageShift = pageShift;
    this.pageMask = (1 << pageShift) - 1;
  }

  /** The thread compacts the table itself, and publishes it anew. */
  get isSparse() {
    return false;
  }

  /**
   * @param {number} number of the page
   * @param {SharedArrayBuffer} memory
   * @param {number} byteOffset
   * @param {number} length numbers
   * @throws {Error} if the memory does not have them
   */
  setPage(number, memory, byteOffset, length) {
    if (number > this.pages.length || length > (1 << this.pageShift) * this.width)
      throw new RangeError('a page is not valid');
    if (byteOffset % NUMBER_BYTES !== 0 || byteOffset + length * NUMBER_BYTES > memory.byteLength)
      throw new RangeError('a page is outside its memory');
    this.pages[number] = new Float64Array(memory, byteOffset, length);
  }

  /**
   * A row that has started in the thread.
   *
   * @param {number} row
   * @param {number[]} positions of its labels, in their order
   * @param {string[]} texts of its labels
   * @throws {Error} if it is not the next row, or not one that may start again
   */
  follow(row, positions, texts) {
    const { index } = this;
    /** @type {Record<string, string>} */
    const labels = {};
    positions.forEach((position, i) => setLabel(labels, this.labelNames[position], texts[i]));
    const found = index === undefined ? 0 : index.findOrAdd(labels);
    const isNew = row === this.rowCount;
    if (found !== row || row > this.rowCount || (!isNew && this.isLive(row)))
      throw new Error('a row does not follow from those before it');
    const page = this.pages[row >> this.pageShift];
    if (page === undefined || this.offsetOf(row) + this.width > page.length)
      throw new Error('a row has no memory');
    if (isNew) this.rowCount++;
    if (index !== undefined) this.forms.rows.set(row, this.forms.numberOf(labels));
    this.liveCount++;
    this.live?.append(row);
  }

  /**
   * @param {number[]} rows the live ones, in order
   * @throws {Error} if they are not rows, or not different ones
   */
  setOrder(rows) {
    const live = new LiveRows(this.rowCount);
    for (const row of rows) {
      if (row >= this.rowCount || live.has(row)) throw new Error('an order of rows is not valid');
      live.append(row);
    }
    this.live = live;
    this.liveCount = rows.length;
  }
}

module.exports = { MirrorTable };
