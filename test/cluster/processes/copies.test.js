'use strict';

// Several copies of the package in one process: two dependencies that bring their own, or one that is loaded
// anew.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, copyPackage, until, LIBRARY } = require('../../fixtures/cluster-harness.js');

/** Loads another copy in addition to the first; each counts under its own label. */
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

/** Collects garbage, and says which of the registries with default metrics that were replaced are held. */
const heldRegistries = ({ require, state }) => {
  require('node:v8').setFlagsFromString('--expose-gc');
  require('node:vm').runInNewContext('gc')();
  return state.replaced.flatMap((registry, i) => (registry.deref() === undefined ? [] : i));
};

/** How often each worker has answered a request since the last call. */
const answersOf = ({ answers }) => {
  const counts = {};
  for (const { workerId, message } of answers.splice(0)) {
    if (message.requestId !== undefined) counts[workerId] = (counts[workerId] ?? 0) + 1;
  }
  return counts;
};

it('two copies of the package in each process', async t => {
  const copy = copyPackage(t);
  const cluster = await startCluster(t, { workers: 2 });

  await t.test('two copies share the listeners of their process', async () => {
    const added = await cluster.inWorkers([1, 2], loadCopy, copy);
    assert.deepEqual(added.flat(), [0, 0, 0, 0, 0, 0], 'the second copy listens to nothing');
    const listeners = await cluster.run(({ cluster, require, state }, copy) => {
      const counts = () => cluster.eventNames().map(name => cluster.listenerCount(name));
      const before = counts();
      const { AggregatorRegistry } = require(copy);
      state.AggregatorRegistry = AggregatorRegistry;
      state.second = new AggregatorRegistry({ timeout: 60_000 });
      return { before, after: counts() };
    }, copy);
    assert.deepEqual(listeners.after, listeners.before);
    await cluster.run(answersOf);
  });

  await t.test('two copies give one answer a scrape, with the numbers of both', async () => {
    assert.deepEqual(counted(await cluster.scrape()), [2, 2]);
    assert.deepEqual(await cluster.run(answersOf), { 1: 1, 2: 1 });
    await cluster.inWorkers([1, 2], count);
    const texts = await cluster.run(({ aggregator, state }) =>
      Promise.all([aggregator.clusterMetrics(), state.second.clusterMetrics()]),
    );
    assert.match(texts[0], /^done_total\{copy="first"\} 4\ndone_total\{copy="second"\} 4$/m);
    assert.equal(texts[1], texts[0]);
    assert.deepEqual(await cluster.run(answersOf), { 1: 1, 2: 1 }, 'both callers shared one round');
  });

  await t.test('two copies share one thread and one directory, and each can be closed', async () => {
    assert.equal(await cluster.run(({ threads }) => threads.length), 1);
    assert.equal(cluster.spools().length, 1);
    await cluster.run(async ({ state, aggregator }) => {
      await aggregator.close();
      state.third = new state.AggregatorRegistry({ timeout: 60_000 });
      await state.second.close();
    });
    assert.equal(cluster.spools().length, 1);
    assert.equal(await cluster.run(({ threads }) => threads.length), 1);
    const text = await cluster.run(({ state }) => state.third.clusterMetrics());
    assert.match(text, /^done_total\{copy="first"\} 4\ndone_total\{copy="second"\} 4$/m);
    await cluster.run(({ state }) => state.third.close());
    assert.deepEqual(cluster.spools(), []);
    await cluster.run(context => {
      context.aggregator = context.construct();
      context.state.second = new context.state.AggregatorRegistry();
    });
  });

  await t.test(
    'two copies have registries of their own: setRegistries() of one leaves the other as it is',
    async () => {
      await cluster.inWorker(1, ({ state }) => {
        const { Registry, Counter, AggregatorRegistry } = state.clients.second;
        const registry = new Registry();
        new Counter({ name: 'named_total', help: 'h', registers: [registry] }).inc(7);
        AggregatorRegistry.setRegistries([registry]);
      });
      const samples = await cluster.scrape();
      assert.deepEqual(counted(samples), [4, 2]);
      assert.equal(samples.get('named_total'), 7);
      await cluster.inWorker(1, ({ client, state }) => {
        client.AggregatorRegistry.setRegistries(new client.Registry());
        state.clients.second.AggregatorRegistry.setRegistries(state.clients.second.register);
      });
      const after = await cluster.scrape();
      assert.deepEqual(counted(after), [2, 4]);
      assert.equal(after.get('named_total'), undefined);
      await cluster.inWorker(1, ({ client }) => client.AggregatorRegistry.setRegistries(client.register));
    },
  );

  await t.test('two copies read metrics of each other in their registries', async () => {
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
    const shown = ['1', '2', '+Inf'].map(le => samples.get(`took_bucket{le="${le}"}`));
    assert.deepEqual(shown, [0, 2, 2]);
    assert.equal(samples.get('size_count'), 6);
    // Of 1, 2, 3 and 2, 4, 6; the sum of both medians would be 6.
    assert.ok(samples.get('size{quantile="0.5"}') >= 2 && samples.get('size{quantile="0.5"}') <= 3);
    assert.equal(samples.get('open'), 2);
    assert.deepEqual(counted(samples), [4, undefined]);
    const { refused, failures } = await cluster.internals();
    assert.deepEqual({ refused, failures }, { refused: {}, failures: [] });
    await cluster.inWorkers([1, 2], ({ state: { clients } }) =>
      clients.second.AggregatorRegistry.setRegistries(clients.second.register),
    );
  });

  await t.test("two copies lose nothing at a worker's exit or at shutdown() of either", async () => {
    assert.deepEqual(counted(await cluster.scrape()), [4, 4]);
    await cluster.inWorkers([1, 2], count);
    cluster.tellWorker(1, ({ process }) => process.exit());
    await cluster.inWorker(2, ({ state }) => new state.clients.second.AggregatorRegistry().shutdown(600_000));
    await cluster.signal(2, 'SIGKILL');
    await Promise.all([cluster.gone(1), cluster.gone(2)]);
    await cluster.run(({ state }) => state.second.shutdown(600_000));
    const { retiring, retired } = await cluster.internals();
    assert.deepEqual({ retiring, retired }, { retiring: 0, retired: 2 });
    assert.deepEqual(counted(await cluster.scrape()), [6, 6]);
  });

  await cluster.end();
});

describe('a package that is loaded anew', () => {
  const counting = {
    start: ({ client, state }) => {
      state.counter = new client.Counter({ name: 'done_total', help: 'h' });
      state.counter.inc();
    },
  };

  it('a package that is loaded anew continues where the old one stopped', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: counting });
    assert.equal((await cluster.scrape()).get('done_total'), 2);

    await t.test('a package that is loaded anew in a worker replaces the old one', async () => {
      await cluster.run(answersOf);
      for (let i = 1; i <= 3; i++) {
        assert.equal(await cluster.inWorker(1, reload, LIBRARY), true);
        await cluster.inWorker(1, ({ state }) => {
          // The program still uses what it has loaded before.
          (state.used ??= []).push(new state.reloaded.Counter({ name: 'done_total', help: 'h' }));
          state.used.at(-1).inc(10);
        });
        assert.equal((await cluster.scrape()).get('done_total'), 2 + 10 * i);
      }
      assert.deepEqual(await cluster.run(answersOf), { 1: 3, 2: 3 });
      const listeners = await cluster.inWorkers([1, 2], ({ process }) =>
        ['message', 'exit'].map(name => process.listenerCount(name)),
      );
      assert.deepEqual(listeners[0], listeners[1]);
      await cluster.endWorker(1, ({ process }) => process.exit());
      assert.equal((await cluster.scrape()).get('done_total'), 32);
    });

    await t.test(
      'a package that is loaded anew in the primary takes over thread, directory and totals',
      async () => {
        const listeners = ({ cluster }) => cluster.eventNames().map(name => cluster.listenerCount(name));
        const before = await cluster.run(listeners);
        const { spool } = cluster;
        assert.equal(await cluster.run(reload, LIBRARY), true);
        const text = await cluster.run(async ({ state, aggregator }) => {
          state.anew = new state.reloaded.AggregatorRegistry();
          await aggregator.close();
          return state.anew.clusterMetrics();
        });
        assert.match(text, /^done_total 32$/m);
        assert.deepEqual(await cluster.run(listeners), before);
        assert.equal(await cluster.run(({ threads }) => threads.length), 1);
        assert.equal(cluster.spool, spool);
        await cluster.run(({ state }) => state.anew.close());
        assert.deepEqual(cluster.spools(), []);
      },
    );

    await t.test('a package that is loaded anew in the primary after close() begins anew', async () => {
      await cluster.run(reload, LIBRARY);
      const text = await cluster.run(({ state, setup }) => {
        state.anew = new state.reloaded.AggregatorRegistry(undefined, setup.options);
        return state.anew.clusterMetrics();
      });
      assert.match(text, /^done_total 1$/m, 'worker 2 alone');
      assert.equal(cluster.spools().length, 1);
    });

    await cluster.end();
  });

  it('a package that is loaded anew is not held when the program does not use it any more', async t => {
    const cluster = await startCluster(t, { workers: 1 });
    // The first copy loads more of its files for that. Those that it loaded later would be the next copy's.
    await cluster.scrape();
    for (let i = 0; i < 5; i++) {
      await cluster.inWorker(1, reload, LIBRARY);
      await cluster.inWorker(1, ({ require, state }) => {
        // Of the module that has loaded it.
        require.cache[Object.keys(require.cache).find(file => file.endsWith('cluster-worker.js'))].children =
          [];
        state.reloaded.collectDefaultMetrics({ runtime: true });
        (state.replaced ??= []).push(new WeakRef(state.reloaded.register));
      });
      await cluster.scrape();
    }
    await until(
      async () => (await cluster.inWorker(1, heldRegistries)).join() === '4',
      'the others are collected',
    );
    await cluster.end();
  });
});
