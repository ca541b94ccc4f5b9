'use strict';

const assert = require('node:assert/strict');
const { it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check');
const { boundOf } = require('../../lib/series/native-index');
const { readRow } = require('../../lib/series/bucket-memory');
const { mergeBuckets } = require('../../lib/series/merged-buckets');
const { NativeBuckets } = require('../../lib/series/native-buckets');

/**
 * @param {Partial<{schema: number, zeroThreshold: number, maxBuckets: number}>} [options]
 * @param {number[]} [values] of row 0
 */
function bucketsOf(options, values = []) {
  const buckets = new NativeBuckets({ schema: 3, zeroThreshold: 2 ** -128, maxBuckets: 160, ...options });
  buckets.rowStarted(0);
  for (const value of values) buckets.add(0, value);
  return buckets;
}

/** @param {import('../../lib/series/merged-buckets').Buckets} buckets */
const countOf = ({ zeroCount, positive, negative }) =>
  [...positive.counts, ...negative.counts].reduce((sum, count) => sum + count, zeroCount);

it('values are counted by their side, and those up to the zero threshold as zero', () => {
  const buckets = bucketsOf({ zeroThreshold: 0.5 }, [1, 1, 2, -2, 0.5, -0.5, 0, -0, 5e-324]);
  assert.deepEqual(buckets.read(0), {
    schema: 3,
    zeroThreshold: 0.5,
    zeroCount: 5,
    positive: { indices: [0, 8], counts: [2, 1] },
    negative: { indices: [8], counts: [1] },
    maxBuckets: 160,
  });
  const { zeroCount, positive } = bucketsOf({ zeroThreshold: 0 }, [0, -0, 5e-324]).read(0);
  assert.deepEqual([zeroCount, positive.counts], [2, [1]]);
});

it('a count of more than 32 bits is exact', () => {
  const buckets = bucketsOf({}, [3, 3]);
  // The only word of a chunk is its count.
  const page = buckets.memory.pages[0];
  page[page.lastIndexOf(2)] = -3;
  assert.deepEqual(buckets.read(0).positive, { indices: [13], counts: [2 ** 32 - 3] });
  for (let i = 0; i < 5; i++) buckets.add(0, 3);
  buckets.add(0, 5);
  assert.deepEqual(buckets.read(0).positive, { indices: [13, 19], counts: [2 ** 32 + 2, 1] });
  const move = buckets.startMove();
  move.copy(0, 0);
  move.finish(1);
  buckets.add(0, 3);
  assert.deepEqual(buckets.read(0).positive, { indices: [13, 19], counts: [2 ** 32 + 3, 1] });
  const wide = { indices: [7], counts: [2 ** 40 + 1] };
  const merged = mergeBuckets([buckets.read(0), { ...bucketsOf({ schema: 2 }).read(0), positive: wide }]);
  assert.deepEqual(merged.positive, { indices: [7, 10], counts: [2 ** 40 + 2 ** 32 + 4, 1] });
});

it('so is that of the zero bucket', () => {
  const buckets = bucketsOf({}, [0]);
  const head = buckets.memory.heads[0];
  head[head.lastIndexOf(1)] = -2;
  assert.equal(buckets.read(0).zeroCount, 2 ** 32 - 2);
  for (let i = 0; i < 4; i++) buckets.add(0, 0);
  assert.equal(readRow(buckets.memory, 0)?.zeroCount, 2 ** 32 + 2);
  // Has a new head.
  buckets.add(0, 3);
  assert.equal(buckets.read(0).zeroCount, 2 ** 32 + 2);
  buckets.clear(0);
  assert.equal(buckets.read(0).zeroCount, 0);
});

it('beyond the limit of populated buckets the schema falls, and no observation is lost', () => {
  const values = Array.from({ length: 500 }, (_, i) => 1.01 ** (i - 250) * (i % 3 === 0 ? -1 : 1));
  const { schema, positive, negative, ...rest } = bucketsOf({ schema: 8, maxBuckets: 20 }, values).read(0);
  assert.equal(schema, 0);
  assert.equal(countOf({ schema, positive, negative, ...rest }), 500);
  // Schema -4 has as many as it needs.
  assert.equal(
    bucketsOf({ maxBuckets: 1, zeroThreshold: 0 }, [1e-300, 1, 1e300]).read(0).positive.indices.length,
    3,
  );
});

it('values that are far apart lower the schema', () => {
  const buckets = bucketsOf({ schema: 8, zeroThreshold: 0 }, [1e-300, 1e300, 1]);
  assert.deepEqual([buckets.read(0).schema, countOf(buckets.read(0))], [4, 3]);
});

it('buckets live, move and are cleared as their rows', () => {
  const buckets = bucketsOf({}, [1, -3]);
  for (let row = 1; row < 5000; row++) {
    buckets.rowStarted(row);
    buckets.add(row, row);
  }
  const captured = buckets.captured();
  const before = buckets.changesOf(0);
  buckets.add(0, 4);
  assert.notEqual(buckets.changesOf(0), before);
  const move = buckets.startMove();
  move.copy(0, 1);
  move.copy(4999, 0);
  move.finish(2);
  buckets.add(1, 4);
  assert.deepEqual(buckets.read(1).positive, { indices: [0, 16], counts: [1, 2] });
  assert.deepEqual(buckets.read(0).positive.counts, [1]);
  assert.deepEqual(captured.read(0).positive, { indices: [0], counts: [1] });
  buckets.clear(1);
  assert.equal(countOf(buckets.read(1)), 0);
  assert.equal(countOf(buckets.read(4000)), 0);
});

it('what was captured stays as it was, whatever happens to the rows meanwhile', () => {
  const value = fc.oneof(
    fc.double({ min: -1e4, max: 1e4, noNaN: true }),
    fc.constantFrom(0, 3, 3, 1e-300, 1e300),
  );
  const step = fc.oneof(
    fc.record({ what: fc.constant('add'), row: fc.nat(9), value }),
    fc.record({ what: fc.constantFrom('capture', 'end', 'clear', 'move', 'start'), row: fc.nat(9) }),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 100, size: 'max' }), steps => {
      const buckets = bucketsOf({ maxBuckets: 20 }, [3, 3]);
      // Needs more than 32 bits after three more.
      const [page] = buckets.memory.pages;
      page[page.lastIndexOf(2)] = -3;
      let rows = 10;
      for (let row = 1; row < rows; row++) buckets.rowStarted(row);
      const all = reader => Array.from({ length: 10 }, (_, row) => reader.read(row));
      const captures = [];
      for (const { what, row, value: added } of steps) {
        if (what === 'add') buckets.add(row, added);
        else if (what === 'capture') captures.push({ capture: buckets.captured(), expected: all(buckets) });
        else if (what === 'end') captures.splice(row, 1).forEach(each => (each.capture.isOver = true));
        else if (what === 'clear') buckets.clear(row);
        else if (what === 'start') buckets.rowStarted(rows++);
        else {
          const move = buckets.startMove();
          for (let old = 0; old < 10; old++) move.copy(old, (old + row) % 10);
          move.finish((rows = 10));
        }
        for (const { capture, expected } of captures) assert.deepEqual(all(capture), expected);
      }
    }),
    { numRuns: 200 },
  );
});

it('buckets move even if those of the first row are far apart', () => {
  for (const octaves of [4, 16, 64, 120]) {
    const buckets = bucketsOf({ schema: 8 }, [1, 2 ** octaves]);
    const before = buckets.read(0);
    const move = buckets.startMove();
    move.copy(0, 0);
    move.finish(1);
    assert.deepEqual(buckets.read(0), before);
  }
});

it('after clear() the schema and the zero threshold are those of the options', () => {
  const buckets = bucketsOf({ maxBuckets: 1 }, [1, 100]);
  assert.equal(buckets.read(0).schema, -4);
  buckets.clear(0);
  assert.deepEqual(buckets.read(0), bucketsOf({ maxBuckets: 1 }).read(0));
});

it('a merge counts once what is in a bucket that a zero threshold cuts, where that of Go counts it twice', () => {
  // 0.3 is inside bucket -6 of schema 2, (0.297, 0.354].
  const zero = bucketsOf({ schema: 2, zeroThreshold: 0.3 }, [0.1]);
  const cut = bucketsOf({ schema: 2, zeroThreshold: 0 }, [0.35, 0.299, 0.36, -0.31]);
  assert.deepEqual(mergeBuckets([zero.read(0), cut.read(0)]), {
    schema: 2,
    zeroThreshold: boundOf(-6, 2),
    zeroCount: 4,
    positive: { indices: [-5], counts: [1] },
    negative: { indices: [], counts: [] },
    maxBuckets: 160,
  });
});

it('a row whose thread was terminated while it replaced the head is read, but not one that is half of each', () => {
  const buckets = bucketsOf({}, [1, 2, -3]);
  const { heads } = buckets.memory;
  const before = buckets.read(0);
  heads[0][0]++;
  assert.deepEqual(readRow(buckets.memory, 0), before);
  heads[0][1]--;
  assert.equal(readRow(buckets.memory, 0), undefined);
});

it('a row is not read by another thread before all of its memory is there', () => {
  const buckets = bucketsOf({}, [1, 2, -3]);
  const { memory } = buckets;
  assert.deepEqual(readRow(memory, 0), buckets.read(0));
  assert.equal(readRow({ ...memory, pages: [] }, 0), undefined);
  assert.equal(readRow({ ...memory, heads: [] }, 0), undefined);
});

it('memory that is shared while rows move is shared after that', () => {
  const buckets = bucketsOf({}, [1, 2]);
  const table = /** @type {any} */ ({ followers: [] });
  const move = buckets.startMove();
  move.copy(0, 0);
  buckets.share(table);
  move.finish(1);
  buckets.share(table);
  for (const { buffer } of buckets.pagesByKind.flat()) assert.ok(buffer instanceof SharedArrayBuffer);
  assert.deepEqual(buckets.read(0).positive.counts, [1, 1]);
});
