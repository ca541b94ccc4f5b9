'use strict';

// Series that end in one worker while another one still has them: the sum does not fall, whatever is lost
// meanwhile, and nothing counts twice.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { until } = require('../../fixtures/cluster-harness.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');
const { BY_HAND } = require('../../fixtures/cluster-checkpoints.js');

const MINUTE = 60_000;

const worker = {
  start: ({ require, client, process, ...context }) => {
    const { state } = context;
    const { MovedClock } = require('../fixtures/idle-clock');
    require('../fixtures/cluster-checkpoints').observeCheckpoints({ client, process, ...context });
    const clock = new MovedClock();
    const options = { help: 'h', labelNames: ['a'], maxIdleSeconds: 900 };
    const metrics = [
      new client.Counter({ name: 'c', ...options }),
      new client.Histogram({ name: 'h', buckets: [10], ...options }),
      new client.Histogram({ name: 'n', buckets: [], nativeHistogramBucketFactor: 1.1, ...options }),
      new client.Summary({ name: 's', percentiles: [0.5], ...options }),
    ];
    state.record = (a, times) => {
      for (let i = 0; i < times; i++)
        for (const metric of metrics) (metric.inc ?? metric.observe).call(metric, { a }, 1);
    };
    state.end = async (a, how) => {
      if (how === 'removed') for (const metric of metrics) metric.remove({ a });
      // All that there is.
      else await clock.move(1000);
    };
    process.on('message', ({ ended }) => (state.ended = ended ?? state.ended));
  },
};

const record = ({ state }, a, times) => state.record(a, times);
const end = ({ state }, a, how) => state.end(a, how);

describe('a series that ends in one worker', () => {
  const shared = sharedCluster({ workers: 1, worker, options: { checkpointInterval: BY_HAND } });
  let names = 0;

  /** What the page has of a series, which has to be the same in all types. */
  function countIn(samples, a) {
    const counts = ['c', 'h_sum', 'h_count', 'n_sum', 'n_count', 's_sum', 's_count'];
    const [first, ...others] = counts.map(name => samples.get(`${name}{a="${a}"}`));
    const expected = others.map(() => first);
    assert.deepEqual(others, expected);
    return first;
  }

  /** The last worker counts 5 in a series of its own and worker 1; that one 3. */
  async function start() {
    const cluster = shared();
    await cluster.run(({ clock }, milliseconds) => clock.advance(milliseconds), 2 * MINUTE);
    const a = `series ${++names}`;
    const id = await cluster.fork();
    const shows = async (count, options) => assert.equal(countIn(await cluster.scrape(options), a), count);
    await cluster.inWorker(1, record, a, 3);
    await cluster.inWorker(id, record, a, 5);
    await shows(8);
    const goOn = async count => {
      await cluster.inWorker(1, record, a, 1);
      await shows(count + 1);
      await shows(count + 1);
      await cluster.inWorker(1, end, a, 'removed');
      await cluster.inWorker(1, record, 'another', 1);
      return cluster.scrape();
    };
    return { cluster, a, id, shows, goOn };
  }

  for (const how of ['removed', 'expired']) {
    it(`stays in the sum while the other one has it, and counts on from there (${how})`, async () => {
      const { cluster, a, id, shows, goOn } = await start();
      await cluster.inWorker(id, end, a, how);
      for (let i = 0; i < 3; i++) await shows(8);
      await cluster.inWorker(id, record, a, 1);
      await shows(9);
      await cluster.inWorker(id, end, a, how);
      await shows(9);
      const offered = () => cluster.inWorker(id, ({ state }) => state.ended ?? 0);
      await until(
        async () => (await shows(9), (await offered()) >= 2),
        'the worker hears that both are saved',
      );
      assert.equal(countIn(await goOn(9), a), undefined, 'nobody has it any more');
      const { failures } = await cluster.internals();
      assert.ok(!failures.some(({ stage }) => stage === 'ended'));
      await cluster.killWorker(id);
    });

    for (const [death, isWritten, act] of [
      ['is killed after a checkpoint', true, (cluster, id) => cluster.killWorker(id)],
      ['is killed at once', false, (cluster, id) => cluster.killWorker(id)],
      ['exits', false, (cluster, id) => cluster.endWorker(id, ({ process }) => process.exit())],
    ]) {
      it(`stays if that one ${death} before the next scrape (${how})`, async () => {
        const { cluster, a, id, shows, goOn } = await start();
        await cluster.inWorker(id, end, a, how);
        if (isWritten) await cluster.inWorker(id, ({ state }) => state.tick());
        await act(cluster, id);
        await cluster.allRetired();
        await shows(8);
        await cluster.loseThread();
        await shows(8);
        // That it was removed everywhere is known only if the dead one had said so.
        const left = countIn(await goOn(8), a);
        assert.ok([undefined, 5].includes(left), `${left}`);
      });
    }

    it(`counts once if a thread is lost as soon as the page is there, and before (${how})`, async () => {
      const { cluster, a, id, shows, goOn } = await start();
      let count = 8;
      for (const isRead of [true, false, true]) {
        await cluster.inWorker(id, end, a, how);
        if (isRead) await shows(count);
        await cluster.loseThread();
        for (let i = 0; i < 2; i++) await shows(count);
        await cluster.inWorker(id, record, a, 1);
        await shows(++count);
        await cluster.run(({ clock }, milliseconds) => clock.advance(milliseconds), 2 * MINUTE);
      }
      await cluster.killWorker(id);
      await cluster.allRetired();
      await shows(count);
      await goOn(count);
    });

    it(`is shown as it was while that one hangs (${how})`, async () => {
      const { cluster, a, id, shows, goOn } = await start();
      await cluster.inWorker(id, end, a, how);
      await cluster.signal(id, 'SIGSTOP');
      await shows(8, { without: [id] });
      await cluster.inWorker(1, record, a, 1);
      await shows(9, { without: [id] });
      await cluster.signal(id, 'SIGCONT');
      await until(async () => (await shows(9), (await cluster.internals()).unresponsive === 0), 'it answers');
      await shows(9);
      await goOn(9);
      await cluster.killWorker(id);
    });
  }
});

describe('a series that ends in the primary', () => {
  const shared = sharedCluster({ workers: 1, worker, options: { includePrimary: true, inPlace: true } });

  it('stays in the sum while a worker has it', async () => {
    const cluster = shared();
    const count = async () => (await cluster.scrape()).get('c{a="x"}');
    await cluster.inWorker(1, record, 'x', 3);
    await cluster.run(({ client }) =>
      new client.Counter({ name: 'c', help: 'h', labelNames: ['a'] }).inc({ a: 'x' }, 5),
    );
    assert.equal(await count(), 8);
    await cluster.run(({ client }) => client.register.getSingleMetric('c').remove({ a: 'x' }));
    for (let i = 0; i < 4; i++) assert.equal(await count(), 8);
    await cluster.run(({ client }) => client.register.getSingleMetric('c').inc({ a: 'x' }, 1));
    assert.equal(await count(), 9);
    await cluster.inWorker(1, end, 'x', 'removed');
    await cluster.run(({ client }) => client.register.getSingleMetric('c').remove({ a: 'x' }));
    assert.equal(await count(), undefined);
  });
});
