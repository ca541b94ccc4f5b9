'use strict';

// Series that nobody uses any more leave a cluster (`maxIdleSeconds`): its page, and the memory of its
// workers. test/long/idle-series.test.js does the same with 100,000 devices.

const { describe, it } = require('node:test');
const { Churn, CHURNING } = require('../../fixtures/churn');
const { startCluster } = require('../../fixtures/cluster-harness');

describe('idle series of a cluster', () => {
  for (const inPlace of [false, true]) {
    it(`devices that come and go are on the page as in books kept outside, aggregated ${inPlace ? 'in place' : 'in a thread'}`, async t => {
      const cluster = await startCluster(t, { workers: 4, worker: CHURNING, options: { inPlace } });
      const churn = new Churn(cluster, { workers: [1, 2, 3, 4], seed: 30, alive: 100 });
      await churn.live(40);
      await churn.end();
      await cluster.end();
    });
  }
});
