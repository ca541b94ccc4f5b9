'use strict';

// Native histograms against client_golang and Prometheus: ../fixtures/native-histograms/main.go.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { mergeBuckets } = require('../../lib/series/merged-buckets');
const { NativeBuckets } = require('../../lib/series/native-buckets');
const { boundOf, indexOf } = require('../../lib/series/native-index');
const { reference, fractionsOf, scaled, hashOf } = require('../fixtures/native-reference');
const judge = require('../fixtures/native-reference');

const SCHEMAS = Array.from({ length: 13 }, (_, i) => i - 4);
const [LOWEST_EXPONENT, HIGHEST_EXPONENT, EXPONENTS_A_HASH] = [-1073, 1024, 128];

const double = new Float64Array(1);
const bits = new BigInt64Array(double.buffer);

/** @param {bigint} steps @returns {number} the double so many steps above a positive one */
function stepped(/** @type {number} */ value, steps) {
  double[0] = value;
  bits[0] += steps;
  return double[0];
}

/** The values of a hash: each bound of these exponents, with the doubles beside it. */
function* valuesBeside(schema, from) {
  const fractions = fractionsOf(schema);
  const to = Math.min(from + EXPONENTS_A_HASH, HIGHEST_EXPONENT + 1);
  for (let exponent = from; exponent < to; exponent++) {
    for (const fraction of fractions) {
      const bound = scaled(fraction, exponent);
      // The lowest subnormal bounds are rounded to 0: nothing is below.
      const below = bound === 0 ? 0 : stepped(bound, -1n);
      for (const value of [below, bound, stepped(bound, 1n)]) {
        if (value > 0 && value < Infinity) yield value;
      }
    }
  }
}

describe('buckets of native histograms', () => {
  for (const schema of SCHEMAS) {
    it(`schema ${schema}: every bound and its neighbours are counted as by client_golang`, () => {
      reference.indices[schema].split(' ').forEach((expected, part) => {
        const from = LOWEST_EXPONENT + part * EXPONENTS_A_HASH;
        const indices = Int32Array.from(valuesBeside(schema, from), value => indexOf(value, schema));
        assert.equal(hashOf(indices, 8), expected, `values from 2 ** ${from} on`);
      });
    });

    it(`schema ${schema}: the upper bounds are those of Prometheus`, () => {
      const { lowest, highest, hash } = reference.upperBounds[schema];
      assert.deepEqual([indexOf(5e-324, schema), indexOf(Number.MAX_VALUE, schema)], [lowest, highest]);
      for (const bound of [boundOf, judge.boundOf]) {
        const bounds = Float64Array.from({ length: highest - lowest + 1 }, (_, i) =>
          bound(lowest + i, schema),
        );
        assert.equal(hashOf(bounds, 16), hash);
      }
    });
  }

  for (const kind of ['bounds', 'free']) {
    it(`random groups of workers are merged as by Prometheus, but nothing twice: thresholds ${kind}`, () => {
      const { samples, hashes } = reference.groups[kind];
      hashes.split(' ').forEach((expected, group) => {
        const workers = judge.workersOf(group, kind);
        const rows = workers.map(({ values, schema, zeroThreshold }) => {
          const buckets = new NativeBuckets({ schema, zeroThreshold, maxBuckets: Infinity });
          buckets.rowStarted(0);
          for (const value of values) buckets.add(0, value);
          return buckets.read(0);
        });
        const total = rows.reduce((sum, row) => mergeBuckets([sum, row]));
        const text = judge.textOf(total);
        if (group < samples.length) assert.equal(text, samples[group]);
        assert.equal(hashOf(text, 8), expected, `group ${group}: ${text}`);
        const observed = workers.reduce((count, { values }) => count + values.length, 0);
        assert.equal(judge.countOf(total), observed);
      });
    });
  }

  it('a page is taken for a reset by the fixture as by Prometheus', () => {
    for (const { pages, resets } of reference.resets) {
      const buckets = pages.map(judge.fromText);
      const found = buckets.slice(1).map((page, i) => Number(judge.detectsReset(buckets[i], page)));
      assert.equal(found.join(''), resets, pages.join('\n'));
    }
  });
});
