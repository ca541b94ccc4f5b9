'use strict';

// A fastify application, with its metrics at /metrics.
// PORT=3000 node example/fastify.js

const fastify = require('fastify')();
const { Histogram } = require('prom-client');
const metrics = require('prom-client/fastify');

const durations = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time from the request to the end of its response',
  labelNames: ['method', 'route', 'status'],
});

fastify.addHook('onResponse', async (request, reply) => {
  const labels = {
    method: request.method,
    // The route, not the URL: every label value creates a series.
    route: request.routeOptions.url ?? 'none',
    status: reply.statusCode,
  };
  durations.observe(labels, reply.elapsedTime / 1000);
});

fastify.get('/users/:id', async request => ({ id: request.params.id }));

fastify.register(metrics);

fastify.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) }).then(address => {
  console.log(`${address}/metrics`);
});
