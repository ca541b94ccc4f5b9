'use strict';

// An exemplar links a bucket of a histogram to the trace of one request in it. Only OpenMetrics text has
// exemplars, and Prometheus asks for it; curl gets Prometheus text. Prometheus stores exemplars with
// --enable-feature=exemplar-storage.
// PORT=3000 node example/exemplars.js

const http = require('node:http');
const { Histogram, metricsHandler, register } = require('prom-client');

register.setFormats(['text', 'openmetrics']);
const durations = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time from the request to the end of its response',
  labelNames: ['status'],
  enableExemplars: true,
});

/** The trace that the caller belongs to (https://www.w3.org/TR/trace-context/#traceparent-header). */
function traceOf(request) {
  const [, trace] = /^00-([0-9a-f]{32})-[0-9a-f]{16}-/.exec(request.headers.traceparent) ?? [];
  return trace === undefined ? undefined : { trace_id: trace };
}

const handleMetrics = metricsHandler(register);
const server = http.createServer((request, response) => {
  if (request.url === '/metrics') {
    handleMetrics(request, response);
    return;
  }
  const start = performance.now();
  response.on('close', () => {
    durations.observe({
      value: (performance.now() - start) / 1000,
      labels: { status: response.statusCode },
      exemplarLabels: traceOf(request),
    });
  });
  response.statusCode = request.url === '/' ? 200 : 404;
  response.end('Hello\n');
});
server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/metrics`);
});
