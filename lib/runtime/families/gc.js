'use strict';

const { defineFamily } = require('../sampling/metric-group');
const { loopTurn } = require('../sampling/loop-turn');
const { isObservable, observeCollections, deliverCollections } = require('../sources/gc-observer');
const { kindOf } = require('../sources/gc-kinds');

/** @typedef {import('../../metric/histogram').Histogram} Histogram */

const GC_DURATION = 'nodejs_gc_duration_seconds';
const HELP = 'Garbage collection duration by kind, one of major, minor, incremental or weakcb.';

const DEFAULT_BUCKETS = [0.001, 0.01, 0.1, 1, 2, 5];

/** Durations of garbage collections. Only if the runtime reports them. */
module.exports = defineFamily({ [GC_DURATION]: HELP }, (group, config) => {
  if (!isObservable()) return false;
  const histogram = group.histogram(GC_DURATION, {
    labelNames: ['kind'],
    buckets: config.gcDurationBuckets || DEFAULT_BUCKETS,
  });
  group.onStop(observeCollections(recorder(new WeakRef(histogram), group.labels)));
  group.collectTogether([histogram], async () => {
    // The runtime queues its entries in the next turn of the loop; the observer's callback would run one
    // turn later.
    await loopTurn();
    deliverCollections();
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
    const kind = kindOf(number);
    // As prom-client counts V8's other collector of the young generation (--minor-ms).
    histogram.deref()?.observe({ kind: kind === 'other' ? 'minor' : kind, ...labels }, seconds);
  };
}
