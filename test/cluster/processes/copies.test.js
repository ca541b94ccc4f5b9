'use strict';

// Several copies of the package in one process: two dependencies that bring their own, or one that is loaded anew.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, copyPackage, LIBRARY } = require('../../fixtures/cluster-harness.js');

/** Loads another copy beside the first; each counts under its own label. */
const loadCopy = ({ client, require, process, state }, copy) => {
  const listeners = () => ['message', 'exit', 'disconnect'].map(name => process.listenerCount(name));
  const before = listeners();
  const second = require(copy);
  state.clients = { first: client, second };
  state.counters = {};
  for (const [name, { Counter }] of Object.entries(state.clients)) {
    state.counters[name] = new Counter({ name: 'done_total', help: 'h', labelNames: ['copy'] });
    state.counters[name].inc({ copy: name });
  }
  return listeners().map((count, i) => count - before[i]);
};
const count = ({ state }) => {
  for (const [copy, counter] of Object.entries(state.counters)) counter.inc({ copy });
};
const counted = samples => ['first', 'second'].map(copy => samples.get(`done_total{copy="${copy}"}`));

/** Loads the package again, as a development server does when a file has changed. */
const reload = ({ require, client, state }, library) => {
  for (const file of Object.keys(require.cache)) {
    if (file.startsWith(`${library}/lib/`) || file === `${library}/index.js`) delete require.cache[file];
  }
  state.reloaded = require(library);
  return state.reloaded !== client && state.reloaded.Counter !== client.Counter;
};

/** The answers that the primary got to its questions, by worker, since the last call. */
const answersOf = ({ answers }) => {
  const counts = {};
  for (const { workerId, message } of answers.splice(0)) {
    if (message.requestId !== undefined) counts[workerId] = (counts[workerId] ?? 0) + 1;
  }
  return counts;
};

/** Two workers with two copies each, and a primary with the same two. */
async function startWithCopies(t, setup) {
  const copy = copyPackage(t);
  const cluster = await startCluster(t, { workers: 2, ...setup });
  const added = await cluster.inWorkers([1, 2], loadCopy, copy);
  assert.deepEqual(added.flat(), [0, 0, 0, 0, 0, 0], 'the second copy listens to nothing');
  await cluster.run(({ require, state }, copy) => {
    const { AggregatorRegistry } = require(copy);
    state.second = new AggregatorRegistry();
  }, copy);
  await cluster.run(answersOf);
  return { cluster, copy };
}

describe('two copies of the package', { concurrency: 3 }, () => {
  it('give one answer a worker and scrape, with the numbers of both, to two copies in the primary', async t => {
    const { cluster } = await startWithCopies(t);
    assert.deepEqual(counted(await cluster.scrape()), [2, 2]);
    assert.deepEqual(await cluster.run(answersOf), { 1: 1, 2: 1 });
    await cluster.inWorkers([1, 2], count);
    const texts = await cluster.run(({ aggregator, state }) =>
      Promise.all([aggregator.clusterMetrics(), state.second.clusterMetrics()]),
    );
    assert.match(texts[0], /^done_total\{copy="first"\} 4\ndone_total\{copy="second"\} 4$/m);
    assert.equal(texts[1], texts[0]);
    assert.deepEqual(await cluster.run(answersOf), { 1: 1, 2: 1 }, 'both callers shared one round');
    assert.equal(await cluster.run(({ threads }) => threads.length), 1);
    assert.equal(cluster.spools().length, 1);
    await cluster.end();
  });

  it('have registries of their own: one may name others while its neighbour keeps its default', async t => {
    const { cluster } = await startWithCopies(t);
    await cluster.inWorker(1, ({ state }) => {
      const { Registry, Counter, AggregatorRegistry } = state.clients.second;
      const registry = new Registry();
      new Counter({ name: 'named_total', help: 'h', registers: [registry] }).inc(7);
      AggregatorRegistry.setRegistries([registry]);
    });
    const samples = await cluster.scrape();
    assert.deepEqual(counted(samples), [2, 1]);
    assert.equal(samples.get('named_total'), 7);
    await cluster.inWorker(1, ({ client, state }) => {
      client.AggregatorRegistry.setRegistries(new client.Registry());
      state.clients.second.AggregatorRegistry.setRegistries(state.clients.second.register);
    });
    const after = await cluster.scrape();
    assert.deepEqual(counted(after), [1, 2]);
    assert.equal(after.get('named_total'), undefined);
    await cluster.end();
  });

  it('read metrics of each other in their registries as their own', async t => {
    const { cluster } = await startWithCopies(t);
    await cluster.inWorkers([1, 2], ({ state, cluster }) => {
      const { first, second } = state.clients;
      const registry = new second.Registry(second.openMetricsContentType);
      const options = { help: 'h', registers: [registry] };
      const counter = new first.Counter({ name: 'jobs_total', labelNames: ['queue'], ...options });
      counter.inc({ queue: 'mail' }, 2);
      const histogram = new first.Histogram({
        name: 'took',
        buckets: [1, 2],
        enableExemplars: true,
        ...options,
      });
      histogram.observe({ value: 1.5, exemplarLabels: { worker: String(cluster.worker.id) } });
      const summary = new first.Summary({ name: 'size', percentiles: [0.5], ...options });
      for (const value of [1, 2, 3].map(size => size * cluster.worker.id)) summary.observe(value);
      const gauge = new first.Gauge({ name: 'open', help: 'h', registers: [], aggregator: 'max' });
      gauge.set(cluster.worker.id);
      registry.registerMetric(gauge);
      second.AggregatorRegistry.setRegistries(registry);
    });
    const samples = await cluster.scrape();
    assert.equal(samples.get('jobs_total{queue="mail"}'), 4);
    assert.deepEqual(
      ['1', '2', '+Inf'].map(le => samples.get(`took_bucket{le="${le}"}`)),
      [0, 2, 2],
    );
    assert.equal(samples.get('size_count'), 6);
    // Of 1, 2, 3 and 2, 4, 6; the sum of both medians would be 6.
    assert.ok(samples.get('size{quantile="0.5"}') >= 2 && samples.get('size{quantile="0.5"}') <= 3);
    assert.equal(samples.get('open'), 2);
    assert.deepEqual(counted(samples), [2, undefined]);
    const { refused, failures } = await cluster.internals();
    assert.deepEqual({ refused, failures }, { refused: {}, failures: [] });
    await cluster.end();
  });

  it('leave the numbers of both behind, when a worker ends and when shutdown() of either is awaited', async t => {
    const { cluster } = await startWithCopies(t);
    assert.deepEqual(counted(await cluster.scrape()), [2, 2]);
    await cluster.inWorkers([1, 2], count);
    cluster.tellWorker(1, ({ process }) => process.exit());
    await cluster.inWorker(2, ({ state }) => new state.clients.second.AggregatorRegistry().shutdown());
    await cluster.signal(2, 'SIGKILL');
    await Promise.all([cluster.gone(1), cluster.gone(2)]);
    await cluster.run(({ state }) => state.second.shutdown());
    const { retiring, retired } = await cluster.internals();
    assert.deepEqual({ retiring, retired }, { retiring: 0, retired: 2 });
    assert.deepEqual(counted(await cluster.scrape()), [4, 4]);
    await cluster.end();
  });
});

describe('a package that is loaded anew', { concurrency: 3 }, () => {
  const counting = {
    start: ({ client, state }) => {
      state.counter = new client.Counter({ name: 'done_total', help: 'h' });
      state.counter.inc();
    },
  };

  it('in a worker goes on counting where the old one stopped', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: counting });
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.run(answersOf);
    for (let i = 1; i <= 3; i++) {
      assert.equal(await cluster.inWorker(1, reload, LIBRARY), true);
      await cluster.inWorker(1, ({ state }) => {
        new state.reloaded.Counter({ name: 'done_total', help: 'h' }).inc(10);
      });
      assert.equal((await cluster.scrape()).get('done_total'), 2 + 10 * i);
    }
    assert.deepEqual(await cluster.run(answersOf), { 1: 3, 2: 3 });
    const listeners = await cluster.inWorkers([1, 2], ({ process }) =>
      ['message', 'exit'].map(name => process.listenerCount(name)),
    );
    assert.deepEqual(listeners[0], listeners[1]);
    cluster.tellWorker(1, ({ process }) => process.exit());
    await cluster.gone(1);
    assert.equal((await cluster.scrape()).get('done_total'), 32);
    await cluster.end();
  });

  it('in the primary takes over thread, directory and totals of the old one', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: counting });
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    const listeners = ({ cluster }) => cluster.eventNames().map(name => cluster.listenerCount(name));
    const before = await cluster.run(listeners);
    const { spool } = cluster;
    assert.equal(await cluster.run(reload, LIBRARY), true);
    const text = await cluster.run(async ({ state, aggregator }) => {
      state.anew = new state.reloaded.AggregatorRegistry();
      await aggregator.close();
      return state.anew.clusterMetrics();
    });
    assert.match(text, /^done_total 2$/m);
    assert.deepEqual(await cluster.run(listeners), before);
    assert.equal(await cluster.run(({ threads }) => threads.length), 1);
    assert.equal(cluster.spool, spool);
    await cluster.run(({ state }) => state.anew.close());
    assert.deepEqual(cluster.spools(), []);
    await cluster.end();
  });

  it('in the primary is a cluster of its own, where the old one was closed before', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: counting });
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.run(({ aggregator }) => aggregator.close());
    await cluster.run(reload, LIBRARY);
    const text = await cluster.run(({ state, setup }) => {
      state.anew = new state.reloaded.AggregatorRegistry(undefined, setup.options);
      return state.anew.clusterMetrics();
    });
    assert.match(text, /^done_total 2$/m);
    assert.equal(cluster.spools().length, 1);
    await cluster.end();
  });
});
