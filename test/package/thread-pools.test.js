'use strict';

// WorkerRegistry in the threads of pools.

const { describe, it } = require('node:test');
const { WorkerRegistry } = require('../..');
const { until } = require('../fixtures/cluster-harness');
const { LoadedPool, POOLS } = require('./fixtures/loaded-pool');

describe('pools of threads', () => {
  for (const name of /** @type {(keyof typeof POOLS)[]} */ (Object.keys(POOLS)))
    it(`each scrape has the jobs that a pool of ${name} has done, while it works and when it has ended`, async () => {
      const registry = new WorkerRegistry({ timeout: 60_000 });
      /** @type {Set<import('node:worker_threads').Worker>} */
      const threads = new Set();
      const onThread = (/** @type {import('node:worker_threads').Worker} */ thread) => {
        threads.add(thread);
        thread.once('exit', () => threads.delete(thread));
      };
      process.on('worker', onThread);
      const pool = await LoadedPool.create(name, { minThreads: 1, maxThreads: 3 });
      await pool.scrapeUnderLoad(registry, 10);
      await pool.pool.destroy();
      await pool.checkCount(registry);
      // A pool may report its end before its last thread has ended, and may start one while it ends.
      await until(async () => {
        await Promise.all(Array.from(threads, thread => thread.terminate()));
        await pool.checkCount(registry);
        return threads.size === 0 && WorkerRegistry.workerCount() === 0;
      }, 'no thread is left');
      process.off('worker', onThread);
      await registry.shutdown();
    });

  for (const name of /** @type {(keyof typeof POOLS)[]} */ (Object.keys(POOLS)))
    it(`hooks of a pool of ${name} whose threads run their event loop are shown`, async () => {
      const registry = new WorkerRegistry({ timeout: 60_000 });
      // One thread that stays: another one may be ended before it has sent anything.
      const options = { atomics: 'async', useAtomics: false, minThreads: 1, maxThreads: 1 };
      const pool = await LoadedPool.create(name, options);
      await pool.scrapeUnderLoad(registry, 5);
      await until(
        async () => /^hooked [1-9]/m.test(await registry.workerMetrics()),
        'the event loops have run',
      );
      await pool.pool.destroy();
      await registry.shutdown();
    });
});
