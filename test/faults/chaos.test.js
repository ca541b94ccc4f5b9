'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');

const { startCluster, until } = require('../fixtures/cluster-harness.js');
const { runChaos, Watch } = require('../fixtures/cluster-chaos.js');

// `npm run soak` has more kills, and other faults.
describe('a busy cluster whose workers are killed at random', () => {
  it('a busy cluster with killed workers answers every scrape; no series falls or exceeds what was recorded', async t => {
    await runChaos(t, { kills: 2, workers: 2 });
  });
});

describe('a rolling restart', () => {
  const WORKERS = 2;
  /** Two releases of a program: they differ in bounds, label sets and a label. */
  const releases = {
    old: { bounds: [1, 2, 4], routes: ['/', '/cart'], labels: { queue: 'mail' } },
    new: { bounds: [0.5, 1, 3, 5], routes: ['/cart', '/search'], labels: { queue: 'mail', zone: 'a' } },
  };
  const VALUES = [0.25, 0.75, 1.5, 2.5, 3.5, 4.5, 5.5];
  const program = {
    start: ({ client, program: { release, values }, state }) => {
      const [help, { bounds, routes, labels }] = ['h', release];
      const labelNames = ['route'];
      const requests = new client.Counter({ name: 'requests_total', help, labelNames });
      const jobs = new client.Counter({ name: 'jobs_total', help, labelNames: Object.keys(labels) });
      const took = new client.Histogram({ name: 'took', help, labelNames, buckets: bounds });
      const size = new client.Summary({ name: 'size', help, percentiles: [0.5] });
      state.turns = 0;
      state.turning = setInterval(() => {
        for (const route of routes) {
          requests.inc({ route });
          for (const value of values) took.observe({ route }, value);
        }
        jobs.inc(labels, 0.1);
        size.observe(state.turns % 10);
        state.turns++;
      }, 4);
    },
  };
  const worker = release => ({ ...program, release: releases[release], values: VALUES });

  it('a rolling restart to new label sets, labels and buckets lowers no series and loses no count', async t => {
    const cluster = await startCluster(t, { workers: Array(WORKERS).fill(worker('old')) });
    const watch = new Watch();
    let [going, scrapes] = [true, 0];
    const scraping = (async () => {
      while (going) {
        const samples = await cluster.scrape();
        watch.see(samples);
        assertCumulative(samples);
        scrapes++;
        await pause(10);
      }
    })();
    scraping.catch(() => (going = false));
    /**
     * A scrape waits for a worker that is starting, so the restart waits for scrapes, however slow they are.
     */
    const untilScraped = () => {
      const before = scrapes;
      return until(() => !going || scrapes > before + 1, 'a scrape has begun and ended');
    };
    const turns = { old: 0, new: 0 };
    const stop = ({ cluster, state, afterwards }) => {
      clearInterval(state.turning);
      afterwards(() => cluster.worker.disconnect());
      return state.turns;
    };
    for (let id = 1; id <= WORKERS; id++) {
      const next = await cluster.fork(worker('new'));
      await until(() => cluster.inWorker(next, ({ state }) => state.turns > 20), 'the new worker records');
      await untilScraped();
      turns.old += await cluster.inWorker(id, stop);
      await cluster.gone(id);
      await untilScraped();
    }
    going = false;
    await scraping;
    for (let id = WORKERS + 1; id <= 2 * WORKERS; id++) {
      turns.new += await cluster.inWorker(id, ({ state }) => (clearInterval(state.turning), state.turns));
    }
    const samples = await cluster.scrape();
    watch.see(samples);
    assert.equal(samples.get('requests_total{route="/"}'), turns.old);
    assert.equal(samples.get('requests_total{route="/cart"}'), turns.old + turns.new);
    assert.equal(samples.get('requests_total{route="/search"}'), turns.new);
    assert.equal(samples.get('took_count{route="/cart"}'), VALUES.length * (turns.old + turns.new));
    assert.equal(samples.get('size_count'), turns.old + turns.new);
    // A worker without such a bound adds its count at the next lower bound.
    const below = { 0.5: [0, 1], 1: [2, 2], 2: [3, 2], 3: [3, 4], 4: [5, 4], 5: [5, 6], '+Inf': [7, 7] };
    for (const [bound, [old, fresh]] of Object.entries(below)) {
      const series = `took_bucket{le="${bound}",route="/cart"}`;
      assert.equal(samples.get(series), old * turns.old + fresh * turns.new, series);
    }
    assert.ok(Math.abs(samples.get('jobs_total{queue="mail"}') - turns.old / 10) < 1e-9);
    assert.ok(Math.abs(samples.get('jobs_total{queue="mail",zone="a"}') - turns.new / 10) < 1e-9);
    assert.deepEqual((await cluster.internals()).refused, {});
    await cluster.end();
  });

  /** No bucket of a series has a lower count than the bucket below it. */
  function assertCumulative(samples) {
    const buckets = new Map();
    for (const [series, count] of samples) {
      const [, bound, route] = /^took_bucket\{le="(.*)",route="(.*)"\}$/.exec(series) ?? [];
      if (route === undefined) continue;
      if (!buckets.has(route)) buckets.set(route, []);
      buckets.get(route).push([Number(bound.replace('+Inf', 'Infinity')), count]);
    }
    for (const [route, counts] of buckets) {
      counts.sort(([a], [b]) => a - b);
      counts.forEach(([bound, count], i) => {
        assert.ok(i === 0 || count >= counts[i - 1][1], `${route} up to ${bound}: ${JSON.stringify(counts)}`);
      });
    }
  }
});
