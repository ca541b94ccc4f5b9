'use strict';

// SIGKILL of the primary at every stage of a scrape: its workers end, and the next primary in the same place
// leaves nothing of it behind and counts exactly. The same with workers is in
// test/faults/fault-points.test.js.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const { startCluster, makePlace, until } = require('../fixtures/cluster-harness');
const { STAGES } = require('../fixtures/fault-points');

const FIXTURE = require.resolve('../fixtures/fault-points');
const skip = process.platform === 'linux' ? false : 'needs /proc';

// From this age on the directory of a dead primary is removed.
const OLD_SECONDS = 11 * 60;

const worker = {
  start: ({ client, state }) => {
    const counter = new client.Counter({ name: 'done_total', help: 'h' });
    const log = new client.Gauge({ name: 'log', help: 'h', labelNames: ['record'] });
    let records = 0;
    state.record = () => {
      counter.inc();
      // Something new for the log, each time.
      log.set({ record: ++records }, 1);
    };
  },
};
const record = ({ state }) => state.record();

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Makes a directory and its files look old. */
function age(directory) {
  const time = Date.now() / 1000 - OLD_SECONDS;
  for (const name of fs.readdirSync(directory)) fs.utimesSync(path.join(directory, name), time, time);
  fs.utimesSync(directory, time, time);
}

describe('a primary that is killed while it scrapes', { skip }, () => {
  for (const stage of STAGES) {
    it(`a primary that is killed while it scrapes at the stage "${stage}" takes its workers with it, and leaves nothing for the next primary`, async t => {
      const place = makePlace(t);
      const plan = `${place}.plan`;
      t.after(() => fs.rmSync(plan, { force: true }));
      const cluster = await startCluster(t, {
        place,
        workers: 2,
        worker,
        env: { FAULT_PLAN: plan },
        settings: { execArgv: ['--require', FIXTURE] },
        threadPreload: FIXTURE,
        before: ({ require }) => void require('./fault-points'),
      });
      const pids = await cluster.run(({ cluster }) =>
        Object.values(cluster.workers).map(each => each.process.pid),
      );
      await cluster.inWorkers([1, 2], record);
      assert.equal((await cluster.scrape()).get('done_total'), 2);
      await cluster.inWorkers([1, 2], record);
      fs.writeFileSync(plan, JSON.stringify({ stage, pid: cluster.pid, workerId: 2 }));
      cluster
        .run(async ({ aggregator, require }) => {
          await aggregator.clusterMetricsBytes();
          require('./fault-points').reach('page received');
        })
        .catch(() => {}); // the primary is gone
      assert.deepEqual(await cluster.hasEnded(), { code: null, signal: 'SIGKILL' });
      await until(() => !pids.some(isAlive), 'its workers are gone, too');
      const [left] = cluster.spools();
      age(path.join(place, left));

      const next = await startCluster(t, { place, workers: 1, worker });
      await next.inWorker(1, record);
      assert.equal((await next.scrape()).get('done_total'), 1);
      await until(() => !fs.existsSync(path.join(place, left)) && next.spools().length === 1, 'it is swept');
      await next.end();
    });
  }
});
