'use strict';

// What default metrics load, start and leave behind.

const assert = require('node:assert');
const path = require('node:path');
const { describe, it } = require('node:test');
const { setImmediate: loopTurn } = require('node:timers/promises');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Registry } = require('../../lib/registry/registry');
const { Gauge } = require('../../lib/metric/gauge');
const { collectGarbage, watchRunning, turnUntil } = require('./fixtures/default-metrics-runtime');
const { Program } = require('../fixtures/program');

const FIXTURES = path.join(__dirname, 'fixtures');

function assertRunning(running, count) {
  assert.deepStrictEqual([running.observers.size, running.monitors.size], [count, count]);
}

/** Garbage is found, and what hung on it is stopped, when the engine pleases. */
function untilStopped(running) {
  return turnUntil(() => {
    collectGarbage();
    return running.observers.size + running.monitors.size === 0;
  });
}

describe('before the first call', () => {
  it('nothing of it is loaded or started; after it, no timer is', async () => {
    const program = new Program([path.join(FIXTURES, 'default-metrics-loads.js')]);
    assert.strictEqual(await program.ended(), 0, program.errors);
    const { required, called } = JSON.parse(program.output);
    assert.deepStrictEqual(required, {
      families: ['default-metrics', 'loop-turn'],
      started: [],
      handles: [],
    });
    assert.ok(called.families.includes('gc'));
    assert.deepStrictEqual(called.started.sort(), ['PerformanceObserver', 'monitorEventLoopDelay']);
    assert.deepStrictEqual(called.handles, []);
  });
});

it('a program that has nothing else to do ends', { timeout: 10_000 }, async () => {
  const program = new Program([path.join(FIXTURES, 'default-metrics-program.js')]);
  assert.strictEqual(await program.ended(), 0, program.errors);
  assert.match(program.output, /^# TYPE nodejs_gc_duration_seconds histogram$/m);
});

describe('the function that stops', () => {
  it('ends the observer and the monitor, and can be called again', t => {
    const running = watchRunning(t);
    const stop = collectDefaultMetrics({ register: new Registry() });
    assertRunning(running, 1);
    stop();
    assertRunning(running, 0);
    stop();
    assertRunning(running, 0);
  });

  it('ends what its own call started, and no more', t => {
    const running = watchRunning(t);
    const stops = ['a_', 'b_'].map(prefix => collectDefaultMetrics({ register: new Registry(), prefix }));
    assertRunning(running, 2);
    stops[0]();
    assertRunning(running, 1);
    stops[1]();
    assertRunning(running, 0);
  });

  it('leaves the metrics as they were last', async () => {
    const register = new Registry();
    const stop = collectDefaultMetrics({ register });
    const text = await register.metrics();
    stop();
    const kept = new Array(100_000).fill({});
    collectGarbage();
    await loopTurn();
    const isCollection = line => line.startsWith('nodejs_gc');
    const rest = output => output.split('\n').filter(line => !isCollection(line));
    assert.deepStrictEqual(rest(await register.metrics()), rest(text));
    assert.ok(kept);
  });

  it('makes room for another call', async t => {
    const running = watchRunning(t);
    const register = new Registry();
    collectDefaultMetrics({ register, labels: { run: 1 } })();
    const order = register.getMetricsAsArray().map(({ name }) => name);
    const stop = collectDefaultMetrics({ register, labels: { run: 2 } });
    assertRunning(running, 1);
    assert.deepStrictEqual(
      register.getMetricsAsArray().map(({ name }) => name),
      order,
    );
    const text = await register.metrics();
    stop();
    assert.match(text, /^process_start_time_seconds\{run="2"\}/m);
    assert.doesNotMatch(text, /run="1"/);
  });
});

describe('a call that fails', () => {
  const taken = name => ({
    name: 'Error',
    message: `A metric with the name ${name} has already been registered.`,
  });

  it('because it is the second says so at the first metric, and the first goes on', async t => {
    const running = watchRunning(t);
    const register = new Registry();
    const stop = collectDefaultMetrics({ register });
    const metrics = register.getMetricsAsArray();
    assert.throws(() => collectDefaultMetrics({ register }), taken('process_cpu_user_seconds_total'));
    assertRunning(running, 1);
    assert.deepStrictEqual(register.getMetricsAsArray(), metrics);
    stop();
  });

  for (const name of [
    'process_cpu_seconds_total',
    'nodejs_eventloop_lag_p99_seconds',
    'nodejs_gc_duration_seconds',
  ]) {
    it(`at ${name} leaves neither metrics nor anything that runs`, t => {
      const running = watchRunning(t);
      const register = new Registry();
      const own = new Gauge({ name, help: 'Taken.', registers: [register] });
      assert.throws(() => collectDefaultMetrics({ register }), taken(name));
      assertRunning(running, 0);
      assert.deepStrictEqual(register.getMetricsAsArray(), [own]);
    });
  }
});

describe('a registry', () => {
  it('that was cleared can have default metrics again', async () => {
    const register = new Registry();
    const stops = [collectDefaultMetrics({ register })];
    register.clear();
    stops.push(collectDefaultMetrics({ register }));
    const text = await register.metrics();
    for (const stop of stops) stop();
    assert.match(text, /^nodejs_version_info\{/m);
  });

  it('that is dropped without being cleared leaves nothing running', async t => {
    const running = watchRunning(t);
    await (async () => {
      const register = new Registry();
      collectDefaultMetrics({ register });
      await register.metrics();
    })();
    assertRunning(running, 1);
    await untilStopped(running);
  });

  it('that is in use is observed however much garbage is collected', async t => {
    const running = watchRunning(t);
    const register = new Registry();
    collectDefaultMetrics({ register });
    for (let i = 0; i < 5; i++) {
      collectGarbage();
      await loopTurn();
    }
    assertRunning(running, 1);
    const text = await register.metrics();
    assert.ok(Number(/^nodejs_gc_duration_seconds_count\{kind="major"\} (\d+)$/m.exec(text)[1]) >= 5);
    register.clear();
  });
});
