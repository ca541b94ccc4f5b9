'use strict';

// Compares runs: ratios within a repetition, whose segments were measured within a minute, and the median of
// the ratios with an interval. A ratio of two medians would compare the noise of different hours.

const { randomFrom } = require('../shared/random.js');
const { median, quantile } = require('../shared/statistics.js');

const RESAMPLES = 2000;
const CONFIDENCE = 0.95;
const SEED = 1;

/** @typedef {import('./measurement.js').MeasuredRound} MeasuredRound */

/**
 * @typedef {object} Comparison
 * @property {string} key
 * @property {string} of the run that is divided
 * @property {string[]} by the runs it is divided by, or the geometric mean of several
 * @property {string} title
 */

/**
 * @type {Comparison[]} the static page shows what sending a page costs; the last, which compares two equal
 *   runs, shows the noise
 */
const COMPARISONS = [
  { key: 'stock', of: 'stock-scraped', by: ['stock'], title: '15.1.3' },
  { key: 'prometheus-io', of: 'prometheus-io-scraped', by: ['prometheus-io'], title: '0.16.1' },
  { key: 'ours', of: 'ours-scraped', by: ['ours', 'ours-again'], title: 'ours' },
  { key: 'static', of: 'bare-scraped', by: ['bare'], title: 'static page' },
  { key: 'noise', of: 'ours-again', by: ['ours'], title: 'ours, unscraped again' },
];

/** What this library promises: P99 and P99.9 of a cluster scraped every second, compared with unscraped. */
const CLAIMS = [
  { round: 'frequent-new', samples: 10_000, figure: 'p99', atMost: 1.1 },
  { round: 'frequent-new', samples: 10_000, figure: 'p999', atMost: 1.2 },
  { round: 'frequent-reused', samples: 10_000, figure: 'p99', atMost: 1.1 },
];

/**
 * @typedef {object} Ratio
 * @property {number} median NaN of none
 * @property {number} low of an interval that holds the median with 95 % confidence
 * @property {number} high
 * @property {number[]} ratios one a repetition
 */

/**
 * @param {MeasuredRound} measured
 * @param {Comparison} comparison
 * @param {string} figure see segment.js
 * @returns {Ratio | undefined} undefined if one of its runs was not measured
 */
function compare({ segments }, { of, by }, figure) {
  const repetitions = new Map();
  for (const { repetition, run, figures } of segments) {
    const ofRepetition = repetitions.get(repetition) ?? repetitions.set(repetition, {}).get(repetition);
    ofRepetition[run] = figures[figure];
  }
  const ratios = [...repetitions.values()]
    .map(values => values[of] / geometricMean(by.map(run => values[run])))
    .filter(ratio => !Number.isNaN(ratio));
  return ratios.length > 0 ? { ...bootstrapMedian(ratios), ratios } : undefined;
}

function geometricMean(values) {
  return Math.exp(values.reduce((total, value) => total + Math.log(value), 0) / values.length);
}

/**
 * The percentile bootstrap: medians of as many values, drawn with replacement. The same values give the same
 * interval.
 *
 * @param {number[]} values at least one
 * @returns {{median: number, low: number, high: number}}
 */
function bootstrapMedian(values) {
  const random = randomFrom(SEED);
  const draw = () => values[Math.floor(random() * values.length)];
  const medians = Array.from({ length: RESAMPLES }, () => median(values.map(draw)));
  const tail = (1 - CONFIDENCE) / 2;
  return { median: median(values), low: quantile(medians, tail), high: quantile(medians, 1 - tail) };
}

/**
 * @param {MeasuredRound[]} rounds
 * @returns {{round: MeasuredRound, figure: string, atMost: number, ratio: Ratio, stock: Ratio | undefined}[]}
 *   for each claim that was measured
 */
function judgeClaims(rounds) {
  const [ofStock, , ofOurs] = COMPARISONS;
  return CLAIMS.flatMap(({ round: key, samples, figure, atMost }) => {
    const round = rounds.find(measured => measured.round.key === key && measured.round.samples === samples);
    const ratio = round && compare(round, ofOurs, figure);
    return ratio ? [{ round, figure, atMost, ratio, stock: compare(round, ofStock, figure) }] : [];
  });
}

module.exports = { COMPARISONS, bootstrapMedian, compare, judgeClaims };
