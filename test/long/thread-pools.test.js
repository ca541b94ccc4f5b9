'use strict';

// Pools of threads with their defaults, for minutes. The short form is test/package/thread-pools.test.js.

const { afterEach, beforeEach, describe, it } = require('node:test');
const { WorkerRegistry } = require('../..');
const { until } = require('../fixtures/cluster-harness');
const { LoadedPool, POOLS } = require('../package/fixtures/loaded-pool');

const SCRAPES = 300;

describe('pools of threads, for minutes', () => {
  /** @type {WorkerRegistry} */
  let registry;
  /** @type {LoadedPool | undefined} */
  let pool;

  beforeEach(() => {
    registry = new WorkerRegistry({ timeout: 60_000 });
  });

  afterEach(async () => {
    await pool?.pool.destroy();
    await registry.shutdown();
  });

  for (const name of /** @type {(keyof typeof POOLS)[]} */ (Object.keys(POOLS))) {
    it(`each of ${SCRAPES} scrapes has the jobs that a pool of ${name} with its defaults has done`, async t => {
      pool = await LoadedPool.create(name);
      await pool.scrapeUnderLoad(registry, SCRAPES);
      t.diagnostic(`${pool.pool.completed} jobs`);
    });

    it(`hooks of a pool of ${name} whose threads run their event loop are shown`, async () => {
      // One thread that stays: another one may be ended before it has sent anything.
      const options = { atomics: 'async', useAtomics: false, minThreads: 1, maxThreads: 1 };
      const part = (pool = await LoadedPool.create(name, options));
      await part.scrapeUnderLoad(registry, 5);
      await until(async () => {
        return /^hooked [1-9]/m.test(await registry.workerMetrics());
      }, 'the event loops have run');
    });
  }
});
