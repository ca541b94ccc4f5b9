'use strict';

const assert = require('node:assert');
const { describe, it } = require('node:test');
const { SpareMemory } = require('../../../lib/cluster/aggregator/spare-memory');

const MEGABYTE = 1 << 20;

describe('memory for the next page', () => {
  it('is new, and a little more than the last page had, where none was given', () => {
    const spare = new SpareMemory();
    spare.note(10 * MEGABYTE);
    const bytes = spare.take();
    assert.ok(bytes > 10 * MEGABYTE && bytes < 12 * MEGABYTE, `${bytes}`);
  });

  it('is what was given, once', () => {
    const spare = new SpareMemory();
    spare.note(MEGABYTE);
    const memory = new ArrayBuffer(2 * MEGABYTE);
    spare.give(memory);
    assert.strictEqual(spare.take(), memory);
    assert.strictEqual(typeof spare.take(), 'number');
  });

  it('is the largest of what was given: a compressed page does not take the place of a plain one', () => {
    const spare = new SpareMemory();
    spare.note(MEGABYTE);
    const [plain, compressed] = [new ArrayBuffer(2 * MEGABYTE), new ArrayBuffer(300_000)];
    spare.give(plain);
    spare.give(compressed);
    assert.strictEqual(spare.take(), plain);
  });

  it('is new where what was given is too small, or far too large', () => {
    for (const bytes of [MEGABYTE, 20 * MEGABYTE]) {
      const spare = new SpareMemory();
      spare.note(MEGABYTE);
      spare.give(new ArrayBuffer(bytes));
      assert.strictEqual(typeof spare.take(), 'number', `${bytes}`);
    }
  });
});
