'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { compressCentroids, mergeDigests, quantileOf } = require('../../lib/metric/centroids');

const QUANTILES = [0, 0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1];

/** One centroid for each value. */
function digestOf(values) {
  return Float64Array.from(
    values.toSorted((a, b) => a - b),
    value => value,
  ).reduce((flat, value, i) => (flat.set([value, 1], i * 2), flat), new Float64Array(values.length * 2));
}

/** The digest as a process sends it. */
function compressed(digest) {
  return digest.slice(0, compressCentroids(digest, digest.length, 0.01));
}

function countOf(digest) {
  return digest.reduce((sum, number, i) => (i % 2 === 1 ? sum + number : sum), 0);
}

function meansOf(digest) {
  return Array.from(digest.filter((_, i) => i % 2 === 0));
}

function range(from, to) {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** Difference between the rank of a value and its expected rank, as a fraction of all observations. */
function rankError(sorted, quantile, value) {
  const below = sorted.filter(observed => observed < value).length / sorted.length;
  const upTo = sorted.filter(observed => observed <= value).length / sorted.length;
  return Math.max(0, below - quantile, quantile - upTo);
}

test('mergeDigests() preserves count, order, minimum and maximum, and adds no centroids', () => {
  const value = fc.double({ min: -1e6, max: 1e6, noNaN: true });
  fc.assert(
    fc.property(fc.array(fc.array(value, { maxLength: 400, size: 'max' }), { maxLength: 6 }), lists => {
      const digests = lists.map(list => compressed(digestOf(list)));
      const copies = digests.map(digest => digest.slice());
      const merged = mergeDigests(digests);
      const all = lists.flat().sort((a, b) => a - b);
      assert.strictEqual(countOf(merged), all.length);
      assert.ok(merged.length <= all.length * 2);
      const means = meansOf(merged);
      const expected = means.toSorted((a, b) => a - b);
      assert.deepStrictEqual(means, expected);
      if (all.length > 0) {
        assert.strictEqual(quantileOf(merged, 0), all[0]);
        assert.strictEqual(quantileOf(merged, 1), all.at(-1));
      }
      assert.deepStrictEqual(digests, copies);
    }),
    { numRuns: 100 },
  );
});

for (const [name, draw] of Object.entries({
  uniform: i => (i * 0.6180339887498949) % 1,
  exponential: i => -Math.log(1 - ((i * 0.6180339887498949) % 1)),
  'two peaks': i => (i % 10 === 0 ? 5 : 0.01) + ((i * 0.6180339887498949) % 1) / 100,
})) {
  test(`the merged quantiles of ${name} observations in 16 workers are within 0.1 % of their rank`, () => {
    const observed = Array.from({ length: 20_000 }, (_, i) => draw(i));
    const digests = range(0, 15).map(worker =>
      compressed(digestOf(observed.filter((_, i) => i % 16 === worker))),
    );
    // All merged at once, and one after another, as when workers die.
    const atOnce = mergeDigests(digests);
    const oneByOne = digests.reduce((total, digest) => mergeDigests([total, digest]));
    const sorted = observed.toSorted((a, b) => a - b);
    for (const merged of [atOnce, oneByOne]) {
      assert.strictEqual(countOf(merged), 20_000);
      assert.ok(merged.length / 2 < 1500, `${merged.length / 2} centroids`);
      for (const quantile of QUANTILES) {
        const error = rankError(sorted, quantile, quantileOf(merged, quantile));
        assert.ok(error < 0.001, `quantile ${quantile} is off by ${error}`);
      }
    }
  });
}

test('mergeDigests() a thousand times in a row gives a small and accurate digest', () => {
  let total = new Float64Array(0);
  for (let i = 0; i < 1000; i++) {
    total = mergeDigests([total, digestOf(range(0, 49).map(k => (i * 7919 + k * 104729) % 50_000))]);
  }
  assert.strictEqual(countOf(total), 50_000);
  assert.ok(total.length / 2 < 2000, `${total.length / 2} centroids`);
  for (const quantile of [0.01, 0.5, 0.9, 0.99]) {
    const error = Math.abs(quantileOf(total, quantile) / 50_000 - quantile);
    assert.ok(error < 0.01, `quantile ${quantile} is off by ${error}`);
  }
});
