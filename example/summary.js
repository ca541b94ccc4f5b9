'use strict';

// A summary computes quantiles in the process, here of the last ten minutes. In a cluster the digests of all
// workers are merged, so quantiles are those of all observations.

const { Summary, register } = require('prom-client');

const sizes = new Summary({
  name: 'upload_size_bytes',
  help: 'Size of uploads',
  percentiles: [0.5, 0.9, 0.99],
  maxAgeSeconds: 600,
  ageBuckets: 5,
});

for (let i = 1; i <= 100; i++) sizes.observe(i * 1024);

register.metrics().then(text => process.stdout.write(text));
