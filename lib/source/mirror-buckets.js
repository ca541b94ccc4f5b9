'use strict';

// Runs where thread-mirror.js does. Reads the sparse buckets of another thread's native histogram, in the
// memory in which that thread counts.

const { CHUNKS, readRow, changesOfRow } = require('../series/bucket-memory');

let nextVersion = 1;

/** @typedef {import('../series/merged-buckets').Buckets} Buckets */
/** @typedef {{changes: number, version: number, buckets: Buckets}} Read */

class MirrorBuckets {
  /** @type {import('../series/bucket-memory').BucketMemory} */
  #memory;
  /** @type {Read[]} by row */
  #last = [];

  /**
   * @param {number} zeroThreshold of the metric
   * @param {number} maxBuckets of the metric
   */
  constructor(zeroThreshold, maxBuckets) {
    this.#memory = { heads: [], pages: [], zeroThreshold, maxBuckets };
  }

  /**
   * @param {number} kind
   * @param {number} number of the page
   * @param {SharedArrayBuffer} memory
   */
  setPage(kind, number, memory) {
    const { heads, pages } = this.#memory;
    (kind === CHUNKS ? pages : heads)[number] = new Int32Array(memory);
  }

  /**
   * @param {number} row
   * @returns {number | undefined} a number that differs after each change of the row and is unique among all
   *   sources; undefined if the row could never be read
   */
  changesOf(row) {
    return this.#latest(row)?.version;
  }

  /**
   * @param {number} row
   * @returns {Buckets | undefined} undefined if the row could never be read
   */
  read(row) {
    return this.#latest(row)?.buckets;
  }

  /**
   * @param {number} row
   * @returns {Read | undefined} the last read state, if the row has not changed since, or cannot be read now
   *   because the thread changes it during each attempt
   */
  #latest(row) {
    // Read first: if the thread counts while the row is read, the next call reads it again.
    const changes = changesOfRow(this.#memory.heads, row);
    const last = this.#last[row];
    if (last?.changes === changes) return last;
    const buckets = readRow(this.#memory, row);
    if (buckets === undefined) return last;
    return (this.#last[row] = { changes, version: nextVersion++, buckets });
  }
}

module.exports = { MirrorBuckets };
