'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { DelayProbe } = require('../sources/delay-probe');

/** @typedef {import('../../metric/histogram').Histogram} Histogram */

const DELAY = 'nodejs_eventloop_delay_seconds';
const HELP = 'Delay of the event loop in seconds: how long a callback that is due waits to run.';

/** Milliseconds. */
const DEFAULT_PRECISION = 20;
const DEFAULT_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const MILLISECONDS = 1e3;

/**
 * How long a callback that becomes due at any time waits for the event loop. A histogram, so that the
 * quantiles of a cluster can be computed. In a worker thread: of that thread's loop.
 */
module.exports = defineFamily({ [DELAY]: HELP }, (group, config) => {
  const buckets = config.eventLoopDelayBuckets ?? DEFAULT_BUCKETS;
  const interval = config.eventLoopMonitoringPrecision ?? DEFAULT_PRECISION;
  const histogram = group.histogram(DELAY, { buckets });
  // Prometheus sees the first stall as an increase only if it has scraped a zero before.
  histogram.zero(group.labels);
  group.onStop(startProbe(interval, new WeakRef(histogram), group.labels));
});

/**
 * @param {number} interval milliseconds
 * @param {WeakRef<Histogram>} histogram weak, because the runtime holds the probe's timer: with a strong
 *   reference, a registry that the application drops would never be garbage
 * @param {Record<string, string | number>} labels
 * @returns {() => void} stops the probe
 */
function startProbe(interval, histogram, labels) {
  const probe = new DelayProbe(interval, (delay, count) => {
    const target = histogram.deref();
    for (let i = 0; i < count; i++) target?.observe(labels, delay / MILLISECONDS);
  });
  return () => probe.stop();
}
