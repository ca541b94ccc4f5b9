'use strict';

// Tables that other threads read: a label set that comes back gets another row.

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { ExpiringTable } = require('../../lib/series/expiring-table');
const { SeriesTable } = require('../../lib/series/series-table');

/** @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

for (const [name, newTable] of /** @type {[string, () => SeriesTable][]} */ ([
  ['a table', () => new SeriesTable(['a', 'b'], 2)],
  ['a table whose rows expire', () => new ExpiringTable(['a', 'b'], 2, 120)],
])) {
  it(`${name} keeps the numbers of removed rows where they were, also while it is compacted`, () => {
    for (let seed = 1; seed <= 5; seed++) {
      const random = randomFrom(seed);
      const table = newTable();
      table.followers = [{ keepsRows: true, rowRemoved() {} }];
      /** @type {Map<string, number>} */
      const model = new Map();
      /** @type {{page: Float64Array, offset: number, value: number}[]} */
      const removed = [];
      /** @type {Generator<void> | undefined} */
      let compaction = undefined;
      for (let i = 1; i <= 30_000; i++) {
        // Many label sets and few, by turns.
        const most = i % 10_000 < 4000 ? 3000 : 300;
        const key = random(most);
        const labels = { a: String(key % 50), b: String(key) };
        if (random(10) < 7) {
          const row = table.locate(labels);
          table.pageOf(row)[table.offsetOf(row)] += i;
          model.set(String(key), (model.get(String(key)) ?? 0) + i);
        } else {
          const other = most === 300 ? random(3000) : key;
          const row = table.find({ a: String(other % 50), b: String(other) });
          assert.equal(row !== -1, model.has(String(other)));
          if (row !== -1) {
            const [page, offset] = [table.pageOf(row), table.offsetOf(row)];
            removed.push({ page, offset, value: page[offset] });
            assert.equal(page[offset], model.get(String(other)));
            table.removeRow(row);
            model.delete(String(other));
          }
        }
        if (random(4) === 0) compaction ??= table.compactionSteps();
        if (compaction?.next().done) compaction = undefined;
      }
      assert.ok(table.epoch > 0);
      const found = Array.from(table.liveRows(), row => [
        table.labelsOf(row).b,
        table.pageOf(row)[table.offsetOf(row)],
      ]);
      assert.deepEqual(new Map(/** @type {any} */ (found)), model);
      assert.equal(found.length, model.size);
      for (const { page, offset, value } of removed) assert.equal(page[offset], value);
    }
  });
}
