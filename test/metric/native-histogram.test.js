'use strict';

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { setTimeout: delay } = require('node:timers/promises');
const { Histogram, Registry } = require('../../index');
const { liveFamily, capturedFamily } = require('../../lib/exposition/live-family');
const { viewOf } = require('../../lib/registry/metric-view');
const { reference } = require('../fixtures/native-reference');

const FACTOR = 'nativeHistogramBucketFactor';

/** @param {object} [options] */
function makeHistogram(options) {
  const registers = [new Registry(Registry.OPENMETRICS_CONTENT_TYPE)];
  return new Histogram({ name: 'm', help: 'h', registers, labelNames: ['a'], [FACTOR]: 1.1, ...options });
}

/** @param {Histogram} histogram */
const jsonOf = async histogram => /** @type {any} */ (await histogram.get()).nativeHistograms;

it('the factor chooses the schema, as in client_golang', () => {
  const schemaOf = (/** @type {number} */ factor) =>
    viewOf(makeHistogram({ [FACTOR]: factor })).buckets.schema;
  assert.equal(reference.factors.length, 47);
  for (const { factor, schema } of reference.factors) assert.equal(schemaOf(factor), schema, `${factor}`);
  assert.deepEqual([1.000001, 1e300, Infinity].map(schemaOf), [8, -4, -4]);
});

it('an option that is not valid is a RangeError that names it, and null or undefined its default', () => {
  const others = ['ZeroThreshold', 'MaxBucketNumber', 'MaxExemplars', 'ExemplarTTL'];
  /** @type {Record<string, unknown[]>} */
  const invalid = {
    [FACTOR]: [1, 0, -2, NaN, '1.1', true, 2n],
    nativeHistogramZeroThreshold: [NaN, Infinity, '1'],
    nativeHistogramMaxBucketNumber: [-1, 1.5, NaN, '160'],
    nativeHistogramMaxExemplars: [-1, 1.5, 101, Infinity, '1'],
    nativeHistogramExemplarTTL: [-1, NaN, '1'],
    aggregator: ['average', 'min', 'max'],
  };
  assert.deepEqual(
    Object.keys(invalid).slice(1, -1),
    others.map(name => `nativeHistogram${name}`),
  );
  for (const [name, values] of Object.entries(invalid)) {
    for (const value of values)
      assert.throws(() => makeHistogram({ [name]: value }), {
        name: 'RangeError',
        message: new RegExp(name),
      });
  }
  for (const value of [null, undefined]) {
    const options = Object.fromEntries(others.map(name => [`nativeHistogram${name}`, value]));
    const { schema, zeroThreshold, maxBuckets } = viewOf(makeHistogram(options)).buckets;
    assert.deepEqual([schema, zeroThreshold, maxBuckets], [3, 2 ** -128, 160]);
    // Without the factor it is no native histogram, and the other options mean nothing.
    const classic = makeHistogram({ [FACTOR]: value, nativeHistogramMaxExemplars: 'x', aggregator: 'min' });
    assert.equal(viewOf(classic).buckets, undefined);
  }
  const without = makeHistogram({ nativeHistogramZeroThreshold: -1, nativeHistogramMaxBucketNumber: 0 });
  assert.deepEqual(
    [viewOf(without).buckets.zeroThreshold, viewOf(without).buckets.maxBuckets],
    [0, Infinity],
  );
});

it('each way to record counts in both kinds of buckets', async () => {
  const histogram = makeHistogram({ buckets: [5], enableExemplars: true });
  histogram.observe({ a: 'x' }, 3);
  histogram.observe({ labels: { a: 'x' }, value: 3 });
  const child = histogram.labels('x');
  child.observe(3);
  histogram.labels({ a: 'x' }).observe(-7);
  histogram.startTimer({ a: 'y' })();
  child.startTimer()({ a: 'y' });
  histogram.time({ a: 'y' }, () => {});
  await histogram.time({ a: 'y' }, () => delay(0));
  const [x, y] = await jsonOf(histogram);
  assert.deepEqual([x.labels, x.count, x.sum], [{ a: 'x' }, 4, 2]);
  assert.deepEqual([y.labels, y.count, x.zeroCount], [{ a: 'y' }, 4, 0]);
  assert.deepEqual(histogram.value({ a: 'x' }), { count: 4, sum: 2 });
  assert.throws(() => child.observe(NaN), TypeError);
  assert.throws(() => histogram.observe({ a: 'x' }, Infinity), TypeError);
  assert.deepEqual(histogram.value({ a: 'x' }), { count: 4, sum: 2 });
  assert.equal((await jsonOf(histogram))[0].count, 4);
});

it('buckets start from nothing after zero(), remove() and reset(), for kept children, too', async () => {
  for (const labelNames of [['a'], []]) {
    const histogram = makeHistogram({ labelNames, buckets: [] });
    const labels = labelNames.length === 0 ? {} : { a: 'x' };
    const child = labelNames.length === 0 ? histogram : histogram.labels(labels);
    const steps = [() => histogram.zero(labels), () => histogram.remove(labels), () => histogram.reset()];
    for (const step of [() => {}, ...steps]) {
      step();
      child.observe(4);
      const [{ count, positiveSpans, positiveDeltas }] = await jsonOf(histogram);
      assert.deepEqual([count, positiveSpans, positiveDeltas], [1, [{ offset: 16, length: 1 }], [1]]);
    }
    histogram.zero(labels);
    assert.equal((await jsonOf(histogram))[0].count, 0);
  }
});

it('buckets and exemplars stay with their label sets when the rows get new numbers', async () => {
  const histogram = makeHistogram({ enableExemplars: true });
  for (let i = 0; i < 2048; i++)
    histogram.observe({ labels: { a: `${i}` }, value: i + 1, exemplarLabels: { id: `${i}` } });
  for (let i = 0; i < 2048; i++) if (i % 3 !== 1) histogram.remove({ a: `${i}` });
  await histogram.registers[0].metrics();
  assert.equal(viewOf(histogram).table.rowCount, 683);
  const series = await jsonOf(histogram);
  const shown = series.map(({ labels, count, sum, exemplars: [{ labelSet }] }) => [
    labels.a,
    count,
    sum,
    labelSet.id,
  ]);
  const expected = Array.from({ length: 683 }, (_, i) => [`${i * 3 + 1}`, 1, i * 3 + 2, `${i * 3 + 1}`]);
  assert.deepEqual(shown, expected);
  // Buckets too: spans begin where the value is.
  const offsets = series.map(({ positiveSpans: [{ offset }] }) => offset);
  assert.deepEqual(
    offsets,
    offsets.toSorted((a, b) => a - b),
  );
});

it('JSON has spans and deltas, in which gaps of up to two buckets are filled', async () => {
  const before = Math.floor(Date.now() / 1000);
  const registers = [new Registry()];
  const histogram = makeHistogram({ registers, buckets: [], [FACTOR]: 2, nativeHistogramZeroThreshold: 0.5 });
  registers[0].setDefaultLabels({ d: 'e' });
  for (const value of [1, 1, 2, 16, 256, -3, 0.5]) histogram.observe({ a: 'x' }, value);
  const [{ values, nativeHistograms }] = /** @type {any} */ (await registers[0].getMetricsAsJSON());
  const [{ createdTimestamp, ...series }] = nativeHistograms;
  assert.ok(createdTimestamp >= before && createdTimestamp <= Date.now() / 1000);
  assert.deepEqual(series, {
    labels: { a: 'x', d: 'e' },
    ...{ count: 7, sum: 273.5, schema: 0, zeroThreshold: 0.5, zeroCount: 1 },
    positiveSpans: [
      { offset: 0, length: 5 },
      { offset: 3, length: 1 },
    ],
    positiveDeltas: [2, -1, -1, 0, 1, 0],
    ...{ negativeSpans: [{ offset: 2, length: 1 }], negativeDeltas: [1], exemplars: [] },
  });
  const shown = values.map(({ metricName, labels: { le }, value }) => [metricName, le, value]);
  assert.deepEqual(shown, [
    ['m_bucket', '+Inf', 7],
    ['m_sum', undefined, 273.5],
    ['m_count', undefined, 7],
  ]);
  assert.equal('nativeHistograms' in (await makeHistogram({ [FACTOR]: null }).get()), false);
});

it('a captured family has the buckets and exemplars of its instant, a live one those of now', () => {
  const histogram = makeHistogram({ enableExemplars: true });
  const observe = (/** @type {number} */ value) =>
    histogram.observe({ labels: { a: 'x' }, value, exemplarLabels: { id: `${value}` } });
  observe(4);
  const captured = capturedFamily(viewOf(histogram), {});
  const live = liveFamily(viewOf(histogram), {});
  observe(5);
  const shown = [captured, live].map(family => [
    family.bucketsAt(0).positive.indices,
    family.nativeExemplarsAt(0).map(({ labelSet }) => labelSet.id),
  ]);
  assert.deepEqual(shown, [
    [[16], ['4']],
    [
      [16, 19],
      ['4', '5'],
    ],
  ]);
});

it('an exemplar replaces one whose time is up, else the older one of the closest two of a sign', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1e12 });
  const histogram = makeHistogram({
    ...{ enableExemplars: true, labelNames: [], buckets: [10] },
    ...{ nativeHistogramMaxExemplars: 4, nativeHistogramExemplarTTL: 60 },
  });
  const observe = (/** @type {number} */ value) => {
    histogram.observe({ value, exemplarLabels: { id: 'x' } });
    t.mock.timers.tick(1000);
    const { nativeExemplarsAt, exemplarAt } = liveFamily(viewOf(histogram), {});
    return {
      native: nativeExemplarsAt(0)
        .map(exemplar => exemplar.value)
        .sort((a, b) => a - b),
      classic: exemplarAt(0, 0).value,
    };
  };
  for (const value of [1, 100, -1]) observe(value);
  assert.deepEqual(observe(8), { native: [-1, 1, 8, 100], classic: 8 });
  // 8 is closer to 7 than any two others.
  assert.deepEqual(observe(7).native, [-1, 1, 7, 100]);
  // 1 and 7 are closest, and 1 is older. -1 is near 1 by its size only.

  assert.deepEqual(observe(-50).native, [-50, -1, 7, 100]);
  assert.deepEqual(observe(0).native, [-50, -1, 0, 7]);
  t.mock.timers.tick(56_000);
  // -1 is 61 seconds old.
  assert.deepEqual(observe(6.9).native, [-50, 0, 6.9, 7]);
  histogram.zero({});
  assert.deepEqual(liveFamily(viewOf(histogram), {}).nativeExemplarsAt(0), []);
});

it('quantiles are those of Prometheus 3', () => {
  // Expected values: promql.HistogramQuantile of Prometheus 3.16.
  /** @type {{options: object, values: number[], quantiles: [number, number][]}[]} */
  const cases = [
    {
      options: {},
      values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
      quantiles: [
        [0, 0.9170040432046711],
        [0.1, 1],
        [0.5, 5.65685424949238],
        [0.9, 9.513656920021768],
        [0.99, 10.2852146659046],
        [1, 10.374716437208077],
      ],
    },
    {
      options: { nativeHistogramBucketFactor: 2, nativeHistogramZeroThreshold: 0.5 },
      values: [0.1, 0.2, 0.3, 3, 5],
      quantiles: [
        [0, 0],
        [0.3, 0.25],
        [0.6, 2],
        [0.8, 4],
      ],
    },
    {
      options: { nativeHistogramZeroThreshold: 0.5 },
      values: [-4, -4, -0.1, -0.2],
      quantiles: [
        [0.2, -3.863745315699382],
        [0.6, -0.4],
        [0.9, -0.09999999999999998],
      ],
    },
    {
      options: { nativeHistogramZeroThreshold: 1.05 },
      values: [-2, 0, 1.06, 1.07, 3],
      quantiles: [
        [0.1, -1.9152065613971472],
        [0.3, 0],
        [0.5, 1.0599836383856085],
        [0.7, 1.0802365978426285],
        [0.95, 3.0183288551868452],
      ],
    },
    {
      options: { nativeHistogramBucketFactor: 70000 },
      values: [0.00001, 7],
      quantiles: [
        [0.25, 5.960464477539063e-8],
        [0.5, 1],
        [1, 65536],
      ],
    },
  ];
  for (const { options, values, quantiles } of cases) {
    const histogram = makeHistogram({ labelNames: [], buckets: [], ...options });
    for (const value of values) histogram.observe(value);
    for (const [quantile, expected] of quantiles) {
      const actual = histogram.quantile(quantile);
      assert.ok(Math.abs(actual - expected) <= 1e-12 * Math.abs(expected), `${quantile}: ${actual}`);
    }
  }
});

it('quantile() has an answer for each number, and refuses other labels and classic histograms', () => {
  const histogram = makeHistogram();
  assert.ok(Number.isNaN(histogram.quantile(0.5, { a: 'x' })));
  histogram.zero({ a: 'x' });
  assert.ok(Number.isNaN(histogram.quantile(0.5, { a: 'x' })));
  histogram.observe({ a: 'x' }, 1);
  const answers = [-0.1, 1.1, NaN, 1].map(quantile => histogram.quantile(quantile, { a: 'x' }));
  assert.deepEqual(answers, [-Infinity, Infinity, NaN, 1]);
  assert.throws(() => histogram.quantile(0.5, { b: 'x' }), /"b" is not included/);
  assert.throws(() => histogram.quantile(0.5, /** @type {any} */ ('x')), TypeError);
  assert.throws(() => makeHistogram({ [FACTOR]: null }).quantile(0.5), {
    name: 'TypeError',
    message: /nativeHistogramBucketFactor/,
  });
});
