'use strict';

// The buckets of all rows as they were at one moment, to be read piece by piece. Nothing is copied at that
// moment: allocating memory for 10,000 rows would block the event loop for 2 ms. A page of memory is copied
// just before it changes.

const { readHead, headOf, HEAD_SHIFT, HEADS } = require('./bucket-memory');

class CapturedBuckets {
  #memory;
  /** Whether the capture will not be read any more. */
  isOver = false;

  /** @param {import('./bucket-memory').BucketMemory} memory */
  constructor(memory) {
    this.#memory = { ...memory, heads: [...memory.heads], pages: [...memory.pages] };
  }

  /**
   * To be called before a page changes.
   *
   * @param {number} kind of the page
   * @param {Int32Array} page
   * @param {number} number of the page
   */
  keep(kind, page, number) {
    const { heads, pages } = this.#memory;
    const ofKind = kind === HEADS ? heads : pages;
    // Otherwise it is already a copy, or newer than this capture.
    if (ofKind[number] === page) ofKind[number] = page.slice();
  }

  /**
   * @param {number} row that existed at that moment
   * @returns {import('./merged-buckets').Buckets} populated ones only
   */
  read(row) {
    return readHead(this.#memory, { words: this.#memory.heads[row >> HEAD_SHIFT], at: headOf(row) });
  }
}

module.exports = { CapturedBuckets };
