'use strict';

// Runs in a thread that has joined. Moves the pages of a table to shared memory, where the process's other
// threads read them. Pages that the table creates later are moved as soon as they exist, before anything is
// recorded in them. The numbers of tables without labels share blocks.

const { isSharedArrayBuffer } = require('node:util/types');
const { NumberBlocks } = require('../series/number-blocks');

const NUMBER_BYTES = 8;

/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */

class SharedNumbers {
  #blocks = new NumberBlocks(sharedArray);

  /**
   * @param {SeriesTable} table
   * @param {number} number of the page
   * @returns {Float64Array} the page, which is in shared memory from now on
   */
  share(table, number) {
    const page = table.pages[number];
    if (isSharedArrayBuffer(page.buffer)) return page;
    const { length } = page;
    const shared = table.index === undefined ? this.#blocks.take(length) : sharedArray(length);
    shared.set(page);
    table.pages[number] = shared;
    // Children must bind to the new page.
    table.generation++;
    return shared;
  }

  /**
   * @param {SeriesTable} table
   * @returns {Float64Array | undefined} the number of label sets beyond its limit, which is in shared memory
   *   from now on; undefined if it has none
   */
  shareOverflowCount(table) {
    const { overflowCounter } = table;
    if (overflowCounter === undefined || isSharedArrayBuffer(overflowCounter.buffer)) return overflowCounter;
    const shared = this.#blocks.take(1);
    shared.set(overflowCounter);
    table.overflowCounter = shared;
    return shared;
  }
}

/**
 * @param {number} count
 * @returns {Float64Array}
 */
function sharedArray(count) {
  return new Float64Array(new SharedArrayBuffer(count * NUMBER_BYTES));
}

module.exports = { SharedNumbers };
