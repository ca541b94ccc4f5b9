'use strict';

// One worker of a tree: records the workload, and answers the primary's control messages.

const http = require('node:http');
const v8 = require('node:v8');
const vm = require('node:vm');
const { isControl } = require('./control-messages.js');
const { IpcMeter } = require('./ipc-meter.js');
const { ProcessWindow } = require('./process-window.js');
const { handlerOf, loadClient } = require('../shared/clients.js');
const { Workload } = require('../shared/workload.js');

/** @type {import('./tree.js').TreeSettings & {seed: number}} */
const settings = JSON.parse(process.argv[2]);
const meter = new IpcMeter(process);
const client = loadClient(settings.client);
const { library, aggregator } = client;
const workload = new Workload(library, settings);
let window;
let writtenBefore;

const commands = {
  ready: () => (settings.serve ? serveRequests() : {}),

  serveMetrics,

  group() {
    const { group } = aggregator.clusterState();
    return { isLeader: group.isLeader, members: group.members };
  },

  change({ round }) {
    workload.change(round);
    return workload.totals();
  },

  begin({ gaps }) {
    writtenBefore = meter.written;
    window = new ProcessWindow({ gaps });
    return {};
  },

  end() {
    const readings = window.end();
    return { ...readings, written: meter.written.bytes - writtenBefore.bytes };
  },

  collectGarbage() {
    v8.setFlagsFromString('--expose-gc');
    vm.runInNewContext('gc')();
    return {};
  },

  stop: () => process.exit(0),
};

process.on('message', async message => {
  if (!isControl(message)) return;
  const answer = await commands[message.bench](message);
  process.send({ bench: message.bench, id: message.id, answer });
});

/** The page of the whole cluster or group. The primary does not accept this port's connections. */
function serveMetrics() {
  const server = http.createServer(handlerOf(settings.client, client));
  return new Promise(resolve => {
    server.listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => resolve(server.address().port));
  });
}

/** A small service that records what services record, for the measurement of latencies. */
function serveRequests() {
  const labelNames = ['method', 'route', 'status', 'zone'];
  const requests = new library.Counter({ name: 'app_requests_total', help: 'Requests', labelNames });
  const durations = new library.Histogram({ name: 'app_request_seconds', help: 'Durations', labelNames });
  const server = http.createServer((request, response) => {
    const began = performance.now();
    const body = JSON.stringify({
      path: request.url,
      values: Array.from({ length: 50 }, (_, index) => index * 1.5),
    });
    response.setHeader('Content-Type', 'application/json');
    response.end(body);
    const labels = { method: request.method, route: '/', status: '200', zone: 'eu-west-1a' };
    requests.inc(labels);
    durations.observe(labels, (performance.now() - began) / 1e3);
  });
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => resolve({ port: server.address().port }));
  });
}
