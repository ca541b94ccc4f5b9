'use strict';

// Runs on the primary's loop. Durations of cluster scrapes, in two parts that are slow for different reasons:
// waiting for workers, and writing the page.

const { Histogram } = require('../../metric/histogram');

const BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

class ScrapeDurations {
  #collect = new Histogram({
    name: 'prom_client_cluster_collect_duration_seconds',
    help: 'Time from asking the workers until all have answered or the deadline has passed.',
    buckets: BUCKETS,
    registers: [],
  });
  #merge = new Histogram({
    name: 'prom_client_cluster_merge_duration_seconds',
    help: "Time that the aggregator takes to add up the workers' numbers and write the page.",
    buckets: BUCKETS,
    registers: [],
  });

  /** @param {number} seconds */
  collected(seconds) {
    this.#collect.observe(seconds);
  }

  /** @param {number} seconds */
  merged(seconds) {
    this.#merge.observe(seconds);
  }

  /** @returns {Promise<any[]>} both histograms as JSON */
  toJSON() {
    return Promise.all([this.#collect.get(), this.#merge.get()]);
  }
}

module.exports = { ScrapeDurations };
