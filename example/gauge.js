'use strict';

// A gauge goes up and down. Set it when something happens, or in its collect hook, which runs at each scrape.

const { Gauge, register } = require('prom-client');

const queue = [];
const open = new Gauge({ name: 'connections_open', help: 'Open connections' });
const waiting = new Gauge({
  name: 'queue_length',
  help: 'Waiting jobs',
  collect() {
    this.set(queue.length);
  },
});
const backup = new Gauge({
  name: 'backup_last_success_timestamp_seconds',
  help: 'Time of the last successful backup',
  labelNames: ['target'],
  aggregator: 'max', // in a cluster: the newest of all workers, not their sum
});

open.inc();
open.inc(2);
open.dec();
queue.push('one', 'two', 'three');
backup.setToCurrentTime({ target: 'disk' });

register.metrics().then(async text => {
  process.stdout.write(text);
  queue.pop();
  process.stdout.write(`${await register.getSingleMetricAsString(waiting.name)}\n`);
});
