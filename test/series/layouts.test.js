'use strict';

const assert = require('node:assert/strict');
const { it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check');
const { columnMap, unionOf } = require('../../lib/series/layouts');

const bounds = fc.uniqueArray(fc.double(), { comparator: 'SameValueZero' });

it('the union of bounds has each of them once, in ascending order, and NaN last', () => {
  fc.assert(
    fc.property(fc.array(bounds, { minLength: 1, maxLength: 4 }), lists => {
      const union = unionOf(lists);
      assert.equal(new Set(union).size, union.length);
      assert.deepEqual(new Set(union.map(String)), new Set(lists.flat().map(String)));
      if (lists.every(list => list.join() === lists[0].join())) return;
      const numbers = union.filter(bound => !Number.isNaN(bound));
      assert.ok(numbers.every((bound, i) => i === 0 || numbers[i - 1] < bound));
      assert.ok(numbers.length === union.length || Number.isNaN(union.at(-1)));
      for (const list of lists) {
        const columns = columnMap({ kind: 'histogram', marks: list }, union);
        const shown = columns.map(column => String([...union, 'above', 'sum'][column]));
        assert.deepEqual(shown, [...list, 'above', 'sum'].map(String));
      }
    }),
    { numRuns: 200 },
  );
});

it('a worker whose bounds are few costs little, however many bounds all workers have', () => {
  let reads = 0;
  const many = Array.from({ length: 100_000 }, (_, i) => i);
  const union = new Proxy(many, { get: (target, key) => (reads++, target[key]) });
  const columns = columnMap({ kind: 'histogram', marks: [5, 99_999, 0.5 * 4] }, union);
  assert.deepEqual(columns, [5, 99_999, 2, 100_000, 100_001]);
  assert.ok(reads < 200, `${reads} reads`);
});
