'use strict';

// The protobuf format, decoded by protobufjs. What its pages have in common with text is in
// test/metric/every-type.test.js.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const client = require('../..');
const { PROTOBUF } = require('../../lib/exposition/formats');
const { scrapePages } = require('../../lib/registry/scrape');
const { familiesOf, protobufSamples } = require('../fixtures/protobuf-page');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const fc = require('../fixtures/seeded-fast-check');
const { samplesOf } = require('../fixtures/unit-scrape');

const { AggregatorRegistry, Counter, Gauge, Histogram, Registry, Summary } = client;

const CONTENT_TYPE = Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE;
const NO_BUCKETS = { indices: [], counts: [] };

/** @returns a registry that writes the protobuf format, and what to create metrics in it with */
function makeRegistry() {
  const registry = new Registry(CONTENT_TYPE);
  return { registry, options: { help: 'h', registers: [registry] } };
}

/** A family of rows with these native buckets, as PROTOBUF writes it. */
function nativeFamily(rows, others = {}) {
  const family = {
    ...{ name: 'n', help: 'h', type: 'histogram', layout: { kind: 'histogram', marks: [] } },
    rows: () => rows.keys(),
    pageOf: () => [77, 0.5],
    offsetOf: () => 0,
    labels: row => [['row', String(row)]],
    bucketsAt: row => ({
      ...{ schema: 3, zeroThreshold: 2 ** -128, zeroCount: 0, positive: NO_BUCKETS, negative: NO_BUCKETS },
      ...rows[row],
    }),
    ...others,
  };
  const [{ metric }] = familiesOf(Buffer.concat([...PROTOBUF.write(family)]));
  return metric.map(({ histogram }) => histogram);
}

/** The buckets that a reader finds in spans and deltas, by index. */
function bucketsOf(spans = [], deltas = []) {
  const buckets = [];
  let index = 0;
  let count = 0;
  let next = 0;
  for (const { offset, length } of spans) {
    index += offset;
    for (let i = 0; i < length; i++) buckets.push([index++, (count += deltas[next++])]);
  }
  assert.equal(next, deltas.length);
  return buckets;
}

describe('the protobuf format', () => {
  it('has types, values that are zero, and the seconds of exemplars and starts; no family without samples', async () => {
    const { registry, options } = makeRegistry();
    const counter = new Counter({ name: 'c_total', enableExemplars: true, labelNames: ['a'], ...options });
    new Gauge({ name: 'g', ...options });
    new Gauge({ name: 'empty', labelNames: ['a'], ...options });
    const histogram = new Histogram({ name: 'h', buckets: [1], enableExemplars: true, ...options });
    const summary = new Summary({ name: 's', percentiles: [0.5], ...options });
    counter.inc({ labels: { a: 'x' }, value: 2, exemplarLabels: { trace: '1' } });
    histogram.observe({ value: 3, exemplarLabels: { trace: '2' } });
    summary.observe(4);
    const families = familiesOf(await registry.metrics());
    const shown = families.map(({ name, help, type }) => [name, help, type]);
    assert.deepEqual(shown, [
      ['c_total', 'h', 'COUNTER'],
      ['g', 'h', 'GAUGE'],
      ['h', 'h', 'HISTOGRAM'],
      ['s', 'h', 'SUMMARY'],
    ]);
    const [[c], [g], [h], [s]] = families.map(({ metric }) => metric);
    const times = [c.counter.exemplar, h.histogram.bucket[1].exemplar].map(({ timestamp }) => timestamp);
    const starts = [c.counter.start, h.histogram.start, s.summary.start];
    for (const seconds of [...times, ...starts]) assert.ok(Math.abs(seconds - Date.now() / 1000) < 60);
    const [timestamp, start] = [times[0], starts[0]];
    assert.deepEqual(c, {
      labels: { a: 'x' },
      counter: { value: 2, exemplar: { labels: { trace: '1' }, value: 2, timestamp }, start },
    });
    assert.deepEqual(g, { gauge: { value: 0 } });
    assert.deepEqual(h.histogram.bucket, [
      { count: 0, bound: 1 },
      {
        count: 1,
        bound: Infinity,
        exemplar: { labels: { trace: '2' }, value: 3, timestamp: h.histogram.bucket[1].exemplar.timestamp },
      },
    ]);
    assert.deepEqual([s.summary.count, s.summary.sum], [1, 4]);
  });

  it('is valid UTF-8, whatever texts there are, and has each label once', async () => {
    const { registry, options } = makeRegistry();
    registry.setDefaultLabels({ le: '1', quantile: '1', app: '\udc00' });
    new Gauge({ name: 'g', labelNames: ['a'], ...options, help: 'h\ud800é' }).set({ a: '\ud800"\n' }, 1);
    new Histogram({ name: 'h', ...options }).observe(1);
    new Summary({ name: 's', ...options }).observe(1);
    const [g, h, s] = familiesOf(await registry.metrics());
    assert.equal(g.help, 'h\ufffdé');
    assert.deepEqual(g.metric[0].labels, { a: '\ufffd"\n', le: '1', quantile: '1', app: '\ufffd' });
    assert.deepEqual(h.metric[0].labels, { quantile: '1', app: '\ufffd' });
    assert.deepEqual(s.metric[0].labels, { le: '1', app: '\ufffd' });
  });

  it('has a family for each name of the samples of a custom metric object, untyped unless it has a type for them', async () => {
    for (const [type, expected] of [
      ['counter', 'COUNTER'],
      ['gauge', 'GAUGE'],
      ['untyped', 'UNTYPED'],
      ['histogram', 'UNTYPED'],
      ['Summary', 'UNTYPED'],
      [undefined, 'UNTYPED'],
      ['__proto__', 'UNTYPED'],
      ['toString', 'UNTYPED'],
    ]) {
      const { registry } = makeRegistry();
      const values = [
        { value: 1, labels: { le: 1 }, metricName: 'x_bucket' },
        { value: '2', metricName: 'x_sum' },
        { value: 3, labels: { le: 2 }, metricName: 'x_bucket', exemplar: { value: 5, timestamp: 1e300 } },
        { value: {}, exemplar: 'none' },
      ];
      registry.registerMetric({ name: 'x', get: async () => ({ name: 'x', help: 'h', type, values }) });
      const families = familiesOf(await registry.metrics());
      assert.deepEqual(
        families.map(family => [family.name, family.type, family.metric.map(({ labels }) => labels?.le)]),
        [
          ['x_bucket', expected, ['1', '2']],
          ['x_sum', expected, [undefined]],
          ['x', expected, [undefined]],
        ],
      );
      const numbers = families.flatMap(({ metric }) => metric.map(m => Object.values(m).at(-1).value));
      assert.deepEqual(numbers, [1, 3, 2, NaN]);
    }
  });

  it('has counts that are no whole numbers beside the integers below them', async () => {
    const values = [1, 2].map(count => [
      { metricName: 'h_bucket', labels: { le: 1 }, value: count },
      { metricName: 'h_bucket', labels: { le: '+Inf' }, value: count },
      { metricName: 'h_sum', labels: {}, value: count },
      { metricName: 'h_count', labels: {}, value: count },
    ]);
    const lists = values.map(list => [
      { name: 'h', help: 'h', type: 'histogram', aggregator: 'average', values: list },
    ]);
    const aggregated = AggregatorRegistry.aggregate(lists, CONTENT_TYPE);
    const bucket = familiesOf(await aggregated.metrics()).find(({ name }) => name === 'h_bucket');
    const shown = bucket.metric.map(({ untyped }) => untyped.value);
    assert.deepEqual(shown, [1.5, 1.5]);
    const [histogram] = nativeFamily([{}], { bucketsAt: undefined, pageOf: () => [2.5, 1] });
    assert.deepEqual([histogram.count, histogram.countFloat], [2, 2.5]);
    for (const count of [-1, NaN, Infinity, 2 ** 64]) {
      const [odd] = nativeFamily([{}], { bucketsAt: undefined, pageOf: () => [count, 1] });
      assert.deepEqual([odd.count, odd.countFloat], [0, count]);
    }
  });

  it('property: has the samples that text has, of metrics of all types with any text and any number', async () => {
    const label = fc.string({ unit: fc.constantFrom('"', '\\', '\n', 'ü', '😀', ',', '=', '}', 'n') });
    const value = fc.double({ min: 0, noNaN: true, noDefaultInfinity: true });
    const property = fc.asyncProperty(fc.array(fc.tuple(label, value), { maxLength: 20 }), async recorded => {
      const registry = new Registry();
      for (const [i, { make, record }] of METRIC_TYPES.entries()) {
        const metric = make({ name: `m${i}`, help: 'h', labelNames: ['a'], registers: [registry] });
        for (const [a, number] of recorded) record(metric, { a }, number);
      }
      const formats = ['text', 'protobuf'].map(format => ({ format, gzip: false }));
      const [text, page] = await scrapePages([registry], formats);
      assert.deepEqual(protobufSamples(page), samplesOf(String(text)));
    });
    await fc.assert(property, { numRuns: 60 });
  });

  it('has the text of a single metric as text', async () => {
    const { registry, options } = makeRegistry();
    new Counter({ name: 'c_total', ...options }).inc();
    assert.equal(
      await registry.getSingleMetricAsString('c_total'),
      '# HELP c_total h\n# TYPE c_total counter\nc_total 1',
    );
    assert.deepEqual(await registry.metricsBytes(), await registry.metrics());
    assert.deepEqual(await new Registry(CONTENT_TYPE).metrics(), Buffer.alloc(0));
  });
});

describe('native histograms in the protobuf format', () => {
  it('a gap of up to two empty buckets is filled, from three on another span begins', () => {
    for (const [indices, spans] of [
      [[5], [[5, 1]]],
      [[-3, -2], [[-3, 2]]],
      [[0, 2, 5], [[0, 6]]],
      [
        [0, 4],
        [
          [0, 1],
          [3, 1],
        ],
      ],
      [
        [-200, -197, 100, 102, 104, 4000],
        [
          [-200, 4],
          [296, 5],
          [3895, 1],
        ],
      ],
    ]) {
      const counts = indices.map((_, i) => 2 ** 40 / (i + 1) ** 2).map(Math.round);
      const side = { indices, counts };
      const [positive, negative] = nativeFamily([{ positive: side }, { negative: side }]);
      const written = positive.positiveSpan.map(({ offset, length }) => [offset, length]);
      assert.deepEqual(written, spans);
      for (const buckets of [
        bucketsOf(positive.positiveSpan, positive.positiveDelta),
        bucketsOf(negative.negativeSpan, negative.negativeDelta),
      ]) {
        const populated = buckets.filter(([, count]) => count > 0);
        const expected = indices.map((index, i) => [index, counts[i]]);
        assert.deepEqual(populated, expected);
      }
    }
  });

  it('the count is that of the buckets, whatever the columns have', () => {
    const positive = { indices: [1, 9], counts: [2, 3] };
    const [histogram] = nativeFamily([{ schema: -4, zeroCount: 7, positive, negative: positive }]);
    assert.deepEqual([histogram.count, histogram.zeroCount, histogram.sum], [17, 7, 0.5]);
    assert.equal(histogram.schema, -4);
  });

  it('a row without observations is known by its zero threshold, even if that is 0', () => {
    const [usual, zero] = nativeFamily([{}, { zeroThreshold: 0 }]);
    assert.deepEqual(usual, { count: 0, sum: 0.5, schema: 3, zeroThreshold: 2 ** -128, zeroCount: 0 });
    assert.ok(zero.zeroThreshold > 0);
  });

  it('exemplars of native buckets are beside those of classic buckets, and need no timestamp to be readable', () => {
    const exemplar = { labelSet: { trace: 'a' }, value: 3, timestamp: 1.5 };
    const [histogram] = nativeFamily([{}], {
      nativeExemplarsAt: () => [exemplar, { ...exemplar, timestamp: undefined }],
    });
    assert.deepEqual(histogram.exemplars, [
      { labels: { trace: 'a' }, value: 3, timestamp: 1.5 },
      { labels: { trace: 'a' }, value: 3 },
    ]);
  });

  it('a row that is native only has no classic bucket, not even one with an exemplar', () => {
    const exemplar = { labelSet: { trace: 'a' }, value: 3, timestamp: 1.5 };
    for (const [marks, bounds] of [
      [[], undefined],
      [[1], [1, Infinity]],
    ]) {
      const layout = { kind: 'histogram', marks };
      const pageOf = () => [...marks, 1, 3];
      const [histogram] = nativeFamily([{}], { layout, pageOf, exemplarAt: () => exemplar });
      assert.deepEqual(
        histogram.bucket?.map(({ bound }) => bound),
        bounds,
      );
    }
  });

  it('a large family is written in small steps, each of up to a piece', () => {
    const indices = Array.from({ length: 64 }, (_, i) => i);
    const counts = indices.map(i => (i * 7919) % 1000);
    let read = 0;
    const most = { bytes: 0, rows: 0 };
    const family = {
      ...{ name: 'n', help: 'h', type: 'histogram', layout: { kind: 'histogram', marks: [] } },
      rows: () => Array(5000).keys(),
      pageOf: () => [0, 0],
      offsetOf: () => 0,
      labels: () => [['a', 'b']],
      bucketsAt: () => {
        read++;
        return {
          schema: 3,
          zeroThreshold: 1,
          zeroCount: 0,
          positive: { indices, counts },
          negative: NO_BUCKETS,
        };
      },
    };
    let before = 0;
    for (const { length } of PROTOBUF.write(family)) {
      most.bytes = Math.max(most.bytes, length);
      most.rows = Math.max(most.rows, read - before);
      before = read;
    }
    assert.equal(read, 5000);
    assert.ok(most.bytes < 20_000 && most.rows < 200, `${most.bytes} bytes, ${most.rows} rows`);
  });
});
