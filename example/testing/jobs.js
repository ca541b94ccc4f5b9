'use strict';

// The code that the tests of this folder test.

const { Counter, Histogram } = require('prom-client');

const jobs = new Counter({ name: 'jobs_total', help: 'Jobs', labelNames: ['queue', 'result'] });
const durations = new Histogram({
  name: 'job_duration_seconds',
  help: 'Duration of jobs',
  labelNames: ['queue'],
});

/**
 * @param {string} queue
 * @param {() => Promise<void>} job
 */
async function runJob(queue, job) {
  try {
    await durations.time({ queue }, job);
    jobs.inc({ queue, result: 'done' });
  } catch {
    jobs.inc({ queue, result: 'failed' });
  }
}

module.exports = { runJob };
