'use strict';

const { setTimeout, clearTimeout } = require('timers');
// Not in a function, see gc-observer.js.
const v8 = /** @type {any} */ (require('v8'));
const { defineFamily } = require('../sampling/metric-group');
const { loopTurn } = require('../sampling/loop-turn');
const { COMMON_KINDS, kindOf } = require('../sources/gc-kinds');
const { isObservable, observeCollections, deliverCollections } = require('../sources/gc-observer');
const { ReclaimedBytes } = require('../sources/reclaimed-bytes');

/** @typedef {import('../../metric/counter').Counter} Counter */
/** @typedef {Record<string, string | number>} Labels */

const HELPS = {
  nodejs_gc_runs_total: 'Number of garbage collections, by kind.',
  nodejs_gc_pause_seconds_total: 'Time in seconds that garbage collections paused the program, by kind.',
  nodejs_gc_reclaimed_bytes_total: 'Bytes of the JavaScript heap freed by garbage collections, by kind.',
};

/**
 * Garbage collections since this call as counters by kind: runs, pauses, bytes freed. Only if the runtime
 * reports them.
 */
module.exports = defineFamily(HELPS, group => {
  const { GCProfiler } = v8;
  if (!isObservable()) return false;
  const names = typeof GCProfiler === 'function' ? group.names : group.names.slice(0, 2);
  const counters = names.map(name => group.counter(name, { labelNames: ['kind'] }));
  startAtZero(counters, group.labels);
  const refs = counters.map(counter => new WeakRef(counter));
  const { update, stop } = countCollections(refs, group.labels);
  group.onStop(stop);
  group.collectTogether(counters, async () => {
    // Prometheus sees the first collection of a kind as an increase only if it has scraped a zero before.
    startAtZero(counters, group.labels);
    // The runtime queues its entries in the next turn of the loop; the observer's callback would run one
    // turn later.
    await loopTurn();
    update();
  });
});

/**
 * @param {Counter[]} counters
 * @param {Labels} labels
 */
function startAtZero(counters, labels) {
  for (const counter of counters) for (const kind of COMMON_KINDS) counter.inc({ kind, ...labels }, 0);
}

/**
 * Counts every collection from now on. References are weak, because the runtime holds the observer: with
 * strong ones, a registry that the application drops would never be garbage.
 *
 * @param {WeakRef<Counter>[]} counters of runs, pauses and, if V8 has a profiler, bytes
 * @param {Labels} labels
 * @returns {{update: () => void, stop: () => void}}
 */
function countCollections([runs, pause, reclaimed], labels) {
  const reclaimedBytes = reclaimed && startReclaimedBytes(reclaimed, labels);
  const stop = observeCollections((number, seconds) => {
    const kind = kindOf(number);
    const labelsOfKind = { kind, ...labels };
    runs.deref()?.inc(labelsOfKind);
    pause.deref()?.inc(labelsOfKind, seconds);
    reclaimedBytes?.addRun(kind);
  });
  return {
    update() {
      deliverCollections();
      reclaimedBytes?.drain();
    },
    stop() {
      stop();
      reclaimedBytes?.stop();
    },
  };
}

/**
 * @param {WeakRef<Counter>} counter
 * @param {Labels} labels
 */
function startReclaimedBytes(counter, labels) {
  return new ReclaimedBytes(
    () => new v8.GCProfiler(),
    (kind, bytes) => counter.deref()?.inc({ kind, ...labels }, bytes),
    { now: () => performance.now(), setTimeout, clearTimeout },
  );
}
