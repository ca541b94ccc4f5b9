'use strict';

// The primary of one tree: forks the workers, aggregates with the measured library, and executes the runner's
// commands. The runner checks the page, so checking costs nothing here. Of a tree that is a group, it only
// starts the members and passes on commands, and figures of the member that aggregates are given as the
// primary's.

const { fork } = require('node:child_process');
const cluster = require('node:cluster');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
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

const WORKER = path.join(__dirname, 'worker.js');

/** @type {import('./tree.js').TreeSettings} */
const settings = JSON.parse(process.argv[2]);
const client = loadClient(settings.client);
const { aggregator } = client;
const handler = handlerOf(settings.client, client);
const workers = [];
/** Its place among the workers, if they are a group. */
let aggregating = -1;
let window;
let writtenBefore;
let body = '';
let remoteWrite;

const commands = {
  async ready() {
    if (settings.group || settings.alone) forkProcesses();
    else await forkWorkers();
    const [{ port }] = await askAll('ready');
    if (settings.group) await grouped();
    const workerPorts = settings.workersServeMetrics ? await askAll('serveMetrics') : [];
    return { servicePort: port, metricsPort: await serveMetrics(), workerPorts };
  },

  change: ({ round }) => askAll('change', { round }),

  collectGarbage: () => askAll('collectGarbage'),

  pids: () => workers.map(({ worker }) => worker.pid ?? worker.process.pid),

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

  async push({ url }) {
    const { RemoteWrite } = client.library;
    remoteWrite ??= new RemoteWrite(url, { labels: { instance: 'bench' }, protocol: '2.0' }, aggregator);
    const began = performance.now();
    await remoteWrite.push();
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
    const readings = await askAll('end');
    if (!settings.group) return { primary, written, workers: readings, ...resources() };
    // A group's messages go over sockets, and are not counted.
    const [leader] = readings.splice(aggregating, 1);
    return { primary: leader, written: [], workers: readings };
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
  cluster.setupPrimary({ exec: WORKER, serialization: 'json' });
  for (let number = 1; number <= settings.workers; number++) {
    cluster.setupPrimary({ args: [argumentOf(number)] });
    const worker = cluster.fork();
    workers.push({ worker, meter: new IpcMeter(worker.process) });
  }
  return Promise.all(workers.map(({ worker }) => new Promise(resolve => worker.once('online', resolve))));
}

/** Processes without a primary of the measured library. */
function forkProcesses() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-group-'));
  process.on('exit', () => fs.rmSync(directory, { recursive: true, force: true }));
  const group = settings.group ? path.join(directory, 'group') : 'false';
  const env = { ...process.env, PROM_CLIENT_CLUSTER_GROUP: group };
  for (let number = 1; number <= settings.workers; number++) {
    const worker = fork(WORKER, [argumentOf(number)], { env });
    workers.push({ worker, meter: new IpcMeter(worker) });
  }
}

/** Settles when all members are linked. */
async function grouped() {
  for (;;) {
    const states = await askAll('group');
    aggregating = states.findIndex(({ isLeader }) => isLeader);
    if (aggregating >= 0 && states[aggregating].members === settings.workers) return;
    await sleep(20);
  }
}

/** The seed of a worker's values is its number. */
function argumentOf(number) {
  return JSON.stringify({ ...settings, seed: number });
}

function askAll(command, parameters) {
  return askWorkers(
    workers.map(({ worker }) => worker),
    command,
    parameters,
  );
}

/** Open descriptors of this process, and files in the library's directory. */
function resources() {
  const { directory } = aggregator.clusterState?.() ?? {};
  const files = directory ? fs.readdirSync(directory).length : null;
  return { descriptors: fs.readdirSync('/proc/self/fd').length, files };
}

/** The address of the metrics. */
function serveMetrics() {
  const server = http.createServer(handler);
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });
}
