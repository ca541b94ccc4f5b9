'use strict';

// One fault of each kind; test/faults has many more.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const client = require('../../..');
const { removeWhileUsed, until } = require('../../fixtures/cluster-harness.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');

const counting = {
  start: ({ client, state }) => {
    state.counter = new client.Counter({ name: 'done_total', help: 'h' });
  },
};
const record = ({ state }) => state.counter.inc();

describe('a fault in a cluster', () => {
  const shared = sharedCluster({ workers: 1, worker: counting, options: { checkpointInterval: 0 } });
  const scrape = async () => (await shared().scrape()).get('done_total') ?? 0;

  it('a thread that ends is replaced, and loses no count', async () => {
    const cluster = shared();
    const before = await scrape();
    await cluster.inWorker(1, record);
    const threads = await cluster.run(async ({ threads }) => {
      const { length } = threads;
      await threads.at(-1).terminate();
      return length;
    });
    assert.equal(await scrape(), before + 1);
    assert.equal(await cluster.run($ => $.threads.length), threads + 1);
    assert.deepEqual((await cluster.internals()).refused, {});
    assert.equal(cluster.spools().length, 1, 'the new thread took over the directory');
  });

  it('a directory that vanishes is replaced, and nothing is lost, not even with the thread', async () => {
    const cluster = shared();
    await cluster.inWorker(1, record);
    const before = await scrape();
    const { spool } = cluster;
    removeWhileUsed(spool);
    await cluster.inWorker(1, record);
    assert.equal(await scrape(), before + 1);
    const isReplaced = async () => !['', spool].includes((await cluster.internals()).directory);
    await until(isReplaced, 'there is another directory');
    await cluster.inWorker(1, record);
    assert.equal(await scrape(), before + 2);
    await cluster.run(({ threads }) => threads.at(-1).terminate());
    assert.equal(await scrape(), before + 2);
  });

  it('a worker whose disk is full sends its snapshots over IPC and leaves no partial file', async () => {
    const cluster = shared();
    const before = await scrape();
    const overIpc = async () => (await cluster.internals()).refused['over-ipc'] ?? 0;
    const refusedBefore = await overIpc();
    await cluster.inWorker(1, ({ require, state }) => {
      const fs = require('node:fs');
      // A disk that takes a hundred bytes more.
      const { writeSync, writevSync } = fs;
      state.free = () => Object.assign(fs, { writeSync, writevSync });
      fs.writevSync = (descriptor, chunks) => writeSync(descriptor, chunks[0], 0, 100);
      fs.writeSync = () => {
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      };
    });
    for (let i = 1; i <= 2; i++) {
      await cluster.inWorker(1, record);
      assert.equal(await scrape(), before + i);
    }
    assert.equal((await overIpc()) - refusedBefore, 2);
    assert.deepEqual(cluster.spooledFiles(), []);
    await cluster.inWorker(1, ({ state }) => void state.free());
    await cluster.endWorker(1, ({ process }) => process.exit());
    assert.equal(await scrape(), before + 2);
  });
});

describe('checkpointInterval', () => {
  for (const value of [-1, NaN, 1, 99.9, '1000', null, true, 1000n, [1000], {}]) {
    const shown = typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? String(value));
    it(`checkpointInterval ${Number.isNaN(value) ? 'NaN' : shown} is refused`, () => {
      assert.throws(() => new client.AggregatorRegistry(undefined, { checkpointInterval: value }), TypeError);
    });
  }

  it('checkpointInterval 0 and 100 are accepted', async () => {
    for (const checkpointInterval of [0, 100]) {
      const registry = new client.AggregatorRegistry(undefined, { checkpointInterval });
      await registry.close();
    }
  });
});
