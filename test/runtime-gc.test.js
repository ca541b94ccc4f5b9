'use strict';

// Garbage collections as counters: all of them, by kind, and what they have freed.

const assert = require('node:assert');
const path = require('node:path');
const { describe, it } = require('node:test');
const collectDefaultMetrics = require('../lib/runtime/default-metrics');
const { Registry } = require('../lib/registry');
const { COMMON_KINDS, kindOfNumber, kindOfName } = require('../lib/runtime/gc-kinds');
const { observeCollections } = require('../lib/runtime/gc-observer');
const {
  ReclaimedBytes,
  RECORDS_PER_WINDOW,
  MILLISECONDS_PER_RECORD,
} = require('../lib/runtime/reclaimed-bytes');
const { collectGarbage, replace, turnUntil } = require('./fixtures/default-metrics-runtime');
const { Program } = require('./fixtures/program');

const COLLECTIONS = path.join(__dirname, 'fixtures/runtime-collections.js');
const KIND_NUMBERS = { minor: 1, minor_mark_sweep: 2, major: 4, incremental: 8, weakcb: 16 };

/** What a program counts that collects garbage. */
async function collections({ full = 0, young = 0, turns = 0, megabytes = 0, flags = [] }) {
  const numbers = [full, young, turns, megabytes].map(String);
  const program = new Program(['--expose-gc', ...flags, COLLECTIONS, ...numbers]);
  assert.strictEqual(await program.ended(), 0, program.errors);
  return JSON.parse(program.output);
}

/** That runs and pauses are those of an observer of the program's own. */
function assertAsObserved({ metrics, observed }) {
  for (const [kind, number] of Object.entries(KIND_NUMBERS)) {
    const { runs, seconds } = observed[number] ?? { runs: 0, seconds: 0 };
    assert.strictEqual(metrics.runs[kind] ?? 0, runs, kind);
    assert.ok(Math.abs((metrics.pause_seconds[kind] ?? 0) - seconds) < 1e-9, kind);
  }
  const total = Object.values(metrics.runs).reduce((a, b) => a + b);
  assert.strictEqual(
    total,
    Object.values(observed).reduce((sum, { runs }) => sum + runs, 0),
  );
}

describe('a program that collects garbage', () => {
  it('a known number of times has this number of runs, by kind', async () => {
    const result = await collections({ full: 7, young: 5 });
    assertAsObserved(result);
    assert.strictEqual(result.metrics.runs.major, 7);
    assert.ok(result.metrics.runs.minor >= 5);
    assert.ok(result.metrics.pause_seconds.major > 0.001);
  });

  it('hundreds of times within one section loses none of them', async () => {
    const result = await collections({ full: 150, young: 150 });
    assertAsObserved(result);
    assert.strictEqual(result.metrics.runs.major, 150);
  });

  it('that takes a known part of the heap has freed that much', async () => {
    const { metrics } = await collections({ full: 3, megabytes: 60 });
    const freed = metrics.reclaimed_bytes.major / 2 ** 20;
    assert.ok(freed > 60 && freed < 70, `${freed} MB`);
  });

  it('in a storm has exact runs and pauses, and by samples what was freed', async () => {
    const storm = await collections({ turns: 300, flags: ['--max-semi-space-size=1'] });
    assertAsObserved(storm);
    assert.ok(storm.metrics.runs.minor > 500);
    // An object with two fields, and an array of one element.
    const allocated = 300 * 50_000 * (40 + 32 + 24);
    const share = storm.final.reclaimed_bytes.minor / allocated;
    assert.ok(share > 0.85 && share < 1.15, `${share}`);
  });

  // Node.js 20 has that collector as a flag of V8's own, by another name.
  const flag = Number(process.versions.node.split('.')[0]) < 22 ? '--minor-mc' : '--minor-ms';
  it("with V8's other collector of the young generation has its runs by its name", async () => {
    const result = await collections({ turns: 100, flags: [flag] });
    assertAsObserved(result);
    assert.ok(result.metrics.runs.minor_mark_sweep > 0);
    assert.ok(result.metrics.reclaimed_bytes.minor_mark_sweep > 1e6);
    assert.strictEqual(result.metrics.runs.minor, 0);
  });
});

describe('kinds', () => {
  it('have the names of prom-client', () => {
    const { constants } = require('node:perf_hooks');
    const names = ['MINOR', 'MAJOR', 'INCREMENTAL', 'WEAKCB'].map(name => [
      constants[`NODE_PERFORMANCE_GC_${name}`],
      name.toLowerCase(),
    ]);
    for (const [number, name] of names) assert.strictEqual(kindOfNumber(number), name);
    const { NODE_PERFORMANCE_GC_MINOR_MARK_SWEEP = 2 } = constants;
    assert.strictEqual(kindOfNumber(NODE_PERFORMANCE_GC_MINOR_MARK_SWEEP), 'minor_mark_sweep');
  });

  it('of the profiler have the same names, also the one that it calls Unknown', () => {
    const words = [
      'Scavenge',
      'MinorMarkSweep',
      'Unknown',
      'MarkSweepCompact',
      'IncrementalMarking',
      'ProcessWeakCallbacks',
    ];
    assert.deepStrictEqual(words.map(kindOfName), [
      'minor',
      'minor_mark_sweep',
      'minor_mark_sweep',
      'major',
      'incremental',
      'weakcb',
    ]);
  });

  it('that are unknown are told apart, up to eight of them', () => {
    const names = Array.from({ length: 20 }, (_, i) =>
      i % 2 ? kindOfNumber(2 ** (8 + i)) : kindOfName(`New${i}`),
    );
    assert.strictEqual(names[0], 'unknown_New0');
    assert.strictEqual(names[1], 'unknown_512');
    assert.strictEqual(new Set(names).size, 9);
    assert.strictEqual(names.at(-1), 'unknown_other');
    assert.strictEqual(kindOfNumber(512), 'unknown_512', 'and keep their names');
  });

  it('that every process has start at zero', async () => {
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

describe('without a scrape', () => {
  it('runs are in the counters once there are enough of them', async () => {
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

it('a runtime without the profiler has runs and pauses', async t => {
  replace(t, require('node:v8'), 'GCProfiler', undefined);
  const register = new Registry();
  const stop = collectDefaultMetrics({ register, runtime: ['gc'] });
  collectGarbage();
  const text = await register.metrics();
  stop();
  assert.match(text, /^nodejs_gc_runs_total\{kind="major"\} [1-9]/m);
  assert.doesNotMatch(text, /reclaimed/);
});

it('a runtime that reports no collections has none of the metrics', t => {
  const perfHooks = require('node:perf_hooks');
  replace(
    t,
    perfHooks,
    'PerformanceObserver',
    class {
      static supportedEntryTypes = ['mark'];
    },
  );
  const register = new Registry();
  collectDefaultMetrics({ register, runtime: ['gc'] })();
  assert.deepStrictEqual(
    register.getMetricsAsArray().filter(({ name }) => name.includes('_gc_')),
    [],
  );
});

it('a subscriber that comes later is told nothing of what was before', async () => {
  const registry = {};
  const told = [[], []];
  const first = observeCollections(registry, kind => told[0].push(kind));
  collectGarbage();
  await turnUntil(() => told[0].length > 0);
  const second = observeCollections(registry, kind => told[1].push(kind));
  const before = told[0].length;
  collectGarbage();
  await turnUntil(() => told[1].length > 0);
  assert.deepStrictEqual(told[1], told[0].slice(before));
  first.stop();
  const count = told[0].length;
  collectGarbage();
  await turnUntil(() => told[1].length > told[0].length - before);
  assert.strictEqual(told[0].length, count);
  second.stop();
});

// The profiler and the clock of a test's own.
describe('bytes that were reclaimed', () => {
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

  /** A world in which collections happen when the test says so. */
  function world() {
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
        whileStopping.splice(0).forEach(collect => collect());
        return { statistics: this.statistics };
      }
    }
    const whileStopping = [];
    const reclaimed = new ReclaimedBytes(
      () => new Profiler(),
      (kind, freed) => (bytes[kind] = (bytes[kind] ?? 0) + freed),
      clock,
    );
    /** One collection, which each profiler that runs records. */
    const collect = (gcType, freed) => {
      const result = record(gcType, freed);
      for (const profiler of running) profiler.statistics.push(structuredClone(result));
    };
    return {
      reclaimed,
      bytes,
      running,
      whileStopping,
      collect(gcType, freed) {
        collect(gcType, freed);
        reclaimed.noteRuns(kindOfName(gcType), 1);
        reclaimed.drainIfFull();
      },
      recordOnly: collect,
      get longest() {
        return longest;
      },
    };
  }

  it('are exact while collections are few', () => {
    const { reclaimed, bytes, running, collect } = world();
    let expected = 0;
    for (let i = 0; i < 200; i++) {
      clock.pass(MILLISECONDS_PER_RECORD * 1.2);
      collect('Scavenge', 1000 * i);
      expected += 1000 * i;
    }
    collect('MarkSweepCompact', 5e6);
    reclaimed.drain();
    assert.deepStrictEqual(bytes, { minor: expected, major: 5e6 });
    assert.strictEqual(running.size, 1);
  });

  it('are exact where scrapes follow quickly', () => {
    const { reclaimed, bytes, collect } = world();
    for (let i = 0; i < 50; i++) {
      clock.pass(200);
      collect('Scavenge', 1000);
      reclaimed.drain();
      reclaimed.drain();
    }
    assert.deepStrictEqual(bytes, { minor: 50_000 });
  });

  it('are counted once where a collection falls between two profilers', () => {
    const { reclaimed, bytes, whileStopping, collect, recordOnly } = world();
    collect('Scavenge', 1000);
    // The next one runs, and this one has not stopped: both record it.
    whileStopping.push(() => recordOnly('Scavenge', 300));
    reclaimed.drain();
    reclaimed.noteRuns('minor', 1);
    clock.pass(1000);
    collect('Scavenge', 500);
    reclaimed.drain();
    assert.strictEqual(bytes.minor, 1000 + 300 + 500);
  });

  it('in a storm are those of samples, for all collections that happened, at a bounded cost', () => {
    const observed = world();
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
    // Ten seconds, at ten a second, and the first 16 on credit.
    assert.ok(samples <= 10_000 / MILLISECONDS_PER_RECORD + 2 * RECORDS_PER_WINDOW, `${samples}`);
    assert.ok(observed.longest <= RECORDS_PER_WINDOW, `${observed.longest} records in one go`);
    assert.ok(clock.timers.every(({ isRef }) => !isRef));
  });

  it('are exact again after a storm', () => {
    const { reclaimed, bytes, running, collect } = world();
    for (let i = 0; i < 1000; i++) {
      clock.pass(1);
      collect('Scavenge', 1e6);
    }
    clock.pass(60_000);
    reclaimed.drain();
    assert.strictEqual(running.size, 1);
    const before = bytes.minor;
    collect('Scavenge', 77);
    collect('MarkSweepCompact', 88);
    reclaimed.drain();
    assert.strictEqual(bytes.minor - before, 77);
    assert.strictEqual(bytes.major, 88);
  });

  it('ask for the collections of a pause when it ends, which are none of the next sample', () => {
    const { reclaimed, running, collect } = world();
    while (running.size > 0) collect('Scavenge', 1);
    reclaimed.onResume = () => reclaimed.noteRuns('minor', 200);
    clock.pass(60_000);
    for (let i = 1; i < RECORDS_PER_WINDOW; i++) collect('Scavenge', 1);
    const [profiler] = running;
    assert.strictEqual(profiler.statistics.length, RECORDS_PER_WINDOW - 1);
  });

  it('of a kind that was never sampled wait for the first sample', () => {
    const { reclaimed, bytes, running, collect } = world();
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

  it('are never negative, though a collection may leave a larger heap', () => {
    const { reclaimed, bytes, collect } = world();
    collect('IncrementalMarking', -500);
    reclaimed.drain();
    assert.deepStrictEqual(bytes, { incremental: 0 });
  });

  it('pause for a minute at most, after whatever a single section of the program has done', () => {
    const { reclaimed, running, recordOnly } = world();
    for (let i = 0; i < 5000; i++) recordOnly('Scavenge', 1);
    reclaimed.noteRuns('minor', 5000);
    reclaimed.drainIfFull();
    assert.strictEqual(running.size, 0);
    clock.pass(59_000);
    assert.strictEqual(running.size, 0);
    clock.pass(1000);
    assert.strictEqual(running.size, 1);
  });

  it('are complete when they end, and nothing runs then', () => {
    for (const runs of [1, 3 * RECORDS_PER_WINDOW]) {
      const { reclaimed, bytes, running, collect } = world();
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
