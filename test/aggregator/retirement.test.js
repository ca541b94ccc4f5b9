'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, mock } = require('node:test');
const { Retirement } = require('../../lib/aggregator/retirement');
const { Spool } = require('../../lib/spool/spool');
const { columnsName } = require('../../lib/spool/file-names');
const { makePlace } = require('../fixtures/cluster-harness');

const RETRY_MILLISECONDS = 5000;
const TOTALS = Buffer.from('totals');

const removed = spool => spool.unlinkAllOf.mock.calls.map(call => call.arguments[0]);

describe('retired totals that cannot be written', () => {
  it('retired totals that cannot be written are tried again every 5 s, and given to the primary each time', t => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
    const { retirement, spool, saved } = retirementWith({ isDiskFull: true });
    retirement.retire(1);
    t.mock.timers.tick(0);
    assert.strictEqual(spool.writeAtomically.mock.callCount(), 1);
    for (let retry = 1; retry <= 4; retry++) {
      t.mock.timers.tick(RETRY_MILLISECONDS);
      assert.strictEqual(spool.writeAtomically.mock.callCount(), 1 + retry);
    }
    assert.deepStrictEqual(saved, [[[1], TOTALS], ...Array(4).fill([[], TOTALS])]);
    assert.deepStrictEqual(removed(spool), [1]);
  });

  it('retired totals that cannot be written have one timer, however many workers die', t => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
    const { retirement, spool } = retirementWith({ isDiskFull: true });
    const triesOfNext = milliseconds => {
      const before = spool.writeAtomically.mock.callCount();
      t.mock.timers.tick(milliseconds);
      return spool.writeAtomically.mock.callCount() - before;
    };
    for (let workerId = 1; workerId <= 50; workerId++) retirement.retire(workerId);
    assert.strictEqual(triesOfNext(0), 1);
    for (let workerId = 51; workerId <= 100; workerId++) {
      // One whose last columns came over IPC is tried at once, but does not add a timer.
      retirement.retire(workerId, workerId % 2 ? undefined : { isLastExpected: true, lastSource: '' });
    }
    for (let retry = 1; retry <= 4; retry++) assert.strictEqual(triesOfNext(RETRY_MILLISECONDS), 1);
  });

  it('retired totals that cannot be written are no longer needed by the primary once the disk has space', t => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
    const { retirement, spool, saved, refused } = retirementWith({ isDiskFull: true });
    retirement.retire(1);
    t.mock.timers.tick(0);
    retirement.retire(2);
    spool.isDiskFull = false;
    t.mock.timers.tick(RETRY_MILLISECONDS);
    assert.deepStrictEqual(saved, [
      [[1], TOTALS],
      [[], undefined],
      [[2], undefined],
    ]);
    assert.deepStrictEqual(refused, ['save-retired']);
    assert.deepStrictEqual(removed(spool), [1, 2]);
  });

  it('retired totals that cannot be written are given to the primary if there is no directory, and are not tried again', t => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
    const { retirement, saved, refused } = retirementWith({ hasSpool: false });
    retirement.retire(1);
    t.mock.timers.tick(2 * RETRY_MILLISECONDS);
    assert.deepStrictEqual(saved, [[[1], TOTALS]]);
    assert.deepStrictEqual(refused, []);
  });

  it('retired totals that cannot be written are restored by the next thread, which writes them', t => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
    const { retirement, saved, store } = retirementWith({});
    retirement.restore(TOTALS);
    t.mock.timers.tick(0);
    assert.deepStrictEqual(store.restored, [TOTALS]);
    assert.deepStrictEqual(saved, [[[], undefined]]);
  });
});

it('last columns that came over IPC are written with the totals at once', () => {
  const { retirement, spool } = retirementWith({});
  retirement.retire(1, { isLastExpected: true, lastSource: 'AAAA' });
  assert.strictEqual(spool.writeAtomically.mock.callCount(), 1);
});

it('a dead worker is retired later if the directory cannot be read for want of descriptors', () => {
  const { retirement, spool } = retirementWith({ isDiskFull: false });
  spool.columnsOfWorker = () => {
    throw Object.assign(new Error('EMFILE: too many open files, scandir'), { code: 'EMFILE' });
  };
  assert.strictEqual(retirement.retire(3), false);
  assert.deepStrictEqual([...retirement.unread], [3]);
  retirement.save();
  assert.strictEqual(spool.unlinkAllOf.mock.callCount(), 0);
  spool.columnsOfWorker = () => [];
  assert.strictEqual(retirement.retire(3), true);
});

it('a dead worker is retired later, with its last columns, if the disk has an error at that moment', async t => {
  const directory = makePlace(t);
  const spool = await Spool.open({ directory, fallbacks: [] });
  t.after(() => spool.close());
  const name = columnsName(3, 0);
  fs.writeFileSync(path.join(spool.directory, name), 'snapshot');
  const { lstatSync } = fs;
  let failAt = 0;
  const looks = t.mock.method(fs, 'lstatSync', (...args) => {
    if (looks.mock.callCount() + 1 !== failAt) return lstatSync(...args);
    throw Object.assign(new Error('EIO: i/o error, lstat'), { code: 'EIO' });
  });
  // Each look at the directory fails once.
  for (failAt = 1; ; failAt++) {
    looks.mock.resetCalls();
    const { retirement, store, refused } = retirementWith({ spool });
    const isRetired = retirement.retire(3, { isLastExpected: true });
    const hasFailed = looks.mock.callCount() >= failAt;
    assert.deepStrictEqual([isRetired, store.applied], hasFailed ? [false, 0] : [true, 1]);
    assert.ok(!refused.includes('exit-missing'));
    if (!hasFailed) break;
    assert.strictEqual(retirement.retire(3), true);
    assert.strictEqual(store.applied, 1);
  }
  assert.ok(failAt > 2);
});

for (const code of ['EIO', 'EMFILE'])
  it(`a dead worker with a file that cannot be read is retired when it can be read, and counted until then: ${code}`, () => {
    const { retirement, spool, refused } = retirementWith({});
    spool.columnsOfWorker = () => [columnsName(3, 0)];
    spool.readIfPresent = () => {
      throw Object.assign(new Error(`${code}: it cannot be read`), { code });
    };
    assert.strictEqual(retirement.retire(3, { isLastExpected: true }), false);
    for (let tries = 0; tries < 10; tries++) assert.strictEqual(retirement.retire(3), false);
    spool.readIfPresent = () => Buffer.from('snapshot');
    assert.strictEqual(retirement.retire(3), true);
    assert.deepStrictEqual([...retirement.unread], []);
    assert.strictEqual(spool.unlinkAllOf.mock.callCount(), 0, 'not before the totals are saved');
    assert.deepStrictEqual([...new Set(refused)], [`exit-${code}`]);
  });

function emptySpool(isDiskFull) {
  const spool = {
    isDiskFull,
    columnsOfWorker: () => [],
    writeAtomically: mock.fn(() => {
      if (spool.isDiskFull) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
    }),
    unlinkAllOf: mock.fn(),
  };
  return spool;
}

/** A retirement, by default with a spool that holds no files. */
function retirementWith({ isDiskFull = false, hasSpool = true, spool = emptySpool(isDiskFull) }) {
  const saved = [];
  const refused = [];
  const store = {
    restored: [],
    isClosed: () => false,
    applied: 0,
    apply: () => store.applied++,
    worker: () => ({ isLast: store.applied > 0 }),
    retire: () => true,
    encodeRetired: () => TOTALS,
    noteSaved: () => {},
    restoreRetired: totals => store.restored.push(totals),
  };
  const retirement = new Retirement({
    store,
    spool: () => (hasSpool ? spool : undefined),
    onRefused: reason => refused.push(reason),
    onSaved: (workerIds, totals) => saved.push([workerIds, totals]),
  });
  return { retirement, spool, store, saved, refused };
}
