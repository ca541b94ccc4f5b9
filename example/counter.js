'use strict';

// A counter only goes up: requests served, bytes sent, errors. Prints what a scraper would see.

const { Counter, register } = require('prom-client');

const jobs = new Counter({
  name: 'jobs_processed_total',
  help: 'Processed jobs',
  labelNames: ['queue', 'result'],
});

jobs.inc({ queue: 'mail', result: 'done' });
jobs.inc({ queue: 'mail', result: 'done' }, 4);
jobs.labels('mail', 'failed').inc();

// On a hot path, reuse the child: its inc() does no lookup.
const imported = jobs.labels({ queue: 'import', result: 'done' });
for (let i = 0; i < 1000; i++) imported.inc();

register.metrics().then(text => process.stdout.write(text));
