'use strict';

// The option `runtime` of collectDefaultMetrics(): what it adds, loads, rejects and stops.

const assert = require('node:assert');
const path = require('node:path');
const { describe, it } = require('node:test');
const { setImmediate: loopTurn } = require('node:timers/promises');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Gauge, Registry } = require('../..');
const {
  collectGarbage,
  holdUpLoop,
  replace,
  turnUntil,
  watchClass,
  watchRunning,
} = require('./fixtures/default-metrics-runtime');
const { Program } = require('../fixtures/program');

const PROGRAM = path.join(__dirname, 'fixtures/runtime-program.js');
const NAMES = ['gc', 'heap', 'memory', 'eventLoopUtilization', 'eventLoopDelay', 'process', 'cgroup'];
const FILES = [
  'gc-totals',
  'heap-limits',
  'memory-outside-heap',
  'event-loop-utilization',
  'event-loop-delay',
  'process-usage',
  'cgroup',
];

/** The names of the metrics that an option adds to prom-client's. */
function namesAdded(runtime, config = {}) {
  const register = new Registry();
  const stop = collectDefaultMetrics({ ...config, register, runtime });
  stop();
  return register
    .getMetricsAsArray()
    .slice(31)
    .map(({ name }) => name);
}

/** The running timers of `timers`, and the profilers that were started and not stopped. */
function watchRuntime(t) {
  const timers = require('node:timers');
  const running = new Set();
  watchClass(t, require('node:v8'), 'GCProfiler', ['start', 'stop'], running);
  for (const [start, end] of [
    ['setTimeout', 'clearTimeout'],
    ['setInterval', 'clearInterval'],
  ]) {
    const [original, clear] = [timers[start], timers[end]];
    replace(t, timers, start, (fn, milliseconds) => {
      const timer = original(() => {
        if (start === 'setTimeout') running.delete(timer);
        fn();
      }, milliseconds);
      running.add(timer);
      return timer;
    });
    replace(t, timers, end, timer => {
      running.delete(timer);
      clear(timer);
    });
  }
  // These files bind the timers when they are loaded.
  for (const name of ['families/gc-totals', 'families/event-loop-delay', 'sources/delay-probe']) {
    const file = require.resolve(`../../lib/runtime/${name}`);
    delete require.cache[file];
    t.after(() => delete require.cache[file]);
  }
  return running;
}

it('runtimeMetricsList has the names of the option, metricsList those of prom-client', () => {
  assert.deepStrictEqual(collectDefaultMetrics.runtimeMetricsList, NAMES);
  assert.strictEqual(collectDefaultMetrics.metricsList.length, 13);
});

it('runtime that is absent, null, false or empty adds nothing', () => {
  for (const runtime of [undefined, null, false, []]) assert.deepStrictEqual(namesAdded(runtime), []);
});

it('runtime: true adds all families that this machine has', () => {
  const added = namesAdded(true);
  const all = NAMES.flatMap(name => namesAdded([name]));
  assert.deepStrictEqual(added, all);
  // cgroup has none on some machines. test/docs/runtime-metrics.test.js has the names.
  for (const name of NAMES.slice(0, -1)) assert.notDeepStrictEqual(namesAdded([name]), []);
});

it('runtime metrics have the prefix', () => {
  const prefixed = namesAdded(true).map(name => `app_${name}`);
  assert.deepStrictEqual(namesAdded(true, { prefix: 'app_' }), prefixed);
});

it('runtime ignores repeated names and the order of names', () => {
  assert.deepStrictEqual(namesAdded(['heap', 'gc', 'heap']), namesAdded(['gc', 'heap']));
});

it('runtime of any other kind is rejected, with the names of the families', t => {
  const running = watchRunning(t);
  for (const runtime of [['gcc'], ['gc', 1], [undefined], 'gc', 1, {}, () => {}, new Set(['gc'])]) {
    const register = new Registry();
    assert.throws(() => collectDefaultMetrics({ register, runtime }), {
      name: 'TypeError',
      message: new RegExp(`^runtime must be a boolean or an array of ${NAMES.join(', ')}: `),
    });
    assert.deepStrictEqual(register.getMetricsAsArray(), []);
    assert.deepStrictEqual([running.observers.size, running.monitors.size], [0, 0]);
  }
});

it('runtime metrics have the configured labels after their own', async () => {
  const register = new Registry();
  const stop = collectDefaultMetrics({ register, runtime: true, labels: { worker: 7 } });
  await register.metrics();
  const text = await register.metrics();
  stop();
  const samples = text.split('\n').filter(line => line !== '' && !line.startsWith('#'));
  for (const line of samples) assert.match(line, /worker="7"[,}]/);
  assert.match(text, /^nodejs_gc_runs_total\{kind="minor",worker="7"\} \d+$/m);
  assert.match(text, /^nodejs_eventloop_delay_seconds_bucket\{le="0\.001",worker="7"\} \d+$/m);
});

describe('observers and timers of runtime metrics', () => {
  const shared = running => [running.observers.size, running.monitors.size];

  it('observers and timers of runtime metrics are stopped by the returned function, by clear(), and if a name is taken; both families of collections share an observer', async t => {
    const running = watchRunning(t);
    const own = watchRuntime(t);
    const register = new Registry();
    const stop = collectDefaultMetrics({ register, runtime: true });
    assert.deepStrictEqual([...shared(running), own.size], [1, 1, 2]); // a profiler, a probe
    stop();
    assert.deepStrictEqual([...shared(running), own.size], [0, 0, 0]);
    // Another call takes over the names.
    collectDefaultMetrics({ register, runtime: true, labels: { run: 2 } });
    assert.strictEqual(own.size, 2);
    assert.doesNotMatch(await register.metrics(), /^nodejs_heap_limit_bytes \d/m);
    for (let i = 0; i < 2; i++) {
      register.clear();
      assert.deepStrictEqual([...shared(running), own.size], [0, 0, 0]);
      if (i === 0) collectDefaultMetrics({ register, runtime: true });
    }
    const taken = new Gauge({ name: 'process_page_faults_total', help: 'Taken.', registers: [register] });
    assert.throws(() => collectDefaultMetrics({ register, runtime: true }), /already been registered/);
    assert.deepStrictEqual([...shared(running), own.size], [0, 0, 0]);
    assert.deepStrictEqual(register.getMetricsAsArray(), [taken]);
  });

  it('observers and timers of runtime metrics are stopped when the registry is garbage', async t => {
    const running = watchRunning(t);
    const own = watchRuntime(t);
    await (async () => {
      const register = new Registry();
      collectDefaultMetrics({ register, runtime: true });
      await register.metrics();
    })();
    await turnUntil(() => {
      collectGarbage();
      return running.observers.size + running.monitors.size + own.size === 0;
    });
  });

  it('observers and timers of runtime metrics change no metric after the stop', async () => {
    const register = new Registry();
    const stop = collectDefaultMetrics({ register, runtime: true });
    await register.metrics();
    stop();
    const text = await register.metrics();
    holdUpLoop(30);
    collectGarbage();
    // A timer that is due, or an observer's callback, would run in one of these turns.
    for (let turn = 0; turn < 3; turn++) await loopTurn();
    assert.strictEqual(await register.metrics(), text);
  });

  it('observers and timers of runtime metrics keep no program alive, and families that were not asked for are not loaded', async () => {
    const loaded = {};
    for (const names of ['', 'gc', 'heap,eventLoopDelay', NAMES.join()]) {
      const program = new Program([PROGRAM, names]);
      assert.strictEqual(await program.ended(), 0, program.errors);
      loaded[names] = JSON.parse(program.output);
    }
    const ours = names => loaded[names].filter(file => FILES.includes(file));
    assert.deepStrictEqual(ours(''), []);
    assert.deepStrictEqual(ours('gc'), ['gc-totals']);
    assert.deepStrictEqual(ours('heap,eventLoopDelay'), ['heap-limits', 'event-loop-delay']);
    assert.deepStrictEqual(ours(NAMES.join()), FILES);
    // gc-kinds is not in the list because prom-client's family of collections needs it.
    const helpers = ['reclaimed-bytes', 'delay-probe', 'followed-total', 'cgroup-files'];
    const shown = helpers.filter(file => loaded[''].includes(file));
    assert.deepStrictEqual(shown, []);
  });
});

it('runtime metrics have values again after resetMetrics(), and counters restart at zero', async () => {
  const register = new Registry();
  const stop = collectDefaultMetrics({ register, runtime: true });
  const faults = async () => {
    const { values } = await register.getSingleMetric('process_page_faults_total').get();
    return values.find(({ labels }) => labels.kind === 'minor').value;
  };
  const before = await faults();
  register.resetMetrics();
  const after = await faults();
  assert.ok((await register.getSingleMetric('nodejs_heap_limit_bytes').get()).values[0].value > 0);
  stop();
  // Counts from before the reset do not come back.
  assert.ok(before > 100 && after < before, `${after} after ${before}`);
});
