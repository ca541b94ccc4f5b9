'use strict';

// Merges the sparse buckets of several sources. Prometheus treats a rising schema or a falling zero threshold
// as a reset, but not the opposite. So the lowest schema and the largest threshold apply to all.

const { MIN_SCHEMA, MAX_SCHEMA, indexOf, boundOf } = require('./native-index');

/** NativeBuckets has its buckets in chunks of 2 to the power of this. */
const CHUNK_SHIFT = 4;
/** With more chunks, a side would take too much memory: its schema is lowered. 128 octaves at schema 8. */
const MOST_CHUNKS = 2048;

/**
 * The populated buckets of one side, by rising index.
 *
 * @typedef {{indices: number[], counts: number[]}} Side
 */

/**
 * @typedef {object} Buckets
 * @property {number} schema
 * @property {number} zeroThreshold
 * @property {number} zeroCount
 * @property {Side} positive
 * @property {Side} negative
 * @property {number} maxBuckets maximum number of populated buckets: with more, the schema is lowered
 */

/** @type {Side} */
const NOTHING = Object.freeze({ indices: [], counts: [] });

/**
 * The buckets of a row without sparse buckets. The zero threshold shows that its histogram is native.
 *
 * @type {Buckets}
 */
const NO_BUCKETS = Object.freeze({
  schema: MAX_SCHEMA,
  zeroThreshold: 2 ** -128,
  zeroCount: 0,
  positive: NOTHING,
  negative: NOTHING,
  maxBuckets: Infinity,
});

/**
 * Adds up buckets. The result has the lowest schema, or a lower one if there would be more buckets than the
 * smallest limit allows. Its zero threshold is the largest one. If that lies inside a bucket of a source with
 * a smaller threshold, the bound of the bucket is used instead, because the bucket's observations may be on
 * either side of the threshold. So each observation counts once.
 *
 * @param {readonly Buckets[]} all at least one
 * @returns {Buckets} may be one of them
 */
function mergeBuckets(all) {
  if (all.length === 1) return all[0];
  const lowest = Math.min(...all.map(({ schema }) => schema));
  const sum = fitting(sumOf(all.map(buckets => atSchema(buckets, lowest))));
  const { zeroThreshold } = sum;
  if (all.every(buckets => buckets.zeroThreshold === zeroThreshold)) return sum;
  // The schema comes first: a larger threshold leaves fewer buckets, and the schema must not rise because of
  // that.
  const equal = all.map(buckets => atSchema(buckets, sum.schema));
  const common = commonThreshold(equal, zeroThreshold);
  return sumOf(equal.map(buckets => atThreshold(buckets, common)));
}

/**
 * @param {readonly Buckets[]} all of one schema
 * @returns {Buckets} with the largest zero threshold
 */
function sumOf([first, ...others]) {
  const sum = { ...first };
  for (const { zeroThreshold, zeroCount, positive, negative, maxBuckets } of others) {
    sum.zeroThreshold = Math.max(sum.zeroThreshold, zeroThreshold);
    sum.zeroCount += zeroCount;
    sum.positive = added(sum.positive, positive);
    sum.negative = added(sum.negative, negative);
    sum.maxBuckets = Math.min(sum.maxBuckets, maxBuckets);
  }
  return sum;
}

/**
 * @param {Buckets} buckets
 * @param {Pick<Buckets, 'schema' | 'zeroThreshold'>} limits
 * @returns {Buckets} the same, with a schema and a zero threshold within these limits
 */
function coarsened(buckets, { schema, zeroThreshold }) {
  if (buckets.schema <= schema && buckets.zeroThreshold >= zeroThreshold) return buckets;
  return mergeBuckets([buckets, { ...NO_BUCKETS, schema, zeroThreshold }]);
}

/**
 * @param {Buckets} buckets
 * @returns {Buckets} the same with a lower schema, if there are too many, or they are too far apart
 */
function fitting(buckets) {
  let fits = buckets;
  while (fits.schema > MIN_SCHEMA && !isFitting(fits)) fits = atSchema(fits, fits.schema - 1);
  return fits;
}

/** @param {Buckets} buckets */
function isFitting({ positive, negative, maxBuckets }) {
  if (positive.indices.length + negative.indices.length > maxBuckets) return false;
  return chunksOf(positive) <= MOST_CHUNKS && chunksOf(negative) <= MOST_CHUNKS;
}

/** @param {Side} side */
function chunksOf({ indices }) {
  const last = indices.at(-1);
  return last === undefined ? 0 : (last >> CHUNK_SHIFT) - (indices[0] >> CHUNK_SHIFT) + 1;
}

/**
 * @param {Buckets} buckets
 * @returns {number} of all observations
 */
function countOf({ zeroCount, positive, negative }) {
  let count = zeroCount;
  for (const each of positive.counts) count += each;
  for (const each of negative.counts) count += each;
  return count;
}

/**
 * @param {number} index
 * @param {number} steps
 * @returns {number} the bucket that includes it in a schema lower by that many steps
 */
function lowered(index, steps) {
  return ((index - 1) >> steps) + 1;
}

/**
 * @param {Buckets} buckets
 * @param {number} schema not above theirs
 * @returns {Buckets}
 */
function atSchema(buckets, schema) {
  const steps = buckets.schema - schema;
  if (steps === 0) return buckets;
  const [positive, negative] = [buckets.positive, buckets.negative].map(({ indices, counts }) => {
    /** @type {Side} */
    const side = { indices: [], counts: [] };
    for (let i = 0; i < indices.length; i++) {
      const index = lowered(indices[i], steps);
      if (side.indices.at(-1) === index) side.counts[side.counts.length - 1] += counts[i];
      else {
        side.indices.push(index);
        side.counts.push(counts[i]);
      }
    }
    return side;
  });
  return { ...buckets, schema, positive, negative };
}

/**
 * @param {readonly Buckets[]} all of one schema
 * @param {number} largest of their zero thresholds
 * @returns {number} the zero threshold of their sum
 */
function commonThreshold(all, largest) {
  const [{ schema }] = all;
  const index = indexOf(largest, schema);
  const isCut = all.some(({ zeroThreshold, positive, negative }) => {
    if (zeroThreshold === largest) return false;
    return positive.indices.includes(index) || negative.indices.includes(index);
  });
  return isCut ? boundOf(index, schema) : largest;
}

/**
 * @param {Buckets} buckets
 * @param {number} zeroThreshold not below theirs; if it is above, it is a bound or lies inside an empty
 *   bucket
 * @returns {Buckets}
 */
function atThreshold(buckets, zeroThreshold) {
  if (buckets.zeroThreshold === zeroThreshold) return buckets;
  let { zeroCount } = buckets;
  const last = indexOf(zeroThreshold, buckets.schema);
  const [positive, negative] = [buckets.positive, buckets.negative].map(({ indices, counts }) => {
    let from = indices.findIndex(index => index > last);
    if (from === -1) from = indices.length;
    for (let i = 0; i < from; i++) zeroCount += counts[i];
    return { indices: indices.slice(from), counts: counts.slice(from) };
  });
  return { ...buckets, zeroThreshold, zeroCount, positive, negative };
}

/**
 * @param {Side} left
 * @param {Side} right
 * @returns {Side} the sum; may be one of them
 */
function added(left, right) {
  if (right.indices.length === 0) return left;
  if (left.indices.length === 0) return right;
  /** @type {Side} */
  const { indices, counts } = { indices: [], counts: [] };
  for (let l = 0, r = 0; l < left.indices.length || r < right.indices.length;) {
    const index = Math.min(left.indices[l] ?? Infinity, right.indices[r] ?? Infinity);
    let count = 0;
    if (left.indices[l] === index) count += left.counts[l++];
    if (right.indices[r] === index) count += right.counts[r++];
    indices.push(index);
    counts.push(count);
  }
  return { indices, counts };
}

module.exports = {
  CHUNK_SHIFT,
  MOST_CHUNKS,
  NO_BUCKETS,
  lowered,
  atSchema,
  fitting,
  mergeBuckets,
  coarsened,
  countOf,
};
