'use strict';

// A worker under load. Each batch is recorded in one turn, so every snapshot holds whole batches.

const { Counter, Histogram } = require('../..');
const { BOUNDS, BATCH_MILLISECONDS, runBatch } = require('./load.js');

const { SOAK_NUMBER, SOAK_EPOCH } = process.env;
const firstEpoch = Number(SOAK_EPOCH);

const batches = new Counter({ name: 'soak_batches_total', help: 'Batches', labelNames: ['worker'] });
const requests = new Counter({
  name: 'soak_requests_total',
  help: 'Requests',
  labelNames: ['set', 'version'],
});
const durations = new Histogram({
  name: 'soak_duration_seconds',
  help: 'Durations',
  labelNames: ['route'],
  buckets: BOUNDS,
});

let batch = 0;
const sink = {
  replace: (set, version) => requests.remove({ set: `s${set}`, version: `v${version - 1}` }),
  count: (set, version, amount) => requests.inc({ set: `s${set}`, version: `v${version}` }, amount),
  observe: (route, value) => durations.observe({ route: `r${route}` }, value),
};

process.send('soak:ready');
const timer = setInterval(() => {
  runBatch(firstEpoch, batch++, sink);
  batches.inc({ worker: SOAK_NUMBER });
}, BATCH_MILLISECONDS);

process.on('SIGTERM', () => {
  clearInterval(timer);
  process.exit(0);
});

process.on('message', message => {
  if (message === 'soak:heap') process.send({ soakHeap: heapOf() });
});

/** Bytes that are in use after a collection. */
function heapOf() {
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
