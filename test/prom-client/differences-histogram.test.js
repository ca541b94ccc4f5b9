'use strict';

// prom-client defect 8.

const { test } = require('node:test');
const assert = require('node:assert');
const { Histogram, Summary, Gauge, Registry, register } = require('../..');

const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

function histogramWith(options = {}) {
  const registry = new Registry();
  const histogram = new Histogram({ name: 'h', help: 'h', registers: [registry], ...options });
  return { registry, histogram };
}

async function samplesOf(registry) {
  return (await registry.metrics()).split('\n').filter(line => line !== '' && !line.startsWith('#'));
}

const BOUNDS = [
  {
    title: 'a bound of Infinity is the +Inf bucket and adds no line',
    ...{ buckets: [1, Infinity], observed: [0.5, 7], counts: '1:1 +Inf:2', sum: 7.5 },
  },
  {
    title: 'a bound of -1 counts values up to -1, and not those above all bounds',
    ...{ buckets: [-1, 1], observed: [-3, 0, 50, 60], counts: '-1:1 1:2 +Inf:4', sum: 107 },
  },
  {
    title: 'bounds are sorted, and the array of the program is not',
    ...{ buckets: [1, 5, 2], observed: [0.5, 1.5, 7], counts: '1:1 2:2 5:2 +Inf:3', sum: 9 },
  },
];
for (const { title, buckets, observed, counts, sum } of BOUNDS) {
  test(`Histogram: ${title}`, async () => {
    const given = [...buckets];
    const { registry, histogram } = histogramWith({ buckets });
    for (const value of observed) histogram.observe(value);
    const pairs = counts.split(' ').map(pair => pair.split(':'));
    const lines = pairs.map(([le, count]) => `h_bucket{le="${le}"} ${count}`);
    lines.push(`h_sum ${sum}`, `h_count ${observed.length}`);
    assert.deepStrictEqual(await samplesOf(registry), lines);
    const bounds = (await histogram.get()).values.flatMap(({ labels }) => labels.le ?? []);
    const expected = pairs.map(([le]) => (le === '+Inf' ? le : Number(le)));
    assert.deepStrictEqual(bounds, expected);
    assert.deepStrictEqual(buckets, given);
  });
}

test('Histogram: a duplicate bound is printed twice and counts an observation once', async () => {
  const { registry, histogram } = histogramWith({ buckets: [1, 1, 2] });
  for (const value of [0.5, 1.5]) histogram.observe(value);
  const text = ['h_bucket{le="1"} 1', 'h_bucket{le="1"} 1', 'h_bucket{le="2"} 2', 'h_bucket{le="+Inf"} 2'];
  assert.deepStrictEqual(await samplesOf(registry), [...text, 'h_sum 2', 'h_count 2']);
});

test('Histogram: undefined or null as buckets means the defaults', () => {
  for (const buckets of [undefined, null]) {
    assert.deepStrictEqual([...histogramWith({ buckets }).histogram.buckets], DEFAULT_BUCKETS);
  }
});

test("Histogram: the caller's array of bounds is neither frozen nor read again", async () => {
  const buckets = [1, 2];
  const { registry, histogram } = histogramWith({ buckets });
  buckets.push(3);
  assert.deepStrictEqual([...histogram.buckets], [1, 2]);
  assert.strictEqual(histogram.upperBounds, histogram.buckets);
  assert.ok(Object.isFrozen(histogram.buckets));
  histogram.observe(2.5);
  assert.ok(!(await registry.metrics()).includes('le="3"'));
});

test('Histogram, Summary: a reserved label throws before the metric is registered', () => {
  const registry = new Registry();
  const common = { name: 'm', help: 'm', registers: [registry] };
  assert.throws(() => new Histogram({ ...common, labelNames: ['le'] }), {
    name: 'Error',
    message: 'le is a reserved label keyword',
  });
  assert.throws(() => new Summary({ ...common, labelNames: ['a', 'quantile'] }), {
    name: 'Error',
    message: 'quantile is a reserved label keyword',
  });
  assert.deepStrictEqual(registry.getMetricsAsArray(), []);
  new Histogram({ ...common, labelNames: ['quantile'] });
});

test('a metric whose name exists in one of its registries is registered in none', () => {
  const [free, taken] = [new Registry(), new Registry()];
  const first = new Gauge({ name: 'm', help: 'm', registers: [taken] });
  assert.throws(() => new Histogram({ name: 'm', help: 'm', registers: [free, taken] }), {
    message: /^A metric with the name m has already been registered\./,
  });
  assert.strictEqual(free.getSingleMetric('m'), undefined);
  assert.strictEqual(taken.getSingleMetric('m'), first);
});

test('Histogram: zero() of an unknown label does nothing', async () => {
  const { registry, histogram } = histogramWith({ labelNames: ['a'], buckets: [] });
  histogram.zero({ a: '1', b: '2' });
  assert.deepStrictEqual(await samplesOf(registry), []);
  histogram.zero({ a: '1' });
  assert.deepStrictEqual(await samplesOf(registry), [
    'h_bucket{le="+Inf",a="1"} 0',
    'h_sum{a="1"} 0',
    'h_count{a="1"} 0',
  ]);
});

test('a metric: undefined as aggregator or registers means the default', () => {
  register.clear();
  const histogram = new Histogram({ name: 'h', help: 'h', aggregator: undefined, registers: undefined });
  assert.strictEqual(histogram.aggregator, 'sum');
  assert.deepStrictEqual(register.getMetricsAsArray(), [histogram]);
  register.clear();
});

test('Histogram: upperBounds that are assigned later change nothing', async () => {
  const { registry, histogram } = histogramWith({ buckets: [1, 2] });
  histogram.upperBounds = [5, 6];
  histogram.observe(1.5);
  assert.deepStrictEqual(await samplesOf(registry), [
    'h_bucket{le="1"} 0',
    'h_bucket{le="2"} 1',
    'h_bucket{le="+Inf"} 1',
    'h_sum 1.5',
    'h_count 1',
  ]);
});
