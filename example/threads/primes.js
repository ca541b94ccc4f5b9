'use strict';

// A job of the pool, and its metrics.

const { Counter, Histogram, WorkerRegistry } = require('prom-client');

const jobs = new Counter({ name: 'jobs_total', help: 'Jobs by size', labelNames: ['size'] });
const seconds = new Histogram({ name: 'job_duration_seconds', help: 'Duration of jobs' });
new WorkerRegistry();

/** @param {{limit: number}} job */
module.exports = ({ limit }) => {
  jobs.inc({ size: limit < 100_000 ? 'small' : 'large' });
  return seconds.time(() => countPrimes(limit));
};

/**
 * @param {number} limit
 * @returns {number} how many primes are below it
 */
function countPrimes(limit) {
  const isComposite = new Uint8Array(limit);
  let count = 0;
  for (let number = 2; number < limit; number++) {
    if (isComposite[number]) continue;
    count++;
    for (let multiple = number * 2; multiple < limit; multiple += number) isComposite[multiple] = 1;
  }
  return count;
}
