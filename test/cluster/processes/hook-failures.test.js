'use strict';

// A `collect` hook that fails costs only its metric's new values. Who hears of it.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, until } = require('../../fixtures/cluster-harness.js');

const failing = {
  construct: true,
  start: ({ client, cluster, state }) => {
    const name = cluster.isPrimary ? 'queue_of_primary' : 'queue_of_workers';
    const collect = () => Promise.reject(new Error(`no broker in ${cluster.worker?.id ?? 'the primary'}`));
    new client.Gauge({ name, help: 'h', collect });
    state.heard = [];
    state.scrape = async () => {
      state.handler ??= client.metricsHandler(state.registry, {
        onError: ({ code, message }) => state.heard.push([code, message]),
      });
      const response = { setHeader() {}, getHeader() {}, end() {} };
      await state.handler({ headers: {}, url: '/metrics' }, response);
      return state.heard;
    };
  },
};
const scrape = ({ state }) => state.scrape();

describe('a collect hook that fails', () => {
  it('is a warning in each process with the hook, and an error for the onError of any endpoint', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: failing, options: { includePrimary: true } });
    await cluster.run((context, start) => {
      new Function(`return (${start})`)()(context);
      context.state.registry = context.aggregator;
    }, String(failing.start));
    await cluster.inWorkers([1, 2], ({ client, state }) => {
      state.registry = new client.AggregatorRegistry({ timeout: 60_000 });
    });
    const heard = [
      [
        'PROM_CLIENT_CLUSTER_COLLECT',
        'The page shows old values because collect hooks have failed: queue_of_primary, queue_of_workers',
      ],
    ];
    for (let times = 0; times < 2; times++) {
      assert.deepEqual(await cluster.run(scrape), heard);
      assert.deepEqual(await cluster.inWorker(1, scrape), heard);
    }
    // In a message, because the directory is another user's for the worker.
    const inMessage = await cluster.inWorker(2, async ({ process, state, require }) => {
      const fs = require('node:fs');
      const pages = [];
      process.on('message', ({ page }) => page && pages.push(page));
      const { lstatSync } = fs;
      fs.lstatSync = (...given) => Object.assign(lstatSync(...given), { uid: -1 });
      const list = await state.scrape();
      fs.lstatSync = lstatSync;
      return pages.length > 0 && list;
    });
    assert.deepEqual(inMessage, heard);
    const warning =
      /\[PROM_CLIENT_CLUSTER_COLLECT\] Warning: The collect hook of the metric (\w+) has failed: (.*?)\./g;
    const warnings = () => Array.from(cluster.output.matchAll(warning), match => match.slice(1).join(': '));
    await until(() => warnings().length >= 3, 'three processes have warned');
    assert.deepEqual(warnings().toSorted(), [
      'queue_of_primary: no broker in the primary',
      'queue_of_workers: no broker in 1',
      'queue_of_workers: no broker in 2',
    ]);
    await cluster.end();
  });
});
