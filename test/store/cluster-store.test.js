'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { joined } = require('../../lib/source/byte-buffers');
const fc = require('../fixtures/seeded-fast-check');
const stock = require('prom-client');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../..');
const { FamilyRows } = require('../../lib/store/family-rows');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { runThrough } = require('../../lib/event-loop/slices');
const { startsAreRead } = require('../../lib/series/row-starts');
const { MULTIPLIERS } = require('../../lib/series/tuple-table');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const {
  makeWorker,
  bytesOf,
  copyOf,
  scrape,
  textOf,
  samplesOf,
  seriesKey,
} = require('../fixtures/unit-scrape');

const START = 1_700_000_000_000;

/** Workers 1, 2, 3 ... with one metric each. */
function workersWith(Metric, count, config) {
  return Array.from({ length: count }, (_, i) => {
    const worker = makeWorker();
    const options = typeof config === 'function' ? config(i) : config;
    const metric = new Metric({ name: 'm', help: 'm', registers: [worker.registry], ...options });
    return { ...worker, id: i + 1, metric };
  });
}

function scrapeAll(workers, store) {
  for (const worker of workers) scrape(worker, store, worker.id);
}

function valueOf(store, name, labels) {
  return samplesOf(textOf(store)).get(seriesKey(name, labels));
}

function cluster(workers, options) {
  const store = new ClusterStore(options);
  scrapeAll(workers, store);
  return store;
}

const RULES = {
  sum: values => values.reduce((sum, value) => sum + value, 0),
  first: values => values[0],
  min: values => Math.min(...values),
  max: values => Math.max(...values),
  average: values => values.reduce((sum, value) => sum + value, 0) / values.length,
};

for (const [aggregator, rule] of Object.entries(RULES)) {
  test(`ClusterStore: the aggregator '${aggregator}' treats NaN and infinities as arithmetic does`, () => {
    const specials = [NaN, Infinity, -Infinity, 0, 1];
    const labelled = specials.flatMap(left => specials.map(right => [left, right]));
    const workers = workersWith(Gauge, 2, { labelNames: ['a'], aggregator });
    labelled.forEach((pair, a) => pair.forEach((value, i) => workers[i].metric.set({ a }, value)));
    const store = cluster(workers);
    labelled.forEach((pair, a) => assert.strictEqual(valueOf(store, 'm', { a }), rule(pair), `${pair}`));
  });
}

test('ClusterStore: a family with an unknown aggregator is left out and counted by name', () => {
  const store = cluster(workersWith(Gauge, 1, { aggregator: 'median' }));
  assert.strictEqual(textOf(store), '\n');
  const [{ stage, count }, ...others] = store.state().failures;
  assert.deepStrictEqual([stage, count, others], ['aggregator', 1, []]);
  assert.strictEqual(textOf(store, { custom: ['median'] }), '\n');
});

test('ClusterStore: bounds and quantiles that are strings are numbers', () => {
  const [{ registry, metric, source }] = workersWith(Histogram, 1, { buckets: ['1.0', '1e1'] });
  const summary = new Summary({ name: 's', help: 's', percentiles: ['0.50'], registers: [registry] });
  for (const each of [metric, summary]) each.observe(5);
  const store = new ClusterStore();
  scrape({ source }, store, 1);
  assert.strictEqual(valueOf(store, 'm_bucket', { le: '1' }), 0);
  assert.strictEqual(valueOf(store, 'm_bucket', { le: '10' }), 1);
  assert.strictEqual(valueOf(store, 's', { quantile: '0.5' }), 5);
});

test('ClusterStore: a label may be called __proto__', () => {
  const labels = Object.fromEntries([['__proto__', 'x']]);
  // Where `le` is a default label, the labels of buckets are written without it.
  const workers = workersWith(Histogram, 2, { labelNames: ['__proto__'], buckets: [1], aggregator: 'sum' });
  workers.forEach(({ registry, metric }, i) => {
    registry.setDefaultLabels({ le: 'default' });
    metric.observe(labels, 1);
    metric.observe(Object.fromEntries([['__proto__', `${i}`]]), 1);
  });
  const store = cluster(workers);
  const pairs = [['__proto__', 'x']];
  assert.strictEqual(valueOf(store, 'm_bucket', [...pairs, ['le', '1']]), 2);
  assert.strictEqual(valueOf(store, 'm_count', [...pairs, ['le', 'default']]), 2);
  // For an aggregator of the application.
  const [{ metrics }] = runThrough(store.merge(new Set(['sum'])));
  for (const { values } of metrics)
    for (const sample of values) assert.ok(Object.hasOwn(sample.labels, '__proto__'), sample.metricName);
});

/**
 * Compares with a tolerance: sums of floats depend on their order, averages of buckets on the way they are
 * computed.
 */
function assertClose(actual, expected) {
  assert.deepStrictEqual([...actual.keys()].sort(), [...expected.keys()].sort());
  for (const [key, value] of expected) {
    const found = actual.get(key);
    const close =
      Object.is(found, value) || Math.abs(found - value) <= 1e-12 * Math.abs(value) || found === value;
    assert.ok(close, `${key}: ${found}, expected ${value}`);
  }
}

for (const aggregator of ['sum', 'first', 'min', 'max', 'average', 'omit']) {
  test(`ClusterStore: random clusters with the aggregator '${aggregator}' are merged as prom-client merges their JSON`, async () => {
    const amount = fc.double({ min: 0, max: 1e6, noNaN: true });
    const use = fc.tuple(
      fc.nat({ max: 2 }),
      fc.nat({ max: 2 }),
      amount,
      fc.constantFrom('counter', 'gauge', 'histogram', 'summary'),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(use, { maxLength: 30, size: 'max' }), async uses => {
        const workers = [1, 2, 3].map(id => {
          const worker = makeWorker();
          const common = { labelNames: ['a'], aggregator, registers: [worker.registry] };
          const metrics = {
            counter: new Counter({ name: 'c', help: 'c', ...common }),
            gauge: new Gauge({ name: 'g', help: 'g', ...common }),
            histogram: new Histogram({ name: 'h', help: 'h', buckets: [10, 1000, 1e5], ...common }),
            summary: new Summary({ name: 's', help: 's', percentiles: [0.1, 0.5, 0.99], ...common }),
          };
          // prom-client adds up quantiles.
          if (aggregator === 'sum') worker.registry.removeSingleMetric('s');
          return { ...worker, id, metrics };
        });
        for (const [worker, a, value, type] of uses) {
          const { [type]: metric } = workers[worker].metrics;
          if (type === 'counter') metric.inc({ a }, value);
          else if (type === 'gauge') metric.set({ a }, value - 5e5);
          else metric.observe({ a }, value);
        }
        const json = await Promise.all(workers.map(({ registry }) => registry.getMetricsAsJSON()));
        const expected = samplesOf(await stock.AggregatorRegistry.aggregate(json).metrics());
        const store = cluster(workers);
        assertClose(samplesOf(textOf(store)), expected);
        // The same workers as if they ran prom-client.
        const ofStock = new ClusterStore();
        json.forEach((metrics, i) => ofStock.applyJson(i + 1, [metrics]));
        assertClose(samplesOf(textOf(ofStock)), expected);
      }),
      { numRuns: 25 },
    );
  });
}

test('ClusterStore: quantiles are computed again if a program changes the aggregator', () => {
  const workers = workersWith(Summary, 2, { percentiles: [0.5] });
  workers.forEach(({ metric }, i) => metric.observe(i === 0 ? 1 : 5));
  const store = cluster(workers);
  assert.strictEqual(valueOf(store, 'm', { quantile: 0.5 }), 3);
  for (const [aggregator, median] of [
    ['max', 5],
    ['min', 1],
    ['sum', 3],
  ]) {
    for (const { metric } of workers) metric.aggregator = aggregator;
    scrapeAll(workers, store);
    assert.strictEqual(valueOf(store, 'm', { quantile: 0.5 }), median);
  }
});

test('ClusterStore: a summary has the percentiles of all workers', () => {
  const workers = workersWith(Summary, 2, i => ({ percentiles: i === 0 ? [0.5] : [0.9, 0.5] }));
  for (const { metric, id } of workers) metric.observe(id);
  const store = cluster(workers);
  assert.deepStrictEqual(
    [...samplesOf(textOf(store)).keys()],
    [
      seriesKey('m', { quantile: 0.5 }),
      seriesKey('m', { quantile: 0.9 }),
      seriesKey('m_sum'),
      seriesKey('m_count'),
    ],
  );
});

/** A summary as a worker with prom-client sends it. */
const summary = (quantile, count) => ({
  name: 'm',
  help: 'm',
  type: 'summary',
  aggregator: 'sum',
  values: [
    { value: quantile, labels: { quantile: 0.5 } },
    { metricName: 'm_sum', value: quantile * count, labels: {} },
    { metricName: 'm_count', value: count, labels: {} },
  ],
});

test('ClusterStore: without digests, the quantiles of workers with prom-client are averaged, weighted by count', () => {
  const store = new ClusterStore();
  store.applyJson(1, [[summary(1, 30)]]);
  store.applyJson(2, [[summary(3, 10)]]);
  assert.strictEqual(valueOf(store, 'm', { quantile: 0.5 }), 1.5);
  assert.strictEqual(valueOf(store, 'm_count'), 40);
  store.applyJson(3, [[summary(0, 0)]]);
  assert.strictEqual(valueOf(store, 'm', { quantile: 0.5 }), 1.5);
  // Together with a worker of this library.
  const [worker] = workersWith(Summary, 1, { percentiles: [0.5] });
  for (let i = 0; i < 40; i++) worker.metric.observe(5.5);
  scrape(worker, store, 4);
  assert.strictEqual(valueOf(store, 'm', { quantile: 0.5 }), 3.5);
});

test('ClusterStore: a quantile that all workers with prom-client agree on is shown as it is', () => {
  for (const quantile of [0.1, -0.7, 1e308, -1e308]) {
    const store = new ClusterStore();
    for (const workerId of [1, 2]) {
      store.applyJson(workerId, [[summary(quantile, 3)]]);
      assert.strictEqual(valueOf(store, 'm', { quantile: 0.5 }), quantile);
    }
  }
});

test('ClusterStore: a histogram with unsorted or duplicate bounds counts each observation once, also merged with others and retired', () => {
  const lists = [[5, 1], [1, 1], [1, 5, 10], [20, 2], [2]];
  const workers = workersWith(Histogram, lists.length, i => ({ buckets: lists[i], labelNames: ['a'] }));
  for (const { metric } of workers)
    for (const a of ['x', 'y']) for (const value of [0.5, 3, 20]) metric.observe({ a }, value);
  const store = cluster(workers);
  const check = () => {
    for (const a of ['x', 'y']) {
      assert.strictEqual(valueOf(store, 'm_count', { a }), 15);
      assert.strictEqual(valueOf(store, 'm_sum', { a }), 117.5);
      assert.strictEqual(valueOf(store, 'm_bucket', { a, le: '+Inf' }), 15);
    }
  };
  check();
  const before = samplesOf(textOf(store));
  for (const { id } of workers) {
    store.retire(id);
    check();
  }
  for (const [key, value] of samplesOf(textOf(store))) assert.ok(value >= (before.get(key) ?? 0), key);
});

test('ClusterStore: of two metrics with one name and different types, that of the lowest worker id is shown', () => {
  for (const first of METRIC_TYPES)
    for (const second of METRIC_TYPES.filter(({ Type }) => Type !== first.Type)) {
      const workers = [first, second].map(({ make, record }, i) => {
        const worker = makeWorker();
        record(
          make({ name: 'm', help: `h${i}`, labelNames: ['a'], registers: [worker.registry] }),
          { a: 'x' },
          1,
        );
        return { ...worker, id: i + 1 };
      });
      const [of1, of2] = workers.map(worker => textOf(cluster([worker])));
      const store = cluster(workers, { retiredMaxAge: 0 });
      assert.strictEqual(textOf(store), of1);
      store.retire(1);
      for (let page = 0; page < 2; page++) assert.strictEqual(textOf(store), of2);
      store.retire(2);
      assert.strictEqual(textOf(store), second.lasts ? of2 : '\n');
      assert.strictEqual(textOf(store), '\n');
      assert.strictEqual(store.isEmpty, true);
    }
});

test('ClusterStore: two registries of one worker may have different metrics of one name', () => {
  const worker = makeWorker([new Registry(), new Registry()]);
  new Counter({ name: 'm', help: 'counter', registers: [worker.registries[0]] }).inc();
  new Histogram({ name: 'm', help: 'histogram', registers: [worker.registries[1]] }).observe(1);
  const store = new ClusterStore();
  scrape(worker, store, 1);
  assert.deepStrictEqual([...samplesOf(textOf(store))], [[seriesKey('m'), 1]]);
  assert.ok(store.conflicts > 0);
});

test('ClusterStore: metrics of one name in two registries of one worker are added', () => {
  const worker = makeWorker([new Registry(), new Registry()]);
  worker.registries.forEach((registry, i) => {
    const common = { name: 'm', help: 'm', labelNames: ['a'], registers: [registry] };
    const counter = new Counter(common);
    counter.inc({ a: 'both' }, i + 1);
    counter.inc({ a: i }, 10);
  });
  const store = new ClusterStore();
  for (let round = 0; round < 3; round++) {
    scrape(worker, store, 1);
    assert.strictEqual(valueOf(store, 'm', { a: 'both' }), 3);
    assert.strictEqual(valueOf(store, 'm', { a: 0 }), 10);
  }
});

test('ClusterStore: the page does not depend on the order of answers, and series are in the order of the lowest worker id', () => {
  const workers = workersWith(Gauge, 4, { labelNames: ['a'], aggregator: 'first' });
  workers.forEach(({ metric }, i) => [3, 1, 2].forEach(a => metric.set({ a: (a * (i + 1)) % 5 }, i)));
  const texts = [
    [0, 1, 2, 3],
    [3, 2, 1, 0],
    [1, 3, 0, 2],
  ].map(order => {
    const store = new ClusterStore();
    for (const i of order) scrape(workers[i], store, workers[i].id);
    return textOf(store);
  });
  assert.strictEqual(new Set(texts).size, 1);
  assert.deepStrictEqual(
    [...samplesOf(texts[0]).keys()].slice(0, 3),
    [3, 1, 2].map(a => seriesKey('m', { a })),
  );
});

test('ClusterStore: a family that changes its type and back is shown with its current type', () => {
  const worker = makeWorker();
  const store = new ClusterStore();
  const options = { name: 'm', help: 'm', labelNames: ['a'], registers: [] };
  const gauge = new Gauge(options);
  const histogram = new Histogram({ ...options, buckets: [1] });
  for (let round = 0; round < 6; round++) {
    const metric = round % 2 === 0 ? gauge : histogram;
    gauge.set({ a: round % 3 }, round);
    histogram.observe({ a: 'x' }, round);
    worker.registry.clear();
    worker.registry.registerMetric(metric);
    scrape(worker, store, 1);
    if (metric === gauge) assert.strictEqual(valueOf(store, 'm', { a: round % 3 }), round);
    else assert.strictEqual(valueOf(store, 'm_count', { a: 'x' }), round + 1);
  }
});

test('ClusterStore: only the metric whose table was compacted is sent again', async () => {
  const workers = workersWith(Counter, 2, { labelNames: ['a'] });
  const store = new ClusterStore();
  const registers = [workers[0].registry];
  const other = new Gauge({ name: 'other', help: 'x', labelNames: ['a'], registers });
  other.set({ a: 'is not sent again' }, 1);
  for (const { metric } of workers) for (let a = 0; a < 3000; a++) metric.inc({ a }, a);
  scrapeAll(workers, store);
  for (let a = 0; a < 2500; a++) workers[0].metric.remove({ a });
  workers[0].metric.inc({ a: 'new' }, 3);
  await workers[0].source.prepare(1000);
  const snapshot = scrape(workers[0], store, 1);
  assert.ok(!snapshot.includes('is not sent again'));
  assert.ok(scrape(workers[0], store, 1).length < 500 * 8 + 500, 'label sets are sent once');
  const samples = samplesOf(textOf(store));
  assert.strictEqual(samples.size, 3002);
  assert.strictEqual(samples.get(seriesKey('other', { a: 'is not sent again' })), 1);
  assert.strictEqual(samples.get(seriesKey('m', { a: 2600 })), 5200);
  assert.strictEqual(samples.get(seriesKey('m', { a: 100 })), 100);
  assert.strictEqual(samples.get(seriesKey('m', { a: 'new' })), 3);
});

test('ClusterStore: of the exemplars of several workers the newest is shown, in the bucket of its bound', t => {
  const [older, newer] = [1, 2].map(id => {
    const worker = makeWorker([new Registry(Registry.OPENMETRICS_CONTENT_TYPE)]);
    const common = { help: 'm', labelNames: ['a'], enableExemplars: true, registers: [worker.registry] };
    const counter = new Counter({ name: 'c', ...common });
    const histogram = new Histogram({ name: 'h', buckets: id === 1 ? [1, 5] : [2, 5], ...common });
    return { ...worker, id, counter, histogram };
  });
  t.mock.timers.enable({ apis: ['Date'] });
  for (const [worker, time] of [
    [newer, START + 1000],
    [older, START],
  ]) {
    t.mock.timers.setTime(time);
    worker.counter.inc({ labels: { a: 'x' }, exemplarLabels: { of: worker.id } });
    for (const value of [0.5, 1.5, 3, 9])
      worker.histogram.observe({ labels: { a: 'x' }, value, exemplarLabels: { of: worker.id, value } });
  }
  const store = cluster([older, newer]);
  const text = textOf(store, { openMetrics: true });
  const exemplars = text.split('\n').flatMap(line => {
    const match = /^(\S+)\{(?:le="([^"]+)",)?a="x"\} \d+ # \{(.*)\} (\S+) (\S+)$/.exec(line);
    return match === null ? [] : [match.slice(1)];
  });
  assert.deepStrictEqual(exemplars, [
    ['c_total', undefined, 'of="2"', '1', String(START / 1000 + 1)],
    ['h_bucket', '1', 'of="1",value="0.5"', '0.5', String(START / 1000)],
    ['h_bucket', '2', 'of="2",value="1.5"', '1.5', String(START / 1000 + 1)],
    ['h_bucket', '5', 'of="2",value="3"', '3', String(START / 1000 + 1)],
    ['h_bucket', '+Inf', 'of="2",value="9"', '9', String(START / 1000 + 1)],
  ]);
  // Prometheus text has no exemplars.
  assert.ok(!textOf(store).includes('of='));
});

test('ClusterStore: a new store refuses columns whose log begins before what came with them, and accepts the whole log', () => {
  const [worker] = workersWith(Counter, 1, { labelNames: ['a'] });
  worker.metric.inc({ a: 'x' });
  const store = cluster([worker]);
  worker.metric.inc({ a: 'y' });
  const continued = bytesOf(worker.source.captureWithLog(1, store.worker(1)?.position));
  const fresh = new ClusterStore();
  assert.throws(() => fresh.apply(1, continued), { code: 'log' });
  assert.strictEqual(fresh.worker(1)?.position, undefined);
  scrape(worker, fresh, 1);
  assert.strictEqual(samplesOf(textOf(fresh)).size, 2);
});

test('ClusterStore: the missing part of a log is read where the columns were found, and no other', () => {
  const [worker] = workersWith(Counter, 1, { labelNames: ['a'] });
  const { log } = worker.source;
  const store = new ClusterStore();
  const ranges = [];
  const readLog = (name, from, to) => {
    assert.strictEqual(name, log.name);
    ranges.push(from, to);
    return joined(log.bytesFrom(0)).subarray(from, to);
  };
  for (const a of ['x', 'y', 'y']) {
    worker.metric.inc({ a });
    store.apply(1, bytesOf(worker.source.capture(1)), readLog);
  }
  assert.deepStrictEqual([...samplesOf(textOf(store)).values()], [1, 2]);
  assert.strictEqual(ranges.length, 4);
  assert.deepStrictEqual([ranges[0], ranges[1], ranges[3]], [0, ranges[2], log.length]);
});

test('ClusterStore: label values with unpaired surrogates are one series, as in the page of one process', async () => {
  const [worker] = workersWith(Counter, 1, { labelNames: ['a', 'b'], help: 'm\udc00' });
  const { metric, registry } = worker;
  const values = ['\ud83d', '\ude00', '\ufffd', 'x\ud800', '\ude00x', 'x\udbff'];
  for (const a of values) {
    metric.inc({ a, b: '\ud83d\ude00' });
    metric.labels(a, '').inc();
    metric.labels({ a, b: '' }).inc();
  }
  const text = await registry.metrics();
  assert.strictEqual(Buffer.from(text).toString(), text);
  const samples = samplesOf(text);
  assert.strictEqual(samples.get(seriesKey('m', { a: '\ufffd', b: '\ud83d\ude00' })), 3);
  assert.strictEqual(samples.get(seriesKey('m', { a: 'x\ufffd', b: '' })), 4);
  assert.strictEqual(samples.size, 6);
  assert.strictEqual(textOf(cluster([worker])), text);
  metric.remove('x\udfff', '');
  assert.strictEqual(samplesOf(await registry.metrics()).size, 5);
});

test('ClusterStore: label sets with the same hash are series of their own', () => {
  const kept = MULTIPLIERS.splice(0, 2, 1, 1);
  try {
    const rows = new FamilyRows();
    const rowOf = (...values) => {
      rows.begin();
      values.forEach((value, i) => rows.put(rows.idOf(rows.labelNumber(`l${i}`), value)));
      return rows.row(() => '');
    };
    const found = () => ['x', 'y', 'z'].flatMap(a => ['x', 'y', 'z'].map(b => rowOf(a, b)));
    for (let i = 0; i < 2; i++) assert.deepStrictEqual(found(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  } finally {
    MULTIPLIERS.splice(0, 2, ...kept);
  }
});

test('ClusterStore: a series is looked up once; later scrapes only move numbers', t => {
  const workers = workersWith(Counter, 3, { labelNames: ['a'] });
  for (const { metric } of workers) for (let a = 0; a < 100; a++) metric.inc({ a });
  const store = cluster(workers);
  const lookUp = t.mock.method(FamilyRows.prototype, 'row');
  textOf(store);
  assert.strictEqual(lookUp.mock.callCount(), 300);
  for (let round = 0; round < 3; round++) {
    for (const { metric } of workers) metric.inc({ a: 5 });
    lookUp.mock.resetCalls();
    scrapeAll(workers, store);
    assert.strictEqual(valueOf(store, 'm', { a: 5 }), 3 * (round + 2));
    assert.strictEqual(lookUp.mock.callCount(), 0);
  }
  workers[0].metric.inc({ a: 'new' });
  lookUp.mock.resetCalls();
  scrape(workers[0], store, 1);
  textOf(store);
  assert.strictEqual(lookUp.mock.callCount(), 1);
});

test('ClusterStore: exemplars are removed with their series, their worker and their bucket', async () => {
  const workers = [1, 2].map(id => {
    const worker = makeWorker([new Registry(Registry.OPENMETRICS_CONTENT_TYPE)]);
    const counter = new Counter({
      name: 'c',
      help: 'c',
      labelNames: ['a'],
      enableExemplars: true,
      registers: [worker.registry],
    });
    return { ...worker, id, counter };
  });
  const store = new ClusterStore();
  const scrapeExemplars = async () => {
    for (const worker of workers) {
      if (store.isClosed(worker.id)) continue;
      await worker.source.prepare(1000);
      scrape(worker, store, worker.id);
    }
    return textOf(store, { openMetrics: true })
      .split('\n')
      .flatMap(line => /a="(\w)"} (\d+)(?: # \{of="(.*)"\})?/.exec(line)?.slice(1).join(' ') ?? []);
  };
  const [first, second] = workers;
  first.counter.inc({ labels: { a: 'x' }, exemplarLabels: { of: 'first' } });
  second.counter.inc({ labels: { a: 'x' } });
  second.counter.inc({ labels: { a: 'y' }, exemplarLabels: { of: 'second' } });
  assert.deepStrictEqual(await scrapeExemplars(), ['x 2 first', 'y 1 second']);
  // The series was removed in one worker. The other worker still has it, without the exemplar of the first.
  first.counter.remove({ a: 'x' });
  assert.deepStrictEqual(await scrapeExemplars(), ['x 1 ', 'y 1 second']);
  first.counter.inc({ labels: { a: 'x' } });
  assert.deepStrictEqual(await scrapeExemplars(), ['x 2 ', 'y 1 second']);
  second.counter.inc({ labels: { a: 'y' } });
  assert.deepStrictEqual(await scrapeExemplars(), ['x 2 ', 'y 2 second']);
  second.counter.reset();
  second.counter.inc({ labels: { a: 'y' } });
  assert.deepStrictEqual(await scrapeExemplars(), ['x 1 ', 'y 1 ']);
  second.counter.inc({ labels: { a: 'y' }, exemplarLabels: { of: 'again' } });
  assert.deepStrictEqual(await scrapeExemplars(), ['x 1 ', 'y 2 again']);
  store.retire(2);
  assert.deepStrictEqual(await scrapeExemplars(), ['x 1 ', 'y 2 ']);
});

test('ClusterStore: totals of dead workers are dropped by labels, of one metric or of all', () => {
  const workers = workersWith(Counter, 3, { labelNames: ['tenant', 'path'] });
  for (const { metric, registry } of workers) {
    registry.setDefaultLabels({ zone: 'x' });
    for (const tenant of ['a', 'b']) for (const path of ['x', 'y']) metric.inc({ tenant, path }, 2);
    metric.inc({ path: 'x' }, 2);
    const config = { name: 'took', help: 'h', labelNames: ['tenant'], registers: [registry] };
    for (const Metric of [Histogram, Summary]) {
      const made = new Metric({ ...config, name: `${config.name}_${Metric.name}` });
      for (const tenant of ['a', 'b']) made.observe({ tenant }, 1);
    }
  }
  const store = cluster(workers);
  const value = (tenant, path) => valueOf(store, 'm', { tenant, path, zone: 'x' });
  for (const id of [1, 2]) store.retire(id);
  assert.strictEqual(value('a', 'x'), 6);
  // The share of the living worker stays.
  assert.strictEqual(store.removeRetired([['tenant', 'a']], 'm'), 2);
  assert.strictEqual(store.removeRetired([['tenant', 'a']], 'm'), 0);
  assert.deepStrictEqual([value('a', 'x'), value('a', 'y'), value('b', 'x')], [2, 2, 6]);
  assert.strictEqual(valueOf(store, 'took_Summary_count', { tenant: 'a', zone: 'x' }), 3);
  assert.strictEqual(store.removeRetired([['tenant', 'a']]), 2);
  for (const type of ['Summary', 'Histogram']) {
    assert.strictEqual(valueOf(store, `took_${type}_count`, { tenant: 'a', zone: 'x' }), 1);
    assert.strictEqual(valueOf(store, `took_${type}_count`, { tenant: 'b', zone: 'x' }), 3);
  }
  // What dies later is added anew.
  store.retire(3);
  assert.deepStrictEqual([value('a', 'x'), value('b', 'x')], [2, 6]);
  assert.strictEqual(
    store.removeRetired([
      ['tenant', undefined],
      ['path', 'x'],
    ]),
    1,
  );
  assert.strictEqual(store.removeRetired([['zone', 'other']]), 0);
  assert.strictEqual(store.removeRetired([['zone', 'x']], 'm'), 4);
  assert.strictEqual(value('b', 'y'), undefined);
  assert.strictEqual(store.removeRetired([]), 4);
  assert.strictEqual(textOf(store).trim(), '');
});

test('counts of failures do not fall when workers die, however many metrics fail', () => {
  const store = new ClusterStore();
  for (const [workerId, count] of [
    [1, 1],
    [2, 10],
    [3, 100],
  ]) {
    store.applyJson(workerId, []);
    store.worker(workerId).failures = Array.from({ length: 600 }, (_, i) => [
      'collect',
      `m${workerId}_${i}`,
      count,
    ]);
  }
  const countsOf = () => new Map(store.state().failures.map(({ metric, count }) => [metric, count]));
  const before = countsOf();
  assert.equal(before.get(''), 200 * 10 + 600 * 100);
  for (const workerId of [3, 1, 2]) {
    store.retire(workerId);
    assert.deepEqual(countsOf(), before);
  }
});

test('failures of the store itself are shown by name, however many metrics of workers fail, and none that are no more', () => {
  const store = new ClusterStore();
  store.countFailure('merge', 'own', 'a reason');
  store.applyJson(1, []);
  const worker = store.worker(1);
  const countsOf = () => new Map(store.state().failures.map(({ metric, count }) => [metric, count]));
  worker.failures = [['max-series', 'm', 5]];
  assert.deepEqual(Object.fromEntries(countsOf()), { own: 1, m: 5 });
  worker.failures = [];
  assert.deepEqual(Object.fromEntries(countsOf()), { own: 1 });
  worker.failures = Array.from({ length: 1000 }, (_, i) => ['collect', `m${i}`, 1]);
  const counts = countsOf();
  assert.equal(counts.get('own'), 1);
  const shown = [...counts.values()].reduce((sum, count) => sum + count, 0);
  assert.equal(shown, 1001);
});

test('ClusterStore: a snapshot with thousands of additions to a large metric copies its label sets once', t => {
  const [ROWS, ADDITIONS] = [5000, 500];
  const worker = makeWorker();
  const counter = new Counter({ name: 'm', help: 'm', labelNames: ['a'], registers: [worker.registry] });
  for (let i = 0; i < ROWS; i++) counter.inc({ a: `${i}` });
  const store = new ClusterStore();
  scrape(worker, store, 1);
  const known = store.worker(1).position;
  // A worker that writes checkpoints, and that nobody scrapes: each has a label set more.
  for (let i = 0; i < ADDITIONS; i++) {
    counter.inc({ a: `added ${i}` });
    worker.source.captureWithLog(1, known);
  }
  counter.inc({ a: 'added 0' });
  const snapshot = bytesOf(worker.source.captureWithLog(1, known));
  let copied = 0;
  const { set } = Int32Array.prototype;
  t.mock.method(Object.getPrototypeOf(Int32Array.prototype), 'set', function (source, ...rest) {
    copied += source.length;
    return set.call(this, source, ...rest);
  });
  store.apply(1, snapshot);
  t.mock.restoreAll();
  assert.ok(copied < 10 * (ROWS + ADDITIONS), `${copied} integers were copied`);
  assert.equal(valueOf(store, 'm', { a: 'added 0' }), 2);
  assert.equal(valueOf(store, 'm', { a: `added ${ADDITIONS - 1}` }), 1);
  assert.equal(valueOf(store, 'm', { a: `${ROWS - 1}` }), 1);
  assert.equal(store.worker(1).sources[0].rowCount, ROWS + ADDITIONS);
});

test('ClusterStore: a series began to count when the oldest number in its sum did, of a live, dead or unresponsive worker', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
  const workers = [1, 2, 3].map(id => {
    const worker = makeWorker();
    for (const Type of [Counter, Histogram, Summary, Gauge]) {
      const options = { name: Type.name, help: 'h', labelNames: ['a'], registers: [worker.registry] };
      const metric = new Type(options);
      for (const a of ['all', `own${id}`]) (metric.inc ?? metric.observe).call(metric, { a }, 0.1);
    }
    t.mock.timers.tick(1000);
    // As in a process of its own, in which somebody has read it.
    startsAreRead();
    return { ...worker, id };
  });
  let store = cluster(workers);
  const startsIn = type => {
    const { view } = runThrough(store.merge(new Set())).find(family => family.view.name === type);
    return Object.fromEntries(
      Array.from(view.rows(), row => [view.labels(row, false)[0][1], view.starts.startAt(row)]),
    );
  };
  const check = (expected, types = ['Counter', 'Histogram', 'Summary']) => {
    for (const type of types) assert.deepStrictEqual(startsIn(type), expected, type);
  };
  check({ all: 1000, own1: 1000, own2: 1001, own3: 1002 });
  check({ all: 0, own1: 0, own2: 0, own3: 0 }, ['Gauge']);
  for (const id of [2, 1]) store.retire(id);
  check({ all: 1000, own1: 1000, own2: 1001, own3: 1002 });
  const totals = copyOf(store.encodeRetired());
  store = new ClusterStore();
  store.restoreRetired(totals);
  check({ all: 1000, own1: 1000, own2: 1001 });
  scrapeAll([workers[2]], store);
  check({ all: 1000, own1: 1000, own2: 1001, own3: 1002 });
  store.removeRetired([['a', 'all']]);
  check({ all: 1002, own1: 1000, own2: 1001, own3: 1002 });
  // It does not say when it began.
  const values = [{ labels: { a: 'all' }, value: 1 }];
  store.applyJson(4, [[{ name: 'Counter', help: 'h', type: 'counter', values }]]);
  check({ all: 0, own1: 1000, own2: 1001, own3: 1002 }, ['Counter']);
  store.retire(4);
  check({ all: 0, own1: 1000, own2: 1001, own3: 1002 }, ['Counter']);
});
