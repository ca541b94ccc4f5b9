'use strict';

const { setInterval, clearInterval } = require('timers');
const { inspect } = require('util');
const { MetricGroup } = require('../sampling/metric-group');
const { DelayCounts } = require('../sampling/delay-counts');
const { DelayProbe } = require('../sources/delay-probe');

/** @typedef {import('../../metric/histogram').Histogram} Histogram */

const DELAY = 'nodejs_eventloop_delay_seconds';

// Milliseconds. Twice that of the runtime's own monitor: a stall that is longer counts as often as with any interval.
const DEFAULT_PRECISION = 20;
const DEFAULT_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** So often counts reach the histogram between two scrapes, for a worker whose last ones are read when it ends. */
const MOVE_MILLISECONDS = 2000;

/**
 * How long a callback that becomes due at any time waits for the event loop: a histogram, so that the quantiles of a
 * cluster can be computed. In a worker thread: that thread's loop.
 *
 * @param {import('../../registry/registry').Registry} [registry] default: the global one
 * @param {import('../sampling/metric-group').FamilyConfig & {eventLoopMonitoringPrecision?: number | null,
 *   eventLoopDelayBuckets?: readonly number[] | null}} [config]
 * @throws {TypeError} where the buckets are not numbers that rise
 */
function eventLoopDelay(registry, config = {}) {
  const buckets = config?.eventLoopDelayBuckets ?? DEFAULT_BUCKETS;
  checkBuckets(buckets);
  const interval = config?.eventLoopMonitoringPrecision ?? DEFAULT_PRECISION;
  return MetricGroup.build(registry, config, group => {
    const histogram = group.histogram({
      name: DELAY,
      help: 'Time in seconds that a callback which is due waits for the event loop.',
      buckets,
    });
    const counts = new DelayCounts(buckets);
    counts.moveTo(histogram, group.labels);
    group.onStop(countDelays(counts, interval, new WeakRef(histogram), group.labels));
    group.collectLater([histogram], () => counts.moveTo(histogram, group.labels));
  });
}

/**
 * @param {unknown} buckets
 * @throws {TypeError}
 */
function checkBuckets(buckets) {
  const isRising = (/** @type {unknown} */ bound, /** @type {number} */ i, /** @type {any[]} */ all) =>
    typeof bound === 'number' && Number.isFinite(bound) && (i === 0 || all[i - 1] < bound);
  if (Array.isArray(buckets) && buckets.length > 0 && buckets.every(isRising)) return;
  throw new TypeError(`eventLoopDelayBuckets must be finite numbers in rising order: ${inspect(buckets)}`);
}

/**
 * Has the loop probed, and the counts moved to the histogram now and then.
 *
 * @param {DelayCounts} counts
 * @param {number} interval milliseconds
 * @param {WeakRef<Histogram>} histogram weak, because the runtime holds the timers: a dropped registry could otherwise
 *   never be garbage
 * @param {Record<string, string | number>} labels
 * @returns {() => void} stops
 */
function countDelays(counts, interval, histogram, labels) {
  const move = () => {
    const target = histogram.deref();
    if (target !== undefined) counts.moveTo(target, labels);
  };
  const probe = new DelayProbe(interval, counts);
  const timer = setInterval(move, MOVE_MILLISECONDS).unref();
  return () => {
    probe.stop();
    clearInterval(timer);
    move();
  };
}

module.exports = eventLoopDelay;
module.exports.metricNames = [DELAY];
