'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, copyPackage } = require('../../fixtures/cluster-harness.js');

/** A counter, and three gauges whose collect hooks can be made to fail. */
const collecting = {
  start: ({ client, state }) => {
    const help = 'h';
    state.counter = new client.Counter({ name: 'done_total', help });
    state.fail = {};
    state.collected = 0;
    const gauge = (name, collect) =>
      new client.Gauge({
        name,
        help,
        collect() {
          if (state.fail[name]) return collect();
          this.set(++state.collected);
        },
      });
    gauge('throws', () => {
      throw new Error('it throws');
    });
    gauge('rejects', async () => {
      throw new Error('it rejects');
    });
    gauge('never_ends', () => new Promise(resolve => (state.finish = resolve)));
    gauge('works', () => {});
    // Somebody's own metric, whose get() is its hook.
    client.register.registerMetric({
      name: 'foreign',
      get: async () => {
        if (state.fail.foreign) throw new Error('it has no get');
        return { name: 'foreign', help, type: 'gauge', values: [{ value: ++state.collected, labels: {} }] };
      },
    });
  },
};

const GAUGES = ['throws', 'rejects', 'never_ends', 'works', 'foreign'];
const gaugesIn = samples => GAUGES.map(name => samples.get(name));
const count = ({ state }) => state.counter.inc();
const fail = ({ state }, names) => (state.fail = Object.fromEntries(names.map(name => [name, true])));

describe('collect hooks', { concurrency: 3 }, () => {
  it('run once a scrape, in every worker', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: collecting });
    await cluster.scrape();
    assert.equal(
      gaugesIn(await cluster.scrape()).reduce((sum, value) => sum + value, 0),
      2 * (6 + 7 + 8 + 9 + 10),
    );
    await cluster.end();
  });

  it('that throw, reject or never end cost only their own metric, whose last values stand', async t => {
    const cluster = await startCluster(t, { workers: 1, worker: collecting });
    await cluster.inWorker(1, count);
    const before = await cluster.scrape();
    assert.deepEqual(gaugesIn(before).toSorted(), [1, 2, 3, 4, 5]);
    await cluster.inWorker(1, fail, ['throws', 'rejects', 'never_ends', 'foreign']);
    await cluster.inWorker(1, count);
    // The one that never ends is given up before the deadline, so that there is an answer by then.
    const during = await cluster.scrape({ timeout: 3000 });
    for (const name of ['throws', 'rejects', 'never_ends', 'foreign']) {
      assert.equal(during.get(name), before.get(name), name);
    }
    assert.equal(during.get('done_total'), 2);
    assert.equal(during.get('works'), 6);
    // It is not called again while it has not ended, and not waited for.
    await cluster.inWorker(1, count);
    const next = await cluster.scrape({ timeout: 600_000 });
    assert.equal(next.get('done_total'), 3);
    assert.equal(next.get('works'), 7);
    assert.equal(next.get('never_ends'), before.get('never_ends'));
    await cluster.inWorker(1, ({ state }) => {
      state.fail = {};
      state.finish();
    });
    const after = gaugesIn(await cluster.scrape());
    assert.deepEqual(after.toSorted(), [8, 9, 10, 11, 12].toSorted());
    await cluster.end();
  });

  it('of a worker that disconnects meanwhile do no harm', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: collecting });
    await cluster.inWorkers([1, 2], count);
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.inWorker(2, ({ cluster, process, state }) => {
      state.fail.never_ends = true;
      const leave = () => (state.finish ? cluster.worker.disconnect() : setImmediate(leave));
      process.once('message', leave);
    });
    const scrape = cluster.scrape({ timeout: 600_000 });
    assert.equal((await scrape).get('done_total'), 2);
    await cluster.gone(2);
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.end();
  });
});

describe('two copies of the package', { concurrency: 3 }, () => {
  const counting = {
    start: ({ client, state }) => {
      state.counter = new client.Counter({ name: 'done_total', help: 'h', labelNames: ['copy'] });
      state.counter.inc({ copy: 'first' });
    },
  };
  const loadCopy = ({ require, process, state }, copy) => {
    const before = [process.listenerCount('message'), process.listenerCount('exit')];
    const client = require(copy);
    const second = new client.Counter({ name: 'done_total', help: 'h', labelNames: ['copy'] });
    second.inc({ copy: 'second' });
    const histogram = new client.Histogram({ name: 'took', help: 'h', buckets: [1] });
    histogram.observe(0.5);
    state.second = { client, counter: second };
    return [process.listenerCount('message') - before[0], process.listenerCount('exit') - before[1]];
  };

  it('in a worker give one answer, with the registries of both', async t => {
    const copy = copyPackage(t);
    const cluster = await startCluster(t, { workers: 2, worker: counting });
    assert.deepEqual(await cluster.inWorkers([1, 2], loadCopy, copy), [
      [0, 0],
      [0, 0],
    ]);
    await cluster.run($ => void $.answers.splice(0));
    for (let i = 1; i <= 3; i++) {
      await cluster.inWorkers([1, 2], ({ state }) => {
        state.counter.inc({ copy: 'both' });
        state.second.counter.inc({ copy: 'both' });
      });
      const samples = await cluster.scrape();
      assert.equal(samples.get('done_total{copy="first"}'), 2);
      assert.equal(samples.get('done_total{copy="second"}'), 2);
      assert.equal(samples.get('done_total{copy="both"}'), 4 * i);
      assert.equal(samples.get('took_bucket{le="1"}'), 2);
    }
    const answers = await cluster.run($ => $.answers.filter(({ message }) => message.requestId));
    assert.equal(answers.length, 6, 'one answer for each worker and scrape');
    await cluster.inWorker(1, ({ state }) => {
      const { Registry, AggregatorRegistry } = state.second.client;
      AggregatorRegistry.setRegistries(new Registry());
    });
    assert.equal((await cluster.scrape()).get('done_total{copy="second"}'), 1);
    cluster.tellWorker(2, ({ process }) => process.exit());
    await cluster.gone(2);
    assert.equal((await cluster.scrape()).get('done_total{copy="second"}'), 1);
    await cluster.end();
  });

  it('in a primary share one thread and one directory, and each can be closed', async t => {
    const copy = copyPackage(t);
    const cluster = await startCluster(t, { workers: 2, worker: counting });
    const before = await cluster.run($ => $.cluster.listenerCount('message'));
    const text = await cluster.run(async ({ require, state }, copy) => {
      const client = require(copy);
      state.other = new client.AggregatorRegistry();
      return state.other.clusterMetrics();
    }, copy);
    assert.match(text, /^done_total\{copy="first"\} 2$/m);
    assert.equal(await cluster.run($ => $.cluster.listenerCount('message')), before);
    assert.equal(await cluster.run($ => $.threads.length), 1);
    assert.equal(cluster.spools().length, 1);
    await cluster.run($ => $.aggregator.close());
    const again = await cluster.run(({ state }) => state.other.clusterMetrics());
    assert.equal(again, text);
    await cluster.run(({ state }) => state.other.close());
    assert.deepEqual(cluster.spools(), []);
    await cluster.end();
  });
});
