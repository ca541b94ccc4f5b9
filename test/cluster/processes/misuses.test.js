'use strict';

// What is easily done wrong in a cluster; test/options/misuses.test.js has the rest.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const { sharedCluster } = require('../../fixtures/shared-cluster');

const LEFT_OUT = /metrics of the primary are left out, because includePrimary is not set: (.*)/g;

describe('misuses of a cluster', () => {
  const cluster = sharedCluster({
    workers: 2,
    env: { NODE_DEBUG: 'prom-client-cluster' },
    worker: {
      start: ({ client, state }) => {
        state.done = new client.Counter({ name: 'done_total', help: 'h' });
        state.done.inc();
      },
    },
  });

  it('metrics in the primary without includePrimary are logged, once', async () => {
    await cluster().run(({ client }) => {
      const other = new client.Registry();
      new client.Gauge({ name: 'in_primary', help: 'h' });
      new client.Gauge({ name: 'in_other', help: 'h', registers: [other] });
      client.AggregatorRegistry.setRegistries([client.register, other]);
    });
    for (let i = 0; i < 2; i++) assert.equal((await cluster().scrape()).get('in_primary'), undefined);
    const logged = Array.from(cluster().output.matchAll(LEFT_OUT), ([, names]) => names.trim());
    assert.deepEqual(logged, ['in_primary, in_other']);
  });

  it('an aggregator that the primary does not know is named in a warning, once', async () => {
    await cluster().run(({ process, state }) => {
      state.warnings = [];
      process.on('warning', ({ code, message }) => state.warnings.push(`${code} ${message}`));
    });
    await cluster().inWorker(2, ({ client, state }) => {
      state.average = new client.Gauge({ name: 'averaged', help: 'h', aggregator: 'avg' });
    });
    for (let i = 0; i < 2; i++) assert.equal((await cluster().scrape()).get('averaged'), undefined);
    const warnings = await cluster().run(({ state }) => state.warnings);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], /^PROM_CLIENT_CLUSTER_OPTIONS The metric 'averaged' is missing/);
  });
});
