'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, LIBRARY, STOCK } = require('../../fixtures/cluster-harness.js');

const NAMES = ['sum', 'first', 'min', 'max', 'average', 'omit'];

/**
 * A metric of each type for each aggregator, with a series of the worker's own and one that all workers have.
 */
const ofAllKinds = {
  construct: true,
  start: ({ client, cluster, state }) => {
    const { id } = cluster.worker;
    const help = 'h';
    const labelNames = ['worker'];
    for (const aggregator of ['sum', 'first', 'min', 'max', 'average', 'omit', 'spread']) {
      const gauge = new client.Gauge({ name: `gauge_${aggregator}`, help, labelNames, aggregator });
      gauge.set({ worker: 'all' }, id === 2 ? -5 : id);
      gauge.set({ worker: id }, id);
      const counter = new client.Counter({
        name: `counter_${aggregator}_total`,
        help,
        labelNames,
        aggregator,
      });
      counter.inc({ worker: 'all' }, id * 10);
      const options = { name: `histogram_${aggregator}`, help, labelNames, aggregator, buckets: [1, 2] };
      const histogram = new client.Histogram(options);
      for (let i = 0; i < id; i++) histogram.observe({ worker: 'all' }, id);
      state.last = histogram;
    }
  },
};
const addSpread = ({ client }) => {
  client.aggregators.spread = metrics => {
    const [{ name, help, type, aggregator }] = metrics;
    const shared = metrics.flatMap(({ values }) => values.filter(({ labels }) => labels.worker === 'all'));
    const numbers = shared.filter(({ labels }) => labels.le === undefined).map(({ value }) => value);
    const value = Math.max(...numbers) - Math.min(...numbers);
    return { name, help, type, aggregator, values: [{ value, labels: { of: metrics.length } }] };
  };
};

function startWith(t, library, setup = {}) {
  return startCluster(t, { library, workers: 3, worker: ofAllKinds, ...setup });
}

// test/long/every-variant.test.js runs the others, too.
const ways = {
  'in a thread': {},
  ...(process.env.EVERY_VARIANT && { 'in place': { options: { inPlace: true } } }),
};

describe('aggregators', () => {
  for (const [way, setup] of Object.entries(ways)) {
    it(`aggregators of a cluster that aggregates ${way}`, async t => {
      const [cluster, stock] = await Promise.all([startWith(t, LIBRARY, setup), startWith(t, STOCK)]);

      await t.test('an aggregator that is not defined costs only its metric, and is counted', async () => {
        // prom-client throws at its application's 'message' event.
        const metric = { name: 'x', help: 'h', type: 'gauge', aggregator: 'spread', values: [] };
        const { AggregatorRegistry } = require(STOCK);
        const message = "'spread' is not a defined aggregator.";
        assert.throws(() => AggregatorRegistry.aggregate([[metric]]), { message });
        for (const times of [1, 2]) {
          const samples = await cluster.scrape();
          assert.equal(samples.get('gauge_max{worker="all"}'), 3);
          const shown = [...samples.keys()].filter(key => key.includes('spread'));
          assert.deepEqual(shown, []);
          const { failures } = await cluster.internals();
          const [failure, ...others] = failures.filter(({ stage }) => stage === 'aggregator');
          assert.deepEqual([failure.metric, failure.count], ['gauge_spread', times]);
          assert.ok(others.every(({ metric }) => metric.includes('spread')));
        }
      });

      await t.test('an aggregator that throws costs the calls that need it, and none after', async () => {
        await cluster.run(({ client }) => {
          client.aggregators.spread = () => {
            throw new Error('it does not spread');
          };
        });
        await assert.rejects(cluster.scrape(), { message: 'it does not spread' });
        await cluster.run(addSpread);
        assert.equal((await cluster.scrape()).get('gauge_spread{of="3"}'), 8);
      });

      await t.test(
        'an aggregator whose result is not a metric costs only its metric, and is counted',
        async () => {
          const failures = 'prom_client_cluster_failures_total{metric="gauge_spread",stage="aggregator"}';
          const scrapeWith = async own => {
            await cluster.run(({ client }, own) => {
              client.aggregators.spread = new Function(`return ${own}`)();
            }, String(own));
            return cluster.scrape({ selfMetrics: true });
          };
          const before = await scrapeWith(() => undefined);
          const samples = await scrapeWith(async () => null);
          assert.equal(samples.get('gauge_max{worker="all"}'), 3);
          assert.ok(![...samples.keys()].some(key => /^gauge_spread/.test(key)));
          assert.equal(samples.get(failures), before.get(failures) + 1);
          const after = await scrapeWith(() => undefined);
          assert.equal(
            after.get(failures),
            samples.get(failures),
            'undefined leaves the metric out, as omit does',
          );
          await cluster.run(addSpread);
        },
      );

      await t.test("aggregators give prom-client's results, also functions of the application", async () => {
        await stock.run(addSpread);
        const [mine, theirs] = await Promise.all([cluster.scrape(), stock.scrape()]);
        // prom-client's first is the one that answered first.
        const comparable = samples =>
          new Map([...samples].filter(([name]) => !name.includes('_first')).sort());
        assert.deepEqual(comparable(mine), comparable(theirs));
        const shown = NAMES.map(name => mine.get(`gauge_${name}{worker="all"}`));
        assert.deepEqual(shown, [-1, 1, -5, 3, -1 / 3, undefined]);
        assert.equal(mine.get('gauge_spread{of="3"}'), 8);
        assert.equal(mine.get('histogram_max_bucket{le="2",worker="all"}'), 2);
      });

      await t.test('an aggregator that the application replaces takes effect', async () => {
        await cluster.run(({ client, state }) => {
          state.original = { ...client.aggregators };
          client.aggregators.max = () => ({
            name: 'replaced',
            help: 'h',
            type: 'gauge',
            values: [{ value: 4, labels: {} }],
          });
          client.aggregators.min = () => undefined;
        });
        const text = await cluster.text();
        assert.match(text, /^replaced 4$/m);
        assert.doesNotMatch(text, /_min/);
        assert.match(text, /^gauge_sum\{worker="all"\} -1$/m);
        await cluster.run(({ client, state }) => void Object.assign(client.aggregators, state.original));
      });

      await t.test('aggregators get workers in the order of their ids, whichever answers first', async () => {
        const texts = new Set([await cluster.text()]);
        for (const slow of [1, 2, 3]) {
          await cluster.signal(slow, 'SIGSTOP');
          const text = cluster.text();
          const others = [1, 2, 3].filter(id => id !== slow);
          // These calls come after the request: both workers have answered it then.
          await cluster.inWorkers(others, () => 0);
          await cluster.signal(slow, 'SIGCONT');
          texts.add(await text);
        }
        assert.equal(texts.size, 1);
      });

      await t.test("aggregators other than 'sum' forget a dead worker", async () => {
        assert.equal((await cluster.scrape()).get('counter_max_total{worker="all"}'), 30);
        await cluster.killWorker(3);
        const samples = await cluster.scrape();
        assert.equal(samples.get('counter_max_total{worker="all"}'), 20);
        assert.equal(samples.get('counter_average_total{worker="all"}'), 15);
        assert.equal(samples.get('counter_sum_total{worker="all"}'), 60);
        assert.equal(samples.get('gauge_spread{of="2"}'), 6);
      });

      await Promise.all([cluster.end(), stock.end()]);
    });
  }
});
