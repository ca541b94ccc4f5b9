'use strict';

// A native histogram: its buckets need not be chosen, and are narrow everywhere. Prometheus gets them in the
// protobuf format, if it asks for that (docs/native-histograms.md), and computes quantiles of the sum of all
// processes: histogram_quantile(0.99, sum(rate(query_duration_seconds[5m]))). The text format, which is
// printed here, has only the count and the sum.

const { Histogram, register } = require('prom-client');

const durations = new Histogram({
  name: 'query_duration_seconds',
  help: 'Duration of database queries',
  labelNames: ['query'],
  nativeHistogramBucketFactor: 1.1, // each bucket ends at most 10 % above the one before
  buckets: [], // no classic buckets in addition
});

for (let i = 1; i <= 1000; i++) durations.observe({ query: 'list' }, i / 1000);

async function main() {
  process.stdout.write(await register.metrics());
  const [median, p99] = [0.5, 0.99].map(share => durations.quantile(share, { query: 'list' }));
  console.log(`# half of the queries took up to ${median.toFixed(2)} s, 99 % up to ${p99.toFixed(2)} s`);
}

main();
