// An application in TypeScript. Label names are part of a metric's type: inc({ pth: '/' }) does not compile.
// npm install prom-client@npm:prom-client-cluster && npm install --save-dev typescript @types/node
// npx tsc && PORT=3000 node build/server.js

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Counter, Gauge, Registry, collectDefaultMetrics, metricsHandler } from 'prom-client';

const registry = new Registry();
collectDefaultMetrics({ register: registry });

const requests = new Counter({
  name: 'http_requests_total',
  help: 'Requests',
  labelNames: ['path', 'method'] as const,
  registers: [registry],
});

class Queue {
  readonly #jobs: string[] = [];

  readonly length: Gauge = new Gauge({
    name: 'queue_length',
    help: 'Jobs that wait',
    registers: [registry],
    collect: () => this.length.set(this.#jobs.length),
  });

  add(job: string): void {
    this.#jobs.push(job);
  }
}

const queue = new Queue();
const handleMetrics = metricsHandler(registry);
const server = createServer((request, response) => {
  if (request.url === '/metrics') {
    handleMetrics(request, response);
    return;
  }
  requests.inc({ path: request.url === '/' ? '/' : 'other', method: request.method });
  queue.add(`mail ${Date.now()}`);
  response.end('Hello\n');
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
});
