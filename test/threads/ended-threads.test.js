'use strict';

const assert = require('node:assert/strict');
const { beforeEach, describe, it } = require('node:test');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../../index');
const { EndedThreads } = require('../../lib/threads/ended-threads');
const { viewOf } = require('../../lib/registry/metric-view');
const { quantilesOf } = require('../../lib/metric/time-window-quantiles');
const { runThrough } = require('../../lib/event-loop/slices');
const { SnapshotSource } = require('../../lib/source/snapshot-source');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { bytesOf, samplesOf, seriesKey, textOf } = require('../fixtures/unit-scrape');

const MAX_AGE = 1000;

/** @param {Record<string, number>} jobs by kind */
function threadWith(jobs, defaultLabels = {}) {
  const registry = new Registry();
  registry.setDefaultLabels(defaultLabels);
  const registers = [registry];
  const counter = new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'], registers });
  const summary = new Summary({ name: 'sizes', help: 'h', labelNames: ['kind'], registers });
  const histogram = new Histogram({ name: 'seconds', help: 'h', buckets: [1], registers });
  for (const [kind, count] of Object.entries(jobs)) {
    counter.inc({ kind }, count);
    summary.observe({ kind }, count);
    histogram.observe(count);
  }
  return { registry: /** @type {any} */ (registry), counter };
}

function withResolvers() {
  let resolve = () => {};
  const promise = new Promise(fulfil => (resolve = () => fulfil(undefined)));
  return { promise, resolve };
}

/** @param {any} registry */
function mirrorOf(registry) {
  return { registries: [registry], *read() {} };
}

describe('totals of threads that have ended', () => {
  let now = 0;
  /** @type {EndedThreads} */
  let retired;

  beforeEach(() => {
    now = 0;
    retired = new EndedThreads(MAX_AGE, () => now);
  });

  /** @param {any} registry of a thread that ends */
  function end(registry) {
    retired.add(mirrorOf(registry));
    runThrough(retired.merge());
  }

  /** @param {any[]} live */
  function expire(...live) {
    const steps = retired.expire(live);
    while (!steps.next().done);
  }

  /** A capture of the totals that waits for a hook of another metric. */
  function waitingCapture() {
    const [hook, started] = [withResolvers(), withResolvers()];
    const slow = new Registry();
    const collect = () => {
      started.resolve();
      return hook.promise;
    };
    new Gauge({ name: 'slow', help: 'h', registers: [slow], collect });
    const source = new SnapshotSource(() => [...retired.registries, slow]);
    const jobs = source.prepare(60_000, {
      capture: dictionary => {
        const store = new ClusterStore();
        store.apply(1, bytesOf(source.capture(1, undefined, { dictionary })));
        const samples = [...samplesOf(textOf(store))];
        return samples.reduce((sum, [key, value]) => sum + (key.startsWith('jobs_total') ? value : 0), 0);
      },
    });
    return { hasStarted: started.promise, jobs, end: hook.resolve };
  }

  /** @param {string} name */
  function totalsOf(name) {
    const metrics = retired.registries.flatMap(registry => registry.getMetricsAsArray());
    /** @type {Record<string, number>} */
    const sums = {};
    for (const metric of metrics.filter(each => each.name === name)) {
      const { table } = /** @type {any} */ (viewOf(metric));
      for (const row of table.liveRows()) {
        const { kind = '' } = table.labelsOf(row);
        sums[kind] = (sums[kind] ?? 0) + table.pageOf(row)[table.offsetOf(row)];
      }
    }
    return sums;
  }

  /** @param {string} name @returns {any} */
  function viewIn(name) {
    const metrics = retired.registries.flatMap(registry => registry.getMetricsAsArray());
    return metrics.map(viewOf).find((/** @type {any} */ view) => view.name === name);
  }

  /** @param {string} name */
  function largest(name) {
    const { table, digestOf } = viewIn(name);
    return Object.fromEntries(
      Array.from(table.liveRows(), (/** @type {number} */ row) => [
        table.labelsOf(row).kind,
        quantilesOf(digestOf(row).slices(), [1])[0],
      ]),
    );
  }

  for (const [what, prepare] of /** @type {const} */ ([
    ['a metric without a hook', () => {}],
    ['a metric whose hook runs no more', (/** @type {any} */ counter) => (counter.collect = () => undefined)],
  ]))
    for (const removes of [false, true])
      it(`are shown once by captures that wait while they change: ${what}${removes ? ' that loses a label set' : ''}`, async () => {
        const jobs = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`job ${i}`, 1]));
        end(threadWith(jobs).registry);
        const { registry, counter } = threadWith(jobs);
        prepare(counter);
        retired.add(mirrorOf(registry));
        // The process's own page and that of its cluster, for example.
        const [first, second] = [waitingCapture(), waitingCapture()];
        await Promise.all([first.hasStarted, second.hasStarted]);
        if (removes) counter.remove({ kind: 'job 0' });
        const steps = retired.merge();
        // Some of the label sets move. The next capture goes on with that, too.
        steps.next();
        steps.next();
        second.end();
        const shown = [await second.jobs];
        steps.next();
        steps.next();
        first.end();
        shown.push(await first.jobs);
        // What was removed meanwhile may be there or not.
        for (const sum of shown) assert.ok(sum === 600 || (removes && sum === 599), `${shown}`);
        runThrough(steps);
        runThrough(retired.merge());
        assert.equal(totalsOf('jobs_total')['job 299'], 2);
        assert.deepEqual([viewOf(counter)?.table.liveCount, retired.mirrors.length], [0, 0]);
      });

  it('have the observations of a thread that ends while a capture is under way, once', async () => {
    const observe = () => {
      const registry = new Registry();
      const summary = new Summary({ name: 'sizes', help: 'h', percentiles: [0.5], registers: [registry] });
      for (let i = 0; i < 1000; i++) summary.observe(i);
      return { registry, summary };
    };
    end(observe().registry);
    const { registry, summary } = observe();
    let merges = 0;
    const source = new SnapshotSource(() => [...(merges === 0 ? [registry] : []), ...retired.registries]);
    const text = await source.prepare(undefined, {
      // The digests are encoded now, and the numbers are not captured yet.
      onProgress: () => {
        if (merges++ > 0) return;
        for (let i = 0; i < 2000; i++) summary.observe(5000 + i);
        end(registry);
      },
      capture: dictionary => {
        const store = new ClusterStore();
        store.apply(1, bytesOf(source.capture(1, undefined, { dictionary })));
        return textOf(store);
      },
    });
    assert.ok(merges > 0);
    const samples = samplesOf(/** @type {string} */ (text));
    assert.equal(samples.get(seriesKey('sizes_count')), 4000);
    // Of 2000 values below 1000 and 2000 from 5000 on.
    const median = /** @type {number} */ (samples.get(seriesKey('sizes', { quantile: 0.5 })));
    assert.ok(median > 980 && median < 5020, `the median is ${median}`);
  });

  it('are dropped after the maximum age, label set by label set', () => {
    end(threadWith({ a: 1, b: 2 }).registry);
    now = 600;
    end(threadWith({ b: 3 }).registry);
    now = 1100;
    expire();
    assert.deepEqual(totalsOf('jobs_total'), { b: 5 });
    assert.deepEqual(totalsOf('sizes'), { b: 5 });
    assert.deepEqual(totalsOf('seconds'), { '': 1 });
    now = 1700;
    expire();
    assert.deepEqual(retired.registries, []);
  });

  it('are dropped in steps of some label sets', () => {
    const jobs = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`job ${i}`, i]));
    end(threadWith(jobs).registry);
    now = 600;
    const { 'job 7': recent } = jobs;
    end(threadWith({ 'job 7': 1 }).registry);
    now = 1100;
    let before = 3000;
    let count = 0;
    for (const steps = retired.expire([]); !steps.next().done;) {
      const { length } = Object.keys(totalsOf('jobs_total'));
      assert.ok(before - length <= 64, `${length} after ${before}`);
      before = length;
      count++;
    }
    // Those of the counter and of the summary.
    assert.ok(count >= (2 * 3000) / 64, `${count} steps`);
    assert.deepEqual(totalsOf('jobs_total'), { 'job 7': recent + 1 });
    // Their memory is released in steps, too.
    assert.equal(viewIn('jobs_total').table.rowCount, 1);
    end(threadWith({ 'job 7': 1, 'job 8': 5 }).registry);
    assert.deepEqual(totalsOf('jobs_total'), { 'job 7': recent + 2, 'job 8': 5 });
    assert.deepEqual(largest('sizes'), { 'job 7': 7, 'job 8': 5 });
    now = 1700;
    expire();
    assert.deepEqual(totalsOf('jobs_total'), { 'job 7': recent + 2, 'job 8': 5 });
    now = 2300;
    expire();
    assert.deepEqual(retired.registries, []);
  });

  it('that are dropped while their table is compacted come back without their observations', () => {
    const jobs = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`job ${i}`, i]));
    end(threadWith(jobs).registry);
    now = 600;
    end(threadWith(Object.fromEntries(Object.entries(jobs).slice(0, 600))).registry);
    now = 1100;
    const steps = retired.expire([]);
    const { table } = viewIn('sizes');
    while (table.liveCount > 600) steps.next();
    // Some of the label sets that are left move.
    for (let i = 0; i < 8; i++) steps.next();
    assert.deepEqual([table.epoch, table.rowCount], [0, 3000]);
    now = 1200;
    end(threadWith({ 'job 599': 599 }).registry);
    now = 1700;
    expire();
    runThrough(steps);
    assert.deepEqual([table.epoch, table.liveCount], [1, 1]);
    end(threadWith({ 'job 100': 5 }).registry);
    assert.deepEqual(largest('sizes'), { 'job 599': 599, 'job 100': 5 });
  });

  it('that are dropped leave the numbers of a capture that waits', async () => {
    const jobs = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`job ${i}`, 1]));
    end(threadWith(jobs).registry);
    const waiting = waitingCapture();
    await waiting.hasStarted;
    now = 1100;
    expire();
    end(threadWith(jobs).registry);
    waiting.end();
    // Those that are added meanwhile, too, because nothing is dropped until it ends.
    assert.equal(await waiting.jobs, 600);
    now = 1300;
    expire();
    assert.equal(Object.keys(totalsOf('jobs_total')).length, 300);
  });

  it('are dropped whatever the program of this thread has as default labels or metrics', () => {
    end(threadWith({ a: 1 }).registry);
    const labels = { app: 'x', odd: 'x' };
    const { registry, counter } = threadWith({ b: 1 }, labels);
    Object.assign(labels, { odd: { toString: null } });
    counter.help = /** @type {any} */ ({ toString: null });
    now = 1100;
    expire(registry);
    assert.deepEqual(retired.registries, []);
  });

  it('stay as long as a living thread has the label set', () => {
    end(threadWith({ a: 1, b: 2 }).registry);
    const living = threadWith({ b: 10 });
    for (now = 500; now <= 5000; now += 500) expire(living.registry);
    assert.deepEqual(totalsOf('jobs_total'), { b: 2 });
    // Also while what the thread has counted is not in the totals yet.
    retired.add(mirrorOf(threadWith({ b: 10 }).registry));
    for (now = 5000; now <= 6500; now += 500) expire();
    assert.deepEqual(totalsOf('jobs_total'), { b: 12 });
    runThrough(retired.merge());
    for (now = 7000; now <= 7500; now += 500) expire(living.registry);
    living.counter.remove({ kind: 'b' });
    for (now = 7500; now <= 9000; now += 500) expire(living.registry);
    assert.deepEqual(totalsOf('jobs_total'), {});
  });

  it('take many label sets in steps: at each, a page has every count once, and no gauge', () => {
    const jobs = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`job ${i}`, i]));
    end(threadWith(jobs).registry);
    const { registry, counter } = threadWith(jobs);
    new Gauge({ name: 'running', help: 'h', registers: [registry] }).set(1);
    retired.add(mirrorOf(registry));
    const doubled = Object.fromEntries(Object.keys(jobs).map(kind => [kind, jobs[kind] * 2]));
    let steps = 0;
    for (const merging = retired.merge(); !merging.next().done;) {
      steps++;
      const sums = totalsOf('jobs_total');
      assert.deepEqual(sums, doubled);
      assert.deepEqual(totalsOf('running'), {});
      // Another thread ends meanwhile, and the totals are checked for their age.
      if (steps === 3) {
        retired.add(mirrorOf(threadWith({ 'job 1': 10, 'job 999': 10 }).registry));
        doubled['job 1'] += 10;
        doubled['job 999'] += 10;
        now = 900;
      }
      if (steps === 5) {
        now = 1800;
        expire(threadWith(jobs).registry);
      }
    }
    assert.ok(steps > 10, `${steps} steps`);
    assert.deepEqual(totalsOf('jobs_total'), doubled);
    assert.equal(viewOf(counter)?.table.liveCount, 0);
    assert.deepEqual(retired.mirrors, []);
  });

  it('of other default labels belong to other series', () => {
    end(threadWith({ a: 1 }, { app: 'x' }).registry);
    now = 1500;
    expire(threadWith({ a: 1 }, { app: 'y' }).registry);
    assert.deepEqual(retired.registries, []);
  });

  it('that are left are exact, with digests and rounding errors', () => {
    for (let i = 0; i < 10; i++) end(threadWith({ a: 0.1, b: 0.1 }).registry);
    now = 900;
    end(threadWith({ a: 0.1 }).registry);
    now = 1100;
    expire();
    assert.equal(totalsOf('jobs_total').a, 1.1);
    const [registry] = retired.registries;
    const sizes = /** @type {any} */ (registry.getMetricsAsArray().map(viewOf)).find(
      (/** @type {any} */ view) => view.name === 'sizes',
    );
    const [digest] = sizes.digestOf(0).slices();
    assert.deepEqual(sizes.table.labelsOf(0), { kind: 'a' });
    const weights = digest
      .centroids()
      .filter((/** @type {number} */ _, /** @type {number} */ i) => i % 2 === 1);
    assert.equal(
      weights.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b),
      11,
    );
  });
});
