'use strict';

// Merges quantile digests as lists of centroids (see metric/centroids.js), the form in which processes
// exchange them. Pushing centroids into tdigest's tree one by one takes 2 to 4.5 ms for four digests, and the
// result depends on a random order.

const { mergeCentroids } = require('../../metric/centroids');

// Half of each process's delta, so merging adds little error.
const DELTA = 0.005;

/**
 * @param {Float64Array[]} digests each sorted by mean
 * @returns {Float64Array} one digest of all their observations
 */
function mergeDigests(digests) {
  return mergeCentroids(digests, DELTA);
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

module.exports = { mergeDigests, quantileOf };
