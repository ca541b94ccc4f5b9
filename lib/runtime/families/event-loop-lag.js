'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { loopTurn } = require('../sampling/loop-turn');

/** @typedef {import('perf_hooks').IntervalHistogram} IntervalHistogram */

const LAG = 'nodejs_eventloop_lag_seconds';

const DEFAULT_PRECISION = 10; // milliseconds
const NANOSECONDS = 1e9;

/** @type {{name: string, help: string, aggregator: string, read: (delays: IntervalHistogram) => number}[]} */
const STATISTICS = [
  {
    name: 'nodejs_eventloop_lag_min_seconds',
    help: 'The minimum recorded event loop delay.',
    aggregator: 'min',
    read: delays => delays.min,
  },
  {
    name: 'nodejs_eventloop_lag_max_seconds',
    help: 'The maximum recorded event loop delay.',
    aggregator: 'max',
    read: delays => delays.max,
  },
  {
    name: 'nodejs_eventloop_lag_mean_seconds',
    help: 'The mean of the recorded event loop delays.',
    aggregator: 'average',
    read: delays => delays.mean,
  },
  {
    name: 'nodejs_eventloop_lag_stddev_seconds',
    help: 'The standard deviation of the recorded event loop delays.',
    aggregator: 'average',
    read: delays => delays.stddev,
  },
  percentile(50),
  percentile(90),
  percentile(99),
];

/** @param {number} rank 0 to 100 */
function percentile(rank) {
  return {
    name: `nodejs_eventloop_lag_p${rank}_seconds`,
    help: `The ${rank}th percentile of the recorded event loop delays.`,
    aggregator: 'average',
    read: (/** @type {IntervalHistogram} */ delays) => delays.percentile(rank),
  };
}

/**
 * Lag of the event loop: at this scrape, and statistics of the time since the last scrape. Only if the
 * runtime monitors its event loop.
 *
 * @throws {RangeError | TypeError} if the precision is not a whole number of milliseconds, at least 1
 */
const eventLoopLag = defineFamily((group, config) => {
  const monitor = createMonitor(config.eventLoopMonitoringPrecision ?? DEFAULT_PRECISION);
  if (monitor === undefined) return false;
  const lag = group.gauge({
    name: LAG,
    help: 'Lag of event loop in seconds.',
    aggregator: 'average',
  });
  group.collectTogether([lag], async () => lag.set(group.labels, await loopTurn()));
  addStatistics(group, monitor);
});

/**
 * @param {import('../sampling/metric-group').MetricGroup} group
 * @param {IntervalHistogram} monitor
 */
function addStatistics(group, monitor) {
  const gauges = STATISTICS.map(({ name, help, aggregator }) => group.gauge({ name, help, aggregator }));
  // A gauge without labels starts at 0, one with labels does not: both are 0 until the first measurement.
  for (const gauge of gauges) gauge.set(group.labels, 0);
  group.onStop(monitor.disable.bind(monitor));
  monitor.enable();
  // Reading the seven statistics takes a quarter of a millisecond.
  group.collectLater(gauges, () => {
    // Nothing is measured between two scrapes in quick succession: the gauges then keep their values.
    if (monitor.count === 0 || Number.isNaN(monitor.mean)) return;
    STATISTICS.forEach(({ read }, i) => gauges[i].set(group.labels, read(monitor) / NANOSECONDS));
    monitor.reset();
  });
}

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

module.exports = eventLoopLag;
module.exports.metricNames = [LAG, ...STATISTICS.map(({ name }) => name)];
