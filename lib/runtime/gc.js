'use strict';

const { Registry } = require('../registry');
const { MetricGroup } = require('./metric-group');
const { loopTurn } = require('./loop-turn');
const { isObservable, observeCollections } = require('./gc-observer');

/** @typedef {import('../metric/histogram').Histogram} Histogram */

const GC_DURATION = 'nodejs_gc_duration_seconds';

const DEFAULT_BUCKETS = [0.001, 0.01, 0.1, 1, 2, 5];

/**
 * Durations of garbage collections. Only where the runtime reports them.
 *
 * @param {import('../registry').Registry} [registry] default: the global one
 * @param {import('./metric-group').FamilyConfig & {gcDurationBuckets?: readonly number[] | null}} [config]
 */
function gc(registry, config = {}) {
  if (!isObservable()) return undefined;
  return MetricGroup.build(registry, config, group => {
    const histogram = group.histogram({
      name: GC_DURATION,
      help: 'Durations of garbage collections in seconds by kind: major, minor, incremental or weakcb.',
      labelNames: ['kind'],
      buckets: config?.gcDurationBuckets ?? DEFAULT_BUCKETS,
    });
    const subscriber = recorder(new WeakRef(histogram), group.labels);
    const { deliver, stop } = observeCollections(registry ?? Registry.globalRegistry, subscriber);
    group.onStop(stop);
    group.collectTogether([histogram], async () => {
      // The runtime hands over its entries in the next turn of the loop, and they reach the observer in the one after.
      await loopTurn();
      deliver();
    });
  });
}

/**
 * @param {WeakRef<Histogram>} histogram
 * @param {Record<string, string | number>} labels
 * @returns {import('./gc-observer').Subscriber}
 */
function recorder(histogram, labels) {
  const { constants } = require('perf_hooks');
  const kinds = new Map([
    [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
    [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
    [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
    [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
  ]);
  return (number, seconds) => {
    // What V8 has beside these four is its other way to collect the young generation (--minor-ms), which prom-client
    // has no name for.
    const kind = kinds.get(number) ?? 'minor';
    histogram.deref()?.observe({ kind, ...labels }, seconds);
  };
}

module.exports = gc;
module.exports.metricNames = [GC_DURATION];
