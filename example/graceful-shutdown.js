'use strict';

// An express application in a cluster that ends and restarts without losing a request or a count.
// PORT=3000 METRICS_PORT=3001 WORKERS=2 node example/graceful-shutdown.js
//
// SIGHUP to the primary replaces the workers one after another, with new code and without a pause.
// SIGTERM to the primary ends the cluster. In Kubernetes, this happens in order:
//   1. Kubernetes sends SIGTERM to the primary only. At the same time it removes the pod from its services,
//      which takes a while.
//   2. The primary sends SIGTERM to the workers. For DRAIN_DELAY milliseconds each accepts connections as
//      before, but closes them after their next response. Then it stops accepting, finishes the requests that
//      it has, writes its last snapshot and exits.
//   3. The primary, which has served /metrics until now, pushes the last totals, because Prometheus cannot
//      scrape them any more. Then it ends.
//   4. After terminationGracePeriodSeconds (30 by default) Kubernetes sends SIGKILL to whatever is left. So
//      the primary kills workers that take longer than WORKER_PATIENCE.

const cluster = require('node:cluster');
const { once } = require('node:events');
const { setTimeout: sleep } = require('node:timers/promises');
const { AggregatorRegistry, Counter, Pushgateway, startMetricsServer } = require('prom-client');

const DRAIN_DELAY = Number(process.env.DRAIN_DELAY ?? 5000);
const WORKER_PATIENCE = DRAIN_DELAY + 15_000;

if (cluster.isPrimary) runPrimary();
else runWorker();

async function runPrimary() {
  // A worker that is killed loses what it counted within the last second, at most.
  const registry = new AggregatorRegistry({ checkpointInterval: 1000 });
  const metricsServer = await startMetricsServer({ port: process.env.METRICS_PORT ?? 3001, registry });
  console.log(`metrics at http://127.0.0.1:${metricsServer.address().port}/metrics`);

  const workerCount = Number(process.env.WORKERS ?? 2);
  const living = () => Object.values(cluster.workers).filter(worker => !worker.isDead());
  let isStopping = false;

  for (let i = 0; i < workerCount; i++) cluster.fork();
  cluster.on('exit', (worker, code, signal) => {
    console.log(`worker ${worker.id} ended: ${signal ?? code}`);
    // A worker that ends by itself is replaced. Its counts stay in the totals.
    if (!isStopping && living().length < workerCount) cluster.fork();
  });
  cluster.on('listening', (worker, { port }) => {
    console.log(`worker ${worker.id} at http://127.0.0.1:${port}/`);
  });

  async function end(worker) {
    if (worker.isDead()) return;
    const exit = once(worker, 'exit');
    worker.kill('SIGTERM');
    const timer = setTimeout(() => worker.kill('SIGKILL'), WORKER_PATIENCE);
    await exit;
    clearTimeout(timer);
  }

  async function restart() {
    for (const worker of living()) {
      const replacement = cluster.fork();
      await Promise.race([once(replacement, 'listening'), once(replacement, 'exit')]);
      // If the new code does not start, the old workers stay.
      if (isStopping || replacement.isDead()) return;
      await end(worker);
    }
    console.log('restarted');
  }

  let restarts = Promise.resolve();
  process.on('SIGHUP', () => (restarts = restarts.then(restart)));

  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    await Promise.all(living().map(end));
    await registry.shutdown(); // waits for the last snapshots of the workers
    const { PUSHGATEWAY_URL } = process.env;
    if (PUSHGATEWAY_URL) {
      const pushed = new Pushgateway(PUSHGATEWAY_URL, registry).push({ jobName: 'shop' });
      await pushed.catch(error => console.error(`nothing was pushed: ${error.message}`));
    }
    metricsServer.close();
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

function runWorker() {
  const express = require('express');

  const requests = new Counter({ name: 'http_requests_total', help: 'Requests', labelNames: ['route'] });
  const application = express();
  let isEnding = false;

  application.use((request, response, next) => {
    if (isEnding) response.set('Connection', 'close');
    next();
  });
  application.get('/', (request, response) => {
    requests.inc({ route: '/' });
    response.send(`worker ${cluster.worker.id}\n`);
  });
  application.get('/report', async (request, response) => {
    console.log(`worker ${cluster.worker.id} writes a report`);
    await sleep(1000);
    requests.inc({ route: '/report' });
    response.send('report\n');
  });
  const server = application.listen(process.env.PORT ?? 3000, '127.0.0.1');

  process.on('SIGTERM', async () => {
    if (isEnding) return;
    isEnding = true;
    await sleep(DRAIN_DELAY);
    server.close(async () => {
      await new AggregatorRegistry().shutdown(1000); // writes the last snapshot
      // Without this, a connection that the primary is handing to this worker would never be answered. Now
      // the primary hands it to another worker.
      cluster.worker.disconnect();
      process.once('disconnect', () => process.exit(0));
    });
    // Else connections without a request would delay the exit, up to the server's keepAliveTimeout.
    setInterval(() => server.closeIdleConnections(), 100);
  });
  // Ctrl+C in a terminal signals all processes, but the primary decides when a worker ends.
  process.on('SIGINT', () => {});
}
