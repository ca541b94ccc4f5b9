'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check.js');
const { ExpiringTable } = require('../../lib/series/expiring-table');
const { runThrough } = require('../../lib/event-loop/slices');
const { SeriesHandle } = require('../../lib/series/series-handle');
const { MovedClock } = require('../fixtures/idle-clock');

const IDLE = 600;
const LATEST = IDLE * (1 + 2 / 16);

/** Counts what happens to a table. */
class Follower {
  removed = 0;
  rowRemoved(_row, isExpired) {
    assert.equal(isExpired, true);
    this.removed++;
  }
  rowStarted() {}
  renumbered() {}
}

describe('ExpiringTable', () => {
  for (const isHeld of [false, true]) {
    it(`a million label sets, a thousand in use, need no more memory than few: ${isHeld ? 'in one turn of the loop' : 'with timers'}`, async t => {
      const clock = new MovedClock(t);
      const table = new ExpiringTable(['device', 'kind'], 3, IDLE);
      const most = { live: 0, rows: 0, pages: 0, values: 0 };
      for (let i = 0; i < 1_000_000; i++) {
        const row = table.locate({ device: `d${i}`, kind: i % 3 });
        table.pageOf(row)[table.offsetOf(row)]++;
        if (isHeld) clock.hold(IDLE / 1000);
        else if (i % 50 === 0) await clock.move((50 * IDLE) / 1000);
        most.live = Math.max(most.live, table.liveCount);
        most.rows = Math.max(most.rows, table.rowCount);
        most.pages = Math.max(most.pages, table.pages.length);
        most.values = Math.max(most.values, table.index.dictionaries[0].values.length);
      }
      // Those of the idle time, of the ticks before it ends, and between two looks at the clock.
      assert.ok(most.live < 1000 * 1.6, JSON.stringify(most));
      assert.ok(
        most.rows <= 4096 + 256 && most.pages <= 2 && most.values <= 2 * most.rows,
        JSON.stringify(most),
      );
      assert.equal(table.expiredCount, 1_000_000 - table.liveCount);
    });
  }

  it('a sweep of 100,000 label sets does little in each slice', async t => {
    const clock = new MovedClock(t);
    const table = new ExpiringTable(['a'], 1, IDLE);
    const follower = new Follower();
    for (let a = 0; a < 100_000; a++) table.locate({ a });
    await clock.move(IDLE / 2);
    for (let a = 0; a < 100_000; a += 10) table.locate({ a });
    // Each step takes a tenth of a millisecond, by the clock of the slices.
    let now = 0;
    t.mock.method(performance, 'now', () => (now += 0.1));
    table.followers = [/** @type {any} */ (follower)];
    const sweep = clock.move(LATEST - IDLE / 2);
    let slices = 0;
    for (let before = 0; table.liveCount > 10_000; slices++) {
      await new Promise(setImmediate);
      const removed = follower.removed - before;
      before = follower.removed;
      assert.ok(removed <= 6 * 64, `${removed} in a slice`);
    }
    assert.ok(slices > 200, `${slices} slices`);
    await sweep;
    assert.deepEqual([table.liveCount, table.expiredCount, table.rowCount], [10_000, 90_000, 10_000]);
  });

  it('property: a row goes after the idle time, not before, whatever happens to the table', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ use: fc.nat(40) }) },
      { weight: 4, arbitrary: fc.record({ child: fc.nat(10) }) },
      { weight: 3, arbitrary: fc.record({ move: fc.nat(IDLE / 2) }) },
      { weight: 2, arbitrary: fc.record({ hold: fc.nat(IDLE / 2) }) },
      fc.record({ move: fc.nat(3 * IDLE) }),
      fc.record({ remove: fc.nat(40) }),
      fc.record({ fill: fc.nat(3000) }),
      fc.constant({ clear: true }),
      fc.constant({ compact: true }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
        const clock = new MovedClock();
        try {
          const table = new ExpiringTable(['a'], 1, IDLE);
          const children = Array.from({ length: 11 }, (_, a) => new SeriesHandle(table, { a: `${a}` }));
          /** @type {Map<string, {last: number, count: number}>} by label value */
          const used = new Map();
          let now = 0;
          let filled = 0;
          const note = a => {
            const before = used.get(a) ?? { last: now, count: 0 };
            used.set(a, { last: now, count: before.count + 1 });
          };
          const record = a => {
            const row = table.locate({ a });
            table.pageOf(row)[table.offsetOf(row)]++;
            if (table.pageOf(row)[table.offsetOf(row)] === 1) used.delete(a);
            note(a);
          };
          for (const each of steps) {
            if ('use' in each) record(`${each.use}`);
            if ('child' in each) {
              const child = children[each.child];
              if (child.generation !== table.generation) child.bind();
              child.page[child.offset]++;
              if (child.page[child.offset] === 1) used.delete(`${each.child}`);
              note(`${each.child}`);
            }
            if ('move' in each) await clock.move(each.move);
            if ('hold' in each) clock.hold(each.hold);
            now += each.move ?? each.hold ?? 0;
            for (let i = 0; i < (each.fill ?? 0); i++) record(`f${filled++}`);
            if ('remove' in each) {
              const row = table.find({ a: `${each.remove}` });
              if (row !== -1) table.removeRow(row);
              used.delete(`${each.remove}`);
            }
            if ('clear' in each) {
              table.clear();
              used.clear();
            }
            if ('compact' in each) runThrough(table.compactionSteps());
            for (const [a, { last, count }] of used) {
              const row = table.find({ a });
              if (row === -1) assert.ok(now - last >= IDLE, `${a} after ${now - last}`);
              else assert.equal(table.pageOf(row)[table.offsetOf(row)], count);
              if (row === -1) used.delete(a);
            }
            // While timers are late, rows are, too.
            if ('move' in each && each.move >= IDLE / 4)
              for (const [a, { last }] of used)
                assert.ok(now - last <= LATEST + IDLE / 2, `${a}: ${now - last}`);
          }
          await clock.move(2 * LATEST);
          assert.deepEqual([table.liveCount, clock.timers], [0, 0]);
        } finally {
          clock.restore();
        }
      }),
      { numRuns: 300 },
    );
  });
});
