'use strict';

const assert = require('node:assert');
const inspector = require('node:inspector');
const { test } = require('node:test');
const fc = require('../fixtures/seeded-fast-check');
const stock = require('prom-client');
const { readJsonMetric } = require('../../lib/store/json-source');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { FamilyRows } = require('../../lib/store/family-rows');
const { textOf, samplesOf, seriesKey } = require('../fixtures/unit-scrape');

function gauge(values, rest) {
  return { name: 'm', help: 'm', type: 'gauge', values, ...rest };
}

function histogram(values, rest) {
  return { name: 'h', help: 'h', type: 'histogram', aggregator: 'sum', values, ...rest };
}

function bucket(le, value, labels = {}) {
  return { metricName: 'h_bucket', value, labels: { le, ...labels } };
}

function sumAndCount(sum, count, labels = {}) {
  return [
    { metricName: 'h_sum', value: sum, labels },
    { metricName: 'h_count', value: count, labels },
  ];
}

/** The page of a store that applied the metrics of one worker with prom-client. */
function shown(...metrics) {
  const store = new ClusterStore();
  // As after IPC.
  store.applyJson(1, JSON.parse(JSON.stringify([metrics])));
  const samples = samplesOf(textOf(store));
  samplesOf(textOf(store, { openMetrics: true }).replaceAll(/ # \{.*/g, ''));
  return samples;
}

/** The failures of a store by stage and metric. */
function failuresOf(store) {
  return Object.fromEntries(
    store.state().failures.map(({ stage, metric, count }) => [`${stage} ${metric}`, count]),
  );
}

test('metric in JSON: a value that is not a metric is left out and counted', () => {
  for (const nothing of [undefined, null, 5, 'metric', [], {}, { name: 5 }, { help: 'x' }]) {
    assert.throws(() => readJsonMetric(nothing), TypeError);
  }
  const store = new ClusterStore();
  store.applyJson(1, [[null, 5, gauge([{ value: 1, labels: {} }])], null, 'x']);
  assert.strictEqual(samplesOf(textOf(store)).get(seriesKey('m')), 1);
  assert.deepStrictEqual(failuresOf(store), { 'json ': 4 });
  for (const nothing of [undefined, null, 5, 'x', {}, [], [[]]]) {
    store.applyJson(1, nothing);
    assert.strictEqual(textOf(store), '\n');
  }
});

const textless = { toString: null };
const labelled = labels => gauge([{ value: 1, labels }], { name: 'odd' });
const odd = {
  'a value without a number': gauge([{ value: { toString: 1 }, labels: {} }], { name: 'odd' }),
  'a label value without a text': labelled({ a: textless }),
  'a label value that is nested deeply': labelled({ a: JSON.parse('['.repeat(1e5) + ']'.repeat(1e5)) }),
  'a label name that Prometheus refuses': labelled({ 'a b': 1 }),
  'a text as labels': labelled('abc'),
  'a list as labels': labelled(['abc']),
  'a sample that is null': gauge([null], { name: 'odd' }),
  'values that are no list': gauge({ value: 1 }, { name: 'odd' }),
  'a help without a text': gauge([], { name: 'odd', help: textless }),
  'a type without a text': gauge([], { name: 'odd', type: textless }),
  'a type of two lines': gauge([], { name: 'odd', type: 'gauge\nodd 1' }),
  'a name with a line feed': gauge([], { name: 'odd\nodd 1' }),
  'a name that is an object': gauge([], { name: {} }),
  'a sample name without a text': gauge([{ metricName: textless, value: 1 }], { name: 'odd' }),
  'a sample name with a space': gauge([{ metricName: 'o dd', value: 1 }], { name: 'odd' }),
  'a bound without a number': histogram([bucket(textless, 1)]),
  'an exemplar without a text': gauge(
    [{ value: 1, labels: {}, exemplar: { labelSet: { a: textless }, value: 1, timestamp: 1 } }],
    { name: 'odd' },
  ),
};
for (const [what, metric] of Object.entries(odd)) {
  test(`metric in JSON: ${what} costs that metric, which is counted, and not the page or its worker`, () => {
    const store = new ClusterStore();
    store.applyJson(1, [[metric, gauge([{ value: 1, labels: {} }])]]);
    store.applyJson(2, [[gauge([{ value: 2, labels: {} }])]]);
    assert.deepStrictEqual(samplesOf(textOf(store)), new Map([[seriesKey('m'), 3]]));
    textOf(store, { openMetrics: true });
    const name = typeof metric.name === 'string' ? metric.name : '';
    assert.deepStrictEqual(failuresOf(store), { [`json ${name}`]: 1 });
  });
}

/** How often functions, loops and branches of the store are entered during each call, as V8 counts it. */
function stepsOf(calls) {
  const session = new inspector.Session();
  session.connect();
  const post = (method, parameters) => {
    let result;
    session.post(`Profiler.${method}`, parameters, (_, answer) => (result = answer));
    return result;
  };
  post('enable');
  post('startPreciseCoverage', { callCount: true, detailed: true });
  const steps = calls.map(call => {
    call();
    const scripts = post('takePreciseCoverage').result.filter(({ url }) => url.includes('/store/'));
    const ranges = scripts.flatMap(({ functions }) => functions.flatMap(each => each.ranges));
    return ranges.reduce((sum, { count }) => sum + count, 0);
  });
  session.disconnect();
  return steps;
}

test('metric in JSON: label names that differ from sample to sample take steps in proportion to the samples', () => {
  const page = count => {
    const samples = Array.from({ length: count }, (_, i) => ({ value: i, labels: { [`n${i}`]: 'v' } }));
    const store = new ClusterStore();
    for (const worker of [1, 2]) store.applyJson(worker, [[gauge(samples)]]);
    const text = textOf(store);
    assert.strictEqual(samplesOf(text).get(seriesKey('m', { n7: 'v' })), 14);
  };
  const [few, many] = stepsOf([() => page(200), () => page(1600)]);
  assert.ok(few > 1000, `${few} steps`);
  // 8 if linear, 64 if quadratic.
  assert.ok(many < 12 * few, `${many / few} times as many`);
});

test('metric in JSON: label names that no series has any more leave', t => {
  const labelNumber = t.mock.method(FamilyRows.prototype, 'labelNumber');
  const store = new ClusterStore();
  for (let scrape = 0; scrape < 20; scrape++) {
    const labels = Array.from({ length: 200 }, (_, i) => ({
      value: 1,
      labels: { [`n${scrape}_${i}`]: 'v' },
    }));
    store.applyJson(1, [[gauge(labels)]]);
    assert.strictEqual(samplesOf(textOf(store)).size, 200);
  }
  const most = Math.max(...labelNumber.mock.calls.map(({ result }) => result));
  assert.ok(most < 2000, `${most} of 4000 label names`);
});

test('an answer whose lists have billions of holes costs its metrics at once', () => {
  const sparse = new Array(2 ** 32 - 1);
  for (const registries of [sparse, [sparse], [[gauge(sparse)]]]) {
    const store = new ClusterStore();
    store.applyJson(1, registries);
    store.applyJson(2, [[gauge([{ value: 2, labels: {} }], { name: 'other' })]]);
    assert.deepStrictEqual(samplesOf(textOf(store)), new Map([[seriesKey('other'), 2]]));
    assert.strictEqual(store.state().failures.length, 1);
  }
});

test('a very long name, help or label name costs the page nothing but that metric', () => {
  const one = rest => gauge([{ value: 1, labels: {} }], rest);
  const long = 'a'.repeat(2 ** 20 + 1);
  for (const metric of [
    one({ name: long }),
    one({ name: 'other', help: long }),
    gauge([{ value: 1, labels: { [long]: 1 } }], { name: 'other' }),
  ]) {
    const store = new ClusterStore();
    store.applyJson(1, [[metric, one({ name: 'm' })]]);
    assert.deepStrictEqual(samplesOf(textOf(store)), new Map([[seriesKey('m'), 1]]));
    assert.strictEqual(store.state().failures.length, 1);
  }
});

test('metric in JSON: more than 10,000 label names, or 1,000 labels of a sample, cost the metric, which is counted', () => {
  const named = count => Array.from({ length: count }, (_, i) => ({ value: 1, labels: { [`n${i}`]: '' } }));
  const labels = count => Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, '']));
  const store = new ClusterStore();
  store.applyJson(1, [[gauge(named(10_001), { name: 'odd' }), gauge([{ value: 1, labels: {} }])]]);
  assert.strictEqual(samplesOf(textOf(store)).size, 1);
  store.applyJson(1, [[labelled(labels(1001))]]);
  assert.deepStrictEqual(failuresOf(store), { 'json odd': 2 });
  store.applyJson(1, [[gauge(named(10_000), { name: 'odd' })]]);
  assert.strictEqual(textOf(store).match(/^odd\{/gm).length, 10_000);
  store.applyJson(1, [[labelled(labels(1000))]]);
  assert.match(textOf(store), /^odd\{n0="",.*n999=""\} 1$/m);
});

test('metric in JSON: series without common bounds or quantiles take no table of all of both', () => {
  const at = (count, marker) => Array.from({ length: count }, (_, i) => ({ [marker]: i, a: i }));
  const buckets = at(3000, 'le').map(({ le, a }) => bucket(le, 1, { a }));
  const { definition, columns } = readJsonMetric(histogram([...buckets, ...sumAndCount(1, 1)]));
  assert.strictEqual(definition.layout.kind, 'value');
  assert.strictEqual(columns.length, 3002);
  const series = at(3000, 'quantile').map(labels => ({ value: 1, labels }));
  const summary = readJsonMetric({ name: 's', help: 's', type: 'summary', values: series });
  assert.strictEqual(summary.definition.layout.kind, 'value');
  assert.strictEqual(summary.columns.length, 3000);
});

test('ClusterStore: bounds of two workers that would make a table much larger than all that was sent cost their metric', () => {
  const store = new ClusterStore();
  const bounds = Array.from({ length: 20_000 }, (_, i) => bucket(i, 1));
  store.applyJson(1, [[histogram(bounds), gauge([{ value: 1, labels: {} }])]]);
  store.applyJson(2, [[histogram(Array.from({ length: 2000 }, (_, a) => bucket(0.5, 1, { a })))]]);
  assert.deepStrictEqual(samplesOf(textOf(store)), new Map([[seriesKey('m'), 1]]));
  assert.deepStrictEqual(failuresOf(store), { 'merge h': 1 });
});

test('ClusterStore: quantiles that only one of two workers has make no page that is much larger than what was sent', () => {
  const store = new ClusterStore();
  const summary = values => ({ name: 's', help: 's', type: 'summary', values });
  const quantiles = Array.from({ length: 100 }, (_, quantile) => ({ value: 1, labels: { quantile } }));
  store.applyJson(1, [[summary(quantiles)]]);
  store.applyJson(2, [
    [summary(Array.from({ length: 11_000 }, (_, a) => ({ value: 1, labels: { a, quantile: 1 } })))],
  ]);
  assert.strictEqual(textOf(store), '\n');
  assert.deepStrictEqual(failuresOf(store), { 'merge s': 1 });
});

test('ClusterStore: of series with different label names, a thousand of a metric are retired', () => {
  const counter = {
    ...gauge(Array.from({ length: 2000 }, (_, i) => ({ value: i, labels: { [`n${i}`]: 'v', all: i % 7 } }))),
    type: 'counter',
  };
  const store = new ClusterStore();
  store.applyJson(1, [[counter]]);
  store.retire(1);
  const { failures } = store.state();
  assert.deepStrictEqual(failures, [{ stage: 'merge', metric: counter.name, count: 1 }]);
  const bytes = store.encodeRetired();
  assert.ok(bytes.length < 1000 * 400, `${bytes.length} bytes`);
  const restored = new ClusterStore();
  restored.restoreRetired(Buffer.from(new Uint8Array(bytes).buffer));
  assert.deepStrictEqual(samplesOf(textOf(restored)), samplesOf(textOf(store)));
  assert.strictEqual(samplesOf(textOf(restored)).size, 1000);
});

test('metric in JSON: values with unpaired surrogates are one series', () => {
  const values = ['x\ud800', 'x\udfff', 'x\ufffd'].map(a => ({ value: 1, labels: { a } }));
  assert.deepStrictEqual(shown(gauge(values)), new Map([[seriesKey('m', { a: 'x\ufffd' }), 3]]));
});

test('metric in JSON: values, type, help and aggregator are optional', () => {
  assert.deepStrictEqual(shown({ name: 'm' }), new Map());
  assert.deepStrictEqual(shown({ name: 'm', values: [{ value: 1 }] }), new Map([[seriesKey('m'), 1]]));
  assert.strictEqual(readJsonMetric({ name: 'm' }).definition.aggregator, 'sum');
  for (const type of ['histogram', 'summary'])
    assert.deepStrictEqual(shown({ name: 'm', type, values: [] }), new Map());
});

test('metric in JSON: there is one row per label set, in any order of labels, with the last of its values', () => {
  assert.deepStrictEqual(
    shown(
      gauge([
        { value: 1, labels: { a: 'x', b: 1 } },
        { value: 2, labels: { b: '1', a: 'x' } },
        { value: 3, labels: { a: 'x' } },
        { value: 4, labels: { a: '' } },
        { value: 5 },
      ]),
    ),
    new Map([
      [seriesKey('m', { a: 'x', b: 1 }), 2],
      [seriesKey('m', { a: 'x' }), 3],
      [seriesKey('m', { a: '' }), 4],
      [seriesKey('m'), 5],
    ]),
  );
});

test('metric in JSON: label values with separators are distinct', () => {
  const labels = [{ a: '1,b:2' }, { a: '1', b: '2' }, { a: '1","b":"2' }];
  assert.strictEqual(shown(gauge(labels.map((set, value) => ({ value, labels: set })))).size, labels.length);
});

test('metric in JSON: a value that is not a number is NaN, a numeric string is its number', () => {
  const values = [null, undefined, 'x', {}, '7', true, 1e300];
  const columns = [...readJsonMetric(gauge(values.map((value, a) => ({ value, labels: { a } })))).columns];
  assert.deepStrictEqual(columns, [NaN, NaN, NaN, NaN, 7, 1, 1e300]);
});

test('metric in JSON: a sample may have a name of its own', () => {
  assert.deepStrictEqual(
    shown(
      gauge([
        { metricName: 'm_child', value: 1, labels: { a: 'x' } },
        { value: 2, labels: { a: 'x' } },
      ]),
    ),
    new Map([
      [seriesKey('m_child', { a: 'x' }), 1],
      [seriesKey('m', { a: 'x' }), 2],
    ]),
  );
});

test('metric in JSON: shared labels are labels of each sample', () => {
  const metric = gauge([{ value: 1, labels: { a: 'x' }, sharedLabels: { b: 'y' } }]);
  assert.deepStrictEqual([...shown(metric).keys()], [seriesKey('m', { a: 'x', b: 'y' })]);
});

test('histogram in JSON: without a +Inf bucket, the total is _count or else the last bucket', () => {
  const finite = [bucket(1, 3), bucket(5, 4)];
  assert.strictEqual(shown(histogram([...finite, ...sumAndCount(9, 6)])).get(seriesKey('h_count')), 6);
  assert.strictEqual(shown(histogram(finite)).get(seriesKey('h_bucket', { le: '+Inf' })), 4);
  assert.strictEqual(shown(histogram(finite)).get(seriesKey('h_bucket', { le: 5 })), 4);
});

test('histogram in JSON: a series without a bucket has the cumulative count of its next lower one', () => {
  const samples = shown(
    histogram([
      bucket(1, 1, { a: 'x' }),
      bucket(10, 3, { a: 'x' }),
      bucket('+Inf', 4, { a: 'x' }),
      bucket(5, 2, { a: 'y' }),
      bucket('+Inf', 7, { a: 'y' }),
    ]),
  );
  const at = (a, le) => samples.get(seriesKey('h_bucket', { a, le }));
  const found = [1, 5, 10, '+Inf'].map(le => [at('x', le), at('y', le)]);
  assert.deepStrictEqual(found, [
    [1, 0],
    [1, 2],
    [3, 2],
    [4, 7],
  ]);
});

test('histogram or summary in JSON: with an unexpected sample, all samples are shown as they are', () => {
  for (const [type, stranger] of [
    ['histogram', { value: 5, labels: {} }],
    ['histogram', { metricName: 'h_bucket', value: 5, labels: { le: 'x' } }],
    ['histogram', { metricName: 'h_bucket', value: 5, labels: {} }],
    ['summary', { metricName: 'h_bucket', value: 5, labels: { le: 1 } }],
    ['summary', { value: 5, labels: {} }],
  ]) {
    const values = [stranger, ...sumAndCount(3, 1)];
    assert.strictEqual(readJsonMetric(histogram(values, { type })).definition.layout.kind, 'value');
    assert.strictEqual(shown(histogram(values, { type })).size, 3);
  }
});

test('summary in JSON: it may have no quantiles, or only quantiles', () => {
  const summary = values => ({ ...histogram(values), type: 'summary' });
  assert.strictEqual(shown(summary(sumAndCount(3, 1))).size, 2);
  const quantile = { value: 5, labels: { quantile: 0.5 } };
  assert.strictEqual(
    shown(summary([quantile, ...sumAndCount(5, 1)])).get(seriesKey('h', { quantile: 0.5 })),
    5,
  );
  const [[key, value]] = shown(summary([{ ...quantile, labels: { quantile: '0.5', a: 'x' } }]));
  assert.deepStrictEqual([key, Number.isFinite(value)], [seriesKey('h', { quantile: 0.5, a: 'x' }), true]);
});

test('metric in JSON: complete exemplars are shown, others are left out', () => {
  const exemplars = [
    null,
    {},
    { labelSet: null, value: 1, timestamp: 1 },
    { labelSet: {}, value: null, timestamp: 1 },
    { labelSet: 'x', value: 1, timestamp: 1 },
    { labelSet: { t: 'x' }, value: 1, timestamp: 2 },
  ];
  const store = new ClusterStore();
  const values = exemplars.map((exemplar, a) => ({ value: 1, labels: { a }, exemplar }));
  store.applyJson(1, [[{ ...gauge(values), name: 'c', type: 'counter' }]]);
  assert.deepStrictEqual(textOf(store, { openMetrics: true }).match(/ # \{.*/g), [' # {t="x"} 1 2']);
});

test('metric in JSON: the page of a worker with prom-client is the one that it writes itself', async () => {
  const registry = new stock.Registry();
  registry.setDefaultLabels({ env: 'p', a: 'default' });
  const common = { help: 'x', labelNames: ['a', 'b'], registers: [registry] };
  const metrics = [
    new stock.Counter({ name: 'c_total', ...common }),
    new stock.Gauge({ name: 'g', ...common }),
    new stock.Histogram({ name: 'h', buckets: [0.5, 1, 5], ...common }),
    new stock.Histogram({ name: 'unsorted', buckets: [5, 0.5, 1], ...common }),
    new stock.Summary({ name: 's', percentiles: [0.5, 0.9], ...common }),
  ];
  new stock.Histogram({ name: 'plain', help: 'x', registers: [registry] });
  for (const [i, labels] of [{ a: 'x' }, { b: 'y', a: 'x' }, {}, { a: '"\\\n' }].entries()) {
    for (const metric of metrics) (metric.inc ?? metric.observe).call(metric, labels, i * 0.7);
  }
  const json = await registry.getMetricsAsJSON();
  const expected = samplesOf(await stock.AggregatorRegistry.aggregate([structuredClone(json)]).metrics());
  assert.deepStrictEqual(shown(...json), expected);
});

test('metric in JSON: no value makes reading throw, and the page can be written', () => {
  const label = fc.oneof(
    fc.string(),
    fc.constantFrom('a', 'le', 'quantile', '__proto__', 'toString', '__name__'),
  );
  const anything = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(0, 1, '+Inf', null));
  const sample = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record(
        {
          value: anything,
          labels: fc.oneof(fc.dictionary(label, anything, { maxKeys: 3 }), anything),
          metricName: fc.oneof(fc.constantFrom('m', 'm_sum', 'm_count', 'm_bucket'), anything),
          exemplar: fc.oneof(
            anything,
            fc.record({ labelSet: anything, value: anything, timestamp: anything }),
          ),
          sharedLabels: anything,
        },
        { requiredKeys: [] },
      ),
    },
    { weight: 1, arbitrary: anything },
  );
  const metric = fc.record(
    {
      name: fc.constant('m'),
      help: anything,
      type: fc.oneof(fc.constantFrom('counter', 'gauge', 'histogram', 'summary'), anything),
      aggregator: fc.constantFrom('sum', 'first', 'min', 'max', 'average', 'omit', null),
      values: fc.oneof(fc.array(sample, { maxLength: 6 }), anything),
    },
    { requiredKeys: ['name'] },
  );
  fc.assert(
    fc.property(fc.array(fc.array(metric, { maxLength: 3 }), { maxLength: 3 }), workers => {
      const store = new ClusterStore();
      workers.forEach((metrics, i) => store.applyJson(i + 1, JSON.parse(JSON.stringify([metrics]))));
      textOf(store);
      textOf(store, { openMetrics: true });
      store.retire(1);
      textOf(store);
    }),
    { numRuns: 1000 },
  );
});
