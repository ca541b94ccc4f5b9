'use strict';

// The primary of the demo cluster. node cluster.js CLIENT WORKERS SAMPLES DEFAULT_METRICS, forked with an IPC
// channel: it sends its parent its ports, reports on request what its main thread did and what the workers
// counted themselves, and ends on `stop` or when the channel closes.

const cluster = require('node:cluster');
const { once } = require('node:events');
const path = require('node:path');
const { loadClientLibrary } = require('./client-library');
const { MainThread } = require('./main-thread');
const { createMetricsServer } = require('./metrics-endpoint');

const KILL_AFTER_MS = 3000;

const [clientName, workerCount, samples, defaultMetrics] = process.argv.slice(2);
const mainThread = new MainThread();
let stopping = false;

main();

async function main() {
  const metricsServer = createMetricsServer(loadClientLibrary(clientName));
  const args = [clientName, samples, defaultMetrics];
  cluster.setupPrimary({ exec: path.join(__dirname, 'worker.js'), args });
  const workers = Array.from({ length: Number(workerCount) }, () => cluster.fork());
  cluster.on('exit', (worker, code, signal) => {
    if (!stopping) throw new Error(`worker ${worker.id} ended by itself (${signal ?? code})`);
  });
  process.on('message', message => {
    if (message.type === 'report') reportRecords(workers);
    if (message.type === 'primary') process.send({ type: 'primary', readings: mainThread.read() });
    if (message.type === 'stop') stop(workers, metricsServer);
  });
  process.on('disconnect', () => stop(workers, metricsServer));

  metricsServer.listen(0, '127.0.0.1');
  const workersListening = workers.map(worker => once(worker, 'listening'));
  const [[applicationAddress]] = await Promise.all([...workersListening, once(metricsServer, 'listening')]);
  process.send({
    type: 'ready',
    applicationPort: applicationAddress.port,
    metricsPort: metricsServer.address().port,
    workerPids: workers.map(worker => worker.process.pid),
  });
}

async function reportRecords(workers) {
  const records = await Promise.all(workers.map(recordOf));
  process.send({ type: 'report', records });
}

function recordOf(worker) {
  return new Promise(resolve => {
    worker.on('message', function receive(message) {
      if (message?.type !== 'demo:report') return;
      worker.off('message', receive);
      resolve(message.record);
    });
    worker.send({ type: 'demo:report' });
  });
}

/** Ends the workers and closes everything else, so that the process exits. */
async function stop(workers, metricsServer) {
  if (stopping) return;
  stopping = true;
  await Promise.all(workers.map(endWorker));
  metricsServer.close();
  metricsServer.closeAllConnections();
  if (process.connected) process.disconnect();
  // Connections that the primary accepted and could not pass to a worker any more keep it alive.
  setTimeout(() => process.exit(), KILL_AFTER_MS).unref();
}

async function endWorker(worker) {
  if (worker.isDead()) return;
  const ended = once(worker, 'exit');
  worker.kill();
  const killer = setTimeout(() => worker.process.kill('SIGKILL'), KILL_AFTER_MS);
  await ended;
  clearTimeout(killer);
}
