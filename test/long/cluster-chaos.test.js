'use strict';

// Chaos for several minutes. The short forms are in test/faults/chaos.test.js
// and test/cluster/processes/deadlines.test.js.

const assert = require('node:assert/strict');
const { randomInt } = require('node:crypto');
const { describe, it } = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');

const { startCluster, until } = require('../fixtures/cluster-harness.js');
const { runChaos } = require('../fixtures/cluster-chaos.js');

describe('a cluster of which 120 workers are killed at random', () => {
  const ways = {
    'with a thread': {},
    'in place': { inPlace: true },
    'with checkpoints': { checkpointInterval: 100 },
  };
  for (const [way, options] of Object.entries(ways)) {
    it(`a cluster of which 120 workers are killed at random answers every scrape, and lets no series fall, ${way}`, async t => {
      await runChaos(t, { kills: 120, clients: 3, options });
    });
  }
});

describe('a cluster with faults of all kinds', () => {
  for (const [way, options] of Object.entries({
    'with a thread': {},
    'with checkpoints': { checkpointInterval: 100 },
  })) {
    it(`a cluster with faults of all kinds in random order answers every scrape, and lets no series fall, ${way}`, async t => {
      const otherFaults = Number(process.env.CHAOS_SEED ?? randomInt(2 ** 31));
      t.diagnostic(`CHAOS_SEED=${otherFaults}`);
      await runChaos(t, { kills: Number(process.env.CHAOS_KILLS ?? 30), clients: 3, options, otherFaults });
    });
  }
});

describe('a worker that holds its loop for 20 seconds', () => {
  it('a worker that holds its loop for 20 seconds delays one scrape, no total falls, and it comes back', async t => {
    const worker = {
      start: ({ client, state }) => {
        state.counter = new client.Counter({ name: 'done_total', help: 'h' });
        state.counter.inc(100);
      },
    };
    const cluster = await startCluster(t, { workers: 2, worker });
    await cluster.scrape();
    let holds = true;
    const held = cluster
      .inWorker(2, ({ state }) => {
        state.counter.inc(10);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20_000);
        state.counter.inc(10);
      })
      .finally(() => (holds = false));
    let [scrapes, late, last] = [0, 0, 0];
    while (holds) {
      const { total, took } = await cluster.run(async ({ aggregator }) => {
        const start = performance.now();
        const text = await aggregator.clusterMetrics({ timeout: 1000 });
        return { total: Number(/^done_total (.*)$/m.exec(text)[1]), took: performance.now() - start };
      });
      assert.ok(total >= last, `it fell from ${last} to ${total}`);
      last = total;
      scrapes++;
      if (took > 1000) late++;
      await pause(100);
    }
    await held;
    t.diagnostic(`${scrapes} scrapes, ${late} of them waited`);
    // Without a limit the first scrape would wait for the worker, and without its state each for a second. A
    // busy machine can make some of them late.
    assert.ok(scrapes > 5, `${scrapes} scrapes`);
    assert.ok(late <= 2 + scrapes / 4, `${late} of ${scrapes} scrapes waited`);
    await until(async () => (await cluster.scrape()).get('done_total') === 220, 'it is back');
    assert.equal((await cluster.internals()).silent, 0);
    await cluster.end();
  });
});
