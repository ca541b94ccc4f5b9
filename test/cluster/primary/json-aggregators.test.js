'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../../fixtures/seeded-fast-check');
const stock = require('prom-client');
const { AggregatorRegistry, aggregators, Registry } = require('../../..');
const { customAggregators, plainMetric } = require('../../../lib/cluster/primary/json-aggregators');

const NAMES = ['sum', 'first', 'omit', 'average', 'min', 'max'];

/** Runs a function with aggregators of an application, then removes them. */
function withAggregators(own, run) {
  const before = { ...aggregators };
  Object.assign(aggregators, own);
  try {
    return run();
  } finally {
    for (const name of Object.keys(own)) delete aggregators[name];
    Object.assign(aggregators, before);
  }
}

function gauge(values, rest) {
  return { help: 'h', name: 'm', type: 'gauge', aggregator: 'sum', values, ...rest };
}

test('the built-in aggregators are the six of prom-client', () => {
  assert.deepStrictEqual(Object.keys(aggregators).sort(), Object.keys(stock.aggregators).sort());
  assert.deepStrictEqual(Object.keys(aggregators).sort(), [...NAMES].sort());
});

for (const name of NAMES) {
  test(`the aggregator '${name}' gives the result of prom-client's for random metrics`, () => {
    const value = fc.oneof(
      fc.double(),
      fc.integer({ min: -9, max: 9 }),
      fc.constantFrom(0, 1, Infinity, NaN),
    );
    const labelValue = fc.constantFrom('x', 'y', 'z', 1, '', undefined);
    const labels = fc.dictionary(fc.constantFrom('a', 'b', 'le'), labelValue, { maxKeys: 2 });
    const sample = fc
      .tuple(value, labels, fc.constantFrom(undefined, 'm_sum', 'm_bucket'))
      .map(([number, labelSet, metricName]) => {
        const plain = { value: number, labels: { ...labelSet } };
        return metricName === undefined ? plain : { ...plain, metricName };
      });
    const metric = fc
      .tuple(fc.array(sample, { maxLength: 6 }), fc.constantFrom('counter', 'gauge', 'histogram'))
      .map(([values, type]) => gauge(values, { type, aggregator: name }));
    fc.assert(
      fc.property(fc.array(metric, { maxLength: 4 }), metrics => {
        const before = structuredClone(metrics);
        const merged = aggregators[name](metrics);
        assert.deepStrictEqual(merged, stock.aggregators[name](structuredClone(metrics)));
        assert.deepStrictEqual(metrics, before);
      }),
      { numRuns: 300 },
    );
  });
}

test('aggregators distinguish label sets that prom-client confuses', () => {
  const metric = gauge([
    { value: 1, labels: { a: '1,b:2' } },
    { value: 2, labels: { a: '1', b: '2' } },
    { value: 3, labels: { b: '2', a: '1' } },
  ]);
  const { values } = aggregators.sum([metric]);
  const shown = values.map(({ value }) => value);
  assert.deepStrictEqual(shown, [1, 5]);
});

test('aggregators treat missing, null and undefined labels, and labels of undefined, as one label set', () => {
  const metric = gauge([
    { value: 1, labels: {} },
    { value: 2 },
    { value: 4, labels: null },
    { value: 8, labels: { a: undefined } },
  ]);
  const { values } = aggregators.sum([metric, metric]);
  assert.deepStrictEqual(values, [{ value: 30, labels: {} }]);
});

test('the aggregator sum averages quantiles, weighted by count', () => {
  const summary = (quantile, count, labels = {}) => ({
    help: 'h',
    name: 's',
    type: 'summary',
    aggregator: 'sum',
    values: [
      { value: quantile, labels: { quantile: 0.5, ...labels } },
      { metricName: 's_sum', value: quantile * count, labels },
      { metricName: 's_count', value: count, labels },
    ],
  });
  const valuesOf = metrics => aggregators.sum(metrics).values.map(({ value }) => value);
  assert.deepStrictEqual(valuesOf([summary(1, 1), summary(3, 1)]), [2, 4, 2]);
  assert.deepStrictEqual(valuesOf([summary(1, 3), summary(5, 1)]), [2, 8, 4]);
  assert.deepStrictEqual(valuesOf([summary(0, 0), summary(5, 4)]), [5, 20, 4]);
  assert.deepStrictEqual(valuesOf([summary(0, 0), summary(0, 0)]), [0, 0, 0]);
  // Rounding takes nothing out of the range of the quantiles.
  assert.deepStrictEqual(valuesOf([summary(0.1, 3)]), [0.1, 0.1 * 3, 3]);
  assert.deepStrictEqual(valuesOf([summary(0, 0), summary(1e307, 9), summary(1e307, 9)])[0], 1e307);
  // However many there are.
  assert.strictEqual(valuesOf(Array.from({ length: 200_000 }, () => summary(0.1, 1)))[0], 0.1);
  // Weighted by the count of each series.
  const [x, y] = [{ a: 'x' }, { a: 'y' }];
  const both = valuesOf([summary(1, 3, x), summary(5, 1, x), summary(9, 100, y)]);
  assert.deepStrictEqual(both, [2, 8, 4, 9, 900, 100]);
});

for (const aggregator of NAMES) {
  test(`aggregate() of real metrics with '${aggregator}' gives the same registry as prom-client's`, async () => {
    const lists = await Promise.all(
      [1, 2, 3].map(async worker => {
        const registry = new stock.Registry();
        registry.setDefaultLabels({ env: 'p' });
        const common = { help: 'x', labelNames: ['a'], aggregator, registers: [registry] };
        const counter = new stock.Counter({ name: 'c_total', ...common });
        const histogram = new stock.Histogram({ name: 'h', buckets: [1, 5], ...common });
        for (let i = 0; i < 4; i++) {
          counter.inc({ a: (i * worker) % 3 }, i / 4);
          histogram.observe({ a: (i + worker) % 3 }, i * worker);
        }
        return registry.getMetricsAsJSON();
      }),
    );
    const ours = AggregatorRegistry.aggregate(structuredClone(lists));
    const theirs = stock.AggregatorRegistry.aggregate(structuredClone(lists));
    assert.ok(ours instanceof Registry);
    assert.strictEqual(Registry.aggregate, AggregatorRegistry.aggregate); // the successor's name of it
    assert.deepStrictEqual(await ours.getMetricsAsJSON(), await theirs.getMetricsAsJSON());
    assert.strictEqual(await ours.metrics(), await theirs.metrics());
    for (const metric of ours.getMetricsAsArray()) assert.strictEqual(typeof metric.get().then, 'undefined');
  });
}

test('a metric that is a summary in some processes only is weighted as one observation in the others', () => {
  const summary = {
    ...gauge([
      { value: 3, labels: { quantile: 0.5 } },
      { value: 2, labels: {}, metricName: 'm_count' },
    ]),
    type: 'summary',
  };
  const other = gauge([{ value: 6, labels: { quantile: 0.5 } }]);
  assert.strictEqual(aggregators.sum([summary, other]).values[0].value, 4);
  assert.strictEqual(aggregators.sum([other, summary]).values[0].value, 9);
});

test('aggregate() of nothing is an empty registry; a missing aggregator is sum', async () => {
  for (const nothing of [[], [[]], [[], []]]) {
    assert.strictEqual(await AggregatorRegistry.aggregate(nothing).metrics(), '\n');
  }
  const metric = gauge([{ value: 2, labels: {} }]);
  delete metric.aggregator;
  const registry = AggregatorRegistry.aggregate([[metric], [metric]]);
  assert.deepStrictEqual((await registry.getMetricsAsJSON())[0].values, [{ value: 4, labels: {} }]);
});

test('aggregate() returns a registry with the given content type', async () => {
  const metric = gauge([{ value: 2, labels: {} }], { type: 'counter', name: 'c_total' });
  const registry = AggregatorRegistry.aggregate([[metric]], Registry.OPENMETRICS_CONTENT_TYPE);
  assert.strictEqual(await registry.metrics(), '# HELP c h\n# TYPE c counter\nc_total 2\n# EOF\n');
  assert.throws(
    () => AggregatorRegistry.aggregate([], 'text/html'),
    new Error('Content type text/html is unsupported'),
  );
});

test('aggregate() throws for an unknown aggregator, with its name', () => {
  for (const aggregator of ['median', 'toString', 'constructor', '__proto__']) {
    assert.throws(
      () => AggregatorRegistry.aggregate([[gauge([], { aggregator })]]),
      new Error(`'${aggregator}' is not a defined aggregator.`),
    );
  }
});

test("an application's own aggregators are used, also in place of a built-in one", async () => {
  const count = metrics => ({ ...metrics[0], values: [{ value: metrics.length, labels: {} }] });
  await withAggregators({ count, sum: count, nothing: () => undefined }, async () => {
    assert.deepStrictEqual(customAggregators().sort(), ['count', 'nothing', 'sum']);
    const metric = (name, aggregator) => gauge([{ value: 7, labels: {} }], { name, aggregator });
    const list = [metric('a', 'count'), metric('b', 'sum'), metric('c', 'nothing'), metric('d', 'max')];
    const json = await AggregatorRegistry.aggregate([list, list]).getMetricsAsJSON();
    const shown = json.map(({ name, values }) => [name, values[0].value]);
    assert.deepStrictEqual(shown, [
      ['a', 2],
      ['b', 2],
      ['d', 7],
    ]);
  });
  assert.deepStrictEqual(customAggregators(), []);
});

test('a result of an aggregator that is not a metric is null, and methods of a metric are left out', () => {
  const metric = gauge([{ value: 1, labels: { a: 1 } }]);
  const throws = () => {
    throw new Error('it cannot be read');
  };
  const withValue = sample => ({ ...metric, values: [sample] });
  const none = [
    ...[Promise.resolve(metric), Promise.reject(new Error('rejected')), [null], 'm 1', 5],
    ...['name', 'values'].map(name => ({ ...metric, [name]: undefined })),
    withValue(Object.defineProperty({}, 'value', { get: throws })),
    new Proxy(metric, { get: throws }),
    withValue({ value: 1, labels: { a: Symbol('a') } }),
    ...['name', 'help'].map(name => ({ ...metric, [name]: { toString: null } })),
  ];
  for (const result of none) assert.strictEqual(plainMetric(result), null);
  assert.strictEqual(plainMetric(undefined), undefined);
  const withMethods = { ...withValue({ ...metric.values[0], more: throws }), get: throws };
  assert.strictEqual(plainMetric(withMethods).values[0].labels.a, 1);
});
