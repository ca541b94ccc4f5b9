'use strict';

const { compressCentroids, mergeCentroids } = require('./centroids');

// tdigest's own default.
const DELTA = 0.01;

// Sorting and merging 512 values takes 20 to 40 µs. Half as many would double the share of merging in the
// cost of an observation.
const MAX_BUFFERED = 512;

const NO_CENTROIDS = new Float64Array(0);

// Shared by all merges, which are synchronous.
const sorted = new Float64Array(MAX_BUFFERED);
let scratch = new Float64Array(4096);

/**
 * The distribution of observed values: the latest ones in a buffer, all others merged into centroids. An
 * observation costs one write to the buffer. A full buffer is sorted and merged in one pass, instead of
 * searching and rebalancing a tree for each value.
 */
class Observations {
  // Not a typed array: most label sets have few observations, and an empty typed array takes 200 bytes. One
  // element from the start: the first element of an empty array would allocate 17.
  #buffer = [NaN];
  #buffered = 0;
  /** @type {Float64Array} */
  #merged = NO_CENTROIDS;
  #limit;

  /** @param {number | string} [limit] how many values to buffer, at most 512; anything else stands for 512 */
  constructor(limit) {
    const given = typeof limit === 'number' || typeof limit === 'string' ? Number(limit) : MAX_BUFFERED;
    this.#limit = given < MAX_BUFFERED ? Math.max(1, Math.floor(given)) : MAX_BUFFERED;
  }

  /** @param {number} value a number, not NaN */
  push(value) {
    this.#buffer[this.#buffered++] = value;
    if (this.#buffered >= this.#limit) this.#merge();
  }

  get isEmpty() {
    return this.#buffered === 0 && this.#merged.length === 0;
  }

  /** @returns {Float64Array} of all observations, as `centroids.js` has them; never changed afterwards */
  centroids() {
    if (this.#buffered > 0) this.#merge();
    return this.#merged;
  }

  /** Frees the buffer, if nothing more will be observed. */
  close() {
    if (this.#buffered > 0) this.#merge();
    this.#buffer = [NaN];
  }

  #merge() {
    const count = this.#buffered;
    for (let i = 0; i < count; i++) sorted[i] = this.#buffer[i];
    sorted.subarray(0, count).sort();
    const merged = this.#merged;
    const length = merged.length + count * 2;
    if (scratch.length < length) scratch = new Float64Array(length * 2);
    let m = 0;
    let v = 0;
    for (let i = 0; i < length; i += 2) {
      if (v >= count || (m < merged.length && merged[m] <= sorted[v])) {
        scratch[i] = merged[m];
        scratch[i + 1] = merged[m + 1];
        m += 2;
      } else {
        scratch[i] = sorted[v++];
        scratch[i + 1] = 1;
      }
    }
    this.#merged = scratch.slice(0, compressCentroids(scratch, length, DELTA));
    this.#buffered = 0;
  }
}

/**
 * @param {Observations[]} slices
 * @returns {Float64Array} the centroids of all of them
 */
function centroidsOf(slices) {
  if (slices.length === 1) return slices[0].centroids();
  const filled = slices.filter(slice => !slice.isEmpty);
  return mergeCentroids(
    filled.map(slice => slice.centroids()),
    DELTA,
  );
}

module.exports = { Observations, centroidsOf };
