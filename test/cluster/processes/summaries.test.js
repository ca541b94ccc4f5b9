'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { Registry, Summary } = require('../../..');
const { Source } = require('../../../lib/source/source');
const { Observations } = require('../../../lib/metric/observations');
const { startCluster } = require('../../fixtures/cluster-harness.js');

/**
 * Each worker observes a hundred values in each of 300 series: 1 to 100 in the first, 101 to 200 in the
 * second.
 */
const observing = {
  start: ({ client, cluster, state }) => {
    state.summary = new client.Summary({
      name: 'took',
      help: 'h',
      labelNames: ['route'],
      percentiles: [0, 0.5, 1],
    });
    const first = (cluster.worker.id - 1) * 100;
    state.observe = (route, times) => {
      for (let i = 1; i <= times; i++) state.summary.observe({ route }, first + i);
    };
    for (let route = 0; route < 300; route++) state.observe(route, 100);
  },
};

describe('many summary series in each worker', () => {
  it('summary series of two workers have the quantiles of all observations', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: observing });
    const samples = await cluster.scrape();
    for (let route = 0; route < 300; route++) {
      assert.equal(samples.get(`took_count{route="${route}"}`), 200);
      assert.equal(samples.get(`took_sum{route="${route}"}`), 20_100);
      assert.equal(samples.get(`took{quantile="0",route="${route}"}`), 1);
      assert.equal(samples.get(`took{quantile="1",route="${route}"}`), 200);
      const median = samples.get(`took{quantile="0.5",route="${route}"}`);
      assert.ok(Math.abs(median - 100.5) <= 2, `median ${median}`);
    }

    // Then one of them changes.
    await cluster.inWorker(1, ({ state }) => {
      for (let i = 0; i < 10; i++) state.observe(7, 1);
    });
    const after = await cluster.scrape();
    assert.equal(after.get('took_count{route="7"}'), 210);
    assert.ok(after.get('took{quantile="0.5",route="7"}') < samples.get('took{quantile="0.5",route="7"}'));
    samples.forEach((value, key) => {
      if (!key.includes('route="7"')) assert.equal(after.get(key), value, key);
    });
    await cluster.end();
  });

  const SERIES = 1000;

  it('a thousand summary series are encoded in slices, and later only those that have changed', async t => {
    // Encoding a digest takes 50 µs of this clock, however fast the machine is.
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const { centroids } = Observations.prototype;
    t.mock.method(Observations.prototype, 'centroids', function encode() {
      now += 0.05;
      return centroids.call(this);
    });
    const registry = new Registry();
    const summary = new Summary({ name: 's', help: 'h', labelNames: ['route'], registers: [registry] });
    for (let route = 0; route < SERIES; route++) {
      for (let i = 0; i < 100; i++) summary.observe({ route }, i);
    }
    const source = new Source(() => [registry]);
    /** How often others had the event loop meanwhile. */
    const turnsOf = async action => {
      let turns = 0;
      const count = () => {
        turns++;
        next = setImmediate(count);
      };
      let next = setImmediate(count);
      await action();
      clearImmediate(next);
      return turns;
    };
    const atFirst = await turnsOf(() => source.prepare(1000));
    assert.ok(atFirst >= SERIES / 20 - 1, `${atFirst} turns for a thousand digests of 50 µs`);
    summary.observe({ route: 7 }, 1);
    const then = await turnsOf(() => source.prepare(1000));
    assert.ok(then < 10, `${then} turns for one`);
  });
});
