'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');

const harness = require('../../fixtures/cluster-harness.js');
const { runChaos, Watch } = require('../../fixtures/cluster-chaos.js');

const { startCluster, makePlace, until, LIBRARY } = harness;

describe('a busy cluster whose workers are killed at random', () => {
  it('answers every scrape; no series falls, and none shows more than the workers recorded', async t => {
    await runChaos(t, { kills: 4, workers: 3, clients: 2 });
  });
});

describe('a rolling restart', { concurrency: 2 }, () => {
  const WORKERS = 3;
  /** Two releases of a program: what differs are bounds, label sets, a label, and a metric. */
  const releases = {
    old: {
      bounds: [1, 2, 4],
      routes: ['/', '/cart'],
      labels: { queue: 'mail' },
    },
    new: {
      bounds: [0.5, 1, 3, 5],
      routes: ['/cart', '/search'],
      labels: { queue: 'mail', zone: 'a' },
    },
  };
  /** How many of the values 0.25, 0.75, 1.5, 2.5, 3.5, 4.5, 5.5 are in each bucket, by release. */
  const VALUES = [0.25, 0.75, 1.5, 2.5, 3.5, 4.5, 5.5];
  const program = {
    start: ({ client, program: { release, values }, state }) => {
      const [help, { bounds, routes, labels }] = ['h', release];
      const requests = new client.Counter({
        name: 'requests_total',
        help,
        labelNames: ['route'],
      });
      const jobs = new client.Counter({
        name: 'jobs_total',
        help,
        labelNames: Object.keys(labels),
      });
      const took = new client.Histogram({
        name: 'took',
        help,
        labelNames: ['route'],
        buckets: bounds,
      });
      const size = new client.Summary({
        name: 'size',
        help,
        percentiles: [0.5],
      });
      state.turns = 0;
      state.turning = setInterval(() => {
        for (const route of routes) {
          requests.inc({ route });
          for (const value of values) took.observe({ route }, value);
        }
        jobs.inc(labels, 0.1);
        size.observe(state.turns % 10);
        state.turns++;
      }, 2);
    },
  };
  const worker = release => ({
    ...program,
    release: releases[release],
    values: VALUES,
  });

  it('with new label sets, another label and other buckets lets no series fall, and loses nothing', async t => {
    const cluster = await startCluster(t, {
      workers: Array(WORKERS).fill(worker('old')),
    });
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
    const turns = { old: 0, new: 0 };
    const stop = ({ cluster, state, afterwards }) => {
      clearInterval(state.turning);
      afterwards(() => cluster.worker.disconnect());
      return state.turns;
    };
    for (let id = 1; id <= WORKERS; id++) {
      const next = await cluster.fork(worker('new'));
      await until(() => cluster.inWorker(next, ({ state }) => state.turns > 20), 'the new one works');
      turns.old += await cluster.inWorker(id, stop);
      await cluster.gone(id);
    }
    going = false;
    await scraping;
    assert.ok(scrapes > 2 * WORKERS, `${scrapes} scrapes`);
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
    // Whoever has no such bound counts there what it has at its next lower one.
    const below = {
      0.5: [0, 1],
      1: [2, 2],
      2: [3, 2],
      3: [3, 4],
      4: [5, 4],
      5: [5, 6],
      '+Inf': [7, 7],
    };
    for (const [bound, [old, fresh]] of Object.entries(below)) {
      const series = `took_bucket{le="${bound}",route="/cart"}`;
      assert.equal(samples.get(series), old * turns.old + fresh * turns.new, series);
    }
    assert.ok(Math.abs(samples.get('jobs_total{queue="mail"}') - turns.old / 10) < 1e-9);
    assert.ok(Math.abs(samples.get('jobs_total{queue="mail",zone="a"}') - turns.new / 10) < 1e-9);
    assert.deepEqual((await cluster.internals()).refused, {});
    await cluster.end();
  });

  /** Each bucket of a series holds what the one below it does. */
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

describe('a thread that fails', { concurrency: 3 }, () => {
  const counting = {
    start: ({ client, cluster, state }) => {
      const labelNames = ['worker'];
      state.counter = new client.Counter({ name: 'done_total', help: 'h' });
      state.own = new client.Counter({
        name: 'own_total',
        help: 'h',
        labelNames,
      });
      state.record = (times = 1) => {
        state.counter.inc(times);
        state.own.inc({ worker: cluster.worker.id }, times);
      };
    },
  };
  const record = ({ state }, times) => state.record(times);

  /** Three workers of which one has died: 5 counted, and 10 by the living, who know that they are known. */
  async function startWithDead(t, setup) {
    const cluster = await startCluster(t, {
      workers: 3,
      worker: counting,
      ...setup,
    });
    await cluster.inWorkers([1, 2, 3], record, 5);
    for (let i = 0; i < 2; i++) assert.equal((await cluster.scrape()).get('done_total'), 15);
    await cluster.signal(3, 'SIGKILL');
    await cluster.gone(3);
    await until(async () => (await cluster.internals()).retired === 1, 'it is among the retired');
    return cluster;
  }

  async function assertLost(cluster, threads) {
    const { lostThreads, refused } = await cluster.internals();
    assert.equal(lostThreads, threads);
    assert.equal(await cluster.run($ => $.threads.length), threads + 1);
    assert.deepEqual(refused, {});
  }

  const FAILURES = {
    ends: thread => void thread.terminate(),
    'is told what it does not understand': thread => thread.postMessage({ op: 'answer', answer: null }),
    'is told of an answer in no form': thread => thread.postMessage({ op: 'render', request: {} }),
  };
  for (const [what, fail] of Object.entries(FAILURES)) {
    it(`because it ${what} costs a scrape one retry, and no count`, async t => {
      const cluster = await startWithDead(t);
      let expected = 15;
      const moments = [null, 'answer', 'render'];
      for (const [lost, moment] of moments.entries()) {
        await cluster.inWorkers([1, 2], record);
        expected += 2;
        const { text, renders } = await cluster.run(
          async ({ aggregator, threads }, source, moment) => {
            const fail = new Function(`return ${source}`)();
            const thread = threads.at(-1);
            const before = threads.length;
            const posted = thread.posted.length;
            thread.onPost = ({ op }) => {
              if (op !== moment) return;
              thread.onPost = undefined;
              fail(thread);
            };
            const scrape = aggregator.clusterMetrics();
            if (moment === null) fail(thread);
            const text = await scrape;
            const messages = [
              ...thread.posted.slice(posted),
              ...threads.slice(before).flatMap($ => $.posted),
            ];
            return {
              text,
              renders: messages.filter(({ op, id }) => op === 'render' && id).length,
            };
          },
          String(fail),
          moment,
        );
        assert.match(text, new RegExp(`^done_total ${expected}$`, 'm'), moment);
        assert.match(text, /^own_total\{worker="3"\} 5$/m, moment);
        assert.ok(renders <= 2, `${renders} tries when ${moment}`);
        await until(async () => (await cluster.internals()).lostThreads === lost + 1, 'it is counted');
      }
      await assertLost(cluster, moments.length);
      assert.equal((await cluster.scrape()).get('done_total'), expected);
      await until(() => cluster.spooledFiles().length === 0, 'what it did not read is removed');
      await cluster.end();
    });
  }

  /** A file that a thread loads first, in which one call of the store throws while another file is there. */
  function sabotage(t, method) {
    const place = makePlace(t);
    const [file, trigger] = [path.join(place, 'preload.js'), path.join(place, 'trigger')];
    const store = path.join(LIBRARY, 'lib/cluster/store/cluster-store.js');
    fs.writeFileSync(
      file,
      `const fs = require('node:fs');
      const { ClusterStore } = require(${JSON.stringify(store)});
      const method = ClusterStore.prototype.${method};
      ClusterStore.prototype.${method} = function (...given) {
        if (fs.existsSync(${JSON.stringify(trigger)})) {
          fs.rmSync(${JSON.stringify(trigger)});
          throw new TypeError('this thread is meant to fail');
        }
        return method.apply(this, given);
      };`,
    );
    return { threadPreload: file, pull: () => fs.writeFileSync(trigger, '') };
  }

  it('by throwing while it adds up costs a scrape one retry, and no count', async t => {
    const { threadPreload, pull } = sabotage(t, 'merge');
    const cluster = await startWithDead(t, { threadPreload });
    for (let lost = 1; lost <= 3; lost++) {
      await cluster.inWorkers([1, 2], record);
      pull();
      const samples = await cluster.scrape();
      assert.equal(samples.get('done_total'), 15 + 2 * lost);
      assert.equal(samples.get('own_total{worker="3"}'), 5);
      await assertLost(cluster, lost);
    }
    assert.doesNotMatch(cluster.output, /meant to fail/);
    await cluster.end();
  });

  it('by throwing while it reads an answer costs that answer, and no count', async t => {
    const { threadPreload, pull } = sabotage(t, 'apply');
    const cluster = await startWithDead(t, { threadPreload });
    await cluster.inWorkers([1, 2], record);
    pull();
    const total = (await cluster.scrape()).get('done_total');
    assert.ok(total === 16 || total === 17, `${total}`);
    assert.equal((await cluster.scrape()).get('done_total'), 17);
    await cluster.end();
  });

  it('by throwing while it writes down the totals of the dead costs nothing', async t => {
    const { threadPreload, pull } = sabotage(t, 'encodeRetired');
    const cluster = await startWithDead(t, { threadPreload });
    await cluster.inWorkers([1, 2], record);
    pull();
    cluster.tellWorker(2, ({ process, state }) => (state.record(100), process.exit()));
    await cluster.gone(2);
    assert.equal((await cluster.scrape()).get('done_total'), 117);
    await until(async () => (await cluster.internals()).retired === 2, 'they are written down after all');
    await cluster.run(({ threads }) => threads.at(-1).terminate());
    assert.equal((await cluster.scrape()).get('done_total'), 117);
    assert.deepEqual(Object.keys((await cluster.internals()).refused), []);
    await cluster.end();
  });

  it('takes no count of those with it who end by themselves meanwhile', async t => {
    const cluster = await startWithDead(t);
    await cluster.run(async ({ threads, cluster }) => {
      const thread = threads.at(-1);
      thread.terminate();
      // Before there is another one, which could tell it to begin anew.
      const source = '({ process, state }) => (state.record(100), process.exit())';
      cluster.workers[2].send({ call: -1, source, args: [] });
      await new Promise(resolve => cluster.workers[2].once('exit', resolve));
    });
    await cluster.gone(2);
    const samples = await cluster.scrape();
    assert.equal(samples.get('done_total'), 115);
    assert.equal(samples.get('own_total{worker="2"}'), 105);
    await cluster.end();
  });

  it('by throwing while it adds up who ended by themselves takes no count of them with it', async t => {
    const { threadPreload, pull } = sabotage(t, 'retire');
    const cluster = await startWithDead(t, { threadPreload });
    pull();
    cluster.tellWorker(2, ({ process, state }) => (state.record(100), process.exit()));
    await cluster.gone(2);
    await until(async () => (await cluster.internals()).retired === 2, 'it is among the retired');
    const samples = await cluster.scrape();
    assert.equal(samples.get('done_total'), 115);
    assert.equal(samples.get('own_total{worker="2"}'), 105);
    await assertLost(cluster, 1);
    await cluster.end();
  });
});
