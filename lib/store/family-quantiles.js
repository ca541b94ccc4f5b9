'use strict';

// The quantiles of a summary's row, merged from the digests of all workers.

const { mergeDigests, quantileOf, meanQuantile } = require('../metric/centroids');
const { aggregated } = require('../series/layouts');

/**
 * A summary's row in one worker: its digest, or only its quantiles if the worker runs prom-client.
 *
 * @typedef {{version: number, centroids: Float64Array} | {quantiles: Map<number, number>}} SourceDigest
 */

/**
 * `weight` is the number of observations.
 *
 * @typedef {{digest: SourceDigest, weight: number}} WeightedDigest
 */

/**
 * @param {WeightedDigest[]} digests of all workers
 * @param {readonly number[]} quantiles
 * @param {string} rule name of a built-in aggregator
 * @returns {number[]} their values
 */
function mergedQuantiles(digests, quantiles, rule) {
  const centroids = digests.flatMap(({ digest }) => ('centroids' in digest ? [digest.centroids] : []));
  if (rule === 'sum' && centroids.length === digests.length) {
    const merged = mergeDigests(centroids);
    return quantiles.map(quantile => quantileOf(merged, quantile));
  }
  return quantiles.map(quantile => {
    const known = digests
      .map(({ digest, weight }) => ({ value: quantileFrom(digest, quantile), weight }))
      .filter(({ value }) => !Number.isNaN(value));
    if (rule !== 'sum')
      return known.length === 0
        ? NaN
        : aggregated(
            rule,
            known.map(({ value }) => value),
          );
    // Workers with prom-client send no digests.
    const weighted = known.filter(({ weight }) => weight > 0);
    return weighted.length === 0 ? 0 : meanQuantile(weighted);
  });
}

/**
 * @param {SourceDigest | undefined} digest
 * @param {number} quantile
 * @returns {number} NaN if there is no such quantile
 */
function quantileFrom(digest, quantile) {
  if (digest === undefined) return NaN;
  return 'centroids' in digest
    ? quantileOf(digest.centroids, quantile)
    : (digest.quantiles.get(quantile) ?? NaN);
}

module.exports = { mergedQuantiles, quantileFrom };
