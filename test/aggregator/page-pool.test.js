'use strict';

const assert = require('node:assert');
const { describe, it } = require('node:test');
const { PagePool } = require('../../lib/aggregator/page-pool');

const MEGABYTE = 1 << 20;

describe('page pool', () => {
  it('the page pool asks for slightly more memory than the last page needed if it has no buffer', () => {
    const pool = new PagePool();
    pool.setLastLength(10 * MEGABYTE);
    const bytes = pool.take();
    assert.ok(bytes > 10 * MEGABYTE && bytes < 12 * MEGABYTE, `${bytes}`);
  });

  it('the page pool gives out a buffer once', () => {
    const pool = new PagePool();
    pool.setLastLength(MEGABYTE);
    const buffer = new ArrayBuffer(2 * MEGABYTE);
    pool.put(buffer);
    assert.strictEqual(pool.take(), buffer);
    assert.strictEqual(typeof pool.take(), 'number');
  });

  it('the page pool holds the largest buffer: a compressed page does not replace a plain one', () => {
    const pool = new PagePool();
    pool.setLastLength(MEGABYTE);
    const [plain, compressed] = [new ArrayBuffer(2 * MEGABYTE), new ArrayBuffer(300_000)];
    pool.put(plain);
    pool.put(compressed);
    assert.strictEqual(pool.take(), plain);
  });

  it('the page pool drops a buffer that is too small or far too large', () => {
    for (const bytes of [MEGABYTE, 20 * MEGABYTE]) {
      const pool = new PagePool();
      pool.setLastLength(MEGABYTE);
      pool.put(new ArrayBuffer(bytes));
      assert.strictEqual(typeof pool.take(), 'number', `${bytes}`);
    }
  });
});
