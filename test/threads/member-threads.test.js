'use strict';

const assert = require('node:assert/strict');
const { beforeEach, describe, it } = require('node:test');
const { Counter, Gauge, Registry, Summary } = require('../../index');
const { MemberThreads } = require('../../lib/threads/member-threads');
const { ThreadRecord } = require('../../lib/threads/thread-record');
const { viewOf } = require('../../lib/registry/metric-view');
const { runThrough } = require('../../lib/event-loop/slices');
const { Source } = require('../../lib/source/source');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { bytesOf, samplesOf, seriesKey, textOf } = require('../fixtures/unit-scrape');

/** @param {Record<string, number>} jobs by kind */
function threadWith(jobs) {
  const registry = new Registry();
  const options = { name: 'jobs_total', help: 'h', labelNames: ['kind'], registers: [registry] };
  const counter = new Counter(options);
  // As those of mirrored tables.
  /** @type {any} */ (viewOf(counter)).table.resets = NaN;
  for (const [kind, count] of Object.entries(jobs)) counter.inc({ kind }, count);
  return { registry: /** @type {any} */ (registry), counter };
}

/** @param {any} registry */
function mirrorOf(registry) {
  return { registries: [registry], *read() {} };
}

describe('totals of threads that have ended', () => {
  /** @type {MemberThreads} */
  let retired;

  beforeEach(() => void (retired = new MemberThreads()));

  /** @param {any} registry of a thread that ends */
  function end(registry) {
    retired.ended.add(mirrorOf(registry));
    runThrough(retired.merge());
  }

  /** @param {string} name */
  function totalsOf(name) {
    const metrics = retired.registries.flatMap(registry => registry.getMetricsAsArray());
    /** @type {Record<string, number>} */
    const sums = {};
    for (const metric of metrics.filter(each => each.name === name)) {
      const { table, numbers } = /** @type {any} */ (viewOf(metric));
      for (const row of table.liveRows()) {
        const { kind = '' } = table.labelsOf(row);
        // Rounding errors are numbers of the same rows.
        const number = numbers === undefined ? table.pageOf(row)[table.offsetOf(row)] : numbers.pages[0][row];
        sums[kind] = (sums[kind] ?? 0) + number;
      }
    }
    return sums;
  }

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
    const source = new Source(() => [...(merges === 0 ? [registry] : []), ...retired.registries]);
    const text = await source.prepare(undefined, {
      // The digests are encoded now, and the numbers are not captured yet.
      onProgress: () => {
        if (merges++ > 0) return;
        for (let i = 0; i < 2000; i++) summary.observe(5000 + i);
        end(registry);
      },
      capture: ahead => {
        const store = new ClusterStore();
        store.apply(1, bytesOf(source.captureWithLog(1, undefined, { ahead })));
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

  it('take many label sets in steps: at each, a page has every count once, and no gauge', () => {
    const jobs = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`job ${i}`, i]));
    end(threadWith(jobs).registry);
    const { registry, counter } = threadWith(jobs);
    new Gauge({ name: 'running', help: 'h', registers: [registry] }).set(1);
    retired.ended.add(mirrorOf(registry));
    const doubled = Object.fromEntries(Object.keys(jobs).map(kind => [kind, jobs[kind] * 2]));
    let steps = 0;
    for (const merging = retired.merge(); !merging.next().done;) {
      steps++;
      const sums = totalsOf('jobs_total');
      assert.deepEqual(sums, doubled);
      assert.deepEqual(totalsOf('running'), {});
      // Another thread ends meanwhile.
      if (steps === 3) {
        retired.ended.add(mirrorOf(threadWith({ 'job 1': 10, 'job 999': 10 }).registry));
        doubled['job 1'] += 10;
        doubled['job 999'] += 10;
      }
    }
    assert.ok(steps > 10, `${steps} steps`);
    assert.deepEqual(totalsOf('jobs_total'), doubled);
    assert.equal(viewOf(counter)?.table.liveCount, 0);
    assert.equal(retired.ended.size, 0);
  });

  for (const [how, isRemoved, isLeft] of /** @type {const} */ ([
    ['expires', false, true],
    ['is removed', true, false],
  ])) {
    it(`a row that ${how} in a thread ${isLeft ? 'leaves' : 'takes'} the counts of a dead worker`, async () => {
      const recorded = () => {
        const registry = new Registry();
        const options = { name: 'jobs_total', help: 'h', labelNames: ['kind'], maxIdleSeconds: 900 };
        const counter = new Counter({ ...options, registers: [registry] });
        counter.inc({ kind: 'a' }, 2);
        return { registry, counter };
      };
      const store = new ClusterStore();
      const dead = recorded();
      store.apply(1, bytesOf(new Source(() => [dead.registry]).captureWithLog(1, undefined)));
      textOf(store);
      store.retire(1);
      retired.addRow(viewOf(recorded().counter), 0, isRemoved, {});
      const source = new Source(() => retired.registries);
      const sums = [0, 1].map(() => {
        store.apply(2, bytesOf(source.captureWithLog(2, undefined)));
        return samplesOf(textOf(store)).get(seriesKey('jobs_total', { kind: 'a' }));
      });
      assert.deepEqual(sums, [4, isLeft ? 4 : undefined]);
    });
  }
});

it('memory that a thread shares later is not in what was passed on before', () => {
  // An aggregator on this loop reads it only when it has done what came before.
  const record = new ThreadRecord(1, { thread: 'x' }, () => {});
  record.add({ parts: { chunks: [1], memories: [[1, 1]] } });
  const passedOn = record.parts;
  record.add({ parts: { chunks: [2], memories: [[2, 2]] } });
  assert.deepEqual(passedOn, { chunks: [1], memories: [[1, 1]] });
  assert.deepEqual(record.parts.chunks, [1, 2]);
});
