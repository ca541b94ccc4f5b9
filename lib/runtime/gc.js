'use strict';

const { MetricGroup } = require('./metric-group');
const { loopTurn } = require('./loop-turn');

/** @typedef {import('../metric/histogram').Histogram} Histogram */

const GC_DURATION = 'nodejs_gc_duration_seconds';

const DEFAULT_BUCKETS = [0.001, 0.01, 0.1, 1, 2, 5];
const MILLISECONDS = 1e3;

/**
 * Durations of garbage collections. Only where the runtime reports them.
 *
 * @param {import('../registry').Registry} [registry] default: the global one
 * @param {import('./metric-group').FamilyConfig & {gcDurationBuckets?: readonly number[] | null}} [config]
 */
function gc(registry, config = {}) {
  const { PerformanceObserver } = /** @type {any} */ (require('perf_hooks'));
  if (!PerformanceObserver?.supportedEntryTypes?.includes('gc')) return undefined;
  return MetricGroup.build(registry, config, group => {
    const histogram = group.histogram({
      name: GC_DURATION,
      help: 'Durations of garbage collections in seconds by kind: major, minor, incremental or weakcb.',
      labelNames: ['kind'],
      buckets: config?.gcDurationBuckets ?? DEFAULT_BUCKETS,
    });
    const { countPending, stop } = observeCollections(new WeakRef(histogram), group.labels);
    group.onStop(stop);
    group.collectTogether([histogram], async () => {
      // The runtime hands over its entries in the next turn of the loop, and they reach the observer in the one after.
      await loopTurn();
      countPending();
    });
  });
}

/**
 * Counts every collection from now on.
 *
 * @param {WeakRef<Histogram>} histogram weak, because the runtime holds the observer: a dropped registry could
 *   otherwise never be garbage
 * @param {Record<string, string | number>} labels
 */
function observeCollections(histogram, labels) {
  const { PerformanceObserver, constants } = require('perf_hooks');
  const kinds = new Map([
    [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
    [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
    [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
    [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
  ]);
  /** @param {any[]} entries all that happened since the last call, not only one */
  const count = entries => {
    for (const { detail, duration } of entries) {
      // What V8 has beside these four is its other way to collect the young generation (--minor-ms), for which
      // Node.js has no constant.
      const kind = kinds.get(detail.kind) ?? 'minor';
      histogram.deref()?.observe({ kind, ...labels }, duration / MILLISECONDS);
    }
  };
  const observer = new PerformanceObserver(list => count(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  const countPending = () => count(observer.takeRecords());
  return {
    countPending,
    stop() {
      countPending();
      observer.disconnect();
    },
  };
}

module.exports = gc;
module.exports.metricNames = [GC_DURATION];
