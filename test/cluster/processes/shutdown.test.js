'use strict';

// shutdown(), for a process that is about to end, and close(), for one that goes on without the cluster.

const assert = require('node:assert/strict');
const { fork, execFile } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { inspect, promisify } = require('node:util');
const { describe, it } = require('node:test');

const {
  startCluster,
  makePlace,
  patiently,
  removeWhileUsed,
  until,
  LIBRARY,
} = require('../../fixtures/cluster-harness.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');

/** One counter that tests increment, and one that only its hook increments. */
const counting = {
  construct: true,
  start: ({ require, client, ...context }) => {
    const { state } = context;
    require('../fixtures/cluster-checkpoints').observeCheckpoints(context);
    state.counter = new client.Counter({ name: 'done_total', help: 'h' });
    state.collected = new client.Counter({
      name: 'collected_total',
      help: 'h',
      collect() {
        this.inc();
        return state.held;
      },
    });
  },
};
const count = ({ state }, times = 1) => state.counter.inc(times);
const shutDown = ({ aggregator }, timeout) => aggregator.shutdown(timeout);
const exit = ({ process }) => process.exit();
const doneIn = samples => samples.get('done_total') ?? 0;
const totalsOf = samples => ['done_total', 'collected_total'].map(name => samples.get(name) ?? 0);

/** A timeout in milliseconds that no test waits for. */
const LONG = 600_000;

/** Starts a worker and waits until it knows where its last columns go. */
async function startWorker(cluster) {
  const id = await cluster.fork();
  await cluster.inWorker(id, ({ state }) => state.welcomed());
  return id;
}

/** @returns {Promise<number[]>} how much the counters have grown since they had these totals */
async function growth(cluster, before) {
  return totalsOf(await cluster.scrape()).map((total, i) => total - before[i]);
}

/** @returns {string[]} files in the spool that workers write for the time after their death */
function exitFiles(cluster, id) {
  return fs.readdirSync(cluster.spool).filter(name => name.startsWith(`w${id}-r0-`));
}

const SHARED = path.join(__dirname, '../../../lib/cluster/primary-of-process.js');

describe('shutdown() and close() in a cluster', () => {
  const shared = sharedCluster({ worker: counting });

  it('shutdown() in a worker saves counts of a worker that is killed next and was never scraped', async () => {
    const cluster = shared();
    const before = totalsOf(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, count, 10);
    assert.equal(await cluster.inWorker(id, shutDown, LONG), undefined);
    await cluster.killWorker(id);
    assert.deepEqual(await growth(cluster, before), [10, 1]);
  });

  it('after shutdown() a worker may go on counting, and its orderly end loses nothing', async () => {
    const cluster = shared();
    const before = totalsOf(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, count);
    assert.deepEqual(exitFiles(cluster, id), [], 'nothing is written before');
    for (let i = 0; i < 3; i++) await cluster.inWorker(id, shutDown, LONG);
    const [name, ...others] = exitFiles(cluster, id);
    assert.match(name, new RegExp(`^w${id}-r0-[0-9a-f]{24}\\.columns$`));
    assert.deepEqual(others, []);
    await cluster.inWorker(id, count, 100);
    // Its hook has run at three shutdowns and this scrape.
    assert.deepEqual(await growth(cluster, before), [101, 4]);
    await cluster.endWorker(id, ({ state, process }) => {
      state.counter.inc(1000);
      process.exit();
    });
    assert.deepEqual(await growth(cluster, before), [1101, 4]);
    await cluster.run(shutDown, LONG);
    const shown = fs.readdirSync(cluster.spool).filter(name => name.startsWith('w'));
    assert.deepEqual(shown, [], 'no file is left of it');
  });

  it('shutdown() in a worker, several times at once, saves complete numbers', async () => {
    const cluster = shared();
    const before = totalsOf(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(
      id,
      async ({ aggregator, client, state }, timeout) => {
        const many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['number'] });
        for (let number = 0; number < 5000; number++) many.inc({ number });
        state.counter.inc(7);
        await Promise.all(Array.from({ length: 5 }, () => aggregator.shutdown(timeout)));
      },
      LONG,
    );
    await cluster.killWorker(id);
    const samples = await cluster.scrape();
    assert.equal(doneIn(samples) - before[0], 7);
    assert.equal([...samples].filter(([name]) => name.startsWith('many_total')).length, 5000);
    assert.deepEqual((await cluster.internals()).refused, {});
  });

  it('shutdown() in a worker gives up a collect hook that never ends, and saves everything else', async () => {
    const cluster = shared();
    const before = totalsOf(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, count);
    await cluster.inWorker(id, ({ state }) => void (state.held = new Promise(() => {})));
    await cluster.inWorker(id, shutDown, 500);
    // On a busy machine, shutdown() may resolve before the file is written: its time is up.
    await until(() => exitFiles(cluster, id).length > 0, 'its file is written');
    await cluster.killWorker(id);
    assert.equal(doneIn(await cluster.scrape()) - before[0], 1);
  });

  it('shutdown() in the primary waits longer than a timer of Node.js can', async () => {
    const cluster = shared();
    const id = await startWorker(cluster);
    await cluster.inWorker(id, ({ state }) => {
      state.held = new Promise(resolve => (state.release = resolve));
    });
    const order = cluster.run(async ({ aggregator, process, state }) => {
      const order = [];
      const onWarning = ({ name }) => order.push(name);
      process.on('warning', onWarning);
      const scrape = aggregator.clusterMetrics().then(() => order.push('scrape'));
      const ended = aggregator.shutdown(2 ** 40).then(() => order.push('shutdown'));
      // Later than a timer that Node.js has shortened to one millisecond.
      state.looked = new Promise(resolve => setTimeout(resolve, 5));
      await Promise.all([scrape, ended]);
      process.removeListener('warning', onWarning);
      return order;
    });
    await cluster.run(({ state }) => state.looked);
    await cluster.inWorker(id, ({ state }) => state.release());
    assert.deepEqual(await order, ['scrape', 'shutdown']);
    await cluster.killWorker(id);
  });

  it('shutdown() in the primary resolves after all scrapes, also those that wait for the next round', async () => {
    const cluster = shared();
    const id = await startWorker(cluster);
    await cluster.scrape();
    await cluster.inWorker(id, ({ state }) => {
      state.held = new Promise(resolve => (state.release = resolve));
    });
    const order = cluster.run(async ({ aggregator }, timeout) => {
      const order = [];
      const scrape = name => aggregator.clusterMetricsBytes({ timeout }).then(() => order.push(name));
      const scrapes = [scrape('first')];
      await new Promise(resolve => setImmediate(resolve));
      scrapes.push(scrape('second'));
      const ended = aggregator.shutdown(timeout).then(() => order.push('shutdown'));
      await Promise.all([...scrapes, ended]);
      return order;
    }, LONG);
    // It has the request when it gets this, which was sent later.
    await cluster.inWorker(id, ({ state }) => {
      state.release();
      state.held = undefined;
    });
    assert.deepEqual(await order, ['first', 'second', 'shutdown']);
    await cluster.killWorker(id);
  });

  it('shutdown() in the primary resolves after its timeout, and the scrape under way is answered later', async () => {
    const cluster = shared();
    const before = totalsOf(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, count);
    await cluster.signal(id, 'SIGSTOP');
    const { order, text } = await cluster.run(async ({ aggregator, cluster }, id) => {
      const order = [];
      const scrape = aggregator.clusterMetrics({ timeout: 600_000 }).then(text => {
        order.push('scrape');
        return text;
      });
      await aggregator.shutdown(50);
      order.push('shutdown');
      cluster.workers[id].process.kill('SIGCONT');
      return { text: await scrape, order };
    }, id);
    assert.deepEqual(order, ['shutdown', 'scrape']);
    assert.match(text, new RegExp(`^done_total ${before[0] + 1}$`, 'm'));
    await cluster.signal(id, 'SIGCONT');
    await cluster.killWorker(id);
  });

  it('shutdown() in the primary adds dead workers to the totals, and the registry can still be used', async () => {
    await showDeadWorkers(shared());
  });

  it('shutdown() does not fail if the directory was removed, and totals do not fall', async () => {
    const cluster = shared();
    const before = doneIn(await cluster.scrape());
    const ids = [await startWorker(cluster), await startWorker(cluster)];
    await cluster.run(shutDown, LONG);
    await cluster.inWorkers(ids, count);
    assert.equal(doneIn(await cluster.scrape()) - before, 2);
    await cluster.inWorkers(ids, count);
    // In the worker: otherwise the primary may notice it first, and create another directory.
    const removeAndShutDown = ({ require, aggregator }, directory, timeout) => {
      require('node:fs').rmSync(directory, { recursive: true });
      return aggregator.shutdown(timeout);
    };
    await cluster.inWorker(ids[0], removeAndShutDown, cluster.spool, LONG);
    await cluster.inWorker(ids[1], shutDown, LONG);
    assert.equal(doneIn(await cluster.scrape()) - before, 4);
    const { failures } = await cluster.internals();
    const failed = failures.find(({ stage }) => stage === 'checkpoint');
    assert.ok(failed?.count >= 1, inspect(failures));
    removeWhileUsed(cluster.spool);
    for (const id of ids) {
      await cluster.endWorker(id, exit);
    }
    await cluster.run(shutDown, 200);
    assert.equal(doneIn(await cluster.scrape()) - before, 4);
  });
});

/** Two of three workers die, unscraped since they counted last. */
async function showDeadWorkers(cluster) {
  // The dead workers of other tests are among the retired then.
  await cluster.run(shutDown, LONG);
  const [before, { retired }] = [doneIn(await cluster.scrape()), await cluster.internals()];
  const ids = [await startWorker(cluster), await startWorker(cluster), await startWorker(cluster)];
  await cluster.inWorkers(ids, count);
  assert.equal(doneIn(await cluster.scrape()) - before, 3);
  await cluster.inWorkers(ids.slice(1), count, 10);
  for (const id of ids.slice(1)) cluster.tellWorker(id, exit);
  await Promise.all(ids.slice(1).map(id => cluster.gone(id)));
  await cluster.run(shutDown, LONG);
  const internals = await cluster.internals();
  assert.deepEqual(
    { retiring: internals.retiring, retired: internals.retired, workers: internals.workers },
    { retiring: 0, retired: retired + 2, workers: 1 },
  );
  await cluster.inWorker(ids[0], count, 100);
  assert.equal(doneIn(await cluster.scrape()) - before, 123);
  await cluster.run(shutDown, LONG);
  cluster.tellWorker(ids[0], exit);
  await cluster.gone(ids[0]);
  await cluster.run(shutDown, LONG);
  assert.equal(doneIn(await cluster.scrape()) - before, 123);
}

describe('shutdown() in other clusters', () => {
  if (process.env.EVERY_VARIANT) {
    it('shutdown() in the primary adds dead workers to the totals if it aggregates in place', async t => {
      const cluster = await startCluster(t, { worker: counting, options: { inPlace: true } });
      await showDeadWorkers(cluster);
      await cluster.end();
    });
  }

  it('shutdown() in a worker resolves at once if the primary has no AggregatorRegistry', async t => {
    const cluster = await startCluster(t, { workers: 1, worker: counting, construct: false });
    await cluster.inWorker(1, shutDown, LONG);
    await cluster.end();
  });

  it('shutdown() in the primary keeps the process alive until it has resolved', async t => {
    const place = makePlace(t);
    const program = path.join(place, 'program.js');
    fs.writeFileSync(
      program,
      `const cluster = require('node:cluster');
      const { AggregatorRegistry, Counter } = require(${JSON.stringify(LIBRARY)});
      if (cluster.isPrimary) {
        const registry = new AggregatorRegistry();
        let events = 0;
        const onGone = async () => {
          if (++events < 2) return;
          await registry.shutdown(60_000);
          console.log(JSON.stringify(require(${JSON.stringify(SHARED)}).primaryOfProcess().supervisor.retiring));
        };
        cluster.on('exit', onGone).on('disconnect', onGone);
        cluster.fork();
      } else {
        new Counter({ name: 'done_total', help: 'h' }).inc();
        process.once('message', () => setImmediate(() => process.exit()));
      }`,
    );
    const { stdout } = await patiently(
      promisify(execFile)(process.execPath, [program], { env: { ...process.env, TMPDIR: place } }),
      () => 'the program to end',
    );
    assert.equal(stdout, '0\n');
  });
});

describe('shutdown() without a cluster', () => {
  const program = `
    const { AggregatorRegistry } = require(${JSON.stringify(LIBRARY)});
    const registry = new AggregatorRegistry();
    registry.shutdown(${LONG}).then(() => {
      console.log('over', typeof registry.clusterState());
      if (process.connected) process.disconnect();
    });`;

  it('shutdown() resolves at once in a process without a cluster', async t => {
    const place = makePlace(t);
    const env = { ...process.env, TMPDIR: place };
    const ended = promisify(execFile)(process.execPath, ['-e', program], { env });
    const { stdout } = await patiently(ended, () => 'the program to end');
    assert.equal(stdout, 'over object\n');
    assert.deepEqual(fs.readdirSync(place), []);
  });

  it('shutdown() resolves at once in a child process that is no worker of a cluster', async t => {
    const file = path.join(makePlace(t), 'program.js');
    fs.writeFileSync(file, program);
    const child = fork(file, [], { silent: true, execArgv: [] });
    let output = '';
    child.stdout.on('data', text => (output += text));
    const [code] = await patiently(once(child, 'close'), () => 'the child to end');
    assert.deepEqual({ code, output }, { code: 0, output: 'over object\n' });
  });
});

it('close() lets a program end by itself while its workers go on', async t => {
  const place = makePlace(t);
  const program = path.join(place, 'program.js');
  fs.writeFileSync(
    program,
    `const cluster = require('node:cluster');
      const fs = require('node:fs');
      const { AggregatorRegistry, Counter } = require(${JSON.stringify(LIBRARY)});
      if (cluster.isPrimary) {
        const options = { directory: __dirname, timeout: 60_000 };
        const registries = Array.from({ length: 3 }, () => new AggregatorRegistry(undefined, options));
        cluster.fork().once('listening', async () => {
          console.log(/^done_total 1$/m.test(await registries[0].clusterMetrics()));
          for (const registry of registries) await registry.close();
          console.log(JSON.stringify(fs.readdirSync(__dirname)));
          cluster.disconnect();
        });
      } else {
        new Counter({ name: 'done_total', help: 'h' }).inc();
        require('node:http').createServer().listen(0, '127.0.0.1');
      }`,
  );
  const { stdout } = await patiently(
    promisify(execFile)(process.execPath, [program], { env: { ...process.env, TMPDIR: place } }),
    () => 'the program to end',
  );
  assert.equal(stdout, 'true\n["program.js"]\n');
});
