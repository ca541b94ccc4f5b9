'use strict';

// Runs one client for some seconds and summarises the result.

const { PATIENCE } = require('./paced-clients.js');

/** @type {{key: string, share: number, title: string}[]} */
const FIGURES = [
  { key: 'p50', share: 0.5, title: 'P50' },
  { key: 'p99', share: 0.99, title: 'P99' },
  { key: 'p995', share: 0.995, title: 'P99.5' },
  { key: 'p999', share: 0.999, title: 'P99.9' },
  { key: 'max', share: 1, title: 'max' },
];

/**
 * @typedef {object} Segment
 * @property {number} repetition
 * @property {string} run see runs.js
 * @property {number} requests
 * @property {number} failed of these: not answered in 10 s, or not with 200
 * @property {Record<string, number>} figures ms, see {@link FIGURES}; a failed request counts as 10 s
 * @property {number[]} scrapes ms of each
 * @property {string[]} failures of scrapes
 * @property {number | null} others CPUs that other programs used meanwhile; null if unknown
 */

/**
 * @param {{repetition: number, run: string}} which
 * @param {import('./load.js').LoadResult} load
 * @param {import('./scrape-process.js').Scraped} scraped
 * @param {number | null} others see {@link Segment}
 * @returns {Segment}
 */
function segmentOf({ repetition, run }, { latencies, failed }, { milliseconds, failures }, others) {
  const all = Float64Array.from([...latencies, ...new Array(failed).fill(PATIENCE)]).sort();
  return {
    repetition,
    run,
    requests: all.length,
    failed,
    figures: Object.fromEntries(FIGURES.map(({ key, share }) => [key, nearestRank(all, share)])),
    scrapes: milliseconds,
    failures,
    others,
  };
}

/**
 * The latency that this share of the requests does not exceed: a measured one, without interpolation.
 */
function nearestRank(sorted, share) {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

module.exports = { FIGURES, segmentOf };
