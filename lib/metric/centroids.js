'use strict';

// The digest of a distribution as plain numbers: [mean, count, mean, count, ...], means rising.

// No centroid of different values holds a larger share of all observations. The t-digest bound alone allows
// twice as much around the median, with twice the error; this costs a tenth more centroids.
const MAX_SHARE = 0.005;

// Half of each process's delta, so merging adds little error.
const MERGE_DELTA = 0.005;

/**
 * Compresses sorted centroids in place: neighbours become one if the result stays within the t-digest bound
 * of its rank, 4 * total * delta * q * (1 - q) observations, so those at the ends hold one observation each.
 * See T. Dunning, O. Ertl: Computing Extremely Accurate Quantiles Using t-Digests (arXiv 1902.04023). Equal
 * means always become one centroid.
 *
 * @param {Float64Array} centroids sorted by mean
 * @param {number} length how many numbers of it are used
 * @param {number} delta of the bound: a smaller one means more centroids and less error
 * @returns {number} how many numbers are used afterwards
 */
function compressCentroids(centroids, length, delta) {
  let total = 0;
  for (let i = 1; i < length; i += 2) total += centroids[i];
  const scale = (4 * delta) / total;
  const largest = MAX_SHARE * total;
  let before = 0; // observations in the centroids that are finished
  let last = 0; // where the unfinished centroid is
  for (let i = 2; i < length; i += 2) {
    const mean = centroids[i];
    const count = centroids[i + 1];
    const together = centroids[last + 1] + count;
    const rank = before + together / 2;
    if (centroids[last] === mean) {
      centroids[last + 1] = together;
    } else if (together <= largest && together <= scale * rank * (total - rank)) {
      centroids[last] += ((mean - centroids[last]) * count) / together;
      centroids[last + 1] = together;
    } else {
      before += centroids[last + 1];
      last += 2;
      centroids[last] = mean;
      centroids[last + 1] = count;
    }
  }
  return Math.min(last + 2, length);
}

/**
 * @param {Float64Array} left
 * @param {Float64Array} right
 * @returns {Float64Array} the centroids of both, sorted by mean
 */
function mergeSorted(left, right) {
  const both = new Float64Array(left.length + right.length);
  let l = 0;
  let r = 0;
  for (let i = 0; i < both.length; i += 2) {
    const fromLeft = r >= right.length || (l < left.length && left[l] <= right[r]);
    both[i] = fromLeft ? left[l] : right[r];
    both[i + 1] = fromLeft ? left[l + 1] : right[r + 1];
    if (fromLeft) l += 2;
    else r += 2;
  }
  return both;
}

/**
 * One digest of several.
 *
 * @param {Float64Array[]} digests each sorted by mean
 * @param {number} delta as compressCentroids() has it
 * @returns {Float64Array}
 */
function mergeCentroids(digests, delta) {
  if (digests.length === 1) return digests[0];
  const all = digests.reduce(mergeSorted, new Float64Array(0));
  return all.slice(0, compressCentroids(all, all.length, delta));
}

/**
 * One digest of those of several processes.
 *
 * @param {Float64Array[]} digests each sorted by mean
 * @returns {Float64Array}
 */
function mergeDigests(digests) {
  return mergeCentroids(digests, MERGE_DELTA);
}

/**
 * The value at a quantile: interpolates linearly between the middle ranks of two centroids, as tdigest does.
 *
 * @param {Float64Array} digest
 * @param {number} quantile 0 to 1
 * @returns {number} 0 for an empty digest
 */
function quantileOf(digest, quantile) {
  if (digest.length === 0) return 0;
  let total = 0;
  for (let i = 1; i < digest.length; i += 2) total += digest[i];
  const rank = quantile * total;
  let before = 0;
  let lowerMean = digest[0];
  let lowerRank = -1;
  for (let i = 0; i < digest.length; i += 2) {
    const middle = before + digest[i + 1] / 2;
    if (middle > rank) {
      if (lowerRank < 0) return digest[i];
      return lowerMean + ((rank - lowerRank) * (digest[i] - lowerMean)) / (middle - lowerRank);
    }
    lowerMean = digest[i];
    lowerRank = middle;
    before += digest[i + 1];
  }
  return lowerMean;
}

/**
 * A quantile of several distributions without digests. Quantiles cannot be added up: the mean, weighted by
 * observations, comes closest.
 *
 * @param {{value: number, weight: number}[]} quantiles `weight` is the number of observations
 * @returns {number} NaN if there are none
 */
function meanQuantile(quantiles) {
  let sum = 0;
  let total = 0;
  let least = Infinity;
  let greatest = -Infinity;
  for (const { value, weight } of quantiles) {
    if (weight === 0) continue;
    sum += value * weight;
    total += weight;
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  // Rounding may take it out of their range: the quantile of one process must be shown as it is.
  return Math.max(least, Math.min(greatest, sum / total));
}

module.exports = { compressCentroids, mergeCentroids, mergeDigests, quantileOf, meanQuantile };
