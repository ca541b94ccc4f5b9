'use strict';

// Pools of threads with their defaults, for minutes. The short form is test/package/thread-pools.test.js.

const assert = require('node:assert/strict');
const diagnosticsChannel = require('node:diagnostics_channel');
const fs = require('node:fs');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { WorkerRegistry } = require('../..');
const { until } = require('../fixtures/cluster-harness');
const { LoadedPool, POOLS } = require('../package/fixtures/loaded-pool');
const { collectGarbage } = require('../runtime/fixtures/default-metrics-runtime');

const SCRAPES = 300;
const POOL_THREADS = 200;
/** Of heap and array buffers, while a hundred threads come and go. */
const MOST_GROWTH_BYTES = 4 * 2 ** 20;

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

    it(`${POOL_THREADS} threads of a pool of ${name} that grows and shrinks leave their counts, and nothing else`, async t => {
      let threads = 0;
      let jobs = 0;
      const onThread = () => threads++;
      diagnosticsChannel.subscribe('worker_threads', onThread);
      t.after(() => diagnosticsChannel.unsubscribe('worker_threads', onThread));
      /** @type {number[]} */
      const memory = [];
      let fewestDescriptors = Infinity;
      for (const most of [POOL_THREADS / 2, POOL_THREADS]) {
        const part = (pool = await LoadedPool.create(
          name,
          { minThreads: 0, maxThreads: 4, idleTimeout: 1 },
          jobs,
        ));
        while (threads < most) {
          await part.scrapeUnderLoad(registry, 2);
          // piscina may keep some.
          const hasShrunk = () => WorkerRegistry.workerCount() <= part.pool.threads.length;
          await until(hasShrunk, 'no more threads take part than the pool has');
        }
        await part.pool.destroy();
        await until(() => WorkerRegistry.workerCount() === 0, 'no thread is left');
        await part.checkCount(registry);
        jobs = part.jobs;
        await until(() => descriptorCount() <= fewestDescriptors, 'threads have closed their descriptors');
        fewestDescriptors = descriptorCount();
        collectGarbage();
        const { heapUsed, external } = process.memoryUsage();
        memory.push(heapUsed + external);
      }
      t.diagnostic(
        `${threads} threads, ${jobs} jobs, bytes ${memory.join(', ')}; ${fewestDescriptors} descriptors`,
      );
      assert.ok(memory[1] - memory[0] < MOST_GROWTH_BYTES, `${memory}`);
    });
  }
});

/** @returns {number} 0 if the system does not show them */
function descriptorCount() {
  return fs.existsSync('/proc/self/fd') ? fs.readdirSync('/proc/self/fd').length : 0;
}
