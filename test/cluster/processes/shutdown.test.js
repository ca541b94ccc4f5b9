'use strict';

// shutdown(), for a process that is about to end, and close(), for one that goes on without the cluster.

const assert = require('node:assert/strict');
const { fork, execFile } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { describe, it } = require('node:test');

const { startCluster, makePlace, patiently, until, LIBRARY } = require('../../fixtures/cluster-harness.js');

/** One counter that is counted by hand, and one that only its hook counts. */
const counting = {
  construct: true,
  start: ({ client, state }) => {
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
const totalsOf = samples => ['done_total', 'collected_total'].map(name => samples.get(name));

async function start(t, setup) {
  const cluster = await startCluster(t, { workers: 2, worker: counting, ...setup });
  if (setup?.construct === false) return cluster;
  // What comes over IPC now comes after the welcome.
  await until(() => cluster.run($ => $.internals().directory !== ''), 'there is a directory');
  return cluster;
}

/** How long something takes that must not wait for a timeout of this many milliseconds. */
const LONG = 600_000;

describe('shutdown() in a worker', { concurrency: 3 }, () => {
  it('runs its hooks once more, and a kill right after loses nothing', async t => {
    const cluster = await start(t);
    await cluster.inWorkers([1, 2], count);
    assert.deepEqual(totalsOf(await cluster.scrape()), [2, 2]);
    await cluster.inWorker(2, count, 10);
    assert.equal(await cluster.inWorker(2, shutDown), undefined);
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    assert.deepEqual(totalsOf(await cluster.scrape()), [12, 2 + 1 + 1]);
    await cluster.end();
  });

  it('loses nothing either of a worker that nobody has scraped', async t => {
    const cluster = await start(t);
    await until(async () => (await cluster.internals()).directory !== '', 'there is a directory');
    await cluster.inWorker(2, count, 10);
    await cluster.inWorker(2, shutDown);
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    assert.deepEqual(totalsOf(await cluster.scrape()), [10, 2]);
    await cluster.end();
  });

  it('does not end the counting: what comes before an orderly end is not lost either', async t => {
    const cluster = await start(t);
    await cluster.inWorkers([1, 2], count);
    for (let i = 0; i < 3; i++) await cluster.inWorker(2, shutDown);
    await cluster.inWorker(2, count, 100);
    // Its hook has run at three shutdowns and this scrape.
    assert.deepEqual(totalsOf(await cluster.scrape()), [102, 1 + 4]);
    cluster.tellWorker(2, ({ state, process }) => {
      state.counter.inc(1000);
      process.exit();
    });
    await cluster.gone(2);
    assert.deepEqual(totalsOf(await cluster.scrape()), [1102, 2 + 4]);
    await cluster.end();
  });

  it('several times at once leaves whole numbers', async t => {
    const cluster = await start(t);
    await cluster.inWorker(2, async ({ aggregator, client, state }) => {
      const many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['number'] });
      for (let number = 0; number < 5000; number++) many.inc({ number });
      state.counter.inc(7);
      await Promise.all(Array.from({ length: 5 }, () => aggregator.shutdown()));
    });
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    const samples = await cluster.scrape();
    assert.equal(samples.get('done_total'), 7);
    assert.equal([...samples].filter(([name]) => name.startsWith('many_total')).length, 5000);
    assert.deepEqual((await cluster.internals()).refused, {});
    await cluster.end();
  });

  it('is over when its time is, though a hook never ends; what the others have is left', async t => {
    const cluster = await start(t);
    await cluster.inWorkers([1, 2], count);
    await cluster.inWorker(2, ({ state }) => void (state.held = new Promise(() => {})));
    // The hook never ends: shutdown() resolves because of its time limit alone.
    await cluster.inWorker(2, ({ aggregator }) => aggregator.shutdown(400));
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.end();
  });

  it('does not fail where the directory is gone, and what the last scrape has shown stands', async t => {
    const cluster = await start(t);
    await cluster.inWorkers([1, 2], count);
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    fs.rmSync(cluster.spool, { recursive: true });
    await cluster.inWorkers([1, 2], count);
    await cluster.inWorkers([1, 2], shutDown);
    assert.equal((await cluster.scrape()).get('done_total'), 4);
    const { failures } = await cluster.internals();
    assert.deepEqual(
      failures.filter(({ stage }) => stage === 'checkpoint'),
      [{ stage: 'checkpoint', metric: '', count: 2 }],
    );
    await cluster.end();
  });

  it('is over at once where no primary has asked for anything', async t => {
    const cluster = await start(t, { construct: false });
    await cluster.inWorkers([1, 2], shutDown, LONG);
    await cluster.end();
  });

  it('leaves no file behind in a cluster that goes on', async t => {
    const cluster = await start(t);
    await cluster.scrape();
    await cluster.inWorkers([1, 2], shutDown);
    const names = fs.readdirSync(cluster.spool).filter(name => name.includes('-exit-'));
    assert.ok(names.length === 2 && names.every(name => /^w[12]-exit-[0-9a-f]{24}\.snap$/.test(name)));
    for (const workerId of [1, 2]) {
      cluster.tellWorker(workerId, exit);
      await cluster.gone(workerId);
    }
    await cluster.run(shutDown);
    assert.deepEqual(
      fs.readdirSync(cluster.spool).filter(name => name.startsWith('w')),
      [],
    );
    await cluster.end();
  });
});

describe('shutdown() in the primary', { concurrency: 3 }, () => {
  for (const inPlace of [false, true]) {
    it(`has dead workers among the totals, and goes on being of use${inPlace ? ', in place' : ''}`, async t => {
      const cluster = await start(t, { workers: 3, options: { inPlace } });
      await cluster.inWorkers([1, 2, 3], count);
      assert.equal((await cluster.scrape()).get('done_total'), 3);
      await cluster.inWorkers([2, 3], count, 10);
      cluster.tellWorker(2, exit);
      cluster.tellWorker(3, exit);
      await Promise.all([cluster.gone(2), cluster.gone(3)]);
      await cluster.run(shutDown);
      const { retiring, retired, workers } = await cluster.internals();
      assert.deepEqual({ retiring, retired, workers }, { retiring: 0, retired: 2, workers: 1 });
      await cluster.inWorker(1, count, 100);
      assert.equal((await cluster.scrape()).get('done_total'), 123);
      const id = await cluster.fork();
      await cluster.inWorker(id, count, 1000);
      await cluster.run(shutDown);
      assert.equal((await cluster.scrape()).get('done_total'), 1123);
      await cluster.end();
    });
  }

  it('has answered all scrapes that were under way, those that wait for the next round, too', async t => {
    const cluster = await start(t);
    assert.deepEqual(totalsOf(await cluster.scrape()), [0, 2]);
    await cluster.inWorker(2, ({ state }) => {
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
    // It has got the question when it has answered this, which is behind it.
    await cluster.inWorker(2, ({ state }) => {
      state.release();
      state.held = undefined;
    });
    assert.deepEqual(await order, ['first', 'second', 'shutdown']);
    await cluster.end();
  });

  it('is over when its time is, and the scrape that it waited for is answered later', async t => {
    const cluster = await start(t);
    await cluster.inWorkers([1, 2], count);
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.signal(2, 'SIGSTOP');
    const { order, text } = await cluster.run(async ({ aggregator, cluster }) => {
      const order = [];
      const scrape = aggregator.clusterMetrics({ timeout: 600_000 }).then(text => {
        order.push('scrape');
        return text;
      });
      await aggregator.shutdown(200);
      order.push('shutdown');
      cluster.workers[2].process.kill('SIGCONT');
      return { text: await scrape, order };
    });
    assert.deepEqual(order, ['shutdown', 'scrape']);
    assert.match(text, /^done_total 2$/m);
    await cluster.signal(2, 'SIGCONT');
    await cluster.end();
  });

  it('is over at once where there is nothing to wait for, and does not fail where the directory is gone', async t => {
    const cluster = await start(t);
    await cluster.run(shutDown, LONG);
    await cluster.inWorkers([1, 2], count);
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.run(shutDown, LONG);
    fs.rmSync(cluster.spool, { recursive: true });
    cluster.tellWorker(2, exit);
    await cluster.gone(2);
    await cluster.run(shutDown, 200);
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    await cluster.run(({ aggregator }) => aggregator.close());
    await cluster.run(shutDown, LONG);
    await cluster.end();
  });

  it('keeps the process until it is over', async t => {
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
          await registry.shutdown();
          console.log(JSON.stringify(registry.clusterState().retiring));
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

describe('shutdown() anywhere', { concurrency: 3 }, () => {
  const program = `
    const { AggregatorRegistry } = require(${JSON.stringify(LIBRARY)});
    const registry = new AggregatorRegistry();
    registry.shutdown(${LONG}).then(() => {
      console.log('over', typeof registry.clusterState());
      if (process.connected) process.disconnect();
    });`;

  it('is over at once in a process that is alone', async t => {
    const place = makePlace(t);
    const env = { ...process.env, TMPDIR: place };
    const ended = promisify(execFile)(process.execPath, ['-e', program], { env });
    const { stdout } = await patiently(ended, () => 'the program to end');
    assert.equal(stdout, 'over object\n');
    assert.deepEqual(fs.readdirSync(place), []);
  });

  it('is over at once in a child process that is no worker of a cluster', async t => {
    const file = path.join(makePlace(t), 'program.js');
    fs.writeFileSync(file, program);
    const child = fork(file, [], { silent: true, execArgv: [] });
    let output = '';
    child.stdout.on('data', text => (output += text));
    const [code] = await patiently(once(child, 'close'), () => 'the child to end');
    assert.deepEqual({ code, output }, { code: 0, output: 'over object\n' });
  });

  it('takes a number of milliseconds, and refuses anything else', async t => {
    const cluster = await start(t, { workers: 1 });
    const refused = async ({ aggregator }) => {
      const names = [];
      for (const timeout of ['5', -1, NaN, null, {}, true, 5n]) {
        await aggregator.shutdown(timeout).catch(({ name, message }) => names.push(`${name}: ${message}`));
      }
      await aggregator.shutdown(0);
      await aggregator.shutdown(undefined);
      return names;
    };
    const expected = Array(7).fill('TypeError: timeout must be a number of milliseconds');
    assert.deepEqual(await cluster.run(refused), expected);
    assert.deepEqual(await cluster.inWorker(1, refused), expected);
    await cluster.end();
  });

  it('waits longer than a timer can', async t => {
    const cluster = await start(t, { workers: 1 });
    await cluster.inWorker(1, ({ state }) => {
      state.held = new Promise(resolve => (state.release = resolve));
    });
    const order = cluster.run(async ({ aggregator, process, state }) => {
      const order = [];
      process.on('warning', ({ name }) => order.push(name));
      const scrape = aggregator.clusterMetrics().then(() => order.push('scrape'));
      const ended = aggregator.shutdown(2 ** 40).then(() => order.push('shutdown'));
      // Later than a timer that Node.js has shortened to one millisecond.
      state.looked = new Promise(resolve => setTimeout(resolve, 5));
      await Promise.all([scrape, ended]);
      return order;
    });
    await cluster.run(({ state }) => state.looked);
    await cluster.inWorker(1, ({ state }) => state.release());
    assert.deepEqual(await order, ['scrape', 'shutdown']);
    await cluster.end();
  });
});

describe('close()', { concurrency: 3 }, () => {
  it('of the last of many leaves neither thread nor directory nor anything that keeps the process', async t => {
    const cluster = await start(t);
    await cluster.inWorkers([1, 2], count);
    assert.equal((await cluster.scrape()).get('done_total'), 2);
    const busy = ({ process }) =>
      process.getActiveResourcesInfo().filter(name => !/^Pipe|^Process/.test(name));
    const texts = await cluster.run(async ({ construct, state }) => {
      state.many = Array.from({ length: 20 }, () => construct());
      return Promise.all(state.many.map(registry => registry.clusterMetrics()));
    });
    assert.equal(new Set(texts.map(text => /^done_total .*$/m.exec(text)[0])).size, 1);
    assert.equal(await cluster.run(({ threads }) => threads.length), 1);
    assert.equal(cluster.spools().length, 1);
    // All but one, some of them twice.
    await cluster.run(({ aggregator, state }) =>
      Promise.all([aggregator, ...state.many.slice(1), ...state.many.slice(5)].map(each => each.close())),
    );
    assert.equal(cluster.spools().length, 1);
    const text = await cluster.run(({ aggregator }) => aggregator.clusterMetrics());
    assert.match(text, /^done_total 2$/m, 'one that was closed still shows what there is');
    await cluster.run(({ state }) => state.many[0].close());
    assert.deepEqual(cluster.spools(), []);
    assert.deepEqual(await cluster.run(busy), []);
    assert.equal(await cluster.run(({ aggregator }) => aggregator.clusterMetrics()), '');
    const listeners = await cluster.run(({ cluster }) =>
      ['fork', 'online'].map(name => cluster.listenerCount(name)),
    );
    assert.deepEqual(listeners, [0, 0]);
    await cluster.end();
  });

  it('lets a program end by itself, with workers that go on', async t => {
    const place = makePlace(t);
    const program = path.join(place, 'program.js');
    fs.writeFileSync(
      program,
      `const cluster = require('node:cluster');
      const fs = require('node:fs');
      const { AggregatorRegistry, Counter } = require(${JSON.stringify(LIBRARY)});
      if (cluster.isPrimary) {
        const options = { directory: __dirname };
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
});
