'use strict';

// The primary of one tree: forks the workers, aggregates with the measured library, and executes the runner's
// commands. The runner checks the page, so checking costs nothing here.

const cluster = require('node:cluster');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { askWorkers } = require('./control-messages.js');
const { IpcMeter } = require('./ipc-meter.js');
const { ProcessWindow } = require('./process-window.js');
const { handlerOf, loadClient } = require('../shared/clients.js');
const { StoredResponse, plainRequest } = require('./stored-response.js');

// All processes sleep a little before a window, so that CPU times are up to date and gap timers have ticked
// once. They sleep longer after it, so that work which a scrape defers is included.
const SLEEP_BEFORE = 10;
const SLEEP_AFTER = 25;

/** @type {import('./tree.js').TreeSettings} */
const settings = JSON.parse(process.argv[2]);
const client = loadClient(settings.client);
const { aggregator } = client;
const handler = handlerOf(settings.client, client);
const workers = [];
let window;
let writtenBefore;
let body = '';

const commands = {
  async ready() {
    forkWorkers();
    await Promise.all(workers.map(({ worker }) => new Promise(resolve => worker.once('online', resolve))));
    const [{ port }] = await askAll('ready');
    return { servicePort: port, metricsPort: await serveMetrics() };
  },

  change: ({ round }) => askAll('change', { round }),

  async begin({ gaps }) {
    await askAll('begin', { gaps });
    await sleep(SLEEP_BEFORE);
    writtenBefore = workers.map(({ meter }) => meter.written.bytes);
    window = new ProcessWindow({ gaps });
    return {};
  },

  async scrape() {
    const began = performance.now();
    body = await aggregator.clusterMetrics();
    return { milliseconds: performance.now() - began };
  },

  async scrapeBytes() {
    const response = new StoredResponse();
    const began = performance.now();
    await handler(plainRequest(), response);
    if (response.statusCode !== 200) throw new Error(`the handler answered ${response.statusCode}`);
    body = response.body;
    return { milliseconds: performance.now() - began };
  },

  async pause({ milliseconds }) {
    await sleep(milliseconds);
    return {};
  },

  async end() {
    await sleep(SLEEP_AFTER);
    const primary = window.end();
    const written = workers.map(({ meter }, index) => meter.written.bytes - writtenBefore[index]);
    return { primary, written, workers: await askAll('end') };
  },

  saveBody({ file }) {
    fs.writeFileSync(file, body);
    body = '';
    return {};
  },

  async stop() {
    const exits = workers.map(({ worker }) => new Promise(resolve => worker.once('exit', resolve)));
    for (const { worker } of workers) worker.send({ bench: 'stop' });
    await Promise.all(exits);
    process.exit(0);
  },
};

process.on('message', async ({ id, command, settings: given }) => {
  try {
    process.send({ id, answer: await commands[command](given) });
  } catch (error) {
    process.send({ id, error: String(error?.message ?? error) });
  }
});
process.on('disconnect', () => process.exit(1));

function forkWorkers() {
  cluster.setupPrimary({ exec: path.join(__dirname, 'worker.js'), serialization: 'json' });
  for (let number = 1; number <= settings.workers; number++) {
    cluster.setupPrimary({ args: [JSON.stringify({ ...settings, seed: number })] });
    const worker = cluster.fork();
    workers.push({ worker, meter: new IpcMeter(worker.process) });
  }
}

function askAll(command, parameters) {
  return askWorkers(
    workers.map(({ worker }) => worker),
    command,
    parameters,
  );
}

/** The address of the metrics. */
function serveMetrics() {
  const server = http.createServer(handler);
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });
}
