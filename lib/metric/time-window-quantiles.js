'use strict';

const { TDigest } = require('tdigest');

/** @typedef {import('tdigest').Centroid} Centroid */

/**
 * Quantiles of what was observed in the last `maxAgeSeconds`, or ever where there is no window.
 *
 * A window is a ring of digests, each of which is fed with every value and emptied in turn. The one that was emptied
 * longest ago answers: it holds what was observed in the last `maxAgeSeconds`, less one step at most. Its fields have
 * prom-client's names, for those who import it from `lib/timeWindowQuantiles`.
 */
class TimeWindowQuantiles {
  /**
   * @param {number | undefined} maxAgeSeconds
   * @param {number | undefined} ageBuckets how many digests; there is a window only where both are given
   */
  constructor(maxAgeSeconds, ageBuckets) {
    const windowed = maxAgeSeconds && ageBuckets;
    /** @type {TDigest[]} */
    this.ringBuffer = Array.from({ length: windowed ? ageBuckets : 1 }, () => new TDigest());
    /** Which of them answers. */
    this.currentBuffer = 0;
    /** Milliseconds between two steps; Infinity without a window. */
    this.durationBetweenRotatesMillis = windowed ? (maxAgeSeconds * 1000) / ageBuckets : Infinity;
    this.lastRotateTimestampMillis = Date.now();
    /** How often something was observed or dropped: tells whether an encoding of the digest is still right. */
    this.version = 0;
    /** How many observations its owner has let go by since it last had the digest compressed. */
    this.sinceCompress = 0;
  }

  /** @param {number} value */
  push(value) {
    this.current();
    for (const digest of this.ringBuffer) digest.push(value);
    this.version++;
  }

  /** Merges centroids that are close to each other (about 1 ms). */
  compress() {
    this.current().compress();
  }

  /** @returns {number} how many observations the window holds */
  size() {
    return this.current().size();
  }

  /**
   * @param {number} quantile 0 to 1
   * @returns {number} 0 where nothing was observed
   */
  percentile(quantile) {
    return this.current().percentile(quantile) || 0;
  }

  /** Forgets everything. The window's steps go on as they were. */
  reset() {
    for (let i = 0; i < this.ringBuffer.length; i++) this.ringBuffer[i] = new TDigest();
    this.version++;
    this.sinceCompress = 0;
  }

  /**
   * Calls back with each centroid of the window, by rising mean.
   *
   * @param {(centroid: Centroid) => void} visit
   */
  eachCentroid(visit) {
    this.current().centroids.each(visit);
  }

  /** @returns {number} how many centroids eachCentroid() will visit */
  centroidCount() {
    return this.current().centroids.size;
  }

  /**
   * Empties what has become too old.
   *
   * @returns {TDigest} the digest that answers
   */
  current() {
    const { ringBuffer, durationBetweenRotatesMillis: step } = this;
    if (step !== Infinity) {
      const now = Date.now();
      let steps = 0;
      while (now - this.lastRotateTimestampMillis > step && steps++ < ringBuffer.length) {
        ringBuffer[this.currentBuffer] = new TDigest();
        this.currentBuffer = (this.currentBuffer + 1) % ringBuffer.length;
        this.lastRotateTimestampMillis += step;
        this.version++;
      }
      // After a long rest every digest is empty: no need to make up for each step that was slept through.
      const rest = now - this.lastRotateTimestampMillis;
      if (rest > step) this.lastRotateTimestampMillis += (Math.ceil(rest / step) - 1) * step;
    }
    return ringBuffer[this.currentBuffer];
  }
}

module.exports = { TimeWindowQuantiles };
