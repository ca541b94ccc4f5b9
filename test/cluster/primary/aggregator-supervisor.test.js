'use strict';

// When the supervisor starts another thread. Threads and the clock are fakes.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { AggregatorSupervisor } = require('../../../lib/cluster/primary/aggregator-supervisor');

const outOfMemory = () => Object.assign(new Error('heap'), { code: 'ERR_WORKER_OUT_OF_MEMORY' });
const settled = () => new Promise(resolve => setImmediate(resolve));

let started;
let startError;
let starts;
let options;
let supervisor;
beforeEach(() => {
  started = [];
  startError = undefined;
  starts = 0;
  options = {};
  supervisor = new AggregatorSupervisor(
    options,
    { onDirectory() {}, onStarted: () => starts++ },
    async (options, events, reason) => {
      started.push({ inPlace: reason !== undefined, fail: error => events.onRestart(error) });
      if (startError !== undefined) throw startError;
      return { inPlaceReason: reason ?? '', send() {}, close: async () => {} };
    },
  );
});
afterEach(() => supervisor.close());

it('no page is asked for before the members of a group that live are linked', async () => {
  let onLinked;
  options.settled = new Promise(resolve => (onLinked = resolve));
  let isReady = false;
  const starting = supervisor.start().then(() => (isReady = true));
  await settled();
  assert.deepEqual([supervisor.place.aggregator, isReady], ['thread', false]);
  onLinked();
  await starting;
});

describe('a thread that runs out of memory', () => {
  it('a thread that runs out of memory is started again after pauses that double up to five minutes, and never in place', async t => {
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
    assert.equal(starts, 13, 'workers are asked for full snapshots each time');
    assert.equal(supervisor.lostThreads, 12);
    assert.ok(started.every(({ inPlace }) => !inPlace));
  });

  it('a thread that runs out of memory while it starts is started again later, too', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    startError = outOfMemory();
    await assert.rejects(supervisor.start());
    await assert.rejects(supervisor.starting, /ran out of memory/);
    startError = undefined;
    t.mock.timers.tick(1000);
    await supervisor.starting;
    assert.ok(supervisor.running);
    const inPlaces = started.map(({ inPlace }) => inPlace);
    assert.deepEqual(inPlaces, [false, false]);
  });

  it('an aggregator that cannot be started, for any other reason, is started again later, too', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    startError = Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
    const reason = /cannot be started \(EMFILE: .* It is started again after 1 s\./;
    // Also for the scrapes that wait for the start.
    await assert.rejects(supervisor.start(), reason);
    await assert.rejects(supervisor.starting, reason);
    assert.deepEqual(supervisor.place, { aggregator: 'none', aggregatorReason: 'start' });
    startError = undefined;
    t.mock.timers.tick(1000);
    await supervisor.starting;
    assert.ok(supervisor.running);
  });

  it('scrapes get the reason even if a file of the library cannot be loaded, at once', async t => {
    const error = new Error('EMFILE: too many open files');
    const events = { onDirectory() {}, onStarted() {} };
    const other = new AggregatorSupervisor({}, events, () => {
      throw error;
    });
    t.after(() => other.close());
    const reason = /cannot be started \(EMFILE: .* It is started again after 1 s\./;
    await assert.rejects(other.start(), reason);
    await assert.rejects(other.starting, reason);
  });

  it('a thread that runs out of memory is not started after close()', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await supervisor.start();
    started[0].fail(outOfMemory());
    const closed = supervisor.close();
    t.mock.timers.tick(600_000);
    await closed;
    assert.equal(started.length, 1);
  });
});

describe('a thread that ends for another reason', () => {
  it('a thread that ends for another reason is replaced at once, and the third time by aggregation in place, which stays', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await supervisor.start();
    assert.deepEqual(supervisor.place, { aggregator: 'thread', aggregatorReason: '' });
    for (const error of [undefined, new Error('broken'), undefined]) {
      started.at(-1).fail(error);
      await supervisor.starting;
    }
    assert.deepEqual(supervisor.place, { aggregator: 'in place', aggregatorReason: 'start' });
    t.mock.timers.tick(600_000);
    await supervisor.starting;
    const inPlaces = started.map(({ inPlace }) => inPlace);
    assert.deepEqual(inPlaces, [false, false, false, true]);
    assert.deepEqual([starts, supervisor.lostThreads], [4, 3]);
  });

  it('a thread that ends for another reason is replaced by another one as long as each lasts for 40 seconds', async t => {
    let now = performance.now();
    t.mock.method(performance, 'now', () => now);
    await supervisor.start();
    for (let i = 0; i < 10; i++) {
      started.at(-1).fail(undefined);
      await supervisor.starting;
      now += 40_000;
    }
    assert.ok(started.every(({ inPlace }) => !inPlace));
    for (const inPlace of [false, true]) {
      now -= 1;
      started.at(-1).fail(undefined);
      await supervisor.starting;
      assert.equal(started.at(-1).inPlace, inPlace);
    }
  });
});
