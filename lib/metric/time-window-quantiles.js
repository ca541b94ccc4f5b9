'use strict';

const { quantileOf } = require('./centroids');
const { Observations, centroidsOf } = require('./observations');

/** @typedef {import('./observations').SharedPlace} SharedPlace */

/**
 * Quantiles of what was observed in the last `maxAgeSeconds`, or ever if there is no window.
 *
 * A window consists of `ageBuckets` slices of time; the oldest is dropped when a new one begins. Fields have
 * prom-client's names, for those who import the class from `lib/timeWindowQuantiles`.
 */
class TimeWindowQuantiles {
  /** @type {Observations[]} a ring; the slice at `currentBuffer` is the latest */
  #slices;
  #bufferLimit;

  /**
   * @param {number | undefined} maxAgeSeconds
   * @param {number | undefined} ageBuckets number of slices; there is a window only if both are given
   * @param {number} [bufferLimit] how many observations to collect before they are merged, at most 512
   */
  constructor(maxAgeSeconds, ageBuckets, bufferLimit) {
    const windowed = maxAgeSeconds && ageBuckets;
    this.#bufferLimit = bufferLimit;
    // Not Array.from() for all: it takes a tenth of the time of a new label set.
    this.#slices = windowed
      ? Array.from({ length: ageBuckets }, () => new Observations(bufferLimit))
      : [new Observations(bufferLimit)];
    this.currentBuffer = 0;
    /** Milliseconds that a slice lasts; Infinity without a window. */
    this.durationBetweenRotatesMillis = windowed ? (maxAgeSeconds * 1000) / ageBuckets : Infinity;
    this.lastRotateTimestampMillis = Date.now();
    /** Rises with each observation and each dropped slice. An encoding of another version is outdated. */
    this.version = 0;
  }

  /** @param {number} value */
  push(value) {
    if (this.durationBetweenRotatesMillis !== Infinity) this.#rotate();
    if (Number.isNaN(value)) return; // it would make all quantiles NaN
    this.#slices[this.currentBuffer].push(value);
    this.version++;
  }

  /** Merges what was collected. Readers do so themselves. */
  compress() {
    centroidsOf(this.slices());
  }

  /** @returns {number} how many centroids the window holds; 0 if it is empty */
  size() {
    return centroidsOf(this.slices()).length / 2;
  }

  /**
   * @param {number} quantile 0 to 1
   * @returns {number} 0 if nothing was observed
   */
  percentile(quantile) {
    return quantilesOf(this.slices(), [quantile])[0];
  }

  /** Forgets everything. Slices begin when they would have begun without it. */
  reset() {
    const old = this.#slices;
    this.#slices = old.map(() => new Observations(this.#bufferLimit));
    this.#place(slice => old[slice].place, old.length);
    this.version++;
  }

  /**
   * Moves the observations, and those to come, to shared memory, where another thread reads them.
   *
   * @param {{placeOf: (row: number, slice: number) => SharedPlace}} digests
   * @param {number} row
   */
  share(digests, row) {
    this.#place(slice => digests.placeOf(row, slice), this.#slices.length);
  }

  /**
   * @param {(slice: number) => SharedPlace | undefined} placeOf
   * @param {number} count of the latest slices, which are not in their places yet
   */
  #place(placeOf, count) {
    const { length } = this.#slices;
    for (let age = 0; age < count; age++) {
      const slice = (this.currentBuffer - age + length) % length;
      const place = placeOf(slice);
      if (place === undefined || place === this.#slices[slice].place) continue;
      place.leaves = this.lastRotateTimestampMillis + (length - age) * this.durationBetweenRotatesMillis;
      this.#slices[slice].share(place);
    }
  }

  /**
   * prom-client's ring of digests, made when it is read: the one at `currentBuffer` holds the whole window,
   * the next one what will be left of it in the next slice, and so on.
   *
   * @returns {import('tdigest').TDigest[]}
   */
  get ringBuffer() {
    const slices = this.slices();
    const latest = this.currentBuffer;
    const oldestFirst = [...slices.slice(latest + 1), ...slices.slice(0, latest + 1)];
    /** @type {import('tdigest').TDigest[]} */
    const digests = [];
    for (let i = 0; i < slices.length; i++) {
      digests[(latest + i) % slices.length] = digestOf(oldestFirst.slice(i));
    }
    return digests;
  }

  /** @returns {Observations[]} the window; a reset or a new slice replaces this list, and never changes it */
  slices() {
    if (this.durationBetweenRotatesMillis !== Infinity) this.#rotate();
    return this.#slices;
  }

  /** Drops slices that have become too old. */
  #rotate() {
    const { durationBetweenRotatesMillis: duration } = this;
    const elapsed = Date.now() - this.lastRotateTimestampMillis;
    if (elapsed <= duration) return;
    const old = this.#slices;
    const slices = [...old];
    slices[this.currentBuffer].close();
    const ended = Math.ceil(elapsed / duration) - 1;
    // After a long pause, all slices are empty.
    const steps = Math.min(ended, slices.length);
    for (let step = 0; step < steps; step++) {
      this.currentBuffer = (this.currentBuffer + 1) % slices.length;
      slices[this.currentBuffer] = new Observations(this.#bufferLimit);
    }
    this.lastRotateTimestampMillis += ended * duration;
    this.#slices = slices;
    this.#place(slice => old[slice].place, steps);
    this.version++;
  }
}

/**
 * @param {Observations[]} slices
 * @param {readonly number[]} quantiles 0 to 1, or texts of numbers
 * @returns {number[]} their values; 0 if nothing was observed
 */
function quantilesOf(slices, quantiles) {
  const centroids = centroidsOf(slices);
  return quantiles.map(quantile => quantileOf(centroids, Number(quantile)) || 0);
}

/**
 * A digest for one reading. It is not retained: it takes ten times the memory of the centroids.
 *
 * @param {Observations[]} slices
 * @returns {import('tdigest').TDigest}
 */
function digestOf(slices) {
  // Loaded on first use: no other code needs this package.
  const { TDigest } = require('tdigest');
  // Centroids come sorted, and tdigest never merges one that is above all others. So it need not keep ranks
  // up to date while it is filled (CX), nor compress itself (K), which takes 1 ms.
  const digest = new TDigest(undefined, 0, Infinity);
  const centroids = centroidsOf(slices);
  for (let i = 0; i < centroids.length; i += 2) digest.push(centroids[i], centroids[i + 1]);
  return digest;
}

module.exports = { TimeWindowQuantiles, quantilesOf };
