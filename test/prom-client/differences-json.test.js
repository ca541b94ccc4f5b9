'use strict';

// prom-client defect 2: getMetricsAsJSON() returns the stored series and writes the default labels into them.

const { test } = require('node:test');
const assert = require('node:assert');
const { Counter, Gauge, Histogram, Summary, Registry } = require('../..');

function filledRegistry() {
  const registry = new Registry();
  const common = { help: 'x', labelNames: ['a'], registers: [registry] };
  new Counter({ name: 'c', ...common }).inc({ a: '1' }, 2);
  new Gauge({ name: 'g', ...common }).set({ a: '1' }, 3);
  new Histogram({ name: 'h', buckets: [1], ...common }).observe({ a: '1' }, 0.5);
  new Summary({ name: 's', percentiles: [0.5], ...common }).observe({ a: '1' }, 4);
  return registry;
}

test('default labels in JSON do not become part of the series', async () => {
  const registry = filledRegistry();
  const before = await registry.getMetricsAsJSON();
  registry.setDefaultLabels({ host: 'one', a: 'default' });
  const withDefaults = await registry.getMetricsAsJSON();
  for (const { values } of withDefaults) {
    for (const { labels } of values) assert.deepStrictEqual([labels.host, labels.a], ['one', '1']);
  }
  registry.setDefaultLabels({});
  assert.deepStrictEqual(await registry.getMetricsAsJSON(), before);
  assert.ok(!(await registry.metrics()).includes('host'));
});

test('a label value of the series overrides a default label in JSON, even if it is empty or 0', async () => {
  const registry = new Registry();
  const common = { help: 'x', labelNames: ['a'], registers: [registry] };
  new Counter({ name: 'c', ...common }).inc({ a: '' });
  new Gauge({ name: 'g', ...common }).set({ a: 0 }, 1);
  new Histogram({ name: 'h', buckets: [], ...common }).observe({ a: '' }, 1);
  new Summary({ name: 's', percentiles: [0.5], ...common }).observe({ a: 0 }, 1);
  registry.setDefaultLabels({ a: 'default', le: 'default', quantile: 'default' });

  const [counter, gauge, histogram, summary] = await registry.getMetricsAsJSON();
  assert.deepStrictEqual(
    [counter, gauge, histogram, summary].map(({ values }) => values.map(({ labels }) => labels.a)),
    [[''], [0], ['', '', ''], [0, 0, 0]],
  );
  const shown = histogram.values.map(({ labels }) => labels.le);
  assert.deepStrictEqual(shown, ['+Inf', 'default', 'default']);
  assert.strictEqual(summary.values[0].labels.quantile, 0.5);
});

test('changing a result of getMetricsAsJSON() or get() does not change the registry', async () => {
  const registry = filledRegistry();
  const page = await registry.metrics();
  const json = JSON.stringify(await registry.getMetricsAsJSON());
  const families = [
    ...(await registry.getMetricsAsJSON()),
    ...(await Promise.all(registry.getMetricsAsArray().map(metric => metric.get()))),
  ];
  for (const family of families) {
    for (const sample of family.values) {
      sample.value = 99;
      sample.labels.a = 'changed';
      sample.labels.more = 'x';
    }
    family.values.length = 0;
  }
  assert.strictEqual(await registry.metrics(), page);
  assert.strictEqual(JSON.stringify(await registry.getMetricsAsJSON()), json);
});

test('a result of getMetricsAsJSON() does not change with later recording', async () => {
  const registry = new Registry();
  const counter = new Counter({ name: 'c', help: 'c', registers: [registry] });
  counter.inc();
  const before = await registry.getMetricsAsJSON();
  counter.inc();
  assert.strictEqual(before[0].values[0].value, 1);
});

test('default labels in JSON are not written into the values of a custom metric object', async () => {
  const registry = new Registry();
  const values = [{ value: 1, labels: { a: '' } }];
  registry.registerMetric({ name: 'own', get: () => ({ name: 'own', help: 'own', type: 'gauge', values }) });
  registry.setDefaultLabels({ a: 'default', host: 'one' });
  const [family] = await registry.getMetricsAsJSON();
  assert.deepStrictEqual(family.values, [{ value: 1, labels: { a: '', host: 'one' } }]);
  assert.deepStrictEqual(values, [{ value: 1, labels: { a: '' } }]);
});
