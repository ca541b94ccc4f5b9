'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const workerThreads = require('node:worker_threads');

const { startBackend } = require('../../../lib/cluster/primary/aggregator-backend');
const { makePlace, LIBRARY } = require('../../fixtures/cluster-harness');

/**
 * Starts a backend whose threads run some code before theirs; returns how many threads it started.
 *
 * @param {(place: string) => void} [onStarting] called in the turn in which the first one is starting
 */
async function startAfter(t, code, onStarting = () => {}) {
  const place = makePlace(t);
  const preload = path.join(makePlace(t), 'preload.js');
  fs.writeFileSync(preload, `const lib = ${JSON.stringify(path.join(LIBRARY, 'lib'))};${code}`);
  const { Worker } = workerThreads;
  const ends = [];
  t.mock.method(workerThreads, 'Worker', function (file, options) {
    const execArgv = [...(options.execArgv ?? []), '--require', preload];
    const thread = new Worker(file, { ...options, execArgv, stderr: true });
    ends.push(new Promise(resolve => thread.once('exit', resolve)));
    return thread;
  });
  const restarts = t.mock.fn();
  const events = { onDirectory() {}, onRetired() {}, onRestart: restarts };
  const starting = startBackend({ directory: place }, events);
  onStarting(place);
  const backend = await starting;
  return { backend, place, restarts, ends, threads: ends.length };
}

describe('a thread', () => {
  it('whose start fails is started with the options of its process, and then replaced by aggregation in place', async t => {
    const { backend, place, threads } = await startAfter(
      t,
      `require(lib + '/aggregator/aggregator').Aggregator.prototype.open = async () => {
         throw new Error('it does not open');
       };`,
    );
    assert.equal(threads, 2);
    assert.equal(backend.inPlaceReason, 'start');
    await backend.close();
    assert.deepEqual(fs.readdirSync(place), []);
  });

  it('that does not reply for half a minute is replaced, but not if the reply is there when the time is up', async t => {
    const { backend, restarts } = await startAfter(t, '');
    t.after(() => backend.close());
    t.mock.timers.enable({ apis: ['setTimeout'] });
    // After a stop of this process, or while its loop is held, timers run before messages are handled.
    for (const late of [30_000, 31_000, 34_000, 36_000, 80_000]) {
      const reply = backend.request('removeRetired', { labels: [] });
      t.mock.timers.tick(late);
      assert.equal(await reply, 0);
    }
    // After a stop, the thread needs time for its reply.
    const slow = backend.request('removeRetired', { labels: [] });
    t.mock.timers.tick(80_000);
    t.mock.timers.tick(14_000);
    assert.equal(await slow, 0);
    assert.equal(restarts.mock.callCount(), 0);
    const none = backend.request('removeRetired', { labels: [] });
    t.mock.timers.tick(15_000);
    t.mock.timers.tick(15_000);
    await assert.rejects(none);
    assert.equal(restarts.mock.callCount(), 1);
  });

  for (const [what, ticks, expected] of [
    ['started while this loop was held is used', [80_000], 1],
    ['was given up before its start was noticed is not used', [15_000, 15_000], 2],
  ]) {
    it(`that ${what}`, async t => {
      const ready = path.join(makePlace(t), 'ready');
      t.mock.timers.enable({ apis: ['setTimeout'] });
      const { backend, place, restarts, ends, threads } = await startAfter(
        t,
        `const { parentPort } = require('node:worker_threads');
         const { postMessage } = parentPort;
         parentPort.postMessage = function (message) {
           postMessage.call(this, message);
           if (message.op === 'ready') require('node:fs').writeFileSync(${JSON.stringify(ready)}, '');
         };`,
        () => {
          // A breakpoint, for example: when it ends, timers run before messages are handled.
          while (!fs.existsSync(ready)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
          for (const milliseconds of ticks) t.mock.timers.tick(milliseconds);
        },
      );
      assert.equal(threads, expected);
      if (expected === 2) await ends[0];
      assert.equal(restarts.mock.callCount(), 0);
      await backend.close();
      // What a thread that was given up has left is removed by a sweep.
      assert.equal(fs.readdirSync(place).length, expected - 1);
    });
  }

  it('whose end fails ends nevertheless', async t => {
    const { backend, threads } = await startAfter(
      t,
      `require(lib + '/spool/spool').Spool.prototype.close = async () => {
         throw new Error('it does not close');
       };`,
    );
    assert.equal(threads, 1);
    await backend.close();
    await assert.rejects(backend.request('render'), /there is no aggregator thread/);
  });
});
