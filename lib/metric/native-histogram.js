'use strict';

// The parts that only native histograms need: options, exemplars of all buckets, quantiles. Loaded by the
// first native histogram.

const { inspect } = require('util');
const { NativeBuckets } = require('../series/native-buckets');
const { MIN_SCHEMA, MAX_SCHEMA, boundOf } = require('../series/native-index');
const { nativeJson } = require('../series/native-json');
const { invalidOption } = require('../options/coded-error');

/** @typedef {import('../series/merged-buckets').Buckets} Buckets */
/** @typedef {import('./exemplar').Exemplar} Exemplar */

/** These aggregators are not defined for buckets. */
const IMPOSSIBLE_AGGREGATORS = ['average', 'min', 'max'];

/** Each is compared with all others of its series. */
const MOST_EXEMPLARS = 100;

/**
 * @param {any} options of a native histogram
 * @returns {NativeBuckets}
 * @throws {RangeError} if an option is not valid
 */
function nativeBucketsOf(options) {
  if (IMPOSSIBLE_AGGREGATORS.includes(options.aggregator))
    throw invalidOption(`aggregator of a native histogram cannot be ${options.aggregator}`, RangeError);
  const factor = numberOf(options, 'BucketFactor', NaN, 'a number above 1', value => value > 1);
  const schema = 0 - Math.floor(Math.log2(Math.log2(factor)));
  const zeroThreshold = numberOf(options, 'ZeroThreshold', 2 ** -128, 'a finite number', Number.isFinite);
  return new NativeBuckets({
    schema: Math.min(Math.max(schema, MIN_SCHEMA), MAX_SCHEMA),
    zeroThreshold: Math.max(zeroThreshold, 0),
    // As in client_golang, 0 stands for no limit.
    maxBuckets: numberOf(options, 'MaxBucketNumber', 160, 'an integer from 0 on', isCount) || Infinity,
  });
}

/**
 * The exemplars of a series for its sparse buckets.
 *
 * @typedef {object} NativeExemplars
 * @property {number} most how many there may be
 * @property {(exemplars: readonly Exemplar[], added: Exemplar) => number} replaced the place of the one that
 *   a newer one replaces, if there are that many
 */

/**
 * @param {any} options of a native histogram
 * @returns {NativeExemplars}
 * @throws {RangeError} if an option is not valid
 */
function nativeExemplarsOf(options) {
  const expected = `an integer from 0 to ${MOST_EXEMPLARS}`;
  const isNumber = (/** @type {number} */ value) => isCount(value) && value <= MOST_EXEMPLARS;
  const most = numberOf(options, 'MaxExemplars', 10, expected, isNumber);
  const ttl = numberOf(options, 'ExemplarTTL', 300, 'a number of seconds', value => value >= 0);
  return { most, replaced: (exemplars, added) => replacedExemplar(exemplars, added, ttl) };
}

/**
 * @param {any} options
 * @param {string} name of one, after `nativeHistogram`
 * @param {number} byDefault
 * @param {string} expected
 * @param {(value: number) => boolean} isValid
 * @returns {number}
 * @throws {RangeError} if it is not valid
 */
function numberOf(options, name, byDefault, expected, isValid) {
  const value = options[`nativeHistogram${name}`] ?? byDefault;
  if (typeof value === 'number' && isValid(value)) return value;
  throw invalidOption(`nativeHistogram${name} must be ${expected}: ${inspect(value)}`, RangeError);
}

/** @param {number} value */
function isCount(value) {
  return Number.isSafeInteger(value) && value >= 0;
}

/**
 * Selects the exemplar of a series that a new one replaces, so that values of all sizes stay: the oldest one
 * if its time is up, otherwise the older one of the two with the closest values, on a logarithmic scale. The
 * new exemplar is included in this comparison.
 *
 * @param {readonly Exemplar[]} exemplars at least one
 * @param {Exemplar} added is newer
 * @param {number} ttl seconds
 * @returns {number} its place
 */
function replacedExemplar(exemplars, added, ttl) {
  const all = [...exemplars, added];
  let replaced = 0;
  for (let i = 1; i < exemplars.length; i++) if (all[i].timestamp < all[replaced].timestamp) replaced = i;
  if (added.timestamp - all[replaced].timestamp > ttl) return replaced;
  const logarithms = all.map(({ value }) => Math.log(Math.abs(value)));
  let closest = Infinity;
  for (let left = 0; left < exemplars.length; left++) {
    for (let right = left + 1; right < all.length; right++) {
      if (Math.sign(all[left].value) !== Math.sign(all[right].value)) continue;
      const isEqual = all[left].value === all[right].value;
      const distance = isEqual ? 0 : Math.abs(logarithms[left] - logarithms[right]);
      if (distance >= closest) continue;
      closest = distance;
      const isLeftNewer = right < exemplars.length && all[left].timestamp > all[right].timestamp;
      replaced = isLeftNewer ? right : left;
    }
  }
  return replaced;
}

/**
 * A quantile, estimated as Prometheus 3 does: geometric interpolation inside a bucket, linear inside the zero
 * bucket, which has one side only if all other observations are on that side.
 * https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile
 *
 * @param {Buckets} buckets
 * @param {number} quantile
 * @returns {number} NaN if there are no observations, or the quantile is NaN; -Infinity if it is below 0,
 *   Infinity if it is above 1
 */
function quantileOf(buckets, quantile) {
  if (quantile < 0) return -Infinity;
  if (quantile > 1) return Infinity;
  const ranges = rangesOf(buckets);
  const count = ranges.reduce((sum, range) => sum + range.count, 0);
  if (count === 0 || Number.isNaN(quantile)) return NaN;
  // From the nearer end.
  const isUpper = quantile >= 0.5;
  if (isUpper) ranges.reverse();
  const rank = (isUpper ? 1 - quantile : quantile) * count;
  let before = 0;
  let i = 0;
  for (; i < ranges.length - 1 && before + ranges[i].count < rank; i++) before += ranges[i].count;
  const { lower, upper, count: inside } = ranges[i];
  const part = isUpper ? 1 - (rank - before) / inside : (rank - before) / inside;
  if (lower <= 0 && upper >= 0) return lower + (upper - lower) * part;
  const logarithm = Math.log2(Math.abs(lower));
  const size = 2 ** (logarithm + (Math.log2(Math.abs(upper)) - logarithm) * part);
  return lower > 0 ? size : -size;
}

/**
 * @param {Buckets} buckets
 * @returns {{lower: number, upper: number, count: number}[]} those with observations, in rising order
 */
function rangesOf({ schema, zeroThreshold, zeroCount, positive, negative }) {
  const [above, below] = [positive, negative].map(({ indices, counts }) =>
    indices.map((index, i) => ({
      // What is within the zero threshold is in the zero bucket.
      lower: Math.max(boundOf(index - 1, schema), zeroThreshold),
      upper: boundOf(index, schema),
      count: counts[i],
    })),
  );
  const zero = {
    lower: above.length > 0 && below.length === 0 ? 0 : -zeroThreshold,
    upper: below.length > 0 && above.length === 0 ? 0 : zeroThreshold,
    count: zeroCount,
  };
  return [
    ...below.reverse().map(({ lower, upper, count }) => ({ lower: -upper, upper: -lower, count })),
    ...(zeroCount > 0 ? [zero] : []),
    ...above,
  ];
}

module.exports = { nativeBucketsOf, nativeExemplarsOf, quantileOf, nativeJson };
