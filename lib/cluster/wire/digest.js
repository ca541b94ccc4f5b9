'use strict';

// Digests of quantiles as plain numbers: [mean, count, mean, count, ...] by rising mean. Between processes they are
// merged in one pass over sorted centroids: tdigest's own way, pushing centroids one by one into a tree, takes 2-4.5 ms
// for four digests and depends on a random order.

// The share of all observations that a centroid in the middle may hold is this; towards the ends it is less, as in
// T. Dunning, O. Ertl: Computing Extremely Accurate Quantiles Using t-Digests (arXiv 1902.04023). Half of tdigest's
// own default, since what is merged here was compressed before.
const DELTA = 0.005;

/**
 * Compresses sorted centroids: neighbours become one as long as it stays within the bound of its rank.
 *
 * @param {Float64Array} centroids sorted by mean
 * @returns {Float64Array} a new array; never more centroids than before
 */
function compressCentroids(centroids) {
  let total = 0;
  for (let i = 1; i < centroids.length; i += 2) total += centroids[i];
  const merged = new Float64Array(centroids.length);
  let length = 0;
  let before = 0; // observations in the centroids that are finished
  for (let i = 0; i < centroids.length; i += 2) {
    const mean = centroids[i];
    const count = centroids[i + 1];
    const last = length - 2;
    const together = length === 0 ? 0 : merged[last + 1] + count;
    if (length > 0 && (merged[last] === mean || together <= bound(before + together / 2, total))) {
      merged[last] += ((mean - merged[last]) * count) / together;
      merged[last + 1] = together;
    } else {
      if (length > 0) before += merged[last + 1];
      merged[length] = mean;
      merged[length + 1] = count;
      length += 2;
    }
  }
  return merged.slice(0, length);
}

/**
 * How many observations a centroid may hold that stands at a rank.
 *
 * @param {number} rank
 * @param {number} total
 */
function bound(rank, total) {
  const q = rank / total;
  return Math.floor(4 * total * DELTA * q * (1 - q));
}

/**
 * One digest for several.
 *
 * @param {Float64Array[]} digests each sorted by mean
 * @returns {Float64Array}
 */
function mergeDigests(digests) {
  if (digests.length === 1) return digests[0];
  return compressCentroids(digests.reduce(mergeSorted, new Float64Array(0)));
}

/**
 * @param {Float64Array} left
 * @param {Float64Array} right
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
 * The value at a quantile: between two centroids on the line through their middle ranks, as tdigest does it.
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

module.exports = { compressCentroids, mergeDigests, quantileOf };
