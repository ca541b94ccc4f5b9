'use strict';

const { describe, test } = require('node:test');
const assert = require('node:assert');
const { DigestEncoder } = require('../../lib/source/digest-encoder');
const { Summary } = require('../../lib/metric/summary');
const { viewOf } = require('../../lib/registry/metric-view');
const { runThrough } = require('../../lib/event-loop/slices');

const ROWS = 100;

/** A summary of which each label set has one observation, the number of its row, all encoded. */
function encodedSummary() {
  const summary = new Summary({ name: 's', help: 's', labelNames: ['a'], registers: [] });
  for (let row = 0; row < ROWS; row++) summary.observe({ a: row }, row);
  const encoder = new DigestEncoder();
  runThrough(encoder.encodeChanged(viewOf(summary)));
  return { summary, encoder };
}

/** The means of each row's centroids, as a reader of the snapshot finds them. */
function meansOf({ summary, encoder }, isLast = false) {
  const [index, ...centroids] = encoder.blocksOf(viewOf(summary), isLast)[0].chunks;
  const all = [index, ...centroids].flatMap(array => [...array]);
  const { rowCount } = viewOf(summary).table;
  let at = rowCount * 2;
  return Array.from({ length: rowCount }, (_, row) => {
    const own = all.slice(at, (at += index[row * 2] * 2));
    return own.filter((_number, i) => i % 2 === 0);
  });
}

const each = Array.from({ length: ROWS }, (_, row) => [row]);

describe('DigestEncoder, between the encoding of digests and the capture', () => {
  test('a capture gets all digests as one piece, if none was removed or reset', () => {
    const { summary, encoder } = encodedSummary();
    summary.observe({ a: 7 }, 1);
    const first = encoder.blocksOf(viewOf(summary), false)[0];
    assert.strictEqual(first.chunks.length, 1);
    assert.strictEqual(encoder.blocksOf(viewOf(summary), false)[0], first);
    summary.remove({ a: 7 });
    assert.strictEqual(encoder.blocksOf(viewOf(summary), false)[0].chunks.length, ROWS);
  });

  test('digests are as they were encoded, and the last columns have what was observed since', () => {
    const encoded = encodedSummary();
    encoded.summary.observe({ a: 3 }, 1000);
    assert.deepStrictEqual(meansOf(encoded), each);
    assert.deepStrictEqual(meansOf(encoded, true), withRow(3, [3, 1000]));
  });

  test('a new label set follows', () => {
    const encoded = encodedSummary();
    encoded.summary.observe({ a: 'new' }, 5000);
    assert.deepStrictEqual(meansOf(encoded), [...each, [5000]]);
  });

  test('a label set that was removed has no digest; if it is used again, only what was observed since', () => {
    const encoded = encodedSummary();
    encoded.summary.remove({ a: 3 });
    assert.deepStrictEqual(meansOf(encoded), withRow(3, []));
    encoded.summary.observe({ a: 3 }, 5000);
    assert.deepStrictEqual(meansOf(encoded), withRow(3, [5000]));
  });

  test('after a reset, digests have nothing of before it', () => {
    const encoded = encodedSummary();
    encoded.summary.reset();
    assert.deepStrictEqual(
      meansOf(encoded),
      each.map(() => []),
    );
  });

  test('after a reset that is not counted, because another thread has done it, they have nothing either', () => {
    const encoded = encodedSummary();
    Object.defineProperty(viewOf(encoded.summary).table, 'resets', { get: () => NaN, set: () => {} });
    assert.deepStrictEqual(meansOf(encoded), each);
    encoded.summary.reset();
    assert.deepStrictEqual(
      meansOf(encoded),
      each.map(() => []),
    );
  });
});

function withRow(row, means) {
  return each.map((own, i) => (i === row ? means : own));
}
