'use strict';

// A histogram counts observations in buckets. Buckets of several processes can be added, and Prometheus
// computes quantiles of the sum: histogram_quantile(0.99, sum by (le)
// (rate(query_duration_seconds_bucket[5m]))).

const { Histogram, exponentialBuckets, register } = require('prom-client');

const durations = new Histogram({
  name: 'query_duration_seconds',
  help: 'Duration of database queries',
  labelNames: ['query'],
  buckets: exponentialBuckets(0.001, 4, 6), // 1 ms to 1.024 s
});

durations.observe({ query: 'list' }, 0.003);
durations.observe({ query: 'list' }, 0.5);

const end = durations.startTimer({ query: 'insert' });
setImmediate(async () => {
  const seconds = end();
  process.stdout.write(await register.metrics());
  console.log(`# the insert took ${seconds} s`);
});
