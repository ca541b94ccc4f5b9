'use strict';

// prom-client defect 9: some values that are not numbers are accepted. Here they change nothing.

const { test } = require('node:test');
const assert = require('node:assert');
const { inspect } = require('node:util');
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
