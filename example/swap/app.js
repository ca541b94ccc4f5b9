'use strict';

// A clustered application written for prom-client. Only package.json names this package, as 'prom-client';
// with prom-client itself the application does the same.
// PORT=3000 METRICS_PORT=3001 WORKERS=2 node app.js

const cluster = require('node:cluster');
const express = require('express');
const client = require('prom-client');

if (cluster.isPrimary) {
  const aggregatorRegistry = new client.AggregatorRegistry();
  const metrics = express();
  metrics.get('/metrics', async (request, response) => {
    try {
      const text = await aggregatorRegistry.clusterMetrics();
      response.set('Content-Type', aggregatorRegistry.contentType);
      response.send(text);
    } catch (error) {
      response.status(500).send(error.message);
    }
  });
  const server = metrics.listen(process.env.METRICS_PORT ?? 3001, '127.0.0.1', () => {
    console.log(`metrics at http://127.0.0.1:${server.address().port}/metrics`);
  });

  for (let i = 0; i < Number(process.env.WORKERS ?? 2); i++) cluster.fork();
  cluster.on('listening', (worker, { port }) => {
    console.log(`worker ${worker.id} at http://127.0.0.1:${port}/`);
  });
} else {
  // prom-client's workers answer only after this.
  new client.AggregatorRegistry();
  client.collectDefaultMetrics();

  const requests = new client.Counter({
    name: 'http_requests_total',
    help: 'Requests',
    labelNames: ['method', 'status'],
  });
  const sizes = new client.Histogram({
    name: 'http_response_size_bytes',
    help: 'Length of response bodies',
    buckets: client.exponentialBuckets(10, 10, 4),
  });
  new client.Gauge({ name: 'worker_count', help: 'Workers that are running' }).set(1);

  const app = express();
  app.get('/items/:count', (request, response) => {
    const body = 'item '.repeat(Number(request.params.count));
    requests.labels(request.method, '200').inc();
    sizes.observe(body.length);
    response.send(body);
  });
  app.listen(process.env.PORT ?? 3000, '127.0.0.1');
}
