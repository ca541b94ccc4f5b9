'use strict';

// Measures a scrape of a cluster whose workers have a histogram each.

const cluster = require('node:cluster');
const { once } = require('node:events');
const path = require('node:path');
const { OURS, clusterClassOf } = require('../shared/clients.js');
const { millisecondsPerCall } = require('./timing.js');

const WORKERS = 4;
const WORKER = path.join(__dirname, 'native-cluster-worker.js');

/**
 * @param {number} series of each of four workers
 * @returns {import('./plan.js').Case['measure']} a scrape, as the library serves it to Prometheus; a tenth of
 *   the series have changed before each
 */
function scrapingCluster(series) {
  return async ({ client, library, seconds }) => {
    const Aggregator = clusterClassOf(client, library);
    const aggregator = new Aggregator();
    cluster.setupPrimary({ exec: WORKER, execArgv: [] });
    const workers = [];
    for (let number = 1; number <= WORKERS; number++) {
      cluster.setupPrimary({ args: [client, String(series), String(number)] });
      workers.push(cluster.fork());
    }
    await Promise.all(workers.map(nextChange));
    let round = 0;
    const before = () => {
      round++;
      return Promise.all(
        workers.map(worker => {
          const changed = nextChange(worker);
          worker.send({ round });
          return changed;
        }),
      );
    };
    const contentType = library.Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE;
    let bytes = 0;
    const call = async () => {
      if (client === OURS) bytes = (await aggregator.clusterMetricsBytes({ contentType })).length;
      else bytes = Buffer.byteLength(await aggregator.clusterMetrics());
    };
    try {
      const { wall, gap } = await millisecondsPerCall(call, { seconds, before });
      return { wall, gap, bytes };
    } finally {
      for (const worker of workers) worker.kill('SIGKILL');
      await Promise.all(workers.map(worker => once(worker, 'exit')));
    }
  };
}

async function nextChange(worker) {
  for (;;) {
    const [message] = await once(worker, 'message');
    if ('changed' in message) return;
  }
}

module.exports = { scrapingCluster };
