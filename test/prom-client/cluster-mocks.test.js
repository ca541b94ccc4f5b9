'use strict';

// Applications test their use of a cluster without starting one, with plain objects as workers.

const assert = require('node:assert/strict');
const cluster = require('node:cluster');
const { EventEmitter } = require('node:events');
const { it } = require('node:test');

const { AggregatorRegistry } = require('../..');

/** A fake worker that answers as prom-client's do, and counts the messages to it. */
class FakeWorker extends EventEmitter {
  sent = [];
  process = new EventEmitter();

  constructor(id, metrics) {
    super();
    this.id = id;
    this.metrics = metrics;
  }

  isConnected() {
    return true;
  }

  send(message, callback) {
    this.sent.push(message);
    callback?.(null);
    if (message.type !== 'prom-client:getMetricsReq') return;
    const { requestId } = message;
    setImmediate(() =>
      cluster.emit('message', this, { type: 'prom-client:getMetricsRes', requestId, metrics: this.metrics }),
    );
  }
}

const gauge = value => [
  { name: 'a', help: 'h', type: 'gauge', aggregator: 'sum', values: [{ value, labels: {} }] },
];

it('clusterMetrics() scrapes fake workers in cluster.workers through their send()', async t => {
  const registry = new AggregatorRegistry({ timeout: 60_000 });
  t.after(() => registry.close());
  assert.equal(await registry.clusterMetrics(), '');
  const workers = [new FakeWorker(1, [gauge(1)]), new FakeWorker(2, [gauge(2)])];
  for (const worker of workers) cluster.workers[worker.id] = worker;
  t.after(() => {
    for (const worker of workers) delete cluster.workers[worker.id];
  });
  assert.equal(await registry.clusterMetrics(), '# HELP a h\n# TYPE a gauge\na 3\n');
  for (const { sent } of workers) {
    const requests = sent.filter(({ type }) => type === 'prom-client:getMetricsReq');
    assert.equal(requests.length, 1);
    assert.equal(typeof requests[0].requestId, 'number');
  }
});
