'use strict';

const { setInterval, clearInterval } = require('timers');
const { inspect } = require('util');
const { MetricGroup } = require('./metric-group');
const { DelayCounts } = require('./delay-counts');

/** @typedef {import('../metric/histogram').Histogram} Histogram */

const DELAY = 'nodejs_eventloop_delay_seconds';

// Milliseconds. Twice that of the runtime's own monitor: each probe wakes an idle process, and a stall that is longer
// counts as often as with any interval.
const DEFAULT_PRECISION = 20;
const DEFAULT_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** So often counts reach the histogram between two scrapes, for a worker whose last ones are read when it ends. */
const PROBES_PER_MOVE = 100;

const NANOSECONDS_PER_MILLISECOND = 1e6;

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
  const interval = config?.eventLoopMonitoringPrecision ?? DEFAULT_PRECISION;
  return MetricGroup.build(registry, config, group => {
    const histogram = group.histogram({
      name: DELAY,
      help: 'Time in seconds that a callback which is due waits for the event loop.',
      buckets,
    });
    const counts = new DelayCounts(buckets, interval);
    counts.moveTo(histogram, group.labels);
    group.onStop(probeLoop(counts, interval, new WeakRef(histogram), group.labels));
    group.collectNextTurn([histogram], () => counts.moveTo(histogram, group.labels));
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
 * Lets a timer go off again and again, and counts how late it does.
 *
 * @param {DelayCounts} counts
 * @param {number} interval milliseconds
 * @param {WeakRef<Histogram>} histogram weak, because the runtime holds the timer: a dropped registry could otherwise
 *   never be garbage
 * @param {Record<string, string | number>} labels
 * @returns {() => void} stops
 */
function probeLoop(counts, interval, histogram, labels) {
  /** When the timer is due. Not known before it went off once: a program that is still starting keeps nobody waiting. */
  let due = NaN;
  let probes = 0;
  const move = () => {
    probes = 0;
    const target = histogram.deref();
    if (target !== undefined) counts.moveTo(target, labels);
  };
  const probe = () => {
    const now = milliseconds();
    if (!Number.isNaN(due)) counts.add(now - due);
    // The runtime counts the interval from here, too.
    due = now + interval;
    if (++probes === PROBES_PER_MOVE) move();
  };
  const timer = setInterval(probe, interval);
  timer.unref();
  return () => {
    clearInterval(timer);
    move();
  };
}

/** The clock that is read in 1 µs: performance.now() takes 15 where the caches are cold. */
function milliseconds() {
  return Number(process.hrtime.bigint()) / NANOSECONDS_PER_MILLISECOND;
}

module.exports = eventLoopDelay;
module.exports.metricNames = [DELAY];
