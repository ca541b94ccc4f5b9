'use strict';

// One worker of the demo cluster: an express application that records every request.
// node worker.js CLIENT SAMPLES DEFAULT_METRICS, started by cluster.js.

const express = require('express');
const { ApplicationMetrics } = require('./application-metrics');
const { loadClientLibrary } = require('./client-library');
const { FIRST_MISSING_ID, ROUTES, SERVICES } = require('./traffic');

const [clientName, samples, defaultMetrics] = process.argv.slice(2);
const client = loadClientLibrary(clientName);
const metrics = new ApplicationMetrics(client, Number(samples));
if (defaultMetrics !== 'none') client.collectDefaultMetrics({ runtime: defaultMetrics === 'runtime' });

// prom-client answers its primary only after a worker has made one of these.
new client.AggregatorRegistry();

process.on('message', message => {
  if (message?.type === 'demo:report') process.send({ type: 'demo:report', record: metrics.record });
});
process.on('SIGTERM', () => process.exit(0));

createApplication().listen(0, '127.0.0.1');

function createApplication() {
  const application = express();
  application.disable('x-powered-by');
  for (const service of SERVICES) application.use(`/${service}`, createService(service));
  return application;
}

function createService(service) {
  const router = express.Router();
  router.use((request, response, next) => {
    recordRequest(service, request, response);
    next();
  });
  router.use(express.json());
  for (const route of ROUTES) {
    const answer = route.endsWith(':id') ? answerWithOne : answerWithList;
    router.route(route).get(answer).post(answer).put(answer);
  }
  return router;
}

function recordRequest(service, request, response) {
  const start = process.hrtime.bigint();
  metrics.requestArrived(service, request.method);
  // 'close' comes once for every response, also for one whose client went away.
  response.on('close', () => {
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    const bytes = Number(response.getHeader('content-length') ?? 0);
    const { method } = request;
    metrics.requestDone(
      { service, method, route: request.route?.path ?? 'unknown', status: response.statusCode },
      seconds,
      bytes,
    );
  });
}

function answerWithList(request, response) {
  if (request.method !== 'GET') {
    response.status(201).json({ created: true, ...request.body });
    return;
  }
  response.json(Array.from({ length: 1 + Math.floor(Math.random() * 20) }, (_, id) => product(id)));
}

function answerWithOne(request, response) {
  const id = Number(request.params.id);
  if (id >= FIRST_MISSING_ID) {
    response.status(404).json({ error: 'not found' });
    return;
  }
  response.json(product(id));
}

function product(id) {
  return { id, name: `Product ${id}`, price: 100 + id, description: 'd'.repeat(20 + (id % 7) * 25) };
}
