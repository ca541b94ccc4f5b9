'use strict';

// The primary of a loaded service: forks the workers and answers scrapes as each library's manual shows. It
// measures nothing; all figures come from its clients.

const cluster = require('node:cluster');
const http = require('node:http');
const path = require('node:path');
const zlib = require('node:zlib');
const { askWorkers } = require('../cluster/control-messages.js');
const { handlerOf, loadClient } = require('../shared/clients.js');
const { BARE } = require('./runs.js');

/** @type {import('../cluster/tree.js').TreeSettings} */
const settings = JSON.parse(process.argv[2]);
const workers = [];
const GZIP = { level: 1 }; // as metricsHandler
/** What the primary without a library answers. */
let staticPage = pageOf('');

const commands = {
  async ready() {
    forkWorkers();
    await Promise.all(workers.map(worker => new Promise(resolve => worker.once('online', resolve))));
    const [{ port }] = await askWorkers(workers, 'ready');
    return { servicePort: port, metricsPort: await serveMetrics() };
  },

  /** Takes the static page. */
  page({ text }) {
    staticPage = pageOf(text);
    return {};
  },

  /** The totals that each worker has recorded so far. */
  totals: () => askWorkers(workers, 'totals'),

  /** The size in bytes of each worker's own page. */
  exposition: () => askWorkers(workers, 'exposition'),

  async stop() {
    const exits = workers.map(worker => new Promise(resolve => worker.once('exit', resolve)));
    for (const worker of workers) worker.send({ bench: 'stop' });
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
  cluster.setupPrimary({ exec: path.join(__dirname, 'service-worker.js'), serialization: 'json' });
  for (let number = 1; number <= settings.workers; number++) {
    cluster.setupPrimary({ args: [JSON.stringify({ ...settings, seed: number })] });
    workers.push(cluster.fork());
  }
}

function serveMetrics() {
  const { client } = settings;
  const server = http.createServer(
    client === BARE ? answerStaticPage : handlerOf(client, loadClient(client)),
  );
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });
}

function pageOf(text) {
  const plain = Buffer.from(text);
  return { plain, packed: zlib.gzipSync(plain, GZIP) };
}

function answerStaticPage(request, response) {
  const isPacked = request.headers['accept-encoding'] === 'gzip';
  response.setHeader('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
  if (isPacked) response.setHeader('Content-Encoding', 'gzip');
  response.end(isPacked ? staticPage.packed : staticPage.plain);
}
