'use strict';

// prom-client defect 9: some values that are not numbers are accepted. Here they change nothing.

const { test } = require('node:test');
const assert = require('node:assert');
const { inspect } = require('node:util');
const stock = require('prom-client');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../..');

function metricOf(Metric) {
  const registry = new Registry();
  return { registry, metric: new Metric({ name: 'm', help: 'm', labelNames: ['a'], registers: [registry] }) };
}

for (const value of [NaN, false, '']) {
  test(`a counter adds nothing for ${inspect(value)}`, async () => {
    const { registry, metric } = metricOf(Counter);
    metric.inc({ a: '1' }, 5);
    metric.inc(value);
    metric.inc({ a: '1' }, value);
    metric.labels('1').inc(value);
    assert.strictEqual(await registry.metrics(), '# HELP m m\n# TYPE m counter\nm{a="1"} 5\nm 0\n');
  });

  test(`a counter with exemplars adds nothing for ${inspect(value)}`, async () => {
    const registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
    const metric = new Counter({ name: 'm', help: 'm', registers: [registry], enableExemplars: true });
    metric.inc(5);
    metric.inc(value);
    metric.inc({ value, exemplarLabels: { trace: 'x' } });
    assert.match(await registry.metrics(), /^m_total 5 # /m);
  });
}

test('a counter treats null and undefined as 1', async () => {
  const { registry, metric } = metricOf(Counter);
  metric.inc({ a: '1' }, null);
  metric.inc({ a: '1' }, undefined);
  assert.match(await registry.metrics(), /^m\{a="1"\} 2$/m);
});

for (const value of ['x', {}, [1, 2], () => 1]) {
  test(`a gauge subtracts nothing for ${inspect(value)}`, async () => {
    const { registry, metric } = metricOf(Gauge);
    metric.set({ a: '1' }, 5);
    metric.dec({ a: '1' }, value);
    metric.labels('1').dec(value);
    assert.strictEqual(await registry.metrics(), '# HELP m m\n# TYPE m gauge\nm{a="1"} 5\n');
  });
}

test('observe() throws the text of prom-client, and its stack names the value that it refuses', () => {
  for (const value of [NaN, false, '']) {
    const [histogram, summary] = [Histogram, Summary].map(Type => metricOf(Type).metric);
    for (const [metric, named] of [
      [histogram, 'undefined'],
      [summary, '{}'],
    ]) {
      const message = `Value is not a valid number: ${named}`;
      const says = error =>
        error instanceof TypeError &&
        error.message === message &&
        String(error) === `TypeError: ${message}, got ${inspect(value)}` &&
        error.stack.startsWith(`${error}\n`);
      assert.throws(() => metric.observe(value), says);
    }
  }
});

// As of `hasUser && { user }`.
for (const labels of [false, '', NaN, null, undefined]) {
  test(`observe() with ${inspect(labels)} in place of labels counts for the series without labels, as in prom-client`, async () => {
    for (const type of ['Histogram', 'Summary']) {
      const [ours, theirs] = [{ Registry, Histogram, Summary }, stock].map(client => {
        const registry = new client.Registry();
        const config = { name: 'm', help: 'm', labelNames: ['a'], buckets: [1], percentiles: [0.5] };
        new client[type]({ ...config, registers: [registry] }).observe(labels, 2);
        return registry.metrics();
      });
      assert.strictEqual(await ours, await theirs);
      assert.match(await ours, /^m_sum 2$/m);
    }
  });
}

// null is what JSON makes of NaN
test('values of a custom metric object are printed as numbers, or as Nan', async () => {
  const registry = new Registry();
  const given = ['12', 'x', undefined, null, true, NaN, Infinity, -Infinity];
  const values = given.map((value, index) => ({ value, labels: { i: index } }));
  registry.registerMetric({ name: 'm', get: () => ({ name: 'm', help: 'm', type: 'gauge', values }) });
  const printed = (await registry.metrics()).split('\n').slice(2, -1);
  const shown = printed.map(line => line.split(' ')[1]);
  assert.deepStrictEqual(shown, ['12', 'Nan', 'Nan', 'Nan', '1', 'Nan', '+Inf', '-Inf']);
});
