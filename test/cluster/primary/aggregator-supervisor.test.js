'use strict';

// When the supervisor starts another thread. Threads and the clock are fakes.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { AggregatorSupervisor } = require('../../../lib/cluster/primary/aggregator-supervisor');

const outOfMemory = () => Object.assign(new Error('heap'), { code: 'ERR_WORKER_OUT_OF_MEMORY' });
const settled = () => new Promise(resolve => setImmediate(resolve));

let started;
let startError;
let lost;
let supervisor;
beforeEach(() => {
  started = [];
  startError = undefined;
  lost = 0;
  supervisor = new AggregatorSupervisor(
    {},
    { onDirectory() {}, onLost: () => lost++, onReplaced() {} },
    async (options, events) => {
      started.push({ inPlace: options.inPlace === true, fail: error => events.onRestart(error) });
      if (startError !== undefined) throw startError;
      return { isRunning: true, retire() {}, discard() {}, close: async () => {} };
    },
  );
});
afterEach(() => supervisor.close());

describe('a thread that runs out of memory', () => {
  it('is started again after pauses that double up to five minutes, and never in place', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await supervisor.start();
    const pauses = [];
    for (let i = 0; i < 12; i++) {
      started.at(-1).fail(outOfMemory());
      const [, seconds] = /again after (\d+) s/.exec(await supervisor.starting.catch(error => error.message));
      pauses.push(Number(seconds));
      const { length } = started;
      t.mock.timers.tick(seconds * 1000 - 1);
      await settled();
      assert.equal(started.length, length);
      t.mock.timers.tick(1);
      await supervisor.starting;
      assert.equal(started.length, length + 1);
    }
    assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    assert.equal(lost, 12, 'workers are asked for full snapshots each time');
    assert.equal(supervisor.lostThreads, 12);
    assert.ok(started.every(({ inPlace }) => !inPlace));
  });

  it('while it starts is started again later, too', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    startError = outOfMemory();
    await assert.rejects(supervisor.start());
    await assert.rejects(supervisor.starting, /ran out of memory/);
    startError = undefined;
    t.mock.timers.tick(1000);
    await supervisor.starting;
    assert.ok(supervisor.running);
    assert.deepEqual(
      started.map(({ inPlace }) => inPlace),
      [false, false],
    );
  });

  it('is not started after close()', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await supervisor.start();
    started[0].fail(outOfMemory());
    const closed = supervisor.close();
    t.mock.timers.tick(600_000);
    await closed;
    assert.equal(started.length, 1);
  });
});

it('a backend that starts after close() is closed, and its directory removed', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let begin;
  let closed = 0;
  const slow = new AggregatorSupervisor(
    {},
    { onDirectory() {}, onLost() {}, onReplaced() {} },
    () => new Promise(resolve => (begin = resolve)),
  );
  slow.start();
  const closing = slow.close();
  t.mock.timers.tick(5000);
  await closing;
  assert.equal(closed, 0);
  begin({ isRunning: true, retire() {}, discard() {}, close: async () => closed++ });
  await slow.starting;
  assert.equal(closed, 1);
});

describe('a thread that ends for another reason', () => {
  it('is replaced at once, and by aggregation in place if the next one writes no page either', async () => {
    await supervisor.start();
    started[0].fail(undefined);
    await supervisor.starting;
    started[1].fail(new Error('broken'));
    await supervisor.starting;
    assert.deepEqual(
      started.map(({ inPlace }) => inPlace),
      [false, false, true],
    );
  });

  it('is replaced by another one as long as pages are written in between, up to five times a minute', async () => {
    await supervisor.start();
    for (let i = 0; i < 6; i++) {
      supervisor.noteWritten();
      started.at(-1).fail(undefined);
      await supervisor.starting;
    }
    assert.deepEqual(
      started.map(({ inPlace }) => inPlace),
      [false, false, false, false, false, false, true],
    );
  });
});
