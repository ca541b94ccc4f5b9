'use strict';

const { setTimeout, clearTimeout } = require('timers');
const { performance } = require('perf_hooks');
const { inspect } = require('util');
const { MetricGroup } = require('./metric-group');
const { DelayCounts } = require('./delay-counts');

/** @typedef {import('../metric/histogram').Histogram} Histogram */

const DELAY = 'nodejs_eventloop_delay_seconds';

// Milliseconds. Twice that of the runtime's own monitor: a stall that is longer counts as often as with any interval.
const DEFAULT_PRECISION = 20;

// A probe that wakes a process which does nothing takes 0.2 ms (the caches are cold), 50 a second one per cent of a CPU.
// So a loop that has hardly worked since the last probe is left alone for longer, and the next probe stands for more.
const MOST_ACTIVE_AT_REST = 0.05;
const INTERVALS_AT_REST = 10;

const DEFAULT_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** After so many counts reach the histogram between two scrapes, for a worker whose last ones are read when it ends. */
const INTERVALS_PER_MOVE = 100;

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
 * Lets a timer go off again and again, and counts how late it does: `interval` after the runtime has begun with the one
 * before, or later where the loop is at rest.
 *
 * @param {DelayCounts} counts
 * @param {number} interval milliseconds
 * @param {WeakRef<Histogram>} histogram weak, because the runtime holds the timer: a dropped registry could otherwise
 *   never be garbage
 * @param {Record<string, string | number>} labels
 * @returns {() => void} stops
 */
function probeLoop(counts, interval, histogram, labels) {
  let last = { now: NaN, idle: 0 };
  /** How many intervals after the last probe the next is due. */
  let weight = 1;
  let sinceMove = 0;
  /** @type {NodeJS.Timeout} */
  let timer;
  const move = () => {
    sinceMove = 0;
    const target = histogram.deref();
    if (target !== undefined) counts.moveTo(target, labels);
  };
  const probe = () => {
    const now = milliseconds();
    const idle = idleTime();
    const passed = now - last.now;
    // Not the first: a program that is still starting keeps nobody waiting.
    if (!Number.isNaN(passed)) {
      counts.add(passed - weight * interval, weight);
      sinceMove += weight;
    }
    const isAtRest = passed - (idle - last.idle) <= passed * MOST_ACTIVE_AT_REST;
    last = { now, idle };
    weight = isAtRest ? INTERVALS_AT_REST : 1;
    timer = setTimeout(probe, interval * weight).unref();
    if (sinceMove >= INTERVALS_PER_MOVE) move();
  };
  timer = setTimeout(probe, interval).unref();
  return () => {
    clearTimeout(timer);
    move();
  };
}

/** @returns {number} milliseconds that the loop has waited for something to do; 0 where the runtime does not know */
function idleTime() {
  return performance?.nodeTiming?.idleTime ?? 0;
}

/** The clock that is read in 1 µs: performance.now() takes 15 where the caches are cold. */
function milliseconds() {
  return Number(process.hrtime.bigint()) / NANOSECONDS_PER_MILLISECOND;
}

module.exports = eventLoopDelay;
module.exports.metricNames = [DELAY];
