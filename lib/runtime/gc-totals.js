'use strict';

const { setTimeout, clearTimeout } = require('timers');
const { MetricGroup } = require('./metric-group');
const { loopTurn } = require('./loop-turn');
const { COMMON_KINDS, kindOfNumber } = require('./gc-kinds');
const { ReclaimedBytes } = require('./reclaimed-bytes');

/** @typedef {import('../metric/counter').Counter} Counter */

const RUNS = 'nodejs_gc_runs_total';
const PAUSE = 'nodejs_gc_pause_seconds_total';
const RECLAIMED = 'nodejs_gc_reclaimed_bytes_total';

const MILLISECONDS = 1e3;

/**
 * Garbage collections as counters by kind, since this call: runs, pauses, bytes freed. Only where the runtime reports
 * them.
 *
 * @param {import('../registry').Registry} [registry] default: the global one
 * @param {import('./metric-group').FamilyConfig} [config]
 */
function gcTotals(registry, config = {}) {
  const { PerformanceObserver } = /** @type {any} */ (require('perf_hooks'));
  const { GCProfiler } = /** @type {any} */ (require('v8'));
  if (!PerformanceObserver?.supportedEntryTypes?.includes('gc')) return undefined;
  return MetricGroup.build(registry, config, group => {
    const labelNames = ['kind'];
    const runs = group.counter({ name: RUNS, help: 'Garbage collections by kind.', labelNames });
    const pause = group.counter({
      name: PAUSE,
      help: 'Time in seconds that garbage collections held up the program, by kind.',
      labelNames,
    });
    const counters = [runs, pause];
    if (typeof GCProfiler === 'function') {
      counters.push(
        group.counter({
          name: RECLAIMED,
          help: 'Bytes of the JavaScript heap that garbage collections freed, by kind.',
          labelNames,
        }),
      );
    }
    startAtZero(counters, group.labels);
    const [runsRef, pauseRef, reclaimedRef] = counters.map(counter => new WeakRef(counter));
    const { update, stop } = observe(runsRef, pauseRef, reclaimedRef, group.labels);
    group.onStop(stop);
    group.collectTogether(counters, async () => {
      // A first collection of a kind is an increase only from a zero that was scraped.
      startAtZero(counters, group.labels);
      // The runtime hands over its entries in the next turn of the loop, and they reach the observer in the one after.
      await loopTurn();
      update();
    });
  });
}

/**
 * @param {Counter[]} counters
 * @param {Record<string, string | number>} labels
 */
function startAtZero(counters, labels) {
  for (const counter of counters) for (const kind of COMMON_KINDS) counter.inc({ kind, ...labels }, 0);
}

/**
 * Counts every collection from now on. All references are weak, because the runtime holds the observer: a dropped
 * registry could otherwise never be garbage.
 *
 * @param {WeakRef<Counter>} runs
 * @param {WeakRef<Counter>} pause
 * @param {WeakRef<Counter> | undefined} reclaimed
 * @param {Record<string, string | number>} labels
 * @returns {{update: () => void, stop: () => void}}
 */
function observe(runs, pause, reclaimed, labels) {
  const { PerformanceObserver } = require('perf_hooks');
  const reclaimedBytes = reclaimed && startReclaimedBytes(reclaimed, labels);
  /** @param {any[]} entries all that happened since the last call, not only one */
  const count = entries => {
    for (const { detail, duration } of entries) {
      const kind = kindOfNumber(detail.kind);
      runs.deref()?.inc({ kind, ...labels });
      pause.deref()?.inc({ kind, ...labels }, duration / MILLISECONDS);
      reclaimedBytes?.noteRun(kind);
    }
  };
  const observer = new PerformanceObserver(list => {
    count(list.getEntries());
    reclaimedBytes?.drainIfFull();
  });
  observer.observe({ entryTypes: ['gc'] });
  const update = () => {
    count(observer.takeRecords());
    reclaimedBytes?.drain();
  };
  return {
    update,
    stop() {
      update();
      observer.disconnect();
      reclaimedBytes?.stop();
    },
  };
}

/**
 * @param {WeakRef<Counter>} counter
 * @param {Record<string, string | number>} labels
 */
function startReclaimedBytes(counter, labels) {
  const { GCProfiler } = /** @type {any} */ (require('v8'));
  return new ReclaimedBytes(
    () => new GCProfiler(),
    (kind, bytes) => counter.deref()?.inc({ kind, ...labels }, bytes),
    { now: () => performance.now(), setTimeout, clearTimeout },
  );
}

module.exports = gcTotals;
module.exports.metricNames = [RUNS, PAUSE, RECLAIMED];
