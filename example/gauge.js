'use strict';

// A gauge goes up and down. It can be set as things happen, or, in its collect hook, only when somebody looks.

const { Gauge, register } = require('prom-client-cluster');

const queue = [];
const open = new Gauge({ name: 'connections_open', help: 'Connections that are open' });
const waiting = new Gauge({
  name: 'queue_length',
  help: 'Jobs that wait',
  collect() {
    this.set(queue.length);
  },
});
const backup = new Gauge({
  name: 'backup_last_success_timestamp_seconds',
  help: 'When the last backup ended well',
  labelNames: ['target'],
  aggregator: 'max', // in a cluster: the newest of all workers, and not their sum
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
