'use strict';

// Idle series (`maxIdleSeconds`) leave while workers are killed or replaced, the aggregator thread is lost,
// and the leader of a group dies: nothing is lost, and nothing comes back.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { Churn, CHURNING } = require('../fixtures/churn');
const { startCluster } = require('../fixtures/cluster-harness');
const { TestGroup } = require('../fixtures/group');

const WORKERS = [1, 2, 3];
/** After more losses there is no other thread. */
const ROUNDS = 3;
const FAULTS = {
  'a worker is killed': async (cluster, churn) => {
    const [id] = churn.workers;
    await cluster.killWorker(id);
    await cluster.allRetired();
    churn.ended(id);
    churn.workers.push(await cluster.fork());
  },
  'each worker is replaced': async (cluster, churn) => {
    for (const id of [...churn.workers]) {
      churn.workers.push(await cluster.fork());
      await cluster.endWorker(id, ({ process }) => process.exit());
      await cluster.allRetired();
      churn.ended(id);
    }
  },
  'the aggregator thread is lost': async cluster => {
    await cluster.run(({ threads }) => threads.at(-1).terminate());
  },
  'the aggregator thread is lost while it folds': async (cluster, churn) => {
    await churn.pass();
    // It has the answers of the workers, and may be anywhere in the page.
    await cluster.run($ => {
      const thread = $.threads.at(-1);
      thread.onPost = ({ op }) => op === 'render' && thread.terminate();
    });
  },
};

describe('idle series of a cluster, and faults', () => {
  for (const [what, happens] of Object.entries(FAULTS)) {
    it(`idle series are exact although ${what}`, async t => {
      const cluster = await startCluster(t, { workers: WORKERS.length, worker: CHURNING });
      const churn = new Churn(cluster, { workers: [...WORKERS], seed: 31, alive: 60 });
      for (let round = 0; round < ROUNDS; round++) {
        await churn.live(9);
        await happens(cluster, churn);
        churn.check(await cluster.scrape());
      }
      const self = await cluster.scrape({ selfMetrics: true });
      assert.equal(self.get('prom_client_cluster_lost_threads_total'), what.includes('thread') ? ROUNDS : 0);
      await churn.end();
      await cluster.end();
    });
  }
});

describe('idle series of a group', () => {
  it('a group whose leader is killed has the folded rows of its members, until the last one has dropped the series', async t => {
    const group = new TestGroup({ option: { group: 'test', checkpointInterval: 600_000 } });
    t.after(() => group.close());
    await group.startMany(3);
    const killLeader = async () => {
      const states = await Promise.all(group.running.map(member => member.do('state')));
      const leader = group.running.find((_, i) => states[i].group.isLeader) ?? assert.fail('there is none');
      await leader.kill();
    };
    const shows = async expected => {
      for (const member of group.running)
        assert.equal((await member.page()).get('device_total{device="d"}'), expected);
    };
    const states = await Promise.all(group.running.map(member => member.do('state')));
    const [a, b] = group.running.filter((_, i) => !states[i].group.isLeader);
    await a.do('countDevice', 3);
    await b.do('countDevice', 5);
    await shows(8);
    await a.do('moveClock', 720);
    await shows(8);
    await killLeader();
    await shows(8);
    await a.do('countDevice', 1);
    await shows(9);
    await b.do('moveClock', 720);
    await shows(9);
    await a.do('moveClock', 720);
    await shows(undefined);
    await b.do('countDevice', 2);
    await shows(2);
    await killLeader();
    await shows(2);
  });
});
