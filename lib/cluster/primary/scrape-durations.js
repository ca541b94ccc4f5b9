'use strict';

// Runs on the primary's loop. Durations of cluster scrapes, in two parts that are slow for different reasons.

const { Histogram } = require('../../metric/histogram');

const BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const HELP = {
  collect: 'Time from asking the workers until all have answered or the deadline has passed.',
  merge: "Time that the aggregator takes to add up the workers' numbers and write the page.",
};

/** @param {keyof typeof HELP} part */
function histogramOf(part) {
  const name = `prom_client_cluster_${part}_duration_seconds`;
  return new Histogram({ name, help: HELP[part], buckets: BUCKETS, registers: [] });
}

/** @returns {Record<keyof typeof HELP, Histogram>} */
function scrapeDurations() {
  return { collect: histogramOf('collect'), merge: histogramOf('merge') };
}

module.exports = { scrapeDurations };
