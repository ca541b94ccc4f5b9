'use strict';

// Garbage collections as counters: all of them, by kind, and what they have freed.

const assert = require('node:assert');
const path = require('node:path');
const { describe, it } = require('node:test');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Registry } = require('../../lib/registry/registry');
const { COMMON_KINDS, kindOfNumber, nameOfWord } = require('../../lib/runtime/sources/gc-kinds');
const { observeCollections } = require('../../lib/runtime/sources/gc-observer');
const {
  ReclaimedBytes,
  RECORDS_PER_WINDOW,
  MILLISECONDS_PER_RECORD,
} = require('../../lib/runtime/sources/reclaimed-bytes');
const { collectGarbage, replace, turnUntil } = require('./fixtures/default-metrics-runtime');
const { Program } = require('../fixtures/program');

const COLLECTIONS = path.join(__dirname, 'fixtures/runtime-collections.js');
const KIND_NUMBERS = { minor: 1, minor_mark_sweep: 2, major: 4, incremental: 8, weakcb: 16 };

/** What a program counts that collects garbage. */
async function collections({ full = 0, young = 0, turns = 0, megabytes = 0, flags = [] }) {
  const numbers = [full, young, turns, megabytes].map(String);
  const program = new Program(['--expose-gc', ...flags, COLLECTIONS, ...numbers]);
  assert.strictEqual(await program.ended(), 0, program.errors);
  return JSON.parse(program.output);
}

/**
 * The files that name kinds, loaded anew for one test: they have seen nothing of V8 yet.
 *
 * @param {string} [node] the version that they are to find
 */
function loadAnew(t, node = '27.0.0') {
  replace(t, process, 'versions', { ...process.versions, node });
  const files = ['sources/gc-kinds', 'sources/reclaimed-bytes', 'families/gc-totals'].map(name =>
    require.resolve(`../../lib/runtime/${name}`),
  );
  for (const file of files) {
    const loaded = require.cache[file];
    delete require.cache[file];
    t.after(() => (require.cache[file] = loaded));
  }
  const [kinds, , gcTotals] = files.map(require);
  return { ...kinds, gcTotals };
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

  it('of the profiler have the same names', () => {
    const words = [
      'Scavenge',
      'MinorMarkSweep',
      'MarkSweepCompact',
      'IncrementalMarking',
      'ProcessWeakCallbacks',
    ];
    assert.deepStrictEqual(words.map(nameOfWord), [
      'minor',
      'minor_mark_sweep',
      'major',
      'incremental',
      'weakcb',
    ]);
  });

  it('that are unknown are told apart, up to eight of them', t => {
    const { kindOfNumber } = loadAnew(t);
    const names = Array.from({ length: 20 }, (_, i) => kindOfNumber(2 ** (5 + i)));
    assert.strictEqual(names[0], 'unknown_32');
    assert.strictEqual(new Set(names).size, 9);
    assert.deepStrictEqual(new Set(names.slice(8)), new Set(['unknown_other']));
    assert.strictEqual(kindOfNumber(64), 'unknown_64', 'and keep their names');
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

describe('a kind that V8 has invented', () => {
  /** The metrics of a runtime whose collections happen when the test says so. */
  function world(t, node) {
    const observers = new Set();
    const profilers = new Set();
    replace(
      t,
      require('node:perf_hooks'),
      'PerformanceObserver',
      class {
        static supportedEntryTypes = ['gc'];
        #callback;
        constructor(callback) {
          this.#callback = callback;
        }
        observe() {
          observers.add(this);
        }
        disconnect() {
          observers.delete(this);
        }
        takeRecords() {
          return [];
        }
        tell(entries) {
          this.#callback({ getEntries: () => entries });
        }
      },
    );
    replace(
      t,
      require('node:v8'),
      'GCProfiler',
      class {
        statistics = [];
        start() {
          profilers.add(this);
        }
        stop() {
          profilers.delete(this);
          return { statistics: this.statistics };
        }
      },
    );
    const { gcTotals } = loadAnew(t, node);
    const register = new Registry();
    const group = gcTotals(register);
    let used = 1e9;
    /** What the profiler sees of a collection: a word. */
    const record = (gcType, freed) => {
      const [beforeGC, afterGC] = [used, used - freed].map(usedHeapSize => ({
        heapStatistics: { usedHeapSize },
      }));
      used += 12_345 - freed;
      for (const { statistics } of profilers) statistics.push({ gcType, beforeGC, afterGC });
    };
    /** What the observer sees of it: a number. */
    const tell = number => {
      for (const observer of observers) observer.tell([{ detail: { kind: number }, duration: 2 }]);
    };
    return {
      record,
      tell,
      collect(number, word, freed) {
        record(word, freed);
        tell(number);
      },
      profilers,
      scrape: () => register.metrics(),
      /** All that was counted, by kind, without those that stand at zero. */
      async end() {
        group.stop();
        const counted = {};
        for (const { name, values } of await register.getMetricsAsJSON()) {
          const [, what] = /^nodejs_gc_(\w+)_total$/.exec(name);
          const found = values.filter(({ value }) => value > 0);
          counted[what] = Object.fromEntries(found.map(({ labels, value }) => [labels.kind, value]));
        }
        return counted;
      },
    };
  }

  // In a storm: of the hundred collections the profiler sees a third.
  for (const [word, node] of [
    ['ConcurrentSweep', '26.10.0'],
    ['Unknown', '27.0.0'],
  ]) {
    it(`and that the profiler calls ${word} has runs, pauses and bytes by its number`, async t => {
      const { collect, profilers, end } = world(t, node);
      for (let i = 0; i < 100; i++) collect(32, word, 1000);
      assert.strictEqual(profilers.size, 0);
      const { runs, pause_seconds: seconds, reclaimed_bytes: bytes } = await end();
      assert.deepStrictEqual([runs, bytes], [{ unknown_32: 100 }, { unknown_32: 100_000 }]);
      assert.ok(Math.abs(seconds.unknown_32 - 0.2) < 1e-9);
    });
  }

  for (const [what, words] of [
    ['one of two for which there is a single word', ['Unknown', 'Unknown']],
    ['one of two, each with a word', ['ConcurrentSweep', 'PartialCompact']],
  ]) {
    it(`and is ${what} has runs by its number, and all bytes under one label`, async t => {
      const { collect, end } = world(t);
      for (let i = 0; i < 100; i++) collect(32 + 32 * (i % 2), words[i % 2], 1000);
      const { runs, reclaimed_bytes: bytes } = await end();
      assert.deepStrictEqual(runs, { unknown_32: 50, unknown_64: 50 });
      assert.deepStrictEqual(bytes, { unknown_other: 100_000 });
    });
  }

  it('and for which there are two words has bytes under one label, too', async t => {
    const { collect, end } = world(t);
    for (const word of ['ConcurrentSweep', 'PartialCompact']) collect(32, word, 1000);
    const { runs, reclaimed_bytes: bytes } = await end();
    assert.deepStrictEqual([runs, bytes], [{ unknown_32: 2 }, { unknown_other: 2000 }]);
  });

  it('keeps the bytes that it has when there is another one, and none are lost or counted twice', async t => {
    const { collect, scrape, end } = world(t);
    collect(32, 'Unknown', 1000);
    await scrape();
    for (let i = 0; i < 99; i++) collect(64, 'Unknown', 1000);
    const { runs, reclaimed_bytes: bytes } = await end();
    assert.deepStrictEqual(runs, { unknown_32: 1, unknown_64: 99 });
    assert.deepStrictEqual(bytes, { unknown_32: 1000, unknown_other: 99_000 });
  });

  it('and was only seen by the profiler yet has its bytes, once', async t => {
    const { record, tell, collect, scrape, end } = world(t);
    record('Unknown', 1000);
    await scrape();
    tell(32);
    collect(32, 'Unknown', 500);
    const { runs, reclaimed_bytes: bytes } = await end();
    assert.deepStrictEqual([runs, bytes], [{ unknown_32: 2 }, { unknown_other: 1000, unknown_32: 500 }]);
  });

  for (const node of ['20.20.2', '22.0.0', '24.0.0', '26.0.0']) {
    it(`is none that Node.js ${node} has: what its profiler calls Unknown is minor_mark_sweep`, async t => {
      const { collect, end } = world(t, node);
      collect(2, 'Unknown', 1000);
      const { runs, reclaimed_bytes: bytes } = await end();
      assert.deepStrictEqual([runs, bytes], [{ minor_mark_sweep: 1 }, { minor_mark_sweep: 1000 }]);
    });
  }
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
        reclaimed.noteRuns(nameOfWord(gcType), 1);
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
