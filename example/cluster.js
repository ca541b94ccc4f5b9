'use strict';

// An express application in a cluster. The primary serves the metrics of all workers on a port of their own.
// PORT=3000 METRICS_PORT=3001 WORKERS=4 node example/cluster.js

const cluster = require('node:cluster');
const http = require('node:http');
const os = require('node:os');

if (cluster.isPrimary) runPrimary();
else runWorker();

function runPrimary() {
  const { AggregatorRegistry, metricsHandler } = require('prom-client');
  const handler = metricsHandler(new AggregatorRegistry());
  const server = http.createServer((request, response) => {
    if (request.url === '/metrics') handler(request, response);
    else response.writeHead(404).end();
  });
  server.listen(process.env.METRICS_PORT ?? 3001, '127.0.0.1', () => {
    console.log(`metrics at http://127.0.0.1:${server.address().port}/metrics`);
  });

  const workers = Number(process.env.WORKERS ?? os.availableParallelism());
  for (let i = 0; i < workers; i++) cluster.fork();
  // The counts of a worker stay in the totals when it is replaced.
  cluster.on('exit', worker => {
    console.log(`worker ${worker.id} ended`);
    cluster.fork();
  });
  cluster.on('listening', (worker, { port }) => {
    console.log(`worker ${worker.id} at http://127.0.0.1:${port}/`);
  });
}

function runWorker() {
  const express = require('express');
  const { Counter } = require('prom-client');

  const requests = new Counter({ name: 'http_requests_total', help: 'Requests', labelNames: ['route'] });
  const application = express();
  application.get('/', (request, response) => {
    requests.inc({ route: '/' });
    response.send(`worker ${cluster.worker.id}, process ${process.pid}\n`);
  });
  application.listen(process.env.PORT ?? 3000, '127.0.0.1');

  // process.exit() emits 'exit', in which the library flushes the worker's metrics. The signal's default does
  // not.
  process.on('SIGTERM', () => process.exit(0));
}
