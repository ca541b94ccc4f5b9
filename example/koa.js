'use strict';

// A Koa application, with its metrics at /metrics.
// PORT=3000 node example/koa.js

const Koa = require('koa');
const { Histogram, metricsHandler, register } = require('prom-client');

const durations = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time from the request to the end of its response',
  labelNames: ['method', 'route', 'status'],
});
const handleMetrics = metricsHandler(register);

const application = new Koa();

application.use((context, next) => {
  const end = durations.startTimer({ method: context.method });
  // The route, not the URL: every label value creates a series. With @koa/router it is context._matchedRoute.
  context.res.on('close', () => end({ route: context.state.route ?? 'none', status: context.status }));
  return next();
});

application.use(async (context, next) => {
  if (context.path !== '/metrics') return next();
  context.state.route = '/metrics';
  context.respond = false; // the handler responds itself
  await handleMetrics(context.req, context.res);
});

application.use(context => {
  const [, id] = /^\/users\/(\w+)$/.exec(context.path) ?? [];
  if (id === undefined) return;
  context.state.route = '/users/:id';
  context.body = { id };
});

const server = application.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/metrics`);
});
