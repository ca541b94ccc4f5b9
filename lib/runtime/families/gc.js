'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { loopTurn } = require('../sampling/loop-turn');
const { isObservable, observeCollections } = require('../sources/gc-observer');
const { kindOfNumber } = require('../sources/gc-kinds');

/** @typedef {import('../../metric/histogram').Histogram} Histogram */

const GC_DURATION = 'nodejs_gc_duration_seconds';
const HELP = 'Garbage collection duration by kind, one of major, minor, incremental or weakcb.';

const DEFAULT_BUCKETS = [0.001, 0.01, 0.1, 1, 2, 5];

/**
 * The kinds that prom-client names. It counts V8's other collector of the young generation (--minor-ms) as
 * minor.
 */
const KINDS = new Set(['major', 'minor', 'incremental', 'weakcb']);

/** Durations of garbage collections. Only if the runtime reports them. */
module.exports = defineFamily({ [GC_DURATION]: HELP }, (group, config) => {
  if (!isObservable()) return false;
  const histogram = group.histogram(GC_DURATION, {
    labelNames: ['kind'],
    buckets: config.gcDurationBuckets || DEFAULT_BUCKETS,
  });
  const subscriber = recorder(new WeakRef(histogram), group.labels);
  const { deliver, stop } = observeCollections(group.registry, subscriber);
  group.onStop(stop);
  group.collectTogether([histogram], async () => {
    // The runtime queues its entries in the next turn of the loop; the observer's callback would run one
    // turn later.
    await loopTurn();
    deliver();
  });
});
module.exports.metricNames = [GC_DURATION];

/**
 * @param {WeakRef<Histogram>} histogram
 * @param {Record<string, string | number>} labels
 * @returns {import('../sources/gc-observer').Subscriber}
 */
function recorder(histogram, labels) {
  return (number, seconds) => {
    const kind = kindOfNumber(number);
    histogram.deref()?.observe({ kind: KINDS.has(kind) ? kind : 'minor', ...labels }, seconds);
  };
}
