'use strict';

// prom-client defect 9: some values that are not numbers are accepted.

const { test } = require('node:test');
const assert = require('node:assert');
const { inspect } = require('node:util');
const stock = require('prom-client');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../..');

function metricOf(Metric) {
  const registry = new Registry();
  return { registry, metric: new Metric({ name: 'm', help: 'm', labelNames: ['a'], registers: [registry] }) };
}

for (const [value, printed] of [
  [NaN, 'NaN'],
  [false, 'false'],
  ['', ''],
]) {
  test(`a counter refuses ${inspect(value)} as an increment`, async () => {
    const { registry, metric } = metricOf(Counter);
    const error = { name: 'TypeError', message: `Value is not a valid number: ${printed}` };
    assert.throws(() => metric.inc(value), error);
    assert.throws(() => metric.inc({ a: '1' }, value), error);
    assert.throws(() => metric.labels('1').inc(value), error);
    assert.strictEqual(await registry.metrics(), '# HELP m m\n# TYPE m counter\n');
  });
}

test('a counter treats null and undefined as 1', async () => {
  const { registry, metric } = metricOf(Counter);
  metric.inc({ a: '1' }, null);
  metric.inc({ a: '1' }, undefined);
  assert.match(await registry.metrics(), /^m\{a="1"\} 2$/m);
});

for (const [value, printed] of [
  ['x', 'x'],
  ['5', '5'],
  [null, 'null'],
  [true, 'true'],
  [false, 'false'],
  [5n, '5n'],
]) {
  test(`a gauge refuses ${inspect(value)} as a decrement`, async () => {
    const { registry, metric } = metricOf(Gauge);
    const error = { name: 'TypeError', message: `Delta is not a valid number: ${printed}` };
    assert.throws(() => metric.dec(value), error);
    assert.throws(() => metric.dec({ a: '1' }, value), error);
    assert.throws(() => metric.labels('1').dec(value), error);
    assert.strictEqual(await registry.metrics(), '# HELP m m\n# TYPE m gauge\n');
  });
}

test('observe() names the value that it refuses', () => {
  for (const [value, printed] of [
    [NaN, 'NaN'],
    [false, 'false'],
    ['', ''],
  ]) {
    const { metric } = metricOf(Histogram);
    assert.throws(() => metric.observe(value), {
      name: 'TypeError',
      message: `Value is not a valid number: ${printed}`,
    });
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
  assert.deepStrictEqual(
    printed.map(line => line.split(' ')[1]),
    ['12', 'Nan', 'Nan', 'Nan', '1', 'Nan', '+Inf', '-Inf'],
  );
});
