'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, until } = require('../../fixtures/cluster-harness.js');

/**
 * Counters, one of which has a collect hook, and gauges whose hooks can be made to fail. The worker's timers
 * for hooks wait until a test lets them expire.
 */
const collecting = {
  start: ({ client, state }) => {
    const help = 'h';
    state.counter = new client.Counter({ name: 'done_total', help });
    state.hooked = new client.Counter({ name: 'hooked_total', help, collect: () => state.held });
    const { setTimeout } = globalThis;
    state.timers = [];
    globalThis.setTimeout = (callback, milliseconds, ...args) => {
      const timer = setTimeout(callback, milliseconds, ...args);
      if (milliseconds > 60_000) state.timers.push({ timer, callback });
      return timer;
    };
    state.fail = {};
    state.collected = 0;
    const gauge = (name, collect) =>
      new client.Gauge({
        name,
        help,
        collect() {
          if (state.fail[name]) return collect();
          this.set(++state.collected);
        },
      });
    gauge('throws', () => {
      throw new Error('it throws');
    });
    gauge('rejects', async () => {
      throw new Error('it rejects');
    });
    gauge('never_ends', () => new Promise(resolve => (state.finish = resolve)));
    gauge('works', () => {});
    // A metric of the application's own making: its get() is its hook.
    client.register.registerMetric({
      name: 'foreign',
      get: async () => {
        if (state.fail.foreign) throw new Error('it has no get');
        return { name: 'foreign', help, type: 'gauge', values: [{ value: ++state.collected, labels: {} }] };
      },
    });
  },
};

const GAUGES = ['throws', 'rejects', 'never_ends', 'works', 'foreign'];
const gaugesIn = samples => GAUGES.map(name => samples.get(name));
const count = ({ state }) => state.counter.inc();
const fail = ({ state }, names) => (state.fail = Object.fromEntries(names.map(name => [name, true])));

/** Lets the time for hooks expire in a worker, as soon as one is waited for. */
const expire = ({ state }) => {
  const { timer, callback } = state.timers.pop() ?? {};
  if (timer === undefined) return false;
  clearTimeout(timer);
  callback();
  return true;
};

/** A scrape with so long a timeout that no hook is given up unless a test says so. */
const scrape = cluster => cluster.scrape({ timeout: 600_000 });

async function scrapeWithoutHooks(cluster, workerId) {
  await cluster.inWorker(workerId, ({ state }) => void state.timers.splice(0));
  const samples = scrape(cluster);
  await until(() => cluster.inWorker(workerId, expire), 'the worker waits for a hook');
  return samples;
}

describe('collect hooks', () => {
  it('collect hooks of a cluster', async t => {
    const cluster = await startCluster(t, { workers: 1, worker: collecting });

    await t.test('a collect hook that throws, rejects or never ends costs only its own metric', async () => {
      await cluster.inWorker(1, count);
      const before = await scrape(cluster);
      assert.deepEqual(gaugesIn(before).toSorted(), [1, 2, 3, 4, 5]);
      await cluster.inWorker(1, fail, ['throws', 'rejects', 'never_ends', 'foreign']);
      await cluster.inWorker(1, count);
      const during = await scrapeWithoutHooks(cluster, 1);
      for (const name of ['throws', 'rejects', 'never_ends', 'foreign']) {
        assert.equal(during.get(name), before.get(name), name);
      }
      assert.equal(during.get('done_total'), 2);
      assert.equal(during.get('works'), 6);
      // A hook is neither called again nor waited for while its last call has not ended.
      await cluster.inWorker(1, count);
      const next = await scrape(cluster);
      assert.equal(next.get('done_total'), 3);
      assert.equal(next.get('works'), 7);
      assert.equal(next.get('never_ends'), before.get('never_ends'));
      await cluster.inWorker(1, ({ state }) => {
        state.fail = {};
        state.finish();
      });
      const after = gaugesIn(await scrape(cluster));
      assert.deepEqual(after.toSorted(), [8, 9, 10, 11, 12].toSorted());
    });

    await t.test('a collect hook that never ends: its metric shows what was recorded by then', async () => {
      await cluster.inWorker(1, ({ state }) => {
        state.held = new Promise(resolve => (state.release = resolve));
      });
      for (let i = 1; i <= 3; i++) {
        await cluster.inWorker(1, ({ state }) => void state.hooked.inc());
        const samples = await (i === 1 ? scrapeWithoutHooks(cluster, 1) : scrape(cluster));
        assert.equal(samples.get('hooked_total'), i);
      }
      const { failures, unresponsive } = await cluster.internals();
      assert.ok(failures.some(({ stage, metric }) => stage === 'collect' && metric === 'hooked_total'));
      assert.equal(unresponsive, 0);
      await cluster.inWorker(1, ({ state }) => {
        state.release();
        state.held = undefined;
      });
    });

    await t.test('collect hooks run once a scrape, in every worker', async () => {
      await cluster.fork();
      const runs = () => cluster.inWorkers([1, 2], ({ state }) => state.collected);
      const before = await runs();
      for (let i = 1; i <= 2; i++) {
        await scrape(cluster);
        assert.deepEqual(
          await runs(),
          before.map(count => count + GAUGES.length * i),
        );
      }
    });

    await cluster.end();
  });

  it('what a hook records is shown although it is reset in the next turn', async t => {
    // A program may do that: prom-client reads it in the turn of the hook. No other hook is asynchronous, as
    // what is reset while one is pending is not on the page.
    const passing = {
      start: ({ client, process }) => {
        const help = 'h';
        const gauge = new client.Gauge({ name: 'passing_of_other', help });
        let observed = 0;
        new client.Summary({
          name: 'passing',
          help,
          percentiles: [0.5],
          collect() {
            this.observe(++observed);
            gauge.set(observed);
            process.nextTick(() => [this, gauge].forEach(metric => metric.reset()));
          },
        });
      },
    };
    const cluster = await startCluster(t, { workers: 1, worker: passing });
    for (const observed of [1, 2]) {
      const samples = await scrape(cluster);
      assert.equal(samples.get('passing_of_other'), observed);
      assert.equal(samples.get('passing_count'), 1);
      assert.equal(samples.get('passing{quantile="0.5"}'), observed);
    }
    await cluster.end();
  });

  it('no scrape shows what a hook had begun to read before it: it waits for the next run, which all share', async t => {
    const holding = {
      start: ({ client, cluster, state }) => {
        const name = cluster.isPrimary ? 'run_in_primary' : `run_in_worker_${cluster.worker.id}`;
        state.runs = [];
        new client.Gauge({
          name,
          help: 'h',
          async collect() {
            const run = state.runs.length + 1;
            if (run > 1 && cluster.worker?.id !== 2) await new Promise(resolve => state.runs.push(resolve));
            else state.runs.push(undefined);
            this.set(run);
          },
        });
      },
    };
    const cluster = await startCluster(t, { workers: 2, worker: holding, options: { includePrimary: true } });
    await cluster.run(
      (context, start) => new Function(`return (${start})`)()(context),
      String(holding.start),
    );
    const shown = samples => ['run_in_primary', 'run_in_worker_1'].map(name => samples.get(name));
    assert.deepEqual(shown(await scrape(cluster)), [1, 1]);
    const runs = ({ state }) => state.runs.length;
    const begun = async run => {
      await until(async () => (await cluster.run(runs)) === run, `run ${run} in the primary`);
      await until(async () => (await cluster.inWorker(1, runs)) === run, `run ${run} in the worker`);
    };
    const end = async run => {
      const ends = ({ state }, run) => void state.runs[run - 1]();
      await Promise.all([cluster.run(ends, run), cluster.inWorker(1, ends, run)]);
    };
    // The last one that is asked.
    const requestOf2 = () => cluster.run(({ requests }) => requests.get(2));

    // One that gives up leaves a hook that runs.
    assert.deepEqual(shown(await cluster.scrape({ timeout: 50 })), [1, 1]);
    await begun(2);
    const first = scrape(cluster);
    await end(2);
    await begun(3);
    // Two scrapes whose round starts while the one before waits for the hooks.
    const before = await requestOf2();
    const [second, third] = [scrape(cluster), scrape(cluster)];
    await until(async () => (await requestOf2()) !== before, 'their round has asked');
    await end(3);
    assert.deepEqual(shown(await first), [3, 3]);
    await begun(4);
    await end(4);
    assert.deepEqual(shown(await second), [4, 4]);
    assert.deepEqual(shown(await third), [4, 4]);
    await cluster.end();
  });
});
