'use strict';

// Native histograms as JSON, with the fields of the open proposal for prom-client's successor
// (prometheus/client_js, pull request 856), whose names are those of the protobuf format.

const { countOf } = require('./merged-buckets');
const { MIN_SCHEMA, MAX_SCHEMA, isIndex } = require('./native-index');

/** @typedef {import('./merged-buckets').Buckets} Buckets */

/** Used for JSON, which does not contain the maximum. */
const DEFAULT_MAX_BUCKETS = 160;

/** Gaps of up to this many empty buckets are filled, because another span would take more space. */
const MOST_FILLED = 2;

/**
 * The buckets of one series.
 *
 * @typedef {object} NativeJson
 * @property {Record<string, any>} labels
 * @property {number} count of the buckets
 * @property {number} sum
 * @property {number} schema
 * @property {number} zeroThreshold
 * @property {number} zeroCount
 * @property {Span[]} positiveSpans
 * @property {number[]} positiveDeltas the first count, then the difference of each count to the one before
 * @property {Span[]} negativeSpans
 * @property {number[]} negativeDeltas
 * @property {number} [createdTimestamp] seconds since 1970
 * @property {object[]} exemplars
 */

/**
 * Consecutive buckets: how many there are, and the first one's index, counted from the end of the span
 * before.
 *
 * @typedef {{offset: number, length: number}} Span
 */

/**
 * @param {Buckets} buckets
 * @param {Pick<NativeJson, 'labels' | 'sum' | 'createdTimestamp' | 'exemplars'>} others
 * @returns {NativeJson}
 */
function nativeJson(buckets, { labels, sum, createdTimestamp, exemplars }) {
  const { schema, zeroThreshold, zeroCount, positive, negative } = buckets;
  const count = countOf(buckets);
  const [above, below] = [positive, negative].map(spansOf);
  return {
    ...{ labels, count, sum, schema, zeroThreshold, zeroCount },
    ...{ positiveSpans: above.spans, positiveDeltas: above.deltas },
    ...{ negativeSpans: below.spans, negativeDeltas: below.deltas },
    ...{ createdTimestamp, exemplars },
  };
}

/**
 * @param {Buckets['positive']} side
 * @returns {{spans: Span[], deltas: number[]}}
 */
function spansOf({ indices, counts }) {
  /** @type {Span[]} */
  const spans = [];
  /** @type {number[]} */
  const deltas = [];
  let end = 0;
  let previous = 0;
  for (let i = 0; i < indices.length; i++) {
    const gap = indices[i] - end;
    if (i === 0 || gap > MOST_FILLED) {
      spans.push({ offset: gap, length: 0 });
    } else {
      for (let empty = 0; empty < gap; empty++) deltas.push(empty === 0 ? -previous : 0);
      if (gap > 0) previous = 0;
      spans[spans.length - 1].length += gap;
    }
    spans[spans.length - 1].length++;
    deltas.push(counts[i] - previous);
    previous = counts[i];
    end = indices[i] + 1;
  }
  return { spans, deltas };
}

/**
 * Reads buckets from JSON, which may contain anything.
 *
 * @param {any} json
 * @returns {Buckets}
 * @throws {TypeError} if they are not valid
 */
function bucketsIn({ schema, zeroThreshold, zeroCount, ...sides }) {
  const isSchema = Number.isInteger(schema) && schema >= MIN_SCHEMA && schema <= MAX_SCHEMA;
  if (!isSchema || !(Number.isFinite(zeroThreshold) && zeroThreshold >= 0) || !isCount(zeroCount))
    throw new TypeError('a native histogram without a valid schema, zero threshold or zero count');
  const positive = sideIn(sides.positiveSpans, sides.positiveDeltas, schema);
  const negative = sideIn(sides.negativeSpans, sides.negativeDeltas, schema);
  const maxBuckets = Math.max(DEFAULT_MAX_BUCKETS, positive.indices.length + negative.indices.length);
  return { schema, zeroThreshold, zeroCount, positive, negative, maxBuckets };
}

/**
 * @param {any} spans
 * @param {any} deltas
 * @param {number} schema
 * @returns {Buckets['positive']}
 */
function sideIn(spans, deltas, schema) {
  if (!Array.isArray(spans) || !Array.isArray(deltas)) throw new TypeError('buckets without spans or deltas');
  /** @type {Buckets['positive']} */
  const { indices, counts } = { indices: [], counts: [] };
  let [index, count, next] = [0, 0, 0];
  for (const span of spans) {
    const { offset, length } = span ?? {};
    const isSpan = Number.isInteger(offset) && (next === 0 || offset >= 0) && length >= 0;
    if (!isSpan || length > deltas.length - next) throw new TypeError('a span of buckets is not valid');
    index += offset;
    for (let end = next + length; next < end; next++, index++) {
      count += deltas[next];
      if (!isCount(count) || !isIndex(index, schema)) throw new TypeError(`a bucket ${index} with ${count}`);
      if (count === 0) continue;
      indices.push(index);
      counts.push(count);
    }
  }
  if (next !== deltas.length) throw new TypeError('there are more deltas than buckets');
  return { indices, counts };
}

/** @param {unknown} value */
function isCount(value) {
  return Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0;
}

module.exports = { MOST_FILLED, nativeJson, bucketsIn };
