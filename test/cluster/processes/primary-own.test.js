'use strict';

// Option includePrimary: what the primary itself records is added up with the workers'.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, parseText, copyPackage } = require('../../fixtures/cluster-harness.js');

const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** Metrics of each type, in a registry that has exemplars; each process has its own number. */
const recording = {
  start: ({ client, cluster, state }) => {
    const number = cluster.isPrimary ? 10 : cluster.worker.id;
    const registry = new client.Registry(client.openMetricsContentType);
    client.AggregatorRegistry.setRegistries(registry);
    const options = { help: 'h', registers: [registry] };
    state.counter = new client.Counter({ name: 'done_total', ...options });
    state.counter.inc(number);
    for (const aggregator of ['sum', 'first', 'min', 'max', 'average']) {
      new client.Gauge({ name: `gauge_${aggregator}`, aggregator, ...options }).set(number);
    }
    const labelNames = ['process'];
    const series = new client.Counter({ name: 'series_total', labelNames, ...options });
    series.inc({ process: number });
    const histogram = new client.Histogram({
      name: 'took',
      buckets: [5, 20],
      enableExemplars: true,
      ...options,
    });
    // The primary is asked later than the workers have recorded: its exemplar is the newest.
    histogram.observe({ value: number, exemplarLabels: { process: String(number) } });
    const summary = new client.Summary({ name: 'size', percentiles: [0.5], ...options });
    for (let i = 0; i < 100; i++) summary.observe(number);
  },
};

const startWith = (t, options, setup) =>
  startCluster(t, { workers: 2, worker: recording, ...setup, options: { includePrimary: true, ...options } });
const recordInPrimary = cluster =>
  cluster.run((context, start) => new Function(`return (${start})`)()(context), String(recording.start));
const totalOf = async (cluster, options) => (await cluster.scrape(options)).get('done_total');

const ways = { 'in a thread': {}, 'in place': { inPlace: true } };

describe("the primary's own metrics", { concurrency: 3 }, () => {
  for (const [way, options] of Object.entries(ways)) {
    it(`are added to those of the workers, ${way}`, async t => {
      const cluster = await startWith(t, options, { contentType: OPENMETRICS });
      await recordInPrimary(cluster);
      const text = await cluster.text();
      const samples = parseText(text);
      assert.equal(samples.get('done_total'), 13);
      // The primary is the one with the lowest id.
      assert.deepEqual(
        ['sum', 'first', 'min', 'max', 'average'].map(aggregator => samples.get(`gauge_${aggregator}`)),
        [13, 10, 1, 10, 13 / 3],
      );
      assert.deepEqual(
        ['10', '1', '2'].map(number => samples.get(`series_total{process="${number}"}`)),
        [1, 1, 1],
      );
      assert.ok(text.indexOf('{process="10"} 1') < text.indexOf('{process="1"} 1'), 'it comes first');
      assert.deepEqual(
        ['5', '20', '+Inf'].map(le => samples.get(`took_bucket{le="${le}"}`)),
        [2, 3, 3],
      );
      assert.match(text, /^took_bucket\{le="20"\} 3 # \{process="10"\} 10 /m);
      assert.deepEqual([samples.get('took_sum'), samples.get('took_count')], [13, 3]);
      assert.deepEqual([samples.get('size_sum'), samples.get('size_count')], [1300, 300]);
      assert.equal(samples.get('size{quantile="0.5"}'), 2, 'the median of all observations');

      await cluster.run(({ state }) => state.counter.inc(5));
      await cluster.inWorker(1, ({ state }) => state.counter.inc());
      assert.equal(await totalOf(cluster), 19);
      const { workers, refused } = await cluster.internals();
      assert.deepEqual({ workers, refused }, { workers: 2, refused: {} }, 'it is no worker');
      await cluster.end();
    });
  }

  it('are left out by default', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: recording });
    await recordInPrimary(cluster);
    const samples = await cluster.scrape();
    assert.equal(samples.get('done_total'), 3);
    assert.equal(samples.get('gauge_first'), 1);
    assert.equal(samples.get('series_total{process="10"}'), undefined);
    await cluster.end();
  });

  it('are there before the first worker, with it, and when the last is gone', async t => {
    const cluster = await startWith(t, {}, { workers: 0 });
    await recordInPrimary(cluster);
    assert.equal(await totalOf(cluster), 10);
    assert.equal((await cluster.scrape()).get('gauge_sum'), 10);
    await cluster.fork();
    assert.equal(await totalOf(cluster), 11);
    cluster.tellWorker(1, ({ process }) => process.exit());
    await cluster.gone(1);
    const samples = await cluster.scrape();
    assert.equal(samples.get('done_total'), 11);
    assert.equal(samples.get('gauge_sum'), 10);
    await cluster.run(({ aggregator }) => aggregator.close());
    await cluster.end();
  });

  it('are those of the global registry, unless setRegistries() names others', async t => {
    const cluster = await startWith(t, {}, { workers: 1 });
    await cluster.run(({ client, state }) => {
      new client.Counter({ name: 'global_total', help: 'h' }).inc(3);
      state.registries = [new client.Registry(), new client.Registry()];
      for (const [i, registry] of state.registries.entries()) {
        registry.setDefaultLabels({ registry: i });
        new client.Counter({ name: 'own_total', help: 'h', registers: [registry] }).inc(i + 1);
      }
    });
    assert.equal((await cluster.scrape()).get('global_total'), 3);
    await cluster.run(({ client, state }) => client.AggregatorRegistry.setRegistries(state.registries));
    const samples = await cluster.scrape();
    assert.equal(samples.get('global_total'), undefined);
    assert.equal(samples.get('own_total{registry="0"}'), 1);
    assert.equal(samples.get('own_total{registry="1"}'), 2);
    assert.equal(samples.get('done_total'), 1);
    await cluster.end();
  });

  it('are told again to a thread that took the place of one that died', async t => {
    const cluster = await startWith(t);
    await recordInPrimary(cluster);
    assert.equal(await totalOf(cluster), 13);
    for (let deaths = 1; deaths <= 2; deaths++) {
      await cluster.run(({ threads }) => threads.at(-1).terminate());
      await cluster.run(({ state }) => state.counter.inc());
      const samples = await cluster.scrape();
      assert.equal(samples.get('done_total'), 13 + deaths);
      assert.equal(samples.get('series_total{process="10"}'), 1);
      assert.equal(samples.get('size_count'), 300);
    }
    // Also to one that dies when it has the primary's numbers, and has not used them.
    const text = await cluster.run(({ threads, aggregator }) => {
      const thread = threads.at(-1);
      thread.onPost = ({ op, answer }) => {
        if (op !== 'answer' || answer.workerId !== 0) return;
        thread.onPost = undefined;
        thread.terminate();
      };
      return aggregator.clusterMetrics();
    });
    assert.match(text, /^done_total 15$/m);
    assert.equal(await cluster.run(({ threads }) => threads.length), 4);
    await cluster.end();
  });

  it('have a hook that throws or never ends: that costs its own metric, whose last values stand', async t => {
    const cluster = await startWith(t);
    await cluster.run(({ client, state }) => {
      state.collected = 0;
      const failing = (name, collect) =>
        new client.Gauge({
          name,
          help: 'h',
          collect() {
            if (state.broken && collect !== undefined) return collect();
            this.set(++state.collected);
          },
        });
      failing('throws', () => {
        throw new Error('it throws');
      });
      failing('never_ends', () => new Promise(resolve => (state.finish = resolve)));
      failing('works');
      state.counter = new client.Counter({ name: 'done_total', help: 'h' });
      state.counter.inc(10);
    });
    const valuesIn = samples => ['throws', 'never_ends', 'works'].map(name => samples.get(name));
    assert.deepEqual(valuesIn(await cluster.scrape()), [1, 2, 3]);
    await cluster.run(({ state }) => {
      state.broken = true;
      state.counter.inc();
    });
    // Nobody waits for ever: the hook is given up before the deadline.
    const during = await cluster.scrape({ timeout: 800 });
    assert.deepEqual([...valuesIn(during), during.get('done_total')], [1, 2, 4, 14]);
    // It is neither called again nor waited for while it has not ended.
    const next = await cluster.scrape({ timeout: 600_000 });
    assert.deepEqual([...valuesIn(next), next.get('done_total')], [1, 2, 5, 14]);
    assert.deepEqual((await cluster.internals()).failures, [
      { stage: 'collect', metric: 'throws', count: 2 },
      { stage: 'collect', metric: 'never_ends', count: 2 },
    ]);
    await cluster.run(({ state }) => {
      state.broken = false;
      state.finish();
    });
    assert.deepEqual(valuesIn(await cluster.scrape()), [6, 7, 8]);
    await cluster.end();
  });

  it('of another type than a worker has for the name win, and the conflict is counted', async t => {
    const cluster = await startWith(t, {}, { workers: 1, worker: {} });
    await cluster.inWorker(1, ({ client }) => {
      new client.Histogram({ name: 'mixed', help: 'h', buckets: [1] }).observe(0.5);
      new client.Counter({ name: 'done_total', help: 'h' }).inc();
    });
    await cluster.run(({ client }) => {
      new client.Gauge({ name: 'mixed', help: 'h' }).set(4);
      new client.Counter({ name: 'done_total', help: 'h' }).inc();
    });
    const samples = await cluster.scrape({ selfMetrics: true });
    assert.equal(samples.get('done_total'), 2);
    assert.equal(samples.get('mixed'), 4);
    assert.equal(samples.get('mixed_count'), undefined);
    assert.equal(samples.get('prom_client_cluster_conflicts_total'), 1);
    await cluster.end();
  });

  it('need no worker that answers', async t => {
    const cluster = await startWith(t);
    await recordInPrimary(cluster);
    assert.equal(await totalOf(cluster), 13);
    await cluster.signal(1, 'SIGSTOP');
    await cluster.signal(2, 'SIGSTOP');
    await cluster.run(({ state }) => state.counter.inc());
    assert.equal(await totalOf(cluster, { without: [1, 2] }), 14);
    assert.equal((await cluster.internals()).silent, 2);
    await cluster.signal(1, 'SIGCONT');
    await cluster.signal(2, 'SIGCONT');
    await cluster.end();
  });

  it('are complete where there are many of them', async t => {
    const cluster = await startWith(t, {}, { workers: 1, worker: {} });
    await cluster.run(({ client, state }) => {
      state.many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['number'] });
      for (let number = 0; number < 10_000; number++) state.many.inc({ number }, number);
    });
    const sums = async () => {
      const samples = await cluster.scrape();
      return [samples.size, [...samples.values()].reduce((sum, value) => sum + value, 0)];
    };
    assert.deepEqual(await sums(), [10_000, 49_995_000]);
    await cluster.run(({ state }) => {
      for (let number = 9_000; number < 11_000; number++) state.many.inc({ number });
    });
    assert.deepEqual(await sums(), [11_000, 49_997_000]);
    await cluster.run(({ state }) => state.many.reset());
    assert.deepEqual(await sums(), [0, 0]);
    await cluster.end();
  });
});

describe("the primary's own metrics of two copies of the package", () => {
  it('are added up like those of two copies in a worker', async t => {
    const copy = copyPackage(t);
    const cluster = await startWith(t, {}, { workers: 1 });
    await recordInPrimary(cluster);
    await cluster.run(({ require }, copy) => {
      const second = require(copy);
      new second.Counter({ name: 'done_total', help: 'h' }).inc(100);
    }, copy);
    assert.equal(await totalOf(cluster), 111);
    await cluster.end();
  });
});
