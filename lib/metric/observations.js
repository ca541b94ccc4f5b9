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
 * Where the observations of one slice are in a thread that has joined a WorkerRegistry: another thread
 * reads them there at any time. See lib/threads/shared-digests.js.
 *
 * @typedef {object} SharedPlace
 * @property {number} limit as that of the observations
 * @property {number} leaves at what time in milliseconds it leaves the window
 * @property {Float64Array} buffer memory of the latest values
 * @property {number} first where they begin in it
 * @property {number} end where they end if there is no more room
 * @property {(merged: Float64Array, values: ArrayLike<number>) => Float64Array | undefined} write replaces
 *   all that is there; returns the merged centroids as they are there; undefined if there is no memory
 * @property {(owner: Observations, limit: number) => boolean} take replaces the owner of the place; returns
 *   whether there may be values of another one
 */

/**
 * The distribution of observed values: the latest ones in a buffer, all others merged into centroids. An
 * observation costs one write to the buffer. A full buffer is sorted and merged in one pass, instead of
 * searching and rebalancing a tree for each value.
 */
class Observations {
  // Not a typed array: most label sets have few observations, and an empty typed array takes 200 bytes. One
  // element from the start: the first element of an empty array would allocate 17.
  /** @type {number[] | Float64Array} */
  #buffer = [NaN];
  #next = 0;
  #end;
  /** @type {Float64Array} */
  #merged = NO_CENTROIDS;
  /** @type {SharedPlace | undefined} */
  #place = undefined;

  /** @param {number | string} [limit] how many values to buffer, at most 512; anything else stands for 512 */
  constructor(limit) {
    const given = typeof limit === 'number' || typeof limit === 'string' ? Number(limit) : MAX_BUFFERED;
    this.#end = given < MAX_BUFFERED ? Math.max(1, Math.floor(given)) : MAX_BUFFERED;
  }

  /** undefined if they are not in shared memory */
  get place() {
    return this.#place;
  }

  /** @param {number} value a number, not NaN */
  push(value) {
    this.#buffer[this.#next++] = value;
    if (this.#next >= this.#end) this.#makeRoom();
  }

  get isEmpty() {
    return this.#next === this.#first && this.#merged.length === 0;
  }

  /** @returns {Float64Array} of all observations, as `centroids.js` has them; never changed afterwards */
  centroids() {
    if (this.#next > this.#first) this.#merge();
    return this.#place === undefined ? this.#merged : this.#merged.slice();
  }

  /** Frees the buffer, if nothing more will be observed. */
  close() {
    if (this.#next > this.#first) this.#merge();
    if (this.#place === undefined) this.#buffer = [NaN];
  }

  /**
   * Moves the observations, and those to come, to a place that another thread reads.
   *
   * @param {SharedPlace} place
   */
  share(place) {
    const former = this.#place;
    const isUsed = place.take(this, former?.limit ?? this.#end);
    if (isUsed || !this.isEmpty) {
      const values = this.#buffer.slice(this.#first, this.#next);
      this.#place = place;
      this.#write(values);
      return;
    }
    this.#place = place;
    // Memory is provided with the first value.
    if (former !== undefined) this.#buffer = [NaN];
    this.#next = 0;
    this.#end = 1;
  }

  /**
   * Leaves the shared memory to others, with a copy of what is there.
   *
   * @param {number[] | Float64Array} [values] that are not merged
   */
  leave(values = this.#buffer.slice(this.#first, this.#next)) {
    const { limit } = /** @type {SharedPlace} */ (this.#place);
    this.#merged = this.#merged.slice();
    this.#place = undefined;
    this.#buffer = Array.from(values);
    this.#next = values.length;
    this.#end = limit;
  }

  get #first() {
    return this.#place?.first ?? 0;
  }

  #makeRoom() {
    const limit = this.#place?.limit ?? this.#end;
    if (this.#next - this.#first >= limit) this.#merge();
    else this.#write(this.#buffer.slice(this.#first, this.#next));
  }

  #merge() {
    const first = this.#first;
    this.#merged = withValues(this.#merged, this.#buffer, first, this.#next);
    this.#next = first;
    if (this.#place !== undefined) this.#write([]);
  }

  /** @param {number[] | Float64Array} values that are not merged */
  #write(values) {
    const place = /** @type {SharedPlace} */ (this.#place);
    const merged = place.write(this.#merged, values);
    if (merged === undefined) {
      this.leave(values);
      return;
    }
    this.#merged = merged;
    this.#buffer = place.buffer;
    this.#next = place.first + values.length;
    this.#end = place.end;
  }
}

/**
 * @param {Float64Array} merged centroids
 * @param {ArrayLike<number>} buffer
 * @param {number} first where the values begin in the buffer; there are at most 512
 * @param {number} end
 * @returns {Float64Array} the centroids of both
 */
function withValues(merged, buffer, first, end) {
  const count = end - first;
  for (let i = 0; i < count; i++) sorted[i] = buffer[first + i];
  sorted.subarray(0, count).sort();
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
  return scratch.slice(0, compressCentroids(scratch, length, DELTA));
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

module.exports = { Observations, MAX_BUFFERED, centroidsOf, withValues };
