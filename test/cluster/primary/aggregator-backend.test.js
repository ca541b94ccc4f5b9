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
 */
async function startAfter(t, code) {
  const place = makePlace(t);
  const preload = path.join(makePlace(t), 'preload.js');
  fs.writeFileSync(preload, `const lib = ${JSON.stringify(path.join(LIBRARY, 'lib'))};${code}`);
  const { Worker } = workerThreads;
  let threads = 0;
  t.mock.method(workerThreads, 'Worker', function (file, options) {
    const execArgv = [...(options.execArgv ?? []), '--require', preload];
    threads++;
    return new Worker(file, { ...options, execArgv, stderr: true });
  });
  const restarts = t.mock.fn();
  const events = { onDirectory() {}, onRetired() {}, onRestart: restarts };
  const backend = await startBackend({ directory: place }, events);
  return { backend, place, restarts, threads };
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

  it('that does not reply for half a minute is replaced', async t => {
    const { backend, restarts } = await startAfter(t, '');
    t.after(() => backend.close());
    t.mock.timers.enable({ apis: ['setTimeout'] });
    assert.equal(await backend.request('removeRetired', { labels: [] }), 0);
    t.mock.timers.tick(30_000);
    assert.equal(restarts.mock.callCount(), 0);
    const none = backend.request('removeRetired', { labels: [] });
    t.mock.timers.tick(30_000);
    await assert.rejects(none);
    assert.equal(restarts.mock.callCount(), 1);
  });

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
