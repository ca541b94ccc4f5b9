'use strict';

// WorkerRegistry in the threads of pools, with their defaults: piscina's sleep in Atomics.wait while they are
// idle, and both end threads that they do not need.

const assert = require('node:assert/strict');
const { createRequire } = require('node:module');
const path = require('node:path');
const { describe, it } = require('node:test');
const { pathToFileURL } = require('node:url');
const { WorkerRegistry } = require('../..');
const { until } = require('../fixtures/cluster-harness');

const JOB = path.join(__dirname, 'fixtures/pool-job.js');
const require_ = createRequire(path.join(__dirname, 'programs/package.json'));

/** @param {string} page */
function sumOf(page) {
  const values = Array.from(page.matchAll(/^jobs_total\{.*\} (\d+)$/gm), match => Number(match[1]));
  return values.reduce((sum, value) => sum + value, 0);
}

describe('pools of threads', () => {
  for (const [name, className] of [
    ['piscina', 'Piscina'],
    ['tinypool', 'Tinypool'],
  ]) {
    it(`each scrape has all jobs that a pool of ${name} has done`, async () => {
      const module = await import(pathToFileURL(require_.resolve(name)).href);
      const registry = new WorkerRegistry({ timeout: 60_000 });
      const pool = new (module[className] ?? module.default)({ filename: JOB, minThreads: 1, maxThreads: 3 });
      let done = 0;
      for (let round = 0; round < 5; round++) {
        await Promise.all(Array.from({ length: 200 }, () => pool.run(done++)));
        assert.equal(sumOf(await registry.workerMetrics()), done);
      }
      await pool.destroy();
      assert.equal(sumOf(await registry.workerMetrics()), done);
      // A pool may report its end before its last thread has ended.
      await until(async () => {
        assert.equal(sumOf(await registry.workerMetrics()), done);
        return WorkerRegistry.workerCount() === 0;
      }, 'no thread is left');
      await registry.shutdown();
    });
  }
});
