'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check.js');
const { ExpiringTable } = require('../../lib/series/expiring-table');
const { SeriesHandle } = require('../../lib/series/series-handle');
const { runThrough } = require('../../lib/event-loop/slices');
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

  it('what is recorded while rows are moved is there, however shortly before its row was used', t => {
    new MovedClock(t);
    const table = new ExpiringTable(['a'], 1, IDLE);
    const record = a => {
      const row = table.locate({ a });
      return ++table.pageOf(row)[table.offsetOf(row)];
    };
    const child = new SeriesHandle(table, { a: 5 });
    const recordChild = () => {
      if (child.generation !== table.generation) child.bind();
      return ++child.page[child.offset];
    };
    for (let a = 0; a < 4096; a++) record(a);
    recordChild();
    for (let a = 0; a < 4096; a++) if (a % 4 !== 1) table.removeRow(table.find({ a }));
    let count = 1;
    const { epoch } = table;
    for (const steps = table.compactionSteps(); !steps.next().done;) {
      count++;
      assert.deepEqual([record(1), record(4093), recordChild()], [count, count, count + 1]);
    }
    assert.deepEqual([table.epoch - epoch, table.rowCount, table.liveCount], [1, 1024, 1024]);
    assert.deepEqual([record(1), record(4093), recordChild()], [count + 1, count + 1, count + 2]);
  });

  it('a row that is removed after it was moved begins anew with its next use', t => {
    new MovedClock(t);
    const table = new ExpiringTable(['a'], 1, IDLE);
    for (let a = 0; a < 4096; a++) table.locate({ a });
    for (let a = 1024; a < 4096; a++) table.removeRow(table.find({ a }));
    const steps = table.compactionSteps();
    for (let i = 0; i < 20; i++) steps.next();
    table.locate({ a: 5 });
    table.removeRow(table.find({ a: 5 }));
    runThrough(steps);
    assert.deepEqual([table.rowCount, table.liveCount], [1024, 1023]);
    assert.ok(table.isLive(table.locate({ a: 5 })));
    assert.equal(table.liveCount, 1024);
  });

  it('a sweep sees rows that get new numbers meanwhile', async t => {
    const clock = new MovedClock(t);
    const table = new ExpiringTable(['a'], 1, IDLE);
    for (let a = 0; a < 4096; a++) table.locate({ a });
    await clock.move(IDLE / 2);
    for (let a = 0; a < 3072; a++) table.removeRow(table.find({ a }));
    clock.hold(IDLE);
    // A step in each slice.
    let now = 0;
    t.mock.method(performance, 'now', () => now++);
    const sweep = table.sweepInSlices();
    runThrough(table.compactionSteps());
    assert.deepEqual([table.rowCount, table.liveCount], [1024, 1024]);
    await sweep;
    assert.equal(table.liveCount, 0);
  });

  it('property: a row goes after the idle time, not before, whatever happens to the table', async t => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ use: fc.nat(40) }) },
      { weight: 6, arbitrary: fc.record({ child: fc.nat(10) }) },
      { weight: 3, arbitrary: fc.record({ move: fc.nat(IDLE / 2) }) },
      { weight: 2, arbitrary: fc.record({ hold: fc.nat(IDLE / 2) }) },
      fc.record({ move: fc.nat(3 * IDLE) }),
      fc.record({ remove: fc.nat(40) }),
      { weight: 2, arbitrary: fc.record({ reset: fc.nat(40) }) },
      { weight: 2, arbitrary: fc.record({ fill: fc.nat(3000) }) },
      { weight: 2, arbitrary: fc.constant({ thin: true }) },
      { weight: 8, arbitrary: fc.record({ steps: fc.nat(40) }) },
      fc.constant({ steps: Infinity }),
      fc.constant({ clear: true }),
    );
    let now = 0;
    t.mock.method(Date, 'now', () => 1e12 + now * 1000);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async steps => {
        const clock = new MovedClock();
        const table = new ExpiringTable(['a'], 1, IDLE);
        table.starts = 0;
        /** What a table has of each row besides. */
        let own = [];
        const listener = {
          rowStarted: row => (own[row] = table.labelsOf(row).a),
          startMove: () => {
            const moved = [];
            return { copy: (old, row) => (moved[row] = own[old]), finish: () => (own = moved) };
          },
        };
        table.listeners = [listener];
        const children = Array.from({ length: 11 }, (_, a) => new SeriesHandle(table, { a: `${a}` }));
        /** @type {Map<string, {last: number, count: number, start: number}>} by label value */
        const used = new Map();
        let filled = 0;
        let held = 0;
        /** @param {string} a @param {number} count what its row has after a recording */
        const note = (a, count) => {
          const isKept = used.has(a) && (count > 1 || used.get(a)?.count === 0);
          const before = isKept ? used.get(a) : { count: 0, start: 1e9 + now };
          used.set(a, { ...before, last: now, count: before.count + 1 });
        };
        const numberOf = row => table.pageOf(row)[table.offsetOf(row)];
        const record = a => {
          const row = table.locate({ a });
          note(a, ++table.pageOf(row)[table.offsetOf(row)]);
        };
        const rowOf = number => table.find({ a: `${number}` });
        const removeRow = row => {
          used.delete(table.labelsOf(row).a);
          table.removeRow(row);
        };
        /** @type {Record<string, (value: any) => any>} */
        const actions = {
          use: number => record(`${number}`),
          child: number => {
            const child = children[number];
            if (child.generation !== table.generation) child.bind();
            note(`${number}`, ++child.page[child.offset]);
          },
          move: seconds => {
            now += seconds;
            return clock.move(seconds);
          },
          hold: seconds => {
            now += seconds;
            held += seconds;
            clock.hold(seconds);
          },
          remove: number => rowOf(number) !== -1 && removeRow(rowOf(number)),
          reset: number => {
            if (rowOf(number) === -1) return;
            table.resetRow(rowOf(number));
            Object.assign(used.get(`${number}`), { count: 0, start: 1e9 + now });
          },
          fill: count => {
            for (let i = 0; i < count; i++) record(`f${filled++}`);
          },
          thin: () => {
            for (const row of [...table.liveRows()])
              if (/^f.*[^7]$/.test(table.labelsOf(row).a)) removeRow(row);
          },
          steps: count => {
            const compaction = table.compactionSteps();
            for (let i = 0; i < count && !compaction.next().done; i++);
          },
          clear: () => {
            table.clear();
            used.clear();
          },
        };
        try {
          for (const each of steps) {
            const [[name, value]] = Object.entries(each);
            await actions[name](value);
            for (const [a, { last, count, start }] of used) {
              const row = table.find({ a });
              if (row === -1) {
                assert.ok(now - last >= IDLE, `${a} after ${now - last}`);
                used.delete(a);
              } else {
                assert.deepEqual([numberOf(row), own[row], table.startAt(row)], [count, a, start]);
                // While timers are late, rows are, too.
                if (name === 'move') assert.ok(now - last <= LATEST + IDLE / 8 + held);
              }
            }
            assert.equal(table.liveCount, used.size);
          }
          await clock.move(2 * LATEST);
          assert.deepEqual([table.liveCount, clock.timers], [0, 0]);
        } finally {
          clock.restore();
        }
      }),
      { numRuns: 200 },
    );
  });
});
