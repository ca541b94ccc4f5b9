// An ES module: every name can be imported. require() returns the same library.
// PORT=3000 node example/es-module.mjs

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import client, { Counter, metricsHandler, register } from 'prom-client';

const requests = new Counter({ name: 'http_requests_total', help: 'Requests', labelNames: ['path'] });
const handleMetrics = metricsHandler(register);

// Packages that are not ES modules record into the same registry.
const required = createRequire(import.meta.url)('prom-client');
new required.Gauge({ name: 'modules_are_one', help: '1 if they are' }).set(Number(required === client));

const server = createServer((request, response) => {
  if (request.url === '/metrics') {
    handleMetrics(request, response);
    return;
  }
  requests.inc({ path: request.url === '/' ? '/' : 'other' });
  response.end('Hello\n');
});
server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/metrics`);
});
