'use strict';

// The primary of a soak: serves the cluster's page, and does what the controller asks for.

const cluster = require('node:cluster');
const http = require('node:http');
const path = require('node:path');
const workerThreads = require('node:worker_threads');

/** The threads that the library has started. */
const threads = [];
workerThreads.Worker = class extends workerThreads.Worker {
  constructor(...args) {
    super(...args);
    threads.push(this);
  }
};

const { AggregatorRegistry, metricsHandler, prometheusContentType } = require('../..');

const { directory, checkpointInterval, retiredMaxAge } = JSON.parse(process.env.SOAK_OPTIONS);
const registry = new AggregatorRegistry(prometheusContentType, {
  directory,
  checkpointInterval,
  retiredMaxAge,
});
const server = http.createServer(metricsHandler(registry));
// The controller would fail to use a connection that is closed at that moment.
server.keepAliveTimeout = 0;

cluster.setupPrimary({ exec: path.join(__dirname, 'worker.js'), execArgv: ['--expose-gc'] });
cluster.on('message', ({ process: { pid } }, message) => {
  if (message?.soakHeap !== undefined) process.send({ heap: message.soakHeap, pid });
});
cluster.on('exit', ({ process: { pid } }) => process.send({ gone: pid }));

const actions = {
  fork({ number, epoch }) {
    const { process: child } = cluster.fork({ SOAK_NUMBER: String(number), SOAK_EPOCH: String(epoch) });
    child.once('message', () => process.send({ forked: number, pid: child.pid }));
  },
  heaps() {
    globalThis.gc();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    process.send({ heap: heapUsed + arrayBuffers, pid: process.pid });
    // One that has just been killed cannot be asked.
    for (const worker of Object.values(cluster.workers)) worker.send('soak:heap', () => {});
  },
  terminateThread() {
    threads.at(-1)?.terminate();
  },
  async end() {
    await registry.shutdown();
    const page = await registry.clusterMetrics();
    process.off('disconnect', endWithController);
    server.close();
    server.closeAllConnections();
    await registry.close();
    process.send({ lastPage: page }, () => process.disconnect());
  },
};

/** The controller was killed. */
function endWithController() {
  process.exit(1);
}

process.on('disconnect', endWithController);
process.on('message', ({ action, ...options }) => actions[action](options));
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
