'use strict';

const assert = require('node:assert');
const { describe, it, mock } = require('node:test');
const { Retirement } = require('../../../lib/cluster/aggregator/retirement');

const RETRY_MILLISECONDS = 5000;

describe('retired totals that cannot be written', () => {
  it('are tried again every 5 s, however many scrapes there are in between', t => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
    const { retirement, spool, saved } = retirementWith({ isDiskFull: true });
    retirement.retire(1);
    t.mock.timers.tick(0);
    assert.strictEqual(spool.writeAtomically.mock.callCount(), 1);
    for (let retry = 1; retry <= 4; retry++) {
      for (let scrape = 0; scrape < 10; scrape++) retirement.saveIfNeeded();
      t.mock.timers.tick(RETRY_MILLISECONDS);
      assert.strictEqual(spool.writeAtomically.mock.callCount(), 1 + retry);
    }
    assert.deepStrictEqual(saved, []);
    assert.strictEqual(spool.unlinkAllOf.mock.callCount(), 0);
  });

  it('are reported as saved once the disk has room', t => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
    const { retirement, spool, saved, refused } = retirementWith({ isDiskFull: true });
    retirement.retire(1);
    t.mock.timers.tick(0);
    retirement.retire(2);
    spool.isDiskFull = false;
    t.mock.timers.tick(RETRY_MILLISECONDS);
    assert.deepStrictEqual(saved, [[1, 2]]);
    assert.deepStrictEqual(refused, ['save-retired']);
    assert.deepStrictEqual(
      spool.unlinkAllOf.mock.calls.map(call => call.arguments[0]),
      [1, 2],
    );
  });
});

it('a dead worker is retired later if the directory cannot be read for want of descriptors', () => {
  const { retirement, spool } = retirementWith({ isDiskFull: false });
  spool.filesOfWorker = () => {
    throw Object.assign(new Error('EMFILE: too many open files, scandir'), { code: 'EMFILE' });
  };
  assert.strictEqual(retirement.retire(3), false);
  assert.deepStrictEqual(retirement.unread, [3]);
  retirement.save();
  assert.strictEqual(spool.unlinkAllOf.mock.callCount(), 0);
  spool.filesOfWorker = () => [];
  assert.strictEqual(retirement.retire(3), true);
});

/** A retirement with a spool that holds no files. */
function retirementWith({ isDiskFull }) {
  const saved = [];
  const refused = [];
  const spool = {
    isDiskFull,
    filesOfWorker: () => [],
    writeAtomically: mock.fn(() => {
      if (spool.isDiskFull) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
    }),
    unlinkAllOf: mock.fn(),
  };
  const store = { isClosed: () => false, retire: () => true, encodeRetired: () => Buffer.alloc(8) };
  const retirement = new Retirement({
    store,
    spool: () => spool,
    onRefused: reason => refused.push(reason),
    onSaved: workerIds => saved.push(workerIds),
  });
  return { retirement, spool, saved, refused };
}
