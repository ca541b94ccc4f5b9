'use strict';

// An express application in one process, with its metrics at /metrics.
// PORT=3000 node example/server.js

const express = require('express');
const { Counter, Histogram, metricsHandler, register } = require('prom-client');

const durations = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time from the request to the end of its response',
  labelNames: ['method', 'route', 'status'],
});
const greetings = new Counter({ name: 'greetings_total', help: 'Greetings', labelNames: ['language'] });

const application = express();

application.use((request, response, next) => {
  const end = durations.startTimer({ method: request.method });
  // The route, not the URL: every label value creates a series.
  response.on('close', () => end({ route: request.route?.path ?? 'none', status: response.statusCode }));
  next();
});

application.get('/hello/:language', (request, response) => {
  const greetingsByLanguage = { en: 'Hello', fr: 'Bonjour', ja: 'こんにちは' };
  const { language } = request.params;
  if (!Object.hasOwn(greetingsByLanguage, language)) {
    response.sendStatus(404);
    return;
  }
  greetings.inc({ language });
  response.send(`${greetingsByLanguage[language]}\n`);
});

application.get('/metrics', metricsHandler(register));

const server = application.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/metrics`);
});
