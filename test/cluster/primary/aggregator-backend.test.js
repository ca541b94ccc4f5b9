'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const workerThreads = require('node:worker_threads');

const { startBackend } = require('../../../lib/cluster/primary/aggregator-backend');
const { makePlace, LIBRARY } = require('../../fixtures/cluster-harness');

/** Starts a backend whose threads run some code before theirs; returns how many threads it started. */
async function startAfter(t, code) {
  const place = makePlace(t);
  const preload = path.join(makePlace(t), 'preload.js');
  fs.writeFileSync(preload, `const lib = ${JSON.stringify(path.join(LIBRARY, 'lib'))};${code}`);
  const { Worker } = workerThreads;
  const threads = t.mock.method(workerThreads, 'Worker', function (file, options) {
    const execArgv = [...(options.execArgv ?? []), '--require', preload];
    return new Worker(file, { ...options, execArgv, stderr: true });
  });
  const events = { onStarting() {}, onDirectory() {}, onRetired() {}, onRestart() {} };
  const backend = await startBackend({ directory: place }, events);
  return { backend, place, threads: threads.mock.callCount() };
}

describe('a thread', () => {
  it('whose start fails is tried once more, and replaced by aggregation in place', async t => {
    const { backend, place, threads } = await startAfter(
      t,
      `require(lib + '/cluster/aggregator/aggregator').Aggregator.prototype.open = async () => {
         throw new Error('it does not open');
       };`,
    );
    assert.equal(threads, 2);
    assert.equal(backend.inPlaceReason, 'start');
    await backend.close();
    assert.deepEqual(fs.readdirSync(place), []);
  });

  it('that gets an unknown operation, as from another release, goes on', async t => {
    const { backend } = await startAfter(t, '');
    backend.send('operationOfTomorrow', 1);
    assert.equal(await backend.request('removeRetired', { labels: {} }), 0);
    assert.equal(backend.isRunning, true);
    await backend.close();
  });

  it('whose end fails ends nevertheless', async t => {
    const { backend, threads } = await startAfter(
      t,
      `require(lib + '/cluster/spool/spool').Spool.prototype.close = async () => {
         throw new Error('it does not close');
       };`,
    );
    assert.equal(threads, 1);
    await backend.close();
    assert.equal(backend.isRunning, false);
  });
});
