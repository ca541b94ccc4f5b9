'use strict';

// An application as PM2 runs it, in several instances behind one port. Each instance answers /metrics with
// the sum of all; there is nothing to configure.

const http = require('node:http');
const { AggregatorRegistry, Counter, metricsHandler } = require('prom-client');

const requests = new Counter({ name: 'http_requests_total', help: 'Requests' });
const registry = new AggregatorRegistry();
const metrics = metricsHandler(registry);

const server = http.createServer((request, response) => {
  if (request.url === '/metrics') return metrics(request, response);
  requests.inc();
  return response.end(`${process.pid}\n`);
});
server.listen(Number(process.env.PORT ?? 3000));

// PM2 ends an instance with SIGINT. Without this, it loses what it has counted in the last second.
process.on('SIGINT', () => {
  server.close(async () => {
    await registry.shutdown();
    process.exit();
  });
});
