'use strict';

// Metrics of the process and of Node.js, and one of the application.
// PORT=3000 node example/default-metrics.js

const http = require('node:http');
const { Gauge, collectDefaultMetrics, metricsHandler, register } = require('prom-client');

register.setDefaultLabels({ service: 'shop' });
collectDefaultMetrics({ eventLoopMonitoringPrecision: 20, gcDurationBuckets: [0.001, 0.005, 0.02, 0.1] });

const carts = new Map();
new Gauge({
  name: 'shop_carts',
  help: 'Carts that are open',
  collect() {
    this.set(carts.size);
  },
});

const handleMetrics = metricsHandler(register);
const server = http.createServer((request, response) => {
  if (request.url === '/metrics') {
    handleMetrics(request, response);
    return;
  }
  carts.set(request.url, Date.now());
  response.end(`${carts.size}\n`);
});
server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/metrics`);
});
