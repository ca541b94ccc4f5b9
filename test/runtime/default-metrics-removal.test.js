'use strict';

// Default metrics that are removed from their registry stop their observers at once.

const assert = require('node:assert');
const { describe, it } = require('node:test');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Registry } = require('../../lib/registry/registry');
const { watchRunning } = require('./fixtures/default-metrics-runtime');

function assertRunning(running, observers, monitors) {
  assert.deepStrictEqual([running.observers.size, running.monitors.size], [observers, monitors]);
}

describe('default metrics stop', () => {
  it('default metrics stop when the registry is cleared, which may collect them again', async t => {
    const running = watchRunning(t);
    const register = new Registry();
    const stop = collectDefaultMetrics({ register });
    for (let i = 0; i < 5; i++) {
      register.clear();
      collectDefaultMetrics({ register });
      assertRunning(running, 1, 1);
    }
    assert.match(await register.metrics(), /^nodejs_version_info\{/m);
    register.clear();
    assertRunning(running, 0, 0);
    stop();
  });

  it('default metrics stop by family, when its last metric is removed', t => {
    const running = watchRunning(t);
    const register = new Registry();
    const stop = collectDefaultMetrics({ register });
    const { metricNames } = require('../../lib/runtime/families/event-loop-lag');
    for (const name of metricNames.slice(0, -1)) {
      register.removeSingleMetric(name);
      assertRunning(running, 1, 1);
    }
    register.removeSingleMetric(metricNames.at(-1));
    assertRunning(running, 1, 0);
    register.removeSingleMetric('nodejs_gc_duration_seconds');
    assertRunning(running, 0, 0);
    stop();
  });
});

it('default metrics go on when another registry drops them', async t => {
  const running = watchRunning(t);
  const register = new Registry();
  const stop = collectDefaultMetrics({ register });
  Registry.merge([register, new Registry()]).clear();
  assertRunning(running, 1, 1);
  stop();
});

it('default metrics of a family go on when one of them is removed', async () => {
  const register = new Registry();
  collectDefaultMetrics({ register, labels: { app: 'shop' } });
  register.removeSingleMetric('process_resident_memory_bytes');
  const text = await register.metrics();
  register.clear();
  assert.match(text, /^process_virtual_memory_bytes\{app="shop"\} [1-9]\d+$/m);
});
