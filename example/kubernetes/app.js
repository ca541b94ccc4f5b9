'use strict';

// An application for one box or a fleet of them: a laptop, virtual machines, containers of Docker Compose,
// pods of Kubernetes. Only the environment differs.
//   PORT=3000 METRICS_PORT=3001 WORKERS=4 node example/kubernetes/app.js
//
// HOST           the address to listen on. Default 127.0.0.1; 0.0.0.0 in a container
// DRAIN_DELAY    milliseconds from SIGTERM until workers stop accepting connections. A load balancer needs
//                this time to notice that the box ends
// LAST_SCRAPES   how many more scrapes the primary waits for after its workers have ended, so that their last
//                requests are in Prometheus. Default 0; 1 for each Prometheus server
//
// PROM_CLIENT_CLUSTER_DIRECTORY and PROM_CLIENT_CLUSTER_CHECKPOINT_INTERVAL set options of the library.

const cluster = require('node:cluster');
const { once } = require('node:events');
const http = require('node:http');
const os = require('node:os');
const { setTimeout: sleep } = require('node:timers/promises');
const {
  AggregatorRegistry,
  Counter,
  Histogram,
  collectDefaultMetrics,
  startMetricsServer,
} = require('prom-client');

const { HOST = '127.0.0.1', PORT = 3000, METRICS_PORT = 3001 } = process.env;
const WORKERS = Number(process.env.WORKERS ?? os.availableParallelism());
const DRAIN_DELAY = Number(process.env.DRAIN_DELAY ?? 5000);
const LAST_SCRAPES = Number(process.env.LAST_SCRAPES ?? 0);

// The sum of DRAIN_DELAY and these two is below terminationGracePeriodSeconds of deployment.yml.
const WORKER_PATIENCE = 10_000;
const LAST_SCRAPE_PATIENCE = 20_000;

if (cluster.isPrimary) runPrimary();
else runWorker();

async function runPrimary() {
  const registry = new AggregatorRegistry();
  const metricsServer = await startMetricsServer({ port: METRICS_PORT, host: HOST, registry });
  console.log(`metrics at http://${HOST}:${metricsServer.address().port}/metrics`);

  let isStopping = false;
  cluster.on('listening', (worker, { port }) => {
    console.log(`worker ${worker.id} at http://${HOST}:${port}/`);
  });
  cluster.on('exit', (worker, code, signal) => {
    console.log(`worker ${worker.id} ended: ${signal ?? code}`);
    // A worker that ends by itself is replaced. Its counts stay in the totals.
    if (!isStopping) cluster.fork();
  });
  for (let i = 0; i < WORKERS; i++) cluster.fork();

  async function end(worker) {
    if (worker.isDead()) return;
    const exit = once(worker, 'exit');
    worker.kill('SIGTERM');
    const timer = setTimeout(() => worker.process.kill('SIGKILL'), DRAIN_DELAY + WORKER_PATIENCE);
    await exit;
    clearTimeout(timer);
  }

  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    await Promise.all(Object.values(cluster.workers).map(end));
    await registry.shutdown(); // waits for the last snapshots of the workers
    await Promise.race([lastScrapes(metricsServer), sleep(LAST_SCRAPE_PATIENCE, undefined, { ref: false })]);
    metricsServer.close();
    // Otherwise a connection that Prometheus reuses would keep the process alive.
    setInterval(() => metricsServer.closeIdleConnections(), 100).unref();
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

function lastScrapes(metricsServer) {
  return new Promise(resolve => {
    let answered = 0;
    if (LAST_SCRAPES === 0) resolve();
    metricsServer.on('request', (request, response) => {
      response.on('finish', () => ++answered === LAST_SCRAPES && resolve());
    });
  });
}

function runWorker() {
  // The label sets are bounded: a path of a client never becomes a label value.
  const requests = new Counter({
    name: 'http_requests_total',
    help: 'Requests, by route and status',
    labelNames: ['route', 'status'],
  });
  const durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from a request to the end of its response',
    labelNames: ['route'],
  });
  collectDefaultMetrics({ runtime: true });

  const routes = {
    '/': response => response.end('Hello\n'),
    '/orders': async response => {
      await sleep(Math.random() * 20);
      response.writeHead(Math.random() < 0.01 ? 503 : 201).end('order\n');
    },
  };

  let isEnding = false;
  const server = http.createServer((request, response) => {
    if (isEnding) response.setHeader('Connection', 'close');
    const [pathname] = request.url.split('?');
    if (pathname === '/healthz') return response.end('ok\n');
    const route = Object.hasOwn(routes, pathname) ? pathname : 'none';
    const stopTimer = durations.startTimer({ route });
    response.on('close', () => {
      stopTimer();
      requests.inc({ route, status: response.statusCode });
    });
    return route === 'none' ? response.writeHead(404).end() : routes[route](response);
  });
  server.listen(PORT, HOST);

  process.on('SIGTERM', async () => {
    if (isEnding) return;
    isEnding = true;
    await sleep(DRAIN_DELAY);
    server.close(async () => {
      await new AggregatorRegistry().shutdown(1000); // writes the last snapshot
      // The primary gives a connection that it is handing to this worker to another one.
      cluster.worker.disconnect();
      process.once('disconnect', () => process.exit(0));
    });
    setInterval(() => server.closeIdleConnections(), 100);
  });
  // Ctrl+C in a terminal signals all processes, but the primary decides when a worker ends.
  process.on('SIGINT', () => {});
}
