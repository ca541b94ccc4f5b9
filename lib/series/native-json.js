'use strict';

// Native histograms as JSON, with the fields of the open proposal for prom-client's successor
// (prometheus/client_js, pull request 856), whose names are those of the protobuf format.

/** @typedef {import('./native-buckets').Buckets} Buckets */

/** Gaps up to this many empty buckets are filled: another span would take more. */
const MOST_FILLED = 2;

/**
 * Of one series.
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
function nativeJson({ schema, zeroThreshold, zeroCount, positive, negative }, others) {
  const { labels, sum, createdTimestamp, exemplars } = others;
  const count = [...positive.counts, ...negative.counts].reduce((total, each) => total + each, zeroCount);
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

module.exports = { nativeJson, spansOf };
