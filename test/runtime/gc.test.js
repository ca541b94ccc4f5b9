'use strict';

// nodejs_gc_runs_total, nodejs_gc_pause_seconds_total and nodejs_gc_reclaimed_bytes_total.

const assert = require('node:assert');
const { describe, it } = require('node:test');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Registry } = require('../../lib/registry/registry');
const { COMMON_KINDS, kindOf } = require('../../lib/runtime/sources/gc-kinds');
const { observeCollections } = require('../../lib/runtime/sources/gc-observer');
const {
  ReclaimedBytes,
  RECORDS_PER_WINDOW,
  MILLISECONDS_PER_RECORD,
} = require('../../lib/runtime/sources/reclaimed-bytes');
const { collectGarbage, replace, turnUntil } = require('./fixtures/default-metrics-runtime');
const { assertAsObserved, collections } = require('./fixtures/collecting-program');

describe('counters of garbage collections', () => {
  it('runs and pauses of a hundred collections in one synchronous section are all counted, by kind', async () => {
    const result = await collections({ full: 50, young: 50 });
    assertAsObserved(result);
    assert.strictEqual(result.metrics.runs.major, 50);
    assert.ok(result.metrics.runs.minor >= 50);
    assert.ok(result.metrics.pause_seconds.major > 0);
  });

  // The flag has another name in Node.js 20.
  const flag = Number(process.versions.node.split('.')[0]) < 22 ? '--minor-mc' : '--minor-ms';
  it("V8's other collector of the young generation is counted as other", async () => {
    const result = await collections({ turns: 100, flags: [flag] });
    assertAsObserved(result);
    assert.ok(result.metrics.runs.other > 0);
    assert.ok(result.metrics.reclaimed_bytes.other > 1e6);
    assert.strictEqual(result.metrics.runs.minor, 0);
  });
});

describe('kinds of garbage collection', () => {
  it("kinds by number and by the profiler's words have the names of prom-client", () => {
    const { constants } = require('node:perf_hooks');
    for (const [constant, word, name] of [
      ['MINOR', 'Scavenge', 'minor'],
      ['MAJOR', 'MarkSweepCompact', 'major'],
      ['INCREMENTAL', 'IncrementalMarking', 'incremental'],
      ['WEAKCB', 'ProcessWeakCallbacks', 'weakcb'],
    ]) {
      assert.strictEqual(kindOf(constants[`NODE_PERFORMANCE_GC_${constant}`]), name);
      assert.strictEqual(kindOf(word), name);
    }
  });

  it('kinds that every process has start at zero', async () => {
    const register = new Registry();
    const stop = collectDefaultMetrics({ register, runtime: ['gc'] });
    const text = await register.metrics();
    stop();
    for (const name of ['runs', 'pause_seconds', 'reclaimed_bytes']) {
      for (const kind of COMMON_KINDS)
        assert.match(text, new RegExp(`^nodejs_gc_${name}_total\\{kind="${kind}"\\} `, 'm'));
    }
  });
});

it('a kind that prom-client has no name for is counted as other', () => {
  for (const numberOrWord of [2, 32, 'MinorMarkSweep', 'ConcurrentSweep', 'Unknown'])
    assert.strictEqual(kindOf(numberOrWord), 'other');
});

describe('nodejs_gc_runs_total', () => {
  it('collections are counted without a scrape once there are enough of them', async () => {
    const register = new Registry();
    const stop = collectDefaultMetrics({ register, runtime: ['gc'] });
    const runs = register.getSingleMetric('nodejs_gc_runs_total');
    runs.collect = undefined;
    const major = async () => (await runs.get()).values.find(({ labels }) => labels.kind === 'major').value;
    for (let i = 0; i < RECORDS_PER_WINDOW; i++) collectGarbage();
    await turnUntil(async () => (await major()) >= RECORDS_PER_WINDOW);
    stop();
  });
});

it('collections are counted without reclaimed bytes on a runtime without the profiler', async t => {
  replace(t, require('node:v8'), 'GCProfiler', undefined);
  const register = new Registry();
  const stop = collectDefaultMetrics({ register, runtime: ['gc'] });
  collectGarbage();
  const text = await register.metrics();
  stop();
  assert.match(text, /^nodejs_gc_runs_total\{kind="major"\} [1-9]/m);
  assert.doesNotMatch(text, /reclaimed/);
});

it('observeCollections() reports only collections after the call', async () => {
  const reports = [[], []];
  const stopFirst = observeCollections(kind => reports[0].push(kind));
  collectGarbage();
  await turnUntil(() => reports[0].length > 0);
  const stopSecond = observeCollections(kind => reports[1].push(kind));
  const before = reports[0].length;
  collectGarbage();
  await turnUntil(() => reports[1].length > 0);
  assert.deepStrictEqual(reports[1], reports[0].slice(before));
  stopFirst();
  const count = reports[0].length;
  collectGarbage();
  await turnUntil(() => reports[1].length > reports[0].length - before);
  assert.strictEqual(reports[0].length, count);
  stopSecond();
});

// With a simulated profiler and clock.
describe('ReclaimedBytes', () => {
  const clock = {
    time: 0,
    timers: [],
    now: () => clock.time,
    setTimeout(fn, milliseconds) {
      const timer = { fn, at: clock.time + milliseconds, isRef: true, unref: () => (timer.isRef = false) };
      clock.timers.push(timer);
      return timer;
    },
    clearTimeout: timer => (clock.timers = clock.timers.filter(other => other !== timer)),
    pass(milliseconds) {
      clock.time += milliseconds;
      const due = clock.timers.filter(({ at }) => at <= clock.time);
      clock.timers = clock.timers.filter(({ at }) => at > clock.time);
      for (const { fn } of due) fn();
    },
  };

  /** A simulated runtime, which collects garbage when the test says so. */
  function simulate() {
    Object.assign(clock, { time: 0, timers: [] });
    const running = new Set();
    const bytes = {};
    let longest = 0;
    let used = 1e9;
    const record = (gcType, freed) => {
      const state = usedHeapSize => ({ heapStatistics: { usedHeapSize } });
      const result = { gcType, beforeGC: state(used), afterGC: state(used - freed) };
      used += 12_345 - freed;
      return result;
    };
    class Profiler {
      statistics = [];
      start() {
        running.add(this);
      }
      stop() {
        running.delete(this);
        longest = Math.max(longest, this.statistics.length);
        return { statistics: this.statistics };
      }
    }
    const reclaimed = new ReclaimedBytes(
      () => new Profiler(),
      (kind, freed) => (bytes[kind] = (bytes[kind] ?? 0) + freed),
      clock,
    );
    /** A collection that each running profiler records. */
    const collect = (gcType, freed) => {
      const result = record(gcType, freed);
      for (const profiler of running) profiler.statistics.push(structuredClone(result));
    };
    return {
      reclaimed,
      bytes,
      running,
      collect(gcType, freed) {
        collect(gcType, freed);
        reclaimed.addRun(kindOf(gcType));
      },
      recordOnly: collect,
      get longest() {
        return longest;
      },
    };
  }

  it('bytes are exact up to ten collections a second, also with scrapes in quick succession', () => {
    const { reclaimed, bytes, running, collect } = simulate();
    let expected = 0;
    for (let i = 0; i < 200; i++) {
      clock.pass(MILLISECONDS_PER_RECORD * 1.2);
      collect('Scavenge', 1000 * i);
      expected += 1000 * i;
      if (i % 10 === 9) reclaimed.drain();
      if (i % 20 === 19) reclaimed.drain();
    }
    clock.pass(MILLISECONDS_PER_RECORD);
    collect('MarkSweepCompact', 5e6);
    reclaimed.drain();
    assert.deepStrictEqual(bytes, { minor: expected, major: 5e6 });
    assert.strictEqual(running.size, 1);
  });

  it('bytes are estimated from samples beyond ten collections a second, at a bounded cost', () => {
    const observed = simulate();
    const { reclaimed, bytes, running, collect } = observed;
    let samples = 0;
    let expected = 0;
    for (let i = 0; i < 10_000; i++) {
      clock.pass(1); // a thousand a second
      if (running.size > 0) samples++;
      const freed = 900_000 + (i % 7) * 30_000;
      collect('Scavenge', freed);
      expected += freed;
    }
    clock.pass(60_000);
    collect('Scavenge', 1e6);
    reclaimed.drain();
    assert.ok(Math.abs(bytes.minor / expected - 1) < 0.01, `${bytes.minor} of ${expected}`);
    // Ten seconds at ten a second, and the first burst.
    assert.ok(samples <= 10_000 / MILLISECONDS_PER_RECORD + 2 * RECORDS_PER_WINDOW, `${samples}`);
    assert.ok(observed.longest <= RECORDS_PER_WINDOW, `${observed.longest} records at once`);
    assert.ok(clock.timers.every(({ isRef }) => !isRef));
  });

  it('a kind has no estimate before its first sample', () => {
    const { reclaimed, bytes, running, collect } = simulate();
    while (running.size > 0) collect('Scavenge', 1e6);
    collect('MarkSweepCompact', 4e6);
    collect('MarkSweepCompact', 4e6);
    reclaimed.drain();
    clock.pass(60_000);
    reclaimed.drain();
    assert.strictEqual(bytes.major, undefined);
    collect('MarkSweepCompact', 5e6);
    reclaimed.drain();
    assert.strictEqual(bytes.major, 15e6);
  });

  it('a collection that leaves a larger heap counts as zero bytes', () => {
    const { reclaimed, bytes, collect } = simulate();
    collect('IncrementalMarking', -500);
    reclaimed.drain();
    assert.deepStrictEqual(bytes, { incremental: 0 });
  });

  it('the profiler pauses for a minute at most', () => {
    const { reclaimed, running, recordOnly } = simulate();
    for (let i = 0; i < 5000; i++) recordOnly('Scavenge', 1);
    for (let i = 0; i < 5000; i++) reclaimed.addRun('minor');
    assert.strictEqual(running.size, 0);
    clock.pass(59_000);
    assert.strictEqual(running.size, 0);
    clock.pass(1000);
    assert.strictEqual(running.size, 1);
  });

  it('after stop() the totals are complete and nothing is left running', () => {
    for (const runs of [1, 3 * RECORDS_PER_WINDOW]) {
      const { reclaimed, bytes, running, collect } = simulate();
      for (let i = 0; i < runs; i++) collect('Scavenge', 10);
      reclaimed.stop();
      reclaimed.stop();
      reclaimed.drain();
      assert.strictEqual(bytes.minor, runs * 10);
      assert.strictEqual(running.size, 0);
      assert.deepStrictEqual(clock.timers, []);
    }
  });
});
