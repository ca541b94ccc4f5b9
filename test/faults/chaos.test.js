'use strict';

const assert = require('node:assert/strict');
const { randomInt } = require('node:crypto');
const path = require('node:path');
const { describe, it } = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');

const { makePlace, startCluster, until } = require('../fixtures/cluster-harness.js');
const { countIn } = require('../fixtures/group.js');

/** Scrapes a cluster all the time: no counter may fall or disappear. */
class Watch {
  #cluster;
  #check;
  #last = new Map();
  #isOver = false;
  #scraping;
  scrapes = 0;

  /**
   * @param {import('../fixtures/cluster-harness').TestCluster} cluster
   * @param {(samples: Map<string, number>) => void} check of each page
   */
  constructor(cluster, check) {
    this.#cluster = cluster;
    this.#check = check;
    this.#scraping = this.#scrapeAllTheTime();
    this.#scraping.catch(() => (this.#isOver = true));
  }

  async #scrapeAllTheTime() {
    while (!this.#isOver) {
      await this.scrape();
      await pause(10);
    }
  }

  async scrape() {
    const samples = await this.#cluster.scrape();
    for (const [series, before] of this.#last) {
      const now = samples.get(series);
      assert.ok(now >= before, `${series} fell from ${before} to ${now}`);
    }
    for (const [series, value] of samples) if (!series.includes('quantile=')) this.#last.set(series, value);
    this.#check(samples);
    this.scrapes++;
    return samples;
  }

  /**
   * A scrape waits for a worker that is starting, so a test waits for scrapes, however slow they are. It goes
   * on at once after a scrape that has failed, which stop() reports.
   */
  untilScraped() {
    const before = this.scrapes;
    return until(() => this.#isOver || this.scrapes > before + 1, 'a scrape has begun and ended');
  }

  async stop() {
    this.#isOver = true;
    await this.#scraping;
  }
}

// `npm run soak` has more kills, and other faults.
describe('a busy cluster whose workers are killed at random', () => {
  const busy = {
    start: ({ client, cluster, program: { books }, require, state }) => {
      const fs = require('node:fs');
      const { id } = cluster.worker;
      const book = fs.openSync(`${books}/${id}`, 'w');
      const ofWorker = new client.Counter({ name: 'counted_total', help: 'h', labelNames: ['worker'] });
      const counter = new client.Counter({ name: 'operations_total', help: 'h' });
      const histogram = new client.Histogram({ name: 'took', help: 'h', buckets: [0.5] });
      const summary = new client.Summary({ name: 'size', help: 'h', percentiles: [0.5] });
      const counted = new Float64Array(1);
      state.turning = setInterval(() => {
        counted[0] += 8;
        // Before it is recorded, so that a signal cannot lose it: no page may ever show more.
        fs.writeSync(book, counted, 0, 8, 0);
        // A page shows all of these, or none.
        for (let i = 0; i < 8; i++) {
          ofWorker.inc({ worker: id });
          counter.inc();
          for (const metric of [histogram, summary]) metric.observe(i / 8);
        }
      }, 4);
    },
  };

  it('a busy cluster with killed workers answers every scrape; no series falls or exceeds what was recorded', async t => {
    const books = makePlace(t);
    const countedBy = id => countIn(path.join(books, String(id)));
    const cluster = await startCluster(t, { workers: 2, worker: { ...busy, books } });
    const watch = new Watch(cluster, samples => {
      let sum = 0;
      for (const [series, value] of samples) {
        const [, worker] = /^counted_total\{worker="(\d+)"\}$/.exec(series) ?? [];
        if (worker === undefined) continue;
        assert.ok(value <= countedBy(worker), `${value} of worker ${worker}`);
        sum += value;
      }
      for (const name of ['operations_total', 'took_count', 'took_bucket{le="+Inf"}', 'size_count'])
        assert.equal(samples.get(name) ?? 0, sum, name);
    });
    const alive = [1, 2];
    for (let kills = 0; kills < 2; kills++) {
      const [id] = alive.splice(randomInt(alive.length), 1);
      await cluster.killWorker(id);
      alive.push(await cluster.fork());
      await watch.untilScraped();
    }
    await watch.stop();
    await cluster.inWorkers(alive, ({ state }) => clearInterval(state.turning));
    await cluster.allRetired();
    const samples = await watch.scrape();
    for (const id of alive) assert.equal(samples.get(`counted_total{worker="${id}"}`), countedBy(id));
    const { unresponsive, retired, refused, failures, conflicts } = await cluster.internals();
    assert.deepEqual({ unresponsive, retired, conflicts }, { unresponsive: 0, retired: 2, conflicts: 0 });
    assert.deepEqual({ refused, failures }, { refused: {}, failures: [] });
    await cluster.end();
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
    const watch = new Watch(cluster, assertCumulative);
    const turns = { old: 0, new: 0 };
    const stop = ({ cluster, state, afterwards }) => {
      clearInterval(state.turning);
      afterwards(() => cluster.worker.disconnect());
      return state.turns;
    };
    for (let id = 1; id <= WORKERS; id++) {
      const next = await cluster.fork(worker('new'));
      await until(() => cluster.inWorker(next, ({ state }) => state.turns > 20), 'the new worker records');
      await watch.untilScraped();
      turns.old += await cluster.inWorker(id, stop);
      await cluster.gone(id);
      await watch.untilScraped();
    }
    await watch.stop();
    for (let id = WORKERS + 1; id <= 2 * WORKERS; id++) {
      turns.new += await cluster.inWorker(id, ({ state }) => (clearInterval(state.turning), state.turns));
    }
    const samples = await watch.scrape();
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
