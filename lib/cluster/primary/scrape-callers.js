'use strict';

// Those who wait for the cluster's metrics, each with its own deadline and format.

/**
 * @typedef {object} Caller
 * @property {number} deadline milliseconds, by performance.now()
 * @property {NodeJS.Timeout | undefined} timer until then
 * @property {import('../aggregator/aggregator').Format} format
 * @property {(bytes: Bytes | undefined) => void} resolve
 * @property {(error: Error) => void} reject
 */

/** @typedef {import('../../exposition/pooled-page').PageBytes} Bytes */

/**
 * @param {Caller[]} callers
 * @returns {import('../aggregator/aggregator').Format[]}
 */
function distinctFormats(callers) {
  return [...new Map(callers.map(({ format }) => [keyOf(format), format])).values()];
}

/** @param {import('../aggregator/aggregator').Format} format */
function keyOf({ openMetrics, gzip, selfMetrics }) {
  return `${openMetrics} ${gzip} ${selfMetrics}`;
}

/** @param {Caller} caller */
function disarm(caller) {
  clearTimeout(caller.timer);
  caller.timer = undefined;
}

module.exports = { disarm, distinctFormats, keyOf };
