'use strict';

// Groups: processes without a primary of ours share one page.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');
const { isDeepStrictEqual } = require('node:util');

const client = require('../../../index');
const { randomFrom } = require('../../../benchmarks/shared/random');
const { until } = require('../../fixtures/cluster-harness');
const { TestGroup } = require('../../fixtures/group.js');
const { nativeHistograms } = require('../../fixtures/protobuf-page');
const { seed } = require('../../fixtures/seeded-fast-check');

const CHECKPOINT = { checkpointInterval: 100 };

describe('a group of plain processes', { skip: process.platform === 'win32' }, () => {
  /** @type {TestGroup} */
  let group;
  let counted = 0;

  beforeEach(() => {
    group = new TestGroup({ option: { group: 'test', ...CHECKPOINT } });
    counted = 0;
  });
  afterEach(() => group.close());

  /** Each process counts, and each page shows all that was counted before. */
  async function count(processes, times = 1) {
    for (const member of processes) {
      await member.do('inc', times);
      counted += times;
    }
  }

  async function checkPages(processes) {
    for (const member of processes) assert.equal((await member.page()).get('requests_total'), counted);
  }

  /**
   * Waits until all processes, and the page, say the same of the group.
   *
   * @returns {Promise<any>} what clusterState() says
   */
  async function agreement() {
    let agreed;
    await group.until(async samples => {
      const states = await Promise.all(group.running.map(member => member.do('state')));
      const leaders = group.running.filter((_, i) => states[i].group.isLeader);
      const leader = states.find(state => state.group.isLeader)?.group;
      const shared = states.map(({ group: { id: _, isLeader: __, failure: ___, ...state } }) => state);
      agreed = shared[0];
      const { pid, id } = agreed.leader ?? {};
      return (
        leaders.length === 1 &&
        leaders[0].process.pid === pid &&
        leader.id === id &&
        new Set(states.map(state => state.group.id)).size === states.length &&
        agreed.members === group.running.length &&
        shared.every(state => isDeepStrictEqual(state, agreed)) &&
        samples.get(`prom_client_cluster_group_leader_info{id="${id}",pid="${pid}"}`) === 1 &&
        samples.get('prom_client_cluster_group_members') === agreed.members &&
        samples.get('prom_client_cluster_group_leader_changes_total') === agreed.leaderChanges
      );
    });
    return agreed;
  }

  it('each process shows the numbers of all', async () => {
    const processes = await group.startMany(3);
    await count(processes, 2);
    await checkPages(processes);
    assert.equal((await processes[0].page()).get('open'), 3);
    const { directory, leaderChanges, generation, members } = await agreement();
    assert.deepEqual([directory, members], [group.directory, 3]);
    // A leader that a slow machine stops for seconds is replaced.
    assert.equal(leaderChanges === 0, generation === 1);
    const { mode } = fs.statSync(group.directory);
    assert.equal(mode & 0o777, 0o700);
    // Those who end leave their counts; the last one removes the directory.
    for (const member of processes.slice(1)) {
      await member.do('inc', 1);
      counted++;
      await member.do('exit');
      await member.ended;
    }
    await group.until(samples => samples.get('open') === 1);
    await checkPages([processes[0]]);
    await processes[0].do('exit');
    await processes[0].ended;
    assert.deepEqual(fs.readdirSync(group.place), []);
  });

  it('has each bucket of a native histogram that one process has, in every page, after the leader has ended, too', async () => {
    const options = { nativeHistogramBucketFactor: 1.01, nativeHistogramMaxBucketNumber: 20 };
    const registry = new client.Registry(client.Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE);
    const one = new client.Histogram({
      ...{ name: 'sizes', help: 'h', buckets: [], registers: [registry] },
      ...options,
    });
    const random = randomFrom(seed);
    const observe = async (member, octaves, given = options) => {
      const values = Array.from({ length: 30 }, () => (random() - 0.3) * 2 ** (random() * octaves));
      await member.do('observe', { values, options: given });
      for (const value of values) one.observe(value);
    };
    const shownBy = async member => {
      const [sizes] = nativeHistograms(Buffer.from(await member.do('protobuf'), 'base64')).values();
      return sizes;
    };
    const compare = async () => {
      const [expected] = nativeHistograms(await registry.metrics()).values();
      for (const member of group.running)
        await until(
          async () => isDeepStrictEqual(await shownBy(member), expected),
          `a page has ${JSON.stringify(expected)}, seed ${seed}`,
        );
      return expected.schema;
    };
    for (const member of await group.startMany(3)) await observe(member, 1);
    const { leader, others } = await group.roles();
    const fine = await compare();
    await observe(others[0], 30);
    assert.ok((await compare()) < fine);
    await observe(leader, 2);
    await leader.do('exit');
    await leader.ended;
    await compare();
    await observe(await group.start(), 2);
    await compare();
    // One with other options makes the buckets of all wider, and they stay so.
    const coarse = await group.start();
    await observe(coarse, 1, { nativeHistogramBucketFactor: 65536 });
    const isCoarse = async member => {
      const { schema, count } = (await shownBy(member)) ?? {};
      return schema === -4 && count === one.value().count;
    };
    await until(() => isCoarse(others[0]), 'a page has the buckets of the coarse process');
    await coarse.do('exit');
    await coarse.ended;
    for (const member of group.running) await until(() => isCoarse(member), 'a page still has them');
  });

  it('the leader and a member are killed under load while scraped: no scrape fails, no counter falls, nothing is lost that was in a checkpoint', async () => {
    const processes = await group.startMany(4);
    const watch = group.watch();
    await Promise.all(processes.map(member => member.do('busy')));
    await watch.exact(5);
    const first = await group.roles();
    await first.leader.killAfterCheckpoint();
    await watch.settled();
    await first.others[0].killAfterCheckpoint();
    const newcomer = await group.start();
    await newcomer.do('busy');
    await watch.settled();
    const second = await group.roles();
    await second.leader.killAfterCheckpoint();
    await watch.settled();
    await watch.exact(5);
    await second.others[0].end('SIGTERM');
    await watch.settled();
    await watch.stop();
    const page = await group.until(samples => samples.get('open') === group.running.length);
    // More if the killed member had taken over, or a leader had no time for others for some seconds.
    assert.ok(page.get('prom_client_cluster_group_leader_changes_total') >= 2);
    await agreement();
  });

  it('a collect hook that fails is a warning in its process, and an error for the onError of each', async () => {
    const processes = await group.startMany(2);
    await checkPages(processes);
    await processes[1].do('failHook');
    for (const member of processes) {
      assert.deepEqual(await member.do('hear'), [
        'The page shows old values because collect hooks have failed: failing',
      ]);
    }
    const warnings = await Promise.all(processes.map(member => member.do('warnings')));
    const ofHook = warnings.map(list => list.filter(text => text.includes('failing has failed: on purpose')));
    const lengths = ofHook.map(({ length }) => length);
    assert.deepEqual(lengths, [0, 1]);
  });

  it('a killed process loses nothing that was in a checkpoint', async () => {
    const processes = await group.startMany(2);
    const { leader, others } = await group.roles();
    await count(processes);
    await checkPages([others[0]]);
    const spool = path.join(
      group.directory,
      'g1',
      fs.readdirSync(path.join(group.directory, 'g1')).find(name => name.startsWith('prom-client-cluster-')),
    );
    const TIMES = 123_456_789;
    await leader.do('inc', TIMES);
    counted += TIMES;
    // What it has counted is in a file, as all numbers are.
    const total = Buffer.from(Float64Array.of(1 + TIMES).buffer);
    const hasTotal = name => {
      try {
        return fs.readFileSync(path.join(spool, name)).includes(total);
      } catch (error) {
        if (error.code !== 'ENOENT') throw error;
        return false; // it was replaced
      }
    };
    const isCheckpoint = name => /-r0-.*\.columns$/.test(name);
    while (!fs.readdirSync(spool).filter(isCheckpoint).some(hasTotal))
      await new Promise(resolve => setTimeout(resolve, 10));
    await leader.kill();
    await checkPages(others);
  });

  it('a series that one process removes stays in the sum while others have it, also under the next leader, and counts once', async () => {
    const processes = await group.startMany(4);
    await count(processes, 3);
    await checkPages(processes);
    for (let round = 0; round < 2; round++) {
      const { leader } = await agreement();
      const leading = group.running.find(({ process }) => process.pid === leader.pid);
      const others = group.running.filter(member => member !== leading);
      // The first one is in a page of this leader, the second one is not.
      await others[0].do('remove');
      await checkPages(group.running);
      await count([others[1]]);
      await checkPages(group.running);
      await count([others[0]], 2);
      await others[0].page();
      await others[0].do('remove');
      await leading.kill();
      for (let i = 0; i < 3; i++) await checkPages(others);
      await count([others[0]]);
      await checkPages(others);
    }
    for (const member of group.running) await member.do('remove');
    const page = await group.running[0].page();
    assert.equal(page.get('requests_total'), undefined, 'nobody has it any more');
  });

  it('after all have ended, the next process starts an empty group, which the environment names', async () => {
    group.option = undefined;
    group.env.PROM_CLIENT_CLUSTER_GROUP = 'test';
    const processes = await group.startMany(2);
    await count(processes);
    await Promise.all(processes.map(member => member.kill()));
    assert.ok(fs.existsSync(group.directory));
    const next = await group.start();
    counted = 0;
    await count([next]);
    await checkPages([next]);
    assert.equal((await next.page()).get('open'), 1);
    const other = await group.start({ option: { group: false } });
    await other.do('inc', 5);
    assert.equal((await other.do('page')).includes('requests_total 5'), true);
    assert.equal((await other.do('state')).group, undefined);
    await checkPages([next]);
  });

  it("a squatter's directory is refused", async () => {
    fs.mkdirSync(group.directory, { mode: 0o755 });
    const refused = await group.start();
    await assert.rejects(
      refused.do('page', 2000),
      /refused: it must be a directory of this user with mode 0700/,
    );
    assert.match((await refused.do('state')).group.failure, /is refused/);
    // A process that lives would create the directory before the link is there.
    await refused.kill();
    fs.rmdirSync(group.directory);
    fs.symlinkSync('/', group.directory);
    const member = await group.start();
    await assert.rejects(member.do('page', 300), /refused/);
    fs.unlinkSync(group.directory);
    await count([member]);
    await group.until(samples => samples.get('requests_total') === counted, member);
  });
});
