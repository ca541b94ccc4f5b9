'use strict';

// Option includePrimary: the metrics of the primary itself are added to those of the workers.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, parseText, until } = require('../../fixtures/cluster-harness.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');

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

const setupWith = (options, setup) => ({
  workers: 2,
  worker: recording,
  ...setup,
  options: { includePrimary: true, ...options },
});
const startWith = (t, options, setup) => startCluster(t, setupWith(options, setup));
const recordInPrimary = cluster =>
  cluster.run((context, start) => new Function(`return (${start})`)()(context), String(recording.start));
const totalOf = async (cluster, options) => (await cluster.scrape(options)).get('done_total');

/** The primary records in metrics of each type, and everything is added up. */
async function showSums(cluster) {
  await recordInPrimary(cluster);
  const text = await cluster.text();
  const samples = parseText(text);
  assert.equal(samples.get('done_total'), 13);
  // The primary is the process with the lowest id.
  assert.deepEqual(
    ['sum', 'first', 'min', 'max', 'average'].map(aggregator => samples.get(`gauge_${aggregator}`)),
    [13, 10, 1, 10, 13 / 3],
  );
  const found = ['10', '1', '2'].map(number => samples.get(`series_total{process="${number}"}`));
  assert.deepEqual(found, [1, 1, 1]);
  assert.ok(text.indexOf('{process="10"} 1') < text.indexOf('{process="1"} 1'), 'it comes first');
  const shown = ['5', '20', '+Inf'].map(le => samples.get(`took_bucket{le="${le}"}`));
  assert.deepEqual(shown, [2, 3, 3]);
  assert.match(text, /^took_bucket\{le="20"\} 3 # \{process="10"\} 10 /m);
  assert.deepEqual([samples.get('took_sum'), samples.get('took_count')], [13, 3]);
  assert.deepEqual([samples.get('size_sum'), samples.get('size_count')], [1300, 300]);
  assert.equal(samples.get('size{quantile="0.5"}'), 2, 'the median of all observations');

  await cluster.run(({ state }) => state.counter.inc(5));
  await cluster.inWorker(1, ({ state }) => state.counter.inc());
  assert.equal(await totalOf(cluster), 19);
  const { workers, refused } = await cluster.internals();
  assert.deepEqual({ workers, refused }, { workers: 2, refused: {} }, 'the primary is no worker');
}

describe("the primary's own metrics in a cluster", () => {
  const shared = sharedCluster(setupWith({}, { contentType: OPENMETRICS }));

  it("the primary's own metrics are added to those of the workers", () => showSums(shared()));

  it("the primary's own metrics are sent again to a thread that replaces a lost one", async () => {
    const cluster = shared();
    const before = await totalOf(cluster);
    for (let losses = 1; losses <= 2; losses++) {
      await cluster.run(({ threads, clock }) => {
        // Three losses within 40 seconds of one another end the attempts to use a thread.
        clock.advance(61_000);
        return threads.at(-1).terminate();
      });
      await cluster.run(({ state }) => state.counter.inc());
      const samples = await cluster.scrape();
      assert.equal(samples.get('done_total'), before + losses);
      assert.equal(samples.get('series_total{process="10"}'), 1);
      assert.equal(samples.get('size_count'), 300);
    }
    // Also to one that is lost when it has the primary's numbers and has not used them.
    const text = await cluster.run(({ threads, aggregator, clock }) => {
      clock.advance(61_000);
      const thread = threads.at(-1);
      thread.onPost = ({ op, args }) => {
        if (op !== 'answer' || args[0].workerId !== 0) return;
        thread.onPost = undefined;
        thread.terminate();
      };
      return aggregator.clusterMetrics();
    });
    assert.equal(parseText(text).get('done_total'), before + 2);
    assert.equal(await cluster.run(({ threads }) => threads.length), 4);
  });

  it("the primary's own metrics are complete if no worker answers", async () => {
    const cluster = shared();
    const before = await totalOf(cluster);
    await cluster.signal(1, 'SIGSTOP');
    await cluster.signal(2, 'SIGSTOP');
    const text = await cluster.run(async ({ state, threads, aggregator, clock, requests }) => {
      state.counter.inc();
      const thread = threads.at(-1);
      const earlier = requests.get(2);
      const captured = new Promise(resolve => {
        thread.onPost = ({ op, args }) => void (op === 'answer' && args[0].workerId === 0 && resolve());
      });
      const page = aggregator.clusterMetrics({ timeout: 300_000 });
      await captured;
      thread.onPost = undefined;
      // Workers are asked one after the other, after the primary, in several turns on a busy machine.
      while (requests.get(2) === earlier) await new Promise(setImmediate);
      clock.advance(300_000);
      return page;
    });
    assert.equal(parseText(text).get('done_total'), before + 1);
    assert.equal((await cluster.internals()).unresponsive, 2);
    await cluster.signal(1, 'SIGCONT');
    await cluster.signal(2, 'SIGCONT');
    await until(async () => (await cluster.internals()).unresponsive === 0, 'both have answered');
  });
});

describe("the primary's own metrics in other clusters", { concurrency: 2 }, () => {
  if (process.env.EVERY_VARIANT) {
    it("the primary's own metrics are added to those of the workers in place", async t => {
      const cluster = await startWith(t, { inPlace: true }, { contentType: OPENMETRICS });
      await showSums(cluster);
      await cluster.end();
    });
  }

  it("the primary's own metrics stay on the page if the thread is lost while a hook of the primary hangs", async t => {
    const cluster = await startWith(t);
    await recordInPrimary(cluster);
    await cluster.run(({ client, state }) => {
      new client.Gauge({
        name: 'hanging',
        help: 'h',
        collect: () => state.isHanging && new Promise(resolve => (state.finish = resolve)),
        registers: [client.register],
      });
    });
    await cluster.run(({ client, state }) => {
      const [registry] = client.AggregatorRegistry[Symbol.for('prom-client-cluster.joined.v1')]();
      client.AggregatorRegistry.setRegistries([registry, client.register]);
      state.isHanging = false;
    });
    assert.equal(await totalOf(cluster), 13);
    await cluster.run(({ state, aggregator }) => {
      state.isHanging = true;
      state.patient = aggregator.clusterMetrics({ timeout: 600_000 });
    });
    // A busy machine may take longer than the timeout: the first page counts.
    const firstTotal = async () => {
      for (;;) {
        const total = await totalOf(cluster, { timeout: 300 }).catch(() => undefined);
        if (total !== undefined) return total;
      }
    };
    assert.equal(await firstTotal(), 13, 'it is not waited for');
    await cluster.run(({ threads }) => threads.at(-1).terminate());
    assert.equal(await firstTotal(), 13, 'the next thread has its last numbers');
    const patient = await cluster.run(({ state }) => {
      state.isHanging = false;
      state.finish();
      return state.patient;
    });
    assert.equal(parseText(patient).get('done_total'), 13);
    await cluster.end();
  });

  it("the primary's own metrics are left out by default", async t => {
    const cluster = await startCluster(t, { workers: 1, worker: recording });
    await recordInPrimary(cluster);
    const samples = await cluster.scrape();
    assert.equal(samples.get('done_total'), 1);
    assert.equal(samples.get('gauge_first'), 1);
    assert.equal(samples.get('series_total{process="10"}'), undefined);
    await cluster.end();
  });
});

describe("the primary's own metrics in the global registry", () => {
  const shared = sharedCluster(setupWith({}, { workers: 0, worker: {} }));

  it("the primary's own metrics are shown before the first worker starts, and after the last is gone", async () => {
    const cluster = shared();
    const recordBoth = ({ client }) => {
      new client.Counter({ name: 'early_total', help: 'h' }).inc(10);
      new client.Gauge({ name: 'open', help: 'h' }).set(10);
    };
    const totals = async () => {
      const samples = await cluster.scrape();
      return [samples.get('early_total'), samples.get('open')];
    };
    await cluster.run(recordBoth);
    assert.deepEqual(await totals(), [10, 10]);
    const id = await cluster.fork();
    await cluster.inWorker(id, recordBoth);
    assert.deepEqual(await totals(), [20, 20]);
    await cluster.endWorker(id, ({ process }) => process.exit());
    assert.deepEqual(await totals(), [20, 10]);
  });

  it("the primary's own metric wins over one of another type in a worker, and the conflict is counted", async () => {
    const cluster = shared();
    const id = await cluster.fork();
    await cluster.inWorker(id, ({ client }) => {
      new client.Histogram({ name: 'mixed', help: 'h', buckets: [1] }).observe(0.5);
      new client.Counter({ name: 'typed_total', help: 'h' }).inc();
    });
    await cluster.run(({ client }) => {
      new client.Gauge({ name: 'mixed', help: 'h' }).set(4);
      new client.Counter({ name: 'typed_total', help: 'h' }).inc();
    });
    const samples = await cluster.scrape({ selfMetrics: true });
    assert.equal(samples.get('typed_total'), 2);
    assert.equal(samples.get('mixed'), 4);
    assert.equal(samples.get('mixed_count'), undefined);
    assert.equal(samples.get('prom_client_cluster_conflicts_total'), 1);
  });

  it("the primary's own metrics are those of the registries of setRegistries(), if it was called", async () => {
    const cluster = shared();
    assert.equal((await cluster.scrape()).get('typed_total'), 2);
    await cluster.run(({ client }) => {
      const registries = [new client.Registry(), new client.Registry()];
      for (const [i, registry] of registries.entries()) {
        registry.setDefaultLabels({ registry: i });
        new client.Counter({ name: 'own_total', help: 'h', registers: [registry] }).inc(i + 1);
      }
      client.AggregatorRegistry.setRegistries(registries);
    });
    const samples = await cluster.scrape();
    assert.equal(samples.get('own_total{registry="0"}'), 1);
    assert.equal(samples.get('own_total{registry="1"}'), 2);
    assert.equal(samples.get('typed_total'), 1, "the worker's own");
  });
});
