'use strict';

const { Workload } = require('../../shared/workload.js');
const { clusterClassOf } = require('../../shared/clients.js');
const { millisecondsPerCall } = require('../timing.js');

const WORKERS = 4;

function aggregating(samples) {
  return async ({ client, library, seconds }) => {
    new Workload(library, { samples, kind: 'integers', seed: 1 });
    const texts = Array(WORKERS).fill(JSON.stringify(await library.register.getMetricsAsJSON()));
    const ClusterRegistry = clusterClassOf(client, library);
    let lists = [];
    const call = async () => {
      const body = await ClusterRegistry.aggregate(lists).metrics();
      if (body.length === 0) throw new Error('nothing came');
    };
    // Parsed again for each call, as IPC does: no object is used twice.
    return millisecondsPerCall(call, {
      seconds,
      before: () => (lists = texts.map(text => JSON.parse(text))),
    });
  };
}

const figures = { wall: 'ms', gap: 'ms' };

module.exports = {
  title: '`AggregatorRegistry.aggregate`',
  note: `Aggregates the JSON of ${WORKERS} workers and writes it as text.`,
  cases: [
    { key: '1k', title: '1,000 samples of each worker', figures, measure: aggregating(1000) },
    { key: '10k', title: '10,000 samples of each worker', figures, measure: aggregating(10_000) },
  ],
};
