'use strict';

// The primary of the measured service: the demo's, with the messages of the benchmark instead of its own.

const cluster = require('node:cluster');
const { once } = require('node:events');
const path = require('node:path');
const { createMetricsServer } = require('../../example/demo/metrics-endpoint');
const { askWorkers } = require('../cluster/control-messages.js');

const CLIENT = 'prom-client-cluster';

/** @type {{workers: number, samples: number}} */
const settings = JSON.parse(process.argv[2]);
const workers = [];

const commands = {
  async ready() {
    const metricsServer = createMetricsServer(require('../..'));
    cluster.setupPrimary({
      exec: path.join(__dirname, 'service-worker.js'),
      args: [CLIENT, String(settings.samples), 'none'],
    });
    for (let count = 0; count < settings.workers; count++) workers.push(cluster.fork());
    metricsServer.listen(0, '127.0.0.1');
    const listening = workers.map(worker => once(worker, 'listening'));
    const [[{ port }]] = await Promise.all([...listening, once(metricsServer, 'listening')]);
    return { servicePort: port, metricsPort: metricsServer.address().port };
  },

  pids: () => [process.pid, ...workers.map(worker => worker.process.pid)],

  async stop() {
    await Promise.all(
      workers.map(worker => {
        worker.kill();
        return once(worker, 'exit');
      }),
    );
    process.exit(0);
  },
};

process.on('message', async ({ id, command, settings: values }) => {
  try {
    const run = commands[command] ?? (() => askWorkers(workers, command, { settings: values }));
    process.send({ id, answer: await run() });
  } catch (error) {
    process.send({ id, error: String(error?.message ?? error) });
  }
});
process.on('disconnect', () => process.exit(1));
