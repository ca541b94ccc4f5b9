'use strict';

// A Hono application on Node.js, with its metrics at /metrics.
// PORT=3000 node example/hono.js

const { serve } = require('@hono/node-server');
const { Hono } = require('hono');
const { routePath } = require('hono/route');
const { Histogram, metricsResponse, register } = require('prom-client');

const durations = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time from the request to its response',
  labelNames: ['method', 'route', 'status'],
});

const application = new Hono();

application.use(async (context, next) => {
  const end = durations.startTimer({ method: context.req.method });
  await next();
  // The last route that matches, not the URL: every label value creates a series.
  end({ route: routePath(context, -1), status: context.res.status });
});

application.get('/users/:id', context => context.json({ id: context.req.param('id') }));

application.get('/metrics', context => metricsResponse(register, context.req.raw));

const port = Number(process.env.PORT ?? 3000);
serve({ fetch: application.fetch, hostname: '127.0.0.1', port }, address => {
  console.log(`http://127.0.0.1:${address.port}/metrics`);
});
