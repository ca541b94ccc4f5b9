'use strict';

// The buckets of all rows as they were at one moment, to be read piece by piece. Nothing is copied at that
// moment: allocating memory for 10,000 rows would block the event loop for 2 ms. A page of memory is copied
// just before it changes.

const { readHead, headOf, HEAD_SHIFT, wordsOf, HEADS } = require('./bucket-memory');

class CapturedBuckets {
  #memory;
  /** Whether the capture will not be read any more. */
  isOver = false;

  /** @param {import('./bucket-memory').BucketMemory} memory */
  constructor({ numbers, words, pages, maxBuckets }) {
    this.#memory = { numbers: [...numbers], words: [...words], pages: [...pages], maxBuckets };
  }

  /**
   * To be called before a page changes.
   *
   * @param {number} kind of the page
   * @param {Float64Array | Int32Array} page
   * @param {number} number of the page
   */
  keep(kind, page, number) {
    const { numbers, words, pages } = this.#memory;
    const ofKind = /** @type {(Float64Array | Int32Array)[]} */ (kind === HEADS ? numbers : pages);
    // Otherwise it is already a copy, or newer than this capture.
    if (ofKind[number] !== page) return;
    ofKind[number] = page.slice();
    if (kind === HEADS) words[number] = wordsOf(numbers[number]);
  }

  /**
   * @param {number} row that existed at that moment
   * @returns {import('./merged-buckets').Buckets} populated ones only
   */
  read(row) {
    const page = row >> HEAD_SHIFT;
    const { words, numbers } = this.#memory;
    return readHead(this.#memory, { words: words[page], numbers: numbers[page], at: headOf(row) });
  }
}

module.exports = { CapturedBuckets };
