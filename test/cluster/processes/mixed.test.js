'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, until, LIBRARY, STOCK } = require('../../fixtures/cluster-harness.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');

/** The same program with either library. */
const counting = {
  start: ({ client, cluster, state }) => {
    const { id } = cluster.worker;
    const help = 'h';
    state.counter = new client.Counter({ name: 'done_total', help, labelNames: ['route'] });
    state.counter.inc({ route: '/"a"\\\n' }, id);
    state.counter.inc({ route: `/${id}` }, 0.5);
    state.gauge = new client.Gauge({ name: 'open', help, aggregator: 'max' });
    state.gauge.set(id);
    state.histogram = new client.Histogram({ name: 'took', help, buckets: [1, 2], labelNames: ['route'] });
    for (let i = 1; i <= id; i++) state.histogram.observe({ route: '/' }, i);
    state.summary = new client.Summary({ name: 'size', help, percentiles: [0.5] });
    for (let i = 0; i < id; i++) state.summary.observe(id);
  },
};
const stockWorker = { library: STOCK, construct: true };
const ourWorker = { library: LIBRARY, construct: false };

/** Expects the samples of workers 1, 2 and 3, whichever library each of them uses. */
function assertOfThree(samples) {
  const expected = {
    'done_total{route="/\\"a\\"\\\\\\n"}': 6,
    'done_total{route="/1"}': 0.5,
    'done_total{route="/2"}': 0.5,
    'done_total{route="/3"}': 0.5,
    open: 3,
    'took_bucket{le="1",route="/"}': 3,
    'took_bucket{le="2",route="/"}': 5,
    'took_bucket{le="+Inf",route="/"}': 6,
    'took_sum{route="/"}': 10,
    'took_count{route="/"}': 6,
    size_sum: 14,
    size_count: 6,
  };
  const shown = new Map([...samples].filter(([sample]) => !sample.includes('quantile=')));
  assert.deepEqual(new Map([...shown].sort()), new Map(Object.entries(expected).sort()));
}

describe('a primary with prom-client', () => {
  const cluster = sharedCluster({ library: STOCK, worker: { ...counting, ...ourWorker }, workers: 3 });

  it("prom-client's primary understands our workers", async () => {
    assertOfThree(await cluster().scrape());
  });

  it("prom-client's primary may ask our workers with several requests at once", async () => {
    const texts = await cluster().run(({ aggregator }) =>
      Promise.all(Array.from({ length: 20 }, () => aggregator.clusterMetrics())),
    );
    assert.equal(texts.length, 20);
    for (const text of texts) assert.match(text, /^took_count\{route="\/"\} 6$/m);
  });

  it("prom-client's primary sees what our workers count later, and goes on when one ends", async () => {
    await cluster().inWorker(2, ({ state }) => state.counter.inc({ route: '/2' }));
    assert.equal((await cluster().scrape()).get('done_total{route="/2"}'), 1.5);
    await cluster().endWorker(3, ({ process }) => process.exit());
    assert.equal((await cluster().scrape()).get('done_total{route="/2"}'), 1.5);
  });

  it("prom-client's primary understands our workers together with its own", async t => {
    const worker = { ...counting };
    const workers = [ourWorker, stockWorker, { ...ourWorker, construct: true }];
    const cluster = await startCluster(t, { library: STOCK, worker, workers });
    assertOfThree(await cluster.scrape());
    await cluster.end();
  });

  it("prom-client's primary gets the error of our worker's collect hook", async t => {
    const failing = {
      start: ({ client }) => {
        new client.Gauge({
          name: 'failing',
          help: 'h',
          collect: () => {
            throw new Error('it cannot be collected');
          },
        });
      },
    };
    const cluster = await startCluster(t, { library: STOCK, worker: failing, workers: [ourWorker] });
    await assert.rejects(cluster.scrape(), { message: 'it cannot be collected' });
    // Its own timer would keep prom-client's primary for five seconds.
    await cluster.kill();
  });
});

describe('our primary', () => {
  const cluster = sharedCluster({ worker: counting, workers: [stockWorker, ourWorker, stockWorker] });

  /** Scrapes workers 1, 2 and 3, also while they count. */
  async function assertUnderstood(cluster) {
    const samples = await cluster.scrape();
    assertOfThree(samples);
    const median = samples.get('size{quantile="0.5"}');
    // 1 once, 2 twice, 3 three times: whatever mean it is, it is none of what adding quantiles gives.
    assert.ok(median >= 2 && median <= 3, `median ${median}`);
    for (let i = 0; i < 3; i++) {
      await cluster.inWorkers([1, 2, 3], ({ state }) => state.counter.inc({ route: '/1' }));
      assert.equal((await cluster.scrape()).get('done_total{route="/1"}'), 0.5 + 3 * (i + 1));
    }
    assert.deepEqual((await cluster.internals()).refused, {});
  }

  it("our primary understands workers with prom-client's library and with ours", () =>
    assertUnderstood(cluster()));

  // test/long/every-variant.test.js tries these, too.
  const others = {
    'only workers with prom-client': [stockWorker, stockWorker, stockWorker],
    'our workers first': [ourWorker, ourWorker, stockWorker],
  };
  for (const [what, workers] of Object.entries(process.env.EVERY_VARIANT ? others : {})) {
    it(`our primary understands ${what}`, async t => {
      const cluster = await startCluster(t, { worker: counting, workers });
      await assertUnderstood(cluster);
      await cluster.end();
    });
  }

  it('our primary serves the others when a worker with prom-client answers with an error', async () => {
    const before = await cluster().scrape();
    await cluster().inWorker(3, ({ client, state }) => {
      state.failing = true;
      new client.Gauge({
        name: 'failing',
        help: 'h',
        collect: () => {
          if (state.failing) throw new Error('it cannot be collected');
        },
      });
    });
    await cluster().inWorker(2, ({ state }) => state.counter.inc({ route: '/1' }));
    const samples = await cluster().scrape();
    const route = 'done_total{route="/1"}';
    assert.equal(samples.get(route), before.get(route) + 1);
    assert.equal(samples.get('took_count{route="/"}'), 6, 'its last numbers stand');
    assert.equal((await cluster().internals()).failing, 1);
    await cluster().inWorker(3, ({ state }) => void (state.failing = false));
    assert.equal((await cluster().scrape()).get('failing'), 0);
    assert.equal((await cluster().internals()).failing, 0);
  });

  it('our primary keeps the totals of a dead worker with prom-client', async () => {
    const id = await cluster().fork(stockWorker);
    const before = await cluster().scrape();
    assert.equal(before.get('took_count{route="/"}'), 6 + id);
    assert.equal(before.get('open'), id);
    await cluster().killWorker(id);
    const samples = await cluster().scrape();
    for (const sample of ['took_count{route="/"}', `done_total{route="/${id}"}`, 'size_count']) {
      assert.ok(before.has(sample), sample);
      assert.equal(samples.get(sample), before.get(sample), sample);
    }
    assert.equal(samples.get('open'), 3);
  });

  it('our primary waits once for a worker with prom-client that has no AggregatorRegistry yet', async () => {
    const before = (await cluster().scrape()).get('size_count');
    const id = await cluster().fork({ library: STOCK, construct: false });
    assert.equal((await cluster().scrape({ without: [id] })).get('size_count'), before);
    assert.equal((await cluster().scrape({ timeout: 600_000 })).get('size_count'), before);
    await cluster().inWorker(id, ({ client }) => void new client.AggregatorRegistry());
    const isCounted = async () => (await cluster().scrape()).get('size_count') === before + id;
    await until(isCounted, 'it has answered');
    await cluster().killWorker(id);
  });

  it('our primary keeps apart the numbers of workers with different default labels and registries', async () => {
    await cluster().inWorkers([1, 2, 3], ({ client, cluster }) => {
      const second = new client.Registry();
      new client.Counter({ name: 'jobs_total', help: 'h', registers: [second] }).inc(cluster.worker.id);
      client.register.setDefaultLabels({ zone: cluster.worker.id === 3 ? 'b' : 'a' });
      client.AggregatorRegistry.setRegistries([client.register, second]);
    });
    const samples = await cluster().scrape();
    assert.equal(samples.get('jobs_total'), 6);
    assert.equal(samples.get('size_count{zone="a"}'), 3);
    assert.equal(samples.get('size_count{zone="b"}'), 3);
    assert.equal(samples.get('took_bucket{le="2",route="/",zone="a"}'), 3);
  });
});
