'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { Summary, Registry } = require('../..');
const { Observations, centroidsOf } = require('../../lib/metric/observations');
const { TimeWindowQuantiles } = require('../../lib/metric/time-window-quantiles');

const QUANTILES = [0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/** @returns {{mean: number, count: number}[]} */
function listOf(centroids) {
  return Array.from({ length: centroids.length / 2 }, (_, i) => ({
    mean: centroids[i * 2],
    count: centroids[i * 2 + 1],
  }));
}

/** The same numbers in each run, in no order. */
function scattered(i) {
  return (i * 0.6180339887498949) % 1;
}

/** How far a value is from the rank that it should have, as a share of all observations. */
function rankError(sorted, quantile, value) {
  const below = sorted.filter(observed => observed < value).length / sorted.length;
  const upTo = sorted.filter(observed => observed <= value).length / sorted.length;
  return Math.max(0, below - quantile, quantile - upTo);
}

test('Observations keeps the count, the sum, both ends and the order, wherever its buffer is merged', () => {
  const value = fc.integer({ min: -1000, max: 1000 });
  const limit = fc.constantFrom(1, 2, 7, 64, 512);
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 2000, size: 'max' }), limit, (values, limit) => {
      const observations = new Observations(limit);
      values.forEach((value, i) => {
        observations.push(value);
        if (i % 97 === 0) observations.centroids();
      });
      const centroids = listOf(observations.centroids());
      const sumOf = numbers => numbers.reduce((sum, number) => sum + number, 0);
      assert.strictEqual(sumOf(centroids.map(({ count }) => count)), values.length);
      assert.ok(Math.abs(sumOf(centroids.map(({ mean, count }) => mean * count)) - sumOf(values)) < 1e-6);
      assert.strictEqual(centroids[0].mean, Math.min(...values));
      assert.strictEqual(centroids.at(-1).mean, Math.max(...values));
      const means = centroids.map(({ mean }) => mean);
      const expected = means.toSorted((a, b) => a - b);
      assert.deepStrictEqual(means, expected);
    }),
    { numRuns: 60 },
  );
});

test('Observations does not change centroids that it has returned', () => {
  const observations = new Observations();
  for (let i = 0; i < 1000; i++) observations.push(scattered(i));
  const before = observations.centroids();
  const copy = before.slice();
  for (let i = 0; i < 10_000; i++) observations.push(-scattered(i));
  observations.centroids();
  assert.deepStrictEqual(before, copy);
});

test('Observations stays below a thousand centroids, none with more than 0.5 % of a million values, whatever their order', () => {
  const orders = {
    scattered,
    rising: i => i,
    falling: i => -i,
    'two peaks': i => (i % 2) * 10 + scattered(i),
  };
  for (const [name, draw] of Object.entries(orders)) {
    const observations = new Observations();
    for (let i = 0; i < 1e6; i++) observations.push(draw(i));
    const counts = listOf(observations.centroids()).map(({ count }) => count);
    assert.ok(counts.length < 1000, `${name}: ${counts.length} centroids`);
    assert.ok(Math.max(...counts) <= 5000, `${name}: ${Math.max(...counts)} values in a centroid`);
  }
});

for (const [name, draw] of Object.entries({
  uniform: scattered,
  'log-normal': i =>
    Math.exp(
      2 * Math.sqrt(-2 * Math.log(1 - scattered(i))) * Math.cos(2 * Math.PI * ((i * 0.7548776662466927) % 1)),
    ),
  rising: i => i,
  falling: i => -i,
  sawtooth: i => i % 1000,
  constant: () => 42,
  'two peaks': i => (i % 10 === 0 ? 5 : 0.01) + scattered(i) / 100,
})) {
  test(`Summary: quantiles of 30,000 ${name} values are within 0.2 % of their rank, 0.01 % at the ends, read often or once`, async () => {
    const values = Array.from({ length: 30_000 }, (_, i) => draw(i));
    const sorted = values.toSorted((a, b) => a - b);
    for (const readEvery of [701, Infinity]) {
      const summary = new Summary({ name: 's', help: 's', percentiles: QUANTILES, registers: [] });
      for (const [i, value] of values.entries()) {
        summary.observe(value);
        if (i % readEvery === readEvery - 1) await summary.get();
      }
      for (const { labels, value } of (await summary.get()).values) {
        if (labels.quantile === undefined) continue;
        const error = rankError(sorted, labels.quantile, value);
        const isAtEnd = labels.quantile <= 0.01 || labels.quantile >= 0.99;
        assert.ok(
          error <= (isAtEnd ? 0.0001 : 0.002),
          `quantile ${labels.quantile} = ${value} is off by ${error}`,
        );
      }
    }
  });
}

test('Summary: each reader sees all observations made before it', async () => {
  const registry = new Registry();
  const summary = new Summary({ name: 's', help: 's', percentiles: [1], registers: [registry] });
  const { td } = Object.values(summary.hashMap)[0];
  let value = 0;
  // Starts a reading after each of many observations, and so at each filling of the buffer.
  const readers = {
    get: async () => (await summary.get()).values[0].value,
    metrics: async () => Number(/quantile="1"} (\d+)/.exec(await registry.metrics())[1]),
    percentile: () => td.percentile(1),
    ringBuffer: () => td.ringBuffer[td.currentBuffer].percentile(1),
    centroids: () => centroidsOf(td.slices()).at(-2),
  };
  for (const [name, read] of Object.entries(readers)) {
    for (let i = 0; i < 200; i++) {
      for (let k = 0; k <= i % 5; k++) summary.observe(++value);
      assert.strictEqual(await read(), value, name);
    }
  }
});

test('TimeWindowQuantiles ignores NaN', () => {
  const quantiles = new TimeWindowQuantiles();
  for (const value of [1, NaN, 3]) quantiles.push(value);
  assert.strictEqual(quantiles.percentile(0.5), 2);
  assert.strictEqual(quantiles.size(), 2);
});
