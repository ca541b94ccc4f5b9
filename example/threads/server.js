'use strict';

// An HTTP server that has its work done by a pool of threads (piscina). The metrics of all threads are on one
// page, whether they sleep, as piscina's do while they are idle, or compute.
//
//   npm install express piscina && node server.js

const path = require('node:path');
const express = require('express');
const { Piscina } = require('piscina');
const { Histogram, WorkerRegistry, metricsHandler } = require('prom-client');

const duration = new Histogram({ name: 'http_request_duration_seconds', help: 'Duration of requests' });
// Before the pool starts its threads.
const registry = new WorkerRegistry();
const pool = new Piscina({ filename: path.join(__dirname, 'primes.js') });

const app = express();
app.get('/primes/:limit', async (request, response) => {
  const end = duration.startTimer();
  response.json({ primes: await pool.run({ limit: Math.min(Number(request.params.limit) || 0, 1e7) }) });
  end();
});
app.get('/metrics', metricsHandler(registry));

const server = app.listen(process.env.PORT ?? 3000, () => {
  console.log(`http://127.0.0.1:${server.address().port}/metrics`);
});
