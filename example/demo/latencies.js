'use strict';

/** All latencies of one phase. */
class Latencies {
  #milliseconds = [];

  /** @param {number[]} milliseconds */
  add(milliseconds) {
    this.#milliseconds.push(...milliseconds);
  }

  get count() {
    return this.#milliseconds.length;
  }

  /**
   * @param {number[]} shares from 0 to 1
   * @returns {number[]} milliseconds by nearest rank, NaN while there are none
   */
  quantiles(shares) {
    const sorted = Float64Array.from(this.#milliseconds).sort();
    return shares.map(share => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN);
  }
}

module.exports = { Latencies };
