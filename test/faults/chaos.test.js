'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');

const harness = require('../fixtures/cluster-harness.js');
const { runChaos, Watch } = require('../fixtures/cluster-chaos.js');

const { startCluster, makePlace, until, LIBRARY } = harness;

// test/long/cluster-chaos.test.js has more kills, and variants.
describe('a busy cluster whose workers are killed at random', () => {
  it('a busy cluster with killed workers answers every scrape; no series falls or exceeds what was recorded', async t => {
    await runChaos(t, { kills: 2, workers: 2, clients: 1 });
  });
});

describe('a rolling restart', () => {
  const WORKERS = 2;
  /** Two releases of a program: they differ in bounds, label sets and a label. */
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
      }, 4);
    },
  };
  const worker = release => ({
    ...program,
    release: releases[release],
    values: VALUES,
  });

  it('a rolling restart to new label sets, labels and buckets lowers no series and loses no count', async t => {
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

/** What makes the thread fail, and when; thread.test.js has threads that end. */
const FAILURES = {
  'a message that it does not understand': {
    fail: thread => thread.postMessage({ op: 'answer', args: [null] }),
    moments: { 'before a scrape': null, 'when a worker has answered': 'answer' },
  },
  'a malformed request for a page': {
    fail: thread => thread.postMessage({ op: 'render', args: [{}] }),
    moments: { 'when a page is requested': 'render' },
  },
};

describe('a thread that fails', () => {
  const counting = {
    start: ({ client, cluster, state }) => {
      const labelNames = ['worker'];
      state.counter = new client.Counter({ name: 'done_total', help: 'h' });
      state.own = new client.Counter({ name: 'own_total', help: 'h', labelNames });
      state.record = (times = 1) => {
        state.counter.inc(times);
        state.own.inc({ worker: cluster.worker.id }, times);
      };
    },
  };
  const record = ({ state }, times) => state.record(times);

  /**
   * A file that a thread loads first. It makes one call of a method of the store throw, once its name is in
   * another file.
   */
  function sabotage(t) {
    const place = makePlace(t);
    const [file, trigger] = [path.join(place, 'preload.js'), path.join(place, 'trigger')];
    const store = path.join(LIBRARY, 'lib/store/cluster-store.js');
    fs.writeFileSync(
      file,
      `const fs = require('node:fs');
      const { ClusterStore } = require(${JSON.stringify(store)});
      const trigger = ${JSON.stringify(trigger)};
      for (const name of ['merge', 'apply', 'encodeRetired', 'retire']) {
        const method = ClusterStore.prototype[name];
        ClusterStore.prototype[name] = function (...given) {
          if (fs.existsSync(trigger) && fs.readFileSync(trigger, 'utf8') === name) {
            fs.rmSync(trigger);
            throw new TypeError('this thread is meant to fail');
          }
          return method.apply(this, given);
        };
      }
      // A failed write of retired totals is repeated soon.
      const { setTimeout } = globalThis;
      globalThis.setTimeout = (callback, milliseconds, ...given) =>
        setTimeout(callback, milliseconds > 4000 ? 10 : milliseconds, ...given);`,
    );
    const failIn = method => {
      fs.writeFileSync(`${trigger}.new`, method);
      fs.renameSync(`${trigger}.new`, trigger);
    };
    return { threadPreload: file, failIn };
  }

  it('a thread that fails again and again loses no count', async t => {
    const { threadPreload, failIn } = sabotage(t);
    // Worker 1 lives, and worker 2 is part of the retired totals.
    const cluster = await startCluster(t, { workers: 2, worker: counting, threadPreload });
    await cluster.inWorkers([1, 2], record, 5);
    for (let i = 0; i < 2; i++) assert.equal((await cluster.scrape()).get('done_total'), 10);
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    let [expected, lost, retired] = [10, 0, 1];
    const isRetired = async () => (await cluster.internals()).retired === retired;
    await until(isRetired, 'worker 2 is part of the retired totals');

    const recordOne = async () => {
      await cluster.inWorker(1, record);
      expected++;
    };
    /** @param {number} [more] threads that were lost since the last call */
    const assertLost = async (more = 0) => {
      lost += more;
      await until(async () => (await cluster.internals()).lostThreads === lost, 'the loss is counted');
      assert.equal(await cluster.run($ => $.threads.length), lost + 1);
      assert.deepEqual((await cluster.internals()).refused, {});
      // A minute later: after three losses within 40 seconds of one another no other thread would be started.
      await cluster.run(({ clock }) => clock.advance(61_000));
    };
    /** A worker that records and then ends by itself. */
    const startWorker = async () => {
      const id = await cluster.fork();
      const end = () =>
        cluster.tellWorker(id, ({ process, state }) => {
          state.record(100);
          process.exit();
        });
      expected += 100;
      retired++;
      return { id, end };
    };

    for (const [failure, { fail, moments }] of Object.entries(FAILURES)) {
      for (const [when, moment] of Object.entries(moments)) {
        await t.test(`a thread that gets ${failure} ${when} costs one retry and no count`, async () => {
          await recordOne();
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
              return { text, renders: messages.filter(({ op, id }) => op === 'render' && id).length };
            },
            String(fail),
            moment,
          );
          assert.match(text, new RegExp(`^done_total ${expected}$`, 'm'));
          assert.match(text, /^own_total\{worker="2"\} 5$/m);
          assert.ok(renders <= 2, `${renders} requests for a page`);
          await assertLost(1);
          assert.equal((await cluster.scrape()).get('done_total'), expected);
          await until(() => cluster.spooledFiles().length === 0, 'unread files are removed');
        });
      }
    }

    await t.test('a thread that throws while it merges answers costs one retry and no count', async () => {
      await recordOne();
      failIn('merge');
      const samples = await cluster.scrape();
      assert.equal(samples.get('done_total'), expected);
      assert.equal(samples.get('own_total{worker="2"}'), 5);
      await assertLost(1);
      assert.doesNotMatch(cluster.output, /meant to fail/);
    });

    await t.test('a thread that throws while it reads an answer costs that answer and no count', async () => {
      const before = expected;
      await recordOne();
      failIn('apply');
      const total = (await cluster.scrape()).get('done_total');
      assert.ok(total === before || total === expected, `${total}`);
      assert.equal((await cluster.scrape()).get('done_total'), expected);
      const { lostThreads, refused } = await cluster.internals();
      assert.deepEqual({ lostThreads, refused }, { lostThreads: lost, refused: { unknown: 1 } });
    });

    await t.test('a thread that throws while it writes the retired totals writes them later', async () => {
      const { id, end } = await startWorker();
      failIn('encodeRetired');
      end();
      await cluster.gone(id);
      assert.equal((await cluster.scrape()).get('done_total'), expected);
      await until(isRetired, 'the totals are written');
      // The next thread reads them.
      await cluster.run(({ threads }) => threads.at(-1).terminate());
      assert.equal((await cluster.scrape()).get('done_total'), expected);
      await assertLost(1);
    });

    await t.test('a thread that ends while a worker ends loses none of its counts', async () => {
      const { id } = await startWorker();
      await cluster.run(async ({ threads, cluster }, id) => {
        const worker = cluster.workers[id];
        threads.at(-1).terminate();
        // Before there is another thread, for which the worker would send a full snapshot.
        const source = '({ process, state }) => (state.record(100), process.exit())';
        worker.send({ call: -1, source, args: [] });
        await new Promise(resolve => worker.once('exit', resolve));
      }, id);
      await cluster.gone(id);
      const samples = await cluster.scrape();
      assert.equal(samples.get('done_total'), expected);
      assert.equal(samples.get(`own_total{worker="${id}"}`), 100);
      await assertLost(1);
    });

    await t.test('a thread that throws while it retires a worker loses none of its counts', async () => {
      const { id, end } = await startWorker();
      failIn('retire');
      end();
      await cluster.gone(id);
      await until(isRetired, 'the worker is part of the retired totals');
      const samples = await cluster.scrape();
      assert.equal(samples.get('done_total'), expected);
      assert.equal(samples.get(`own_total{worker="${id}"}`), 100);
      await assertLost(1);
    });

    await cluster.end();
  });
});
