'use strict';

// What default metrics load and start, and when it stops.

const assert = require('node:assert');
const path = require('node:path');
const { it } = require('node:test');
const { setImmediate: loopTurn } = require('node:timers/promises');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Registry } = require('../..');
const { collectGarbage, watchRunning } = require('./fixtures/default-metrics-runtime');
const { Program } = require('../fixtures/program');

const FIXTURES = path.join(__dirname, 'fixtures');

function assertRunning(running, observers, monitors = observers) {
  assert.deepStrictEqual([running.observers.size, running.monitors.size], [observers, monitors]);
}

it('collectDefaultMetrics() loads and starts nothing before the first call, and sets no timer in it', async () => {
  const program = new Program([path.join(FIXTURES, 'default-metrics-loads.js')]);
  assert.strictEqual(await program.ended(), 0, program.errors);
  const { required, called } = JSON.parse(program.output);
  assert.deepStrictEqual(required, { families: ['default-metrics'], started: [], handles: [] });
  assert.ok(called.families.includes('gc'));
  assert.deepStrictEqual(called.started.sort(), ['PerformanceObserver', 'monitorEventLoopDelay']);
  assert.deepStrictEqual(called.handles, []);
});

it('the function that stops default metrics stops what its own call started, and can be called again', t => {
  const running = watchRunning(t);
  const stops = ['a_', 'b_'].map(prefix => collectDefaultMetrics({ register: new Registry(), prefix }));
  assertRunning(running, 1, 2);
  for (let times = 0; times < 2; times++) {
    stops[0]();
    assertRunning(running, 1);
  }
  stops[1]();
  assertRunning(running, 0);
});

it('a second call of collectDefaultMetrics() throws at the first metric, and leaves the first call working', async t => {
  const running = watchRunning(t);
  const register = new Registry();
  const stop = collectDefaultMetrics({ register });
  const metrics = register.getMetricsAsArray();
  assert.throws(
    () => collectDefaultMetrics({ register }),
    error => {
      const { message } = error;
      assert.match(
        message,
        /^A metric with the name process_cpu_user_seconds_total has already been registered\.$/,
      );
      const advice = 'Call collectDefaultMetrics() once for each registry, or with another prefix';
      return String(error) === `Error: ${message} ${advice}`;
    },
  );
  assertRunning(running, 1);
  assert.deepStrictEqual(register.getMetricsAsArray(), metrics);
  stop();
});

it('a registry with default metrics is observed while it is in use, however much garbage is collected', async t => {
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

it('default metrics stop by family, when its last metric is removed', t => {
  const running = watchRunning(t);
  const register = new Registry();
  const stop = collectDefaultMetrics({ register });
  const { metricNames } = require('../../lib/runtime/families/event-loop-lag');
  for (const name of metricNames.slice(0, -1)) {
    register.removeSingleMetric(name);
    assertRunning(running, 1);
  }
  register.removeSingleMetric(metricNames.at(-1));
  assertRunning(running, 1, 0);
  register.removeSingleMetric('nodejs_gc_duration_seconds');
  assertRunning(running, 0);
  stop();
});

it('default metrics go on when another registry drops them', async t => {
  const running = watchRunning(t);
  const register = new Registry();
  const stop = collectDefaultMetrics({ register });
  Registry.merge([register, new Registry()]).clear();
  assertRunning(running, 1);
  stop();
});
