'use strict';

// Devices come and go in four workers for hours of their clocks, 100,000 in all, of which 1,000 are on the
// page: each page is that of books kept outside, and the memory of workers and aggregator is what 1,000 need.

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { Churn, CHURNING } = require('../fixtures/churn');
const { startCluster } = require('../fixtures/cluster-harness');

const ALIVE = 1000;
const DEVICES = 100_000;
/** Until as many devices go as come, and code has been compiled. */
const FIRST_STEPS = 300;
/** More than from one compaction of a worker's table to the next: after it, memory falls for ten of them. */
const MOMENTS = 20;

/** Heap and array buffers, when nothing can be collected any more. */
const usedMemory = async ({ require, process }) => {
  require('node:v8').setFlagsFromString('--expose-gc');
  const collect = require('node:vm').runInNewContext('gc');
  for (let i = 0; i < 6; i++) {
    await new Promise(resolve => setImmediate(resolve));
    collect();
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

/** The test's own record. */
const forgetAnswers = ({ answers }) => void (answers.length = 0);

it(
  `memory of ${DEVICES} devices that come and go is what ${ALIVE} need, and pages are exact`,
  { timeout: 1_800_000 },
  async t => {
    const seed = Number(process.env.PROPERTY_SEED) || Math.floor(Math.random() * 2 ** 31);
    t.diagnostic(`PROPERTY_SEED=${seed}`);
    const workers = [1, 2, 3, 4];
    // In place, so that the primary's memory is that of the aggregator.
    const options = { inPlace: true };
    const cluster = await startCluster(t, { workers: workers.length, worker: CHURNING, options });
    const churn = new Churn(cluster, { workers, seed, alive: ALIVE });
    /** By process, the least of some moments: tables have dead rows until they are compacted. */
    const memory = async () => {
      const least = Array(workers.length + 1).fill(Infinity);
      for (let i = 0; i < MOMENTS; i++) {
        await churn.live(10, { checkEvery: 10 });
        await churn.checkRows();
        await cluster.run(forgetAnswers);
        const used = [cluster.run(usedMemory), ...workers.map(id => cluster.inWorker(id, usedMemory))];
        (await Promise.all(used)).forEach((bytes, i) => (least[i] = Math.min(least[i], bytes)));
      }
      return least;
    };
    await churn.live(FIRST_STEPS, { checkEvery: 5 });
    const before = await memory();
    while (churn.devices < DEVICES) {
      await churn.live(10, { checkEvery: 10 });
      await churn.checkRows();
    }
    const after = await memory();
    t.diagnostic(`bytes with ${ALIVE} devices: ${before}; after ${churn.devices}: ${after}`);
    after.forEach((bytes, i) =>
      assert.ok(bytes < before[i] * 1.1, `${before[i]} bytes have become ${bytes}`),
    );
    await churn.end();
    await cluster.end();
  },
);
