'use strict';

// Two things go wrong at once: a thread is lost while a worker hangs, drains or dies, files cannot be read, messages cannot
// be sent, processes cannot be started. The page shows what is known.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { describe, it } = require('node:test');

const { startCluster, makePlace, until, LIBRARY } = require('../../fixtures/cluster-harness.js');
const { BY_HAND } = require('../../fixtures/cluster-chaos-checkpoints.js');
const { Spool } = require('../../../lib/cluster/spool/spool');

const counting = {
  start: ({ require, client, cluster, ...context }) => {
    const { state } = context;
    require('./cluster-chaos-checkpoints').observeCheckpoints({ client, cluster, ...context });
    state.counter = new client.Counter({ name: 'done_total', help: 'h' });
    state.own = new client.Counter({ name: 'own_total', help: 'h', labelNames: ['worker'] });
    state.gauge = new client.Gauge({ name: 'open', help: 'h', labelNames: ['worker'] });
    state.record = (times = 1) => {
      state.counter.inc(times);
      state.own.inc({ worker: cluster.worker.id }, times);
      state.gauge.set({ worker: cluster.worker.id }, times);
    };
  },
};
const record = ({ state }, times) => state.record(times);
const counted = samples => samples.get('done_total');
const tick = ({ state }) => state.tick();
const exit = ({ process, state }, times) => {
  state.record(times);
  process.exit();
};

/** Long enough for the test to have failed if anybody waits for it. */
const LONG = 600_000;

/** Workers that have counted 100 each, and know that all of it is known. */
async function start(t, { workers = 2, ...setup } = {}) {
  const cluster = await startCluster(t, { workers, worker: counting, ...setup });
  const ids = Array.from({ length: workers }, (_, i) => i + 1);
  await cluster.inWorkers(ids, record, 100);
  for (let i = 0; i < 3; i++) assert.equal(counted(await cluster.scrape()), 100 * workers);
  return cluster;
}

/** Ends the thread, and waits until there is another one. */
async function loseThread(cluster) {
  const threads = await cluster.run(async ({ threads }) => {
    const { length } = threads;
    await threads.at(-1).terminate();
    return length;
  });
  await until(() => cluster.run(($, count) => $.threads.length > count, threads), 'there is another thread');
}

function isRetired(cluster, count) {
  return until(async () => (await cluster.internals()).retired === count, 'the dead are among the totals');
}

/** Makes the worker hang; a scrape finds out, with what it has said last. */
async function hang(cluster, workerId, expected) {
  await cluster.signal(workerId, 'SIGSTOP');
  assert.equal(counted(await cluster.scrape({ without: [workerId] })), expected);
}

/** Has a worker disconnect and go on, as one does that has requests to answer; returns how to end it. */
async function drain(cluster, t, workerId) {
  const signal = path.join(makePlace(t), 'end');
  cluster.tellWorker(
    workerId,
    ({ require, process, cluster, state }, signal) => {
      const { existsSync } = require('node:fs');
      const { exit } = process;
      process.exit = () => {}; // what the cluster module calls when the channel closes
      cluster.worker.disconnect();
      state.record(10);
      const poll = setInterval(() => existsSync(signal) && (clearInterval(poll), exit.call(process, 0)), 5);
    },
    signal,
  );
  await cluster.event('disconnect', workerId);
  return async () => {
    fs.writeFileSync(signal, '');
    await cluster.gone(workerId);
  };
}

describe('a thread that is lost', { concurrency: 3 }, () => {
  it('while a worker drains costs no count of it, neither before its end nor after', async t => {
    const cluster = await start(t);
    const end = await drain(cluster, t, 1);
    assert.equal(counted(await cluster.scrape()), 200);
    await loseThread(cluster);
    const between = await cluster.scrape();
    assert.equal(counted(between), 200);
    assert.equal(between.get('open{worker="1"}'), 100);
    await end();
    await isRetired(cluster, 1);
    const after = await cluster.scrape();
    assert.equal(counted(after), 210);
    assert.equal(after.get('own_total{worker="1"}'), 110);
    assert.deepEqual((await cluster.internals()).refused, {});
    await cluster.end();
  });

  it('with all that was kept of a worker that drains leaves what that worker tells at its end', async t => {
    const cluster = await start(t);
    const end = await drain(cluster, t, 1);
    for (const name of cluster.keptFiles(1)) fs.rmSync(path.join(cluster.spool, name));
    await loseThread(cluster);
    await end();
    await isRetired(cluster, 1);
    const samples = await cluster.scrape();
    assert.equal(counted(samples), 210);
    assert.equal(samples.get('own_total{worker="1"}'), 110);
    assert.deepEqual((await cluster.internals()).refused, {});
    await cluster.end();
  });

  it('while a worker hangs that is killed then costs nothing of what was scraped', async t => {
    const cluster = await start(t);
    await hang(cluster, 1, 200);
    await loseThread(cluster);
    const between = await cluster.scrape();
    assert.equal(counted(between), 200);
    assert.equal(between.get('open{worker="1"}'), 100);
    await cluster.signal(1, 'SIGKILL');
    await cluster.gone(1);
    await isRetired(cluster, 1);
    const after = await cluster.scrape();
    assert.equal(counted(after), 200);
    assert.equal(after.get('own_total{worker="1"}'), 100);
    assert.equal(after.get('open{worker="1"}'), undefined);
    assert.deepEqual(cluster.keptFiles(1), []);
    await cluster.end();
  });

  it('while a worker hangs that is killed then costs nothing of its checkpoint', async t => {
    const cluster = await start(t, { options: { checkpointInterval: BY_HAND } });
    await cluster.inWorker(1, record, 10);
    await cluster.inWorker(1, tick);
    await hang(cluster, 1, 200);
    await loseThread(cluster);
    assert.equal(counted(await cluster.scrape()), 200);
    await cluster.signal(1, 'SIGKILL');
    await cluster.gone(1);
    await isRetired(cluster, 1);
    const after = await cluster.scrape();
    assert.equal(counted(after), 210);
    assert.equal(after.get('own_total{worker="1"}'), 110);
    await cluster.end();
  });

  it('in the instant in which a worker is killed costs nothing of what was scraped', async t => {
    const cluster = await start(t);
    await cluster.run(async ({ cluster, threads }) => {
      cluster.workers[1].process.kill('SIGKILL');
      await threads.at(-1).terminate();
    });
    await cluster.gone(1);
    await isRetired(cluster, 1);
    const samples = await cluster.scrape();
    assert.equal(counted(samples), 200);
    assert.equal(samples.get('own_total{worker="1"}'), 100);
    await cluster.end();
  });

  it('while a worker is in its collect hook costs nothing, though that worker ends in the next one', async t => {
    const cluster = await start(t);
    await cluster.inWorker(1, ({ client, state }) => {
      state.calls = 0;
      const collect = () => {
        state.calls++;
        return new Promise(resolve => (state.release = resolve));
      };
      state.slow = new client.Gauge({ name: 'slow', help: 'h', collect });
    });
    const hookRuns = calls =>
      until(() => cluster.inWorker(1, ({ state }, calls) => state.calls === calls, calls), 'the hook runs');
    const scrape = cluster.scrape();
    await hookRuns(1);
    await loseThread(cluster);
    await cluster.inWorker(1, ({ state }) => state.release());
    // It has been asked again by now, for the thread that knows nothing.
    await hookRuns(2);
    cluster.tellWorker(1, exit, 10);
    await cluster.gone(1);
    assert.ok(counted(await scrape) >= 200);
    await isRetired(cluster, 1);
    assert.equal(counted(await cluster.scrape()), 210);
    await cluster.end();
  });

  it('while a worker hangs leaves the page as it was, and another one that hangs later, too', async t => {
    const cluster = await start(t, { workers: 3 });
    await hang(cluster, 1, 300);
    await loseThread(cluster);
    assert.equal(counted(await cluster.scrape()), 300);
    await cluster.inWorker(3, record);
    await hang(cluster, 2, 301);
    await cluster.inWorker(3, record);
    // Nobody waits for either of them any more.
    const samples = await cluster.scrape({ timeout: LONG });
    assert.equal(counted(samples), 302);
    for (const worker of [1, 2]) assert.equal(samples.get(`open{worker="${worker}"}`), 100);
    for (const worker of [1, 2]) await cluster.signal(worker, 'SIGCONT');
    await cluster.end();
  });

  it('again and again, while a worker hangs, costs nothing of it', async t => {
    const cluster = await start(t);
    await hang(cluster, 1, 200);
    for (let i = 1; i <= 3; i++) {
      await cluster.inWorker(2, record);
      await loseThread(cluster);
      assert.equal(counted(await cluster.scrape()), 200 + i);
    }
    await cluster.signal(1, 'SIGCONT');
    await cluster.inWorker(1, record);
    await until(async () => counted(await cluster.scrape()) === 204, 'it answers again');
    await cluster.end();
  });
});

describe('in a cluster that goes on,', { concurrency: 3 }, () => {
  describe('a caller with much patience', () => {
    it('who waits for a worker that hangs holds up nobody, and nobody gets old numbers for it', async t => {
      const cluster = await start(t);
      await cluster.signal(1, 'SIGSTOP');
      const patient = cluster.scrape({ timeout: LONG });
      await cluster.inWorker(2, record);
      // Costs one deadline, and that once.
      assert.equal(counted(await cluster.scrape({ timeout: 1000 })), 201);
      for (let expected = 202; expected < 206; expected++) {
        await cluster.inWorker(2, record);
        assert.equal(counted(await cluster.scrape({ timeout: LONG })), expected);
      }
      await cluster.signal(1, 'SIGCONT');
      assert.ok(counted(await patient) >= 200);
      await cluster.end();
    });
  });

  describe('a worker that cannot be started', () => {
    it('leaves nothing behind, however often it is tried', async t => {
      const cluster = await start(t, { workers: 1 });
      const events = await cluster.run(
        async ({ cluster }, cwd) => {
          const events = new Set();
          cluster.setupPrimary({ cwd });
          for (let i = 0; i < 20; i++) {
            const worker = cluster.fork();
            worker.on('exit', () => events.add('exit'));
            const failed = new Promise(resolve => worker.on('error', resolve));
            const disconnected = new Promise(resolve => worker.on('disconnect', resolve));
            events.add((await failed).code);
            await disconnected;
          }
          return [...events];
        },
        path.join(cluster.place, 'of an old release'),
      );
      assert.deepEqual(events, ['ENOENT']);
      const samples = await cluster.scrape({ selfMetrics: true, timeout: LONG });
      assert.equal(counted(samples), 100);
      assert.equal((await cluster.internals()).workers, 1);
      assert.equal(samples.get('prom_client_cluster_workers{state="fresh"}'), 1);
      assert.equal(samples.get('prom_client_cluster_workers{state="stale"}'), 0);
      await cluster.end();
    });
  });

  describe('a request that cannot be sent', () => {
    it('is sent again later: its worker is not served from old numbers for ever', async t => {
      const cluster = await start(t);
      await cluster.inWorkers([1, 2], record);
      await cluster.run(({ cluster }) => {
        const worker = cluster.workers[1];
        worker.send = (message, callback) => {
          delete worker.send;
          process.nextTick(callback, Object.assign(new Error('EAGAIN'), { code: 'EAGAIN' }));
        };
      });
      assert.equal(counted(await cluster.scrape({ timeout: LONG })), 201);
      await until(async () => counted(await cluster.scrape()) === 202, 'it is asked again');
      const { silent, failing } = await cluster.internals();
      assert.deepEqual({ silent, failing }, { silent: 0, failing: 0 });
      await cluster.end();
    });
  });

  describe('a primary without file descriptors', () => {
    it('counts what a worker left when it has some again', async t => {
      const none = path.join(makePlace(t), 'none');
      const threadPreload = path.join(path.dirname(none), 'preload.js');
      fs.writeFileSync(
        threadPreload,
        `const fs = require('node:fs');
      const { openSync } = fs;
      fs.openSync = function (file, ...rest) {
        if (!/-exit-/.test(file) || !fs.existsSync(${JSON.stringify(none)})) return openSync.call(this, file, ...rest);
        throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      };`,
      );
      const cluster = await start(t, { threadPreload });
      fs.writeFileSync(none, '');
      cluster.tellWorker(1, exit, 50);
      await cluster.gone(1);
      for (let i = 0; i < 3; i++) assert.equal(counted(await cluster.scrape()), 200);
      const { retired, retiring, refused } = await cluster.internals();
      assert.deepEqual({ retired, retiring }, { retired: 0, retiring: 1 });
      assert.ok(refused['exit-EMFILE'] >= 1, 'it is told');
      fs.rmSync(none);
      assert.equal(counted(await cluster.scrape()), 250);
      await isRetired(cluster, 1);
      assert.deepEqual(cluster.keptFiles(1), []);
      await cluster.end();
    });
  });

  describe('what a worker counts at its very end', () => {
    it("in the application's own 'exit' handler is in the totals", async t => {
      const cluster = await startCluster(t, { workers: 2, worker: counting });
      await cluster.inWorkers([1, 2], ({ process, state }) => {
        process.on('exit', () => state.record(5));
        state.record(100);
      });
      assert.equal(counted(await cluster.scrape()), 200);
      cluster.tellWorker(1, ({ process }) => process.exit());
      await cluster.gone(1);
      assert.equal(counted(await cluster.scrape()), 205);
      assert.equal(await cluster.inWorker(2, ({ process }) => process.listenerCount('exit')), 2);
      await cluster.end();
    });

    it('in a collect hook that runs when it calls shutdown() is in the totals', async t => {
      const cluster = await start(t);
      await cluster.inWorker(2, ({ client, state }) => {
        const held = new Promise(resolve => (state.release = resolve));
        async function collect() {
          state.isRunning = true;
          await held;
          this.inc(7);
        }
        state.queued = new client.Counter({ name: 'queued_total', help: 'h', collect });
      });
      const scrape = cluster.scrape({ timeout: LONG });
      await until(() => cluster.inWorker(2, ({ state }) => state.isRunning === true), 'the hook runs');
      cluster.tellWorker(2, async ({ client, process }) => {
        // Before the scrape's own answer is on its way.
        process.send = () => true;
        await new client.AggregatorRegistry().shutdown(600_000);
        process.kill(process.pid, 'SIGKILL');
      });
      // Its answer would tell that it lives; a turn of its loop for each of these.
      for (let i = 0; i < 50; i++) cluster.tellWorker(2, () => {});
      cluster.tellWorker(2, ({ state }) => state.release());
      await cluster.gone(2);
      await scrape;
      await isRetired(cluster, 1);
      const samples = await cluster.scrape();
      assert.equal(samples.get('queued_total'), 7);
      assert.equal(counted(samples), 200);
      await cluster.end();
    });
  });

  describe('an AggregatorRegistry that is closed', () => {
    it('keeps nobody who has called shutdown() waiting for a death', async t => {
      const cluster = await start(t);
      const text = await cluster.run(async ({ cluster, aggregator, construct }, timeout) => {
        const worker = cluster.workers[1];
        const gone = new Promise(resolve => worker.on('exit', resolve));
        worker.process.kill('SIGKILL');
        await gone;
        await Promise.all([aggregator.shutdown(timeout), aggregator.close()]);
        return construct().clusterMetrics();
      }, LONG);
      assert.match(text, /^done_total 100$/m);
      await cluster.run($ => ($.aggregator = $.construct()));
      await cluster.end();
    });

    it('while a worker drains leaves nothing of that worker in the next one', async t => {
      const cluster = await start(t);
      const end = await drain(cluster, t, 1);
      await cluster.run(async context => {
        await context.aggregator.close();
        context.aggregator = context.construct();
      });
      assert.equal(counted(await cluster.scrape()), 100);
      await end();
      const samples = await cluster.scrape({ selfMetrics: true });
      assert.equal(counted(samples), 100);
      assert.equal((await cluster.internals()).workers, 1);
      assert.equal(samples.get('prom_client_cluster_workers{state="stale"}'), 0);
      await cluster.end();
    });

    it('is not needed for one that nobody refers to: none stays in memory', async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [
        '--expose-gc',
        '-e',
        `const { AggregatorRegistry } = require(${JSON.stringify(LIBRARY)});
      const gone = new Set();
      const registry = new FinalizationRegistry(number => gone.add(number));
      for (let i = 0; i < 1000; i++) registry.register(new AggregatorRegistry(), i);
      const end = performance.now() + 20_000;
      const collect = () => {
        gc();
        if (gone.size < 990 && performance.now() < end) return setImmediate(collect);
        console.log(gone.size);
      };
      setImmediate(collect);`,
      ]);
      assert.ok(Number(stdout) >= 990, `${stdout} of 1000 were freed`);
    });
  });

  describe('lives of workers with a label of their own', () => {
    it('leave nothing behind in metrics that nobody has used', async () => {
      const life = (store, makeWorker, bytesOf, { Counter, Gauge }, id) => {
        const { registry, source } = makeWorker();
        const registers = [registry];
        for (let i = 0; i < 50; i++) {
          new Counter({ name: `errors_${i}_total`, help: 'h', labelNames: ['code'], registers });
        }
        new Gauge({ name: 'open', help: 'h', registers }).set(1);
        registry.setDefaultLabels({ pid: 100_000 + id, pod: `some-rather-long-pod-name-${id}` });
        store.apply(id, bytesOf(source.capture(id, undefined)));
      };
      const { stdout } = await promisify(execFile)(process.execPath, [
        '--expose-gc',
        '-e',
        `const client = require(${JSON.stringify(LIBRARY)});
      const { ClusterStore } = require(${JSON.stringify(path.join(LIBRARY, 'lib/cluster/store/cluster-store'))});
      const { makeWorker, bytesOf, textOf } = require(${JSON.stringify(path.join(__dirname, '../../fixtures/unit-scrape'))});
      const life = ${life};
      const store = new ClusterStore({ retiredMaxAge: 0 });
      life(store, makeWorker, bytesOf, client, 1); // lives on, so that the metrics stay
      const used = [];
      for (let id = 2; id <= 1000; id++) {
        life(store, makeWorker, bytesOf, client, id);
        textOf(store);
        store.retire(id);
        if (id % 500 !== 400) continue;
        textOf(store);
        gc();
        used.push(process.memoryUsage().heapUsed);
      }
      console.log(JSON.stringify(used));`,
      ]);
      const used = JSON.parse(stdout);
      // The values of 500 lives in each of 50 metrics would be some 2 MB.
      assert.ok(used.at(-1) - used[0] < 0.8e6, `${used} bytes`);
    });
  });

  describe('a cleaner of temporary files', () => {
    it('finds none that is old in the directory of a primary that lives', async t => {
      t.mock.timers.enable({ apis: ['setInterval'] });
      const spool = await Spool.open({ directory: makePlace(t), fallbacks: [], lock: false });
      t.after(() => spool.close());
      const names = ['retired.snap', 'w1-last.snap', 'w1-dictionary.snap', 'owner.json'];
      for (const name of names.slice(0, -1)) spool.writeAtomically(name, [Buffer.from('x')]);
      const aged = Date.now() - 30 * 24 * 3600_000;
      for (const name of names)
        fs.utimesSync(path.join(spool.directory, name), new Date(aged), new Date(aged));
      t.mock.timers.tick(3600_000);
      for (const name of names) {
        const { mtimeMs, atimeMs } = fs.statSync(path.join(spool.directory, name));
        assert.ok(Math.min(mtimeMs, atimeMs) > aged + 24 * 3600_000, name);
      }
    });
  });
});
