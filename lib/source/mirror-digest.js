'use strict';

// Runs where thread-mirror.js does. Reads the observations of one label set of another thread's summary, in
// the memory in which that thread records: see lib/threads/shared-digests.js.

const { withValues, centroidsOf } = require('../metric/observations');

/** Numbers of a place before its buffer. */
const HEAD = 5;
const WORDS_OF_NUMBER = 2;

/** A list is replaced during a copy only if the other thread observes hundreds of values in that time. */
const ATTEMPTS = 100;
/** More than the length of a buffer. */
const VERSIONS_OF_STATE = 1024;
const NO_CENTROIDS = new Float64Array(0);

/** @typedef {{numbers: Float64Array, words: Int32Array}} Block */

/** One slice of the window, or everything if there is no window. */
class MirrorSlice {
  #block;
  #offset;
  #bufferLength;
  #listLength;
  /**
   * What was read last.
   *
   * @type {Float64Array}
   */
  #centroids = NO_CENTROIDS;

  /**
   * @param {Block} block
   * @param {number} offset
   * @param {number} bufferLength
   * @param {number} listLength
   */
  constructor(block, offset, bufferLength, listLength) {
    this.#block = block;
    this.#offset = offset;
    this.#bufferLength = bufferLength;
    this.#listLength = listLength;
  }

  get #state() {
    return Atomics.load(this.#block.words, this.#offset * WORDS_OF_NUMBER);
  }

  /** Rises with each change. */
  get version() {
    const state = this.#state;
    return state * VERSIONS_OF_STATE + this.#buffered(state);
  }

  /** When the slice leaves the window. */
  get leaves() {
    return this.#block.numbers[this.#offset + 2 + 2 * listOf(this.#state)];
  }

  get isEmpty() {
    const state = this.#state;
    return this.#buffered(state) === 0 && this.#block.numbers[this.#offset + 1 + 2 * listOf(state)] === 0;
  }

  /** @returns {Float64Array} of all observations */
  centroids() {
    const { numbers, words } = this.#block;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const state = this.#state;
      const list = listOf(state);
      const length = numbers[this.#offset + 1 + 2 * list];
      const first = this.#offset + HEAD;
      const start = first + this.#bufferLength + list * this.#listLength;
      const merged = numbers.slice(start, start + length);
      const values = upToNaN(numbers.slice(first, first + this.#buffered(state)));
      // Unlike a load, no processor moves this before the reads above.
      if (Atomics.add(words, this.#offset * WORDS_OF_NUMBER, 0) !== state) continue;
      this.#centroids = values.length === 0 ? merged : withValues(merged, values, 0, values.length);
      break;
    }
    return this.#centroids;
  }

  /**
   * @param {number} state
   * @returns {number} how many values are in the buffer; those that follow are NaN
   */
  #buffered(state) {
    if (state % 2 !== 0) return 0;
    const { numbers } = this.#block;
    const first = this.#offset + HEAD;
    let [low, high] = [0, this.#bufferLength];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Number.isNaN(numbers[first + middle])) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/**
 * @param {Float64Array} values
 * @returns {Float64Array} those before the first NaN, because on some processors a value may become visible
 *   before an earlier one
 */
function upToNaN(values) {
  for (let i = 0; i < values.length; i++) if (Number.isNaN(values[i])) return values.subarray(0, i);
  return values;
}

let nextVersion = 1;

/** Has the members that captures read of TimeWindowQuantiles, and the store of a source's digest. */
class MirrorDigest {
  /** @type {(MirrorSlice | undefined)[]} */
  #slices = [];
  #state = -1;
  #version = 0;

  /**
   * @param {number} slice
   * @param {Block} block
   * @param {number} offset
   * @param {number} bufferLength
   * @param {number} listLength
   */
  place(slice, block, offset, bufferLength, listLength) {
    this.#slices[slice] = new MirrorSlice(block, offset, bufferLength, listLength);
  }

  /**
   * Rises with each observation and each slice that leaves the window. Unique among all digests, because a
   * thread that joins again has new digests for the same rows.
   */
  get version() {
    const left = this.#slices.length - this.slices().length;
    const versions = this.#slices.reduce((sum, slice) => sum + (slice?.version ?? 0), 0);
    const state = versions * (this.#slices.length + 1) + left;
    if (state !== this.#state) this.#version = nextVersion++;
    this.#state = state;
    return this.#version;
  }

  /** @returns {Float64Array} of all observations in the window */
  get centroids() {
    return centroidsOf(this.slices());
  }

  /** @returns {any[]} the window */
  slices() {
    const now = Date.now();
    return this.#slices.filter(slice => slice !== undefined && slice.leaves >= now);
  }
}

/**
 * @param {number} state of a place
 * @returns {number} 0 or 1: the list that is shown
 */
function listOf(state) {
  return ((state + 1) >> 1) & 1;
}

module.exports = { MirrorDigest, HEAD, WORDS_OF_NUMBER, listOf };
