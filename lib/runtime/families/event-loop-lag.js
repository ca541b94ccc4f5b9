'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { loopTurn } = require('../sampling/loop-turn');

/** @typedef {import('perf_hooks').IntervalHistogram} IntervalHistogram */

const HELPS = {
  nodejs_eventloop_lag_seconds: 'Lag of event loop in seconds.',
  nodejs_eventloop_lag_min_seconds: 'The minimum recorded event loop delay.',
  nodejs_eventloop_lag_max_seconds: 'The maximum recorded event loop delay.',
  nodejs_eventloop_lag_mean_seconds: 'The mean of the recorded event loop delays.',
  nodejs_eventloop_lag_stddev_seconds: 'The standard deviation of the recorded event loop delays.',
  nodejs_eventloop_lag_p50_seconds: 'The 50th percentile of the recorded event loop delays.',
  nodejs_eventloop_lag_p90_seconds: 'The 90th percentile of the recorded event loop delays.',
  nodejs_eventloop_lag_p99_seconds: 'The 99th percentile of the recorded event loop delays.',
};

/** Aggregators other than `average`. */
const AGGREGATORS = new Map([
  ['nodejs_eventloop_lag_min_seconds', 'min'],
  ['nodejs_eventloop_lag_max_seconds', 'max'],
]);

const DEFAULT_PRECISION = 10; // milliseconds
const NANOSECONDS = 1e9;

/**
 * Lag of the event loop: at this scrape, and statistics of the time since the last scrape. Only if the
 * runtime monitors its event loop.
 *
 * @throws {RangeError | TypeError} if the precision is not a whole number of milliseconds, at least 1
 */
module.exports = defineFamily(HELPS, (group, config) => {
  const monitor = createMonitor(config.eventLoopMonitoringPrecision ?? DEFAULT_PRECISION);
  if (monitor === undefined) return false;
  const [lag, ...gauges] = group.names.map(name =>
    group.gauge(name, { aggregator: AGGREGATORS.get(name) ?? 'average' }),
  );
  group.collectTogether([lag], async () => lag.set(group.labels, await loopTurn()));
  // A gauge without labels starts at 0, one with labels does not: both are 0 until the first measurement.
  for (const gauge of gauges) gauge.set(group.labels, 0);
  group.onStop(monitor.disable.bind(monitor));
  monitor.enable();
  // Reading the seven statistics takes a quarter of a millisecond.
  group.collectLater(gauges, () => {
    // Nothing is measured between two scrapes in quick succession: the gauges then keep their values.
    if (monitor.count === 0 || Number.isNaN(monitor.mean)) return;
    const statistics = [
      ...[monitor.min, monitor.max, monitor.mean, monitor.stddev],
      ...[50, 90, 99].map(rank => monitor.percentile(rank)),
    ];
    statistics.forEach((value, i) => gauges[i].set(group.labels, value / NANOSECONDS));
    monitor.reset();
  });
});
module.exports.metricNames = Object.keys(HELPS);

/**
 * @param {number} resolution milliseconds
 * @returns {IntervalHistogram | undefined} undefined if the runtime has none (Bun has the function, but it
 *   throws)
 */
function createMonitor(resolution) {
  const { monitorEventLoopDelay } = require('perf_hooks');
  if (typeof monitorEventLoopDelay !== 'function') return undefined;
  try {
    return monitorEventLoopDelay({ resolution });
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ERR_NOT_IMPLEMENTED') return undefined;
    throw error;
  }
}
