'use strict';

// Two faults at once: a thread is lost while a worker hangs, drains or dies; files cannot be read, messages
// cannot be sent, processes cannot be started. No count that the primary has received is lost.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { describe, it } = require('node:test');

const { startCluster, makePlace, until, LIBRARY } = require('../fixtures/cluster-harness.js');
const { sharedCluster } = require('../fixtures/shared-cluster.js');
const { BY_HAND } = require('../fixtures/cluster-checkpoints.js');
const { columnsName, logName } = require('../../lib/spool/file-names');
const { Spool } = require('../../lib/spool/spool');

const counting = {
  start: ({ require, client, cluster, ...context }) => {
    const { state } = context;
    require('../fixtures/cluster-checkpoints').observeCheckpoints({ client, cluster, ...context });
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

/** No test waits that long. */
const LONG = 600_000;

/** After more losses of a thread than this within a minute there is no other one. */
const MINUTE = 60_000;

/** Starts some workers that count 100 each; returns their ids, the first of them, and the total. */
async function startWorkers(cluster, count = 1) {
  await cluster.run(({ clock }, milliseconds) => clock.advance(milliseconds), 2 * MINUTE);
  const ids = [];
  for (let i = 0; i < count; i++) ids.push(await cluster.fork());
  await cluster.inWorkers(ids, record, 100);
  // Three times, because a worker learns with a request that its numbers have arrived.
  let total;
  for (let i = 0; i < 3; i++) total = counted(await cluster.scrape());
  return { ids, id: ids[0], total };
}

async function kill(cluster, workerId) {
  await cluster.killWorker(workerId);
  await cluster.allRetired();
}

/** Stops a worker; a scrape times out and shows its last numbers. */
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
      const { dirname } = require('node:path');
      const { exit } = process;
      process.exit = () => {}; // what the cluster module calls when the channel closes
      cluster.worker.disconnect();
      state.record(10);
      // The directory vanishes with a test that fails.
      const mayEnd = () => existsSync(signal) || !existsSync(dirname(signal));
      const poll = setInterval(() => mayEnd() && (clearInterval(poll), exit.call(process, 0)), 5);
    },
    signal,
  );
  await cluster.event('disconnect', workerId);
  return async () => {
    fs.writeFileSync(signal, '');
    await cluster.gone(workerId);
    await cluster.allRetired();
  };
}

describe('a thread that is lost', () => {
  const shared = sharedCluster({ workers: 1, worker: counting });

  it('a thread that is lost while a worker drains costs no count of it', async t => {
    const cluster = shared();
    const { id, total } = await startWorkers(cluster);
    const end = await drain(cluster, t, id);
    assert.equal(counted(await cluster.scrape()), total);
    await cluster.loseThread();
    const between = await cluster.scrape();
    assert.equal(counted(between), total);
    assert.equal(between.get(`open{worker="${id}"}`), 100);
    await end();
    const after = await cluster.scrape();
    assert.equal(counted(after), total + 10);
    assert.equal(after.get(`own_total{worker="${id}"}`), 110);
    assert.deepEqual((await cluster.internals()).refused, {});
  });

  it('a thread that is lost while a worker hangs, which is then killed, costs nothing of its checkpoint', async t => {
    const cluster = await startCluster(t, {
      workers: 1,
      worker: counting,
      options: { checkpointInterval: BY_HAND },
    });
    const { id, total } = await startWorkers(cluster);
    await cluster.inWorker(id, record, 10);
    await cluster.inWorker(id, tick);
    await hang(cluster, id, total);
    await cluster.loseThread();
    // The new thread reads the checkpoint, because the worker may be dead.
    assert.equal(counted(await cluster.scrape()), total + 10);
    await kill(cluster, id);
    const after = await cluster.scrape();
    assert.equal(counted(after), total + 10);
    assert.equal(after.get(`own_total{worker="${id}"}`), 110);
    await cluster.end();
  });
});

describe('a fault in a cluster that goes on', () => {
  const shared = sharedCluster({ workers: 1, worker: counting });
  const ownCount = async ({ state }) => (await state.counter.get()).values[0]?.value ?? 0;

  it('a worker that cannot be started leaves nothing behind, however often it is tried', async () => {
    const cluster = shared();
    const { ids, total } = await startWorkers(cluster);
    const events = await cluster.run(
      async ({ cluster }, cwd) => {
        const events = new Set();
        const before = cluster.settings.cwd;
        cluster.setupPrimary({ cwd });
        for (let i = 0; i < 20; i++) {
          const worker = cluster.fork();
          worker.on('exit', () => events.add('exit'));
          const failed = new Promise(resolve => worker.on('error', resolve));
          const disconnected = new Promise(resolve => worker.on('disconnect', resolve));
          events.add((await failed).code);
          await disconnected;
        }
        cluster.setupPrimary({ cwd: before });
        return [...events];
      },
      path.join(cluster.place, 'of an old release'),
    );
    assert.deepEqual(events, ['ENOENT']);
    const samples = await cluster.scrape({ selfMetrics: true, timeout: LONG });
    assert.equal(counted(samples), total);
    assert.equal((await cluster.internals()).workers, 2);
    assert.equal(samples.get('prom_client_cluster_workers{state="fresh"}'), 2);
    assert.equal(samples.get('prom_client_cluster_workers{state="stale"}'), 0);
    await kill(cluster, ids[0]);
  });

  it("what a worker counts in the application's own 'exit' handler is in the totals", async () => {
    const cluster = shared();
    const { id, total } = await startWorkers(cluster);
    const listeners = ({ process }) => process.listenerCount('exit');
    const before = await cluster.inWorker(id, listeners);
    await cluster.inWorker(id, ({ process, state }) => void process.on('exit', () => state.record(5)));
    // The library's listener moves behind it, and is not added twice.
    assert.equal(counted(await cluster.scrape()), total);
    assert.equal(await cluster.inWorker(id, listeners), before + 1);
    await cluster.endWorker(id, ({ process }) => process.exit());
    assert.equal(counted(await cluster.scrape()), total + 5);
  });

  it('what a worker counts in a collect hook that runs when it calls shutdown(), and in the run after it, is in the totals', async () => {
    const cluster = shared();
    const { id, total } = await startWorkers(cluster);
    await cluster.inWorker(id, ({ client, state }) => {
      const held = new Promise(resolve => (state.release = resolve));
      async function collect() {
        state.isRunning = true;
        await held;
        this.inc(7);
      }
      state.queued = new client.Counter({ name: 'queued_total', help: 'h', collect });
    });
    const scrape = cluster.scrape({ timeout: LONG });
    await until(() => cluster.inWorker(id, ({ state }) => state.isRunning === true), 'the hook runs');
    cluster.tellWorker(id, async ({ client, process, state }) => {
      // Before the scrape's own answer is on its way.
      process.send = () => true;
      const over = new client.AggregatorRegistry().shutdown(600_000);
      // Whatever waits for no hook is done after so many turns of the loop.
      for (let turn = 0; turn < 50; turn++) await new Promise(resolve => setImmediate(resolve));
      state.release();
      await over;
      process.kill(process.pid, 'SIGKILL');
    });
    await cluster.gone(id);
    await scrape;
    await cluster.allRetired();
    const samples = await cluster.scrape();
    assert.equal(samples.get('queued_total'), 14);
    assert.equal(counted(samples), total);
  });

  it('an AggregatorRegistry that is closed while a worker drains leaves nothing of that worker in the next one', async t => {
    const cluster = shared();
    const { id } = await startWorkers(cluster);
    const end = await drain(cluster, t, id);
    await cluster.run(async context => {
      await context.aggregator.close();
      context.aggregator = context.construct();
    });
    const live = await cluster.inWorker(1, ownCount);
    assert.equal(counted(await cluster.scrape()), live);
    await end();
    const samples = await cluster.scrape({ selfMetrics: true });
    assert.equal(counted(samples), live);
    assert.equal((await cluster.internals()).workers, 1);
    assert.equal(samples.get('prom_client_cluster_workers{state="stale"}'), 0);
  });
});

describe('faults of other kinds', { concurrency: 3 }, () => {
  it('a primary without file descriptors gets snapshots over IPC, counts what a worker left when it has some again, and ends', async t => {
    const none = path.join(makePlace(t), 'none');
    const threadPreload = path.join(path.dirname(none), 'preload.js');
    fs.writeFileSync(
      threadPreload,
      `const fs = require('node:fs');
      const { openSync } = fs;
      fs.openSync = function (file, ...rest) {
        if (!/\\.(columns|log)$/.test(file) || !fs.existsSync(${JSON.stringify(none)})) return openSync.call(this, file, ...rest);
        throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      };`,
    );
    const cluster = await startCluster(t, { threadPreload, workers: 2, worker: counting });
    await cluster.inWorkers([1, 2], record, 100);
    assert.equal(counted(await cluster.scrape()), 200);
    fs.writeFileSync(none, '');
    await cluster.endWorker(1, exit, 50);
    for (let i = 1; i < 4; i++) {
      await cluster.inWorkers([2], record, 1);
      assert.equal(counted(await cluster.scrape()), 200 + i);
    }
    const { retired, retiring, refused } = await cluster.internals();
    assert.deepEqual({ retired, retiring }, { retired: 0, retiring: 1 });
    assert.ok(refused.EMFILE >= 1 && refused['exit-EMFILE'] >= 1, 'it is counted');
    fs.rmSync(none);
    assert.equal(counted(await cluster.scrape()), 253);
    await cluster.allRetired();
    assert.deepEqual(cluster.keptFiles(1), []);
    await cluster.run(({ require }) => {
      const fs = require('node:fs');
      const { readFileSync } = fs;
      fs.readFileSync = (file, ...rest) => {
        if (!/\.js$/.test(file)) return readFileSync(file, ...rest);
        throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      };
    });
    await cluster.end();
  });

  it('an AggregatorRegistry that nobody refers to is freed without close()', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--expose-gc',
      '-e',
      `const { AggregatorRegistry } = require(${JSON.stringify(LIBRARY)});
    const gone = new Set();
    const registry = new FinalizationRegistry(number => gone.add(number));
    for (let i = 0; i < 1000; i++) registry.register(new AggregatorRegistry(), i);
    let collections = 0;
    const collect = () => {
      gc();
      if (gone.size < 990 && ++collections < 200) return setImmediate(collect);
      console.log(gone.size);
    };
    setImmediate(collect);`,
    ]);
    assert.ok(Number(stdout) >= 990, `${stdout} of 1000 were freed`);
  });

  it('workers with a default label of their own leave nothing behind in metrics without samples', async () => {
    const life = (store, makeWorker, bytesOf, { Counter, Gauge }, id) => {
      const { registry, source } = makeWorker();
      const registers = [registry];
      for (let i = 0; i < 50; i++) {
        new Counter({ name: `errors_${i}_total`, help: 'h', labelNames: ['code'], registers });
      }
      new Gauge({ name: 'open', help: 'h', registers }).set(1);
      registry.setDefaultLabels({ pid: 100_000 + id, pod: `some-rather-long-pod-name-${id}` });
      store.apply(id, bytesOf(source.captureWithLog(id, undefined)));
    };
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--expose-gc',
      '-e',
      `const client = require(${JSON.stringify(LIBRARY)});
    const { ClusterStore } = require(${JSON.stringify(path.join(LIBRARY, 'lib/store/cluster-store'))});
    const { makeWorker, bytesOf, textOf } = require(${JSON.stringify(path.join(__dirname, '../fixtures/unit-scrape'))});
    const life = ${life};
    const store = new ClusterStore({ retiredMaxAge: 0 });
    life(store, makeWorker, bytesOf, client, 1); // lives on, so that the metrics stay
    const used = [];
    for (let id = 2; id <= 400; id++) {
      life(store, makeWorker, bytesOf, client, id);
      textOf(store);
      store.retire(id);
      if (id % 300 !== 100) continue;
      textOf(store);
      gc();
      used.push(process.memoryUsage().heapUsed);
    }
    console.log(JSON.stringify(used));`,
    ]);
    const used = JSON.parse(stdout);
    // The values of 300 lives in each of 50 metrics would be some 1.2 MB.
    assert.ok(used.at(-1) - used[0] < 0.5e6, `${used} bytes`);
  });

  it('files in the directory of a live primary never look old to a cleaner of temporary files', async t => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const spool = await Spool.open({ directory: makePlace(t), fallbacks: [], lock: false });
    t.after(() => spool.close());
    const names = ['retired.snap', logName(1, '0'.repeat(24)), columnsName(1, 0)];
    for (const name of names) spool.writeAtomically(name, Buffer.from('x'));
    const aged = Date.now() - 30 * 24 * 3600_000;
    for (const name of names) fs.utimesSync(path.join(spool.directory, name), new Date(aged), new Date(aged));
    t.mock.timers.tick(3600_000);
    for (const name of names) {
      const { mtimeMs, atimeMs } = fs.statSync(path.join(spool.directory, name));
      assert.ok(Math.min(mtimeMs, atimeMs) > aged + 24 * 3600_000, name);
    }
  });
});
