'use strict';

// Latencies counted in buckets that are equally wide on a logarithmic scale, as HDR histograms do: a quantile
// is right within 0.6 %, whatever its size, and histograms of several segments add up.

const LEAST = 0.01; // ms; less counts as this
const BUCKETS_PER_DECADE = 200;

class LatencyHistogram {
  #counts = new Map();
  #total = 0;

  /** @param {[number, number][]} [counts] the result of {@link LatencyHistogram#toJSON} */
  constructor(counts = []) {
    for (const [bucket, count] of counts) this.#add(bucket, count);
  }

  /**
   * @param {number} latency ms
   * @param {number} [times]
   */
  record(latency, times = 1) {
    this.#add(Math.floor(Math.log10(Math.max(latency, LEAST) / LEAST) * BUCKETS_PER_DECADE), times);
  }

  /** @param {LatencyHistogram} other its latencies are added */
  add(other) {
    for (const [bucket, count] of other.#counts) this.#add(bucket, count);
  }

  #add(bucket, count) {
    if (count === 0) return;
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count);
    this.#total += count;
  }

  /** @returns {number} how many latencies it holds */
  get total() {
    return this.#total;
  }

  /**
   * @param {number[]} shares 0 to 1, ascending
   * @returns {number[]} per share, the latency (ms) that this share does not exceed; NaN if empty
   */
  quantiles(shares) {
    const buckets = this.toJSON();
    let place = -1;
    let reached = 0;
    return shares.map(share => {
      const rank = Math.max(1, Math.ceil(share * this.#total));
      while (reached < rank && place + 1 < buckets.length) reached += buckets[++place][1];
      return place < 0 ? NaN : middleOf(buckets[place][0]);
    });
  }

  /** @returns {[number, number][]} bucket and count, ascending */
  toJSON() {
    return [...this.#counts].sort(([one], [other]) => one - other);
  }
}

function middleOf(bucket) {
  return LEAST * 10 ** ((bucket + 0.5) / BUCKETS_PER_DECADE);
}

module.exports = { LatencyHistogram };
