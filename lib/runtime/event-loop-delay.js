'use strict';

const { setInterval, clearInterval } = require('timers');
const { inspect } = require('util');
const { locate, tableOf } = require('../metric/metric');
const { MetricGroup } = require('./metric-group');
const { observeStall } = require('./stall');

/** @typedef {import('../metric/histogram').Histogram} Histogram */

const DELAY = 'nodejs_eventloop_delay_seconds';

const DEFAULT_PRECISION = 10; // milliseconds
const DEFAULT_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * How long a callback that becomes due at any time waits for the event loop: a histogram, so that the quantiles of a
 * cluster can be computed. In a worker thread: that thread's loop.
 *
 * @param {import('../registry').Registry} [registry] default: the global one
 * @param {import('./metric-group').FamilyConfig & {eventLoopMonitoringPrecision?: number | null,
 *   eventLoopDelayBuckets?: readonly number[] | null}} [config]
 * @throws {TypeError} where the buckets are not numbers that rise
 */
function eventLoopDelay(registry, config = {}) {
  const buckets = config?.eventLoopDelayBuckets ?? DEFAULT_BUCKETS;
  checkBuckets(buckets);
  return MetricGroup.build(registry, config, group => {
    const histogram = group.histogram({
      name: DELAY,
      help: 'Time in seconds that a callback which is due waits for the event loop.',
      buckets,
    });
    startAtZero(histogram, group.labels);
    const interval = config?.eventLoopMonitoringPrecision ?? DEFAULT_PRECISION;
    group.onStop(probeLoop(new WeakRef(histogram), group.labels, interval));
    group.collectTogether([histogram], () => startAtZero(histogram, group.labels));
  });
}

/**
 * The first stall is an increase only from a zero that was scraped.
 *
 * @param {Histogram} histogram
 * @param {Record<string, string | number>} labels
 */
function startAtZero(histogram, labels) {
  locate(histogram, tableOf(histogram), labels);
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
 * Lets a timer go off again and again, and records how late it does.
 *
 * @param {WeakRef<Histogram>} histogram weak, because the runtime holds the timer: a dropped registry could otherwise
 *   never be garbage
 * @param {Record<string, string | number>} labels
 * @param {number} interval milliseconds
 * @returns {() => void} stops
 */
function probeLoop(histogram, labels, interval) {
  /** When the timer is due. Not known before it went off once: a program that is still starting keeps nobody waiting. */
  let due = NaN;
  const probe = () => {
    const now = performance.now();
    const target = histogram.deref();
    if (target !== undefined && !Number.isNaN(due)) observeStall(target, labels, now - due, interval);
    // The runtime counts the interval from here, too.
    due = now + interval;
  };
  const timer = setInterval(probe, interval);
  timer.unref();
  return () => clearInterval(timer);
}

module.exports = eventLoopDelay;
module.exports.metricNames = [DELAY];
