'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');

const { startCluster, copyPackage, makePlace, until, LIBRARY } = require('../../fixtures/cluster-harness.js');

const counting = {
  start: ({ client, cluster, state }) => {
    const help = 'h';
    state.counter = new client.Counter({ name: 'done_total', help });
    state.series = new client.Counter({ name: 'series_total', help, labelNames: ['worker', 'number'] });
    state.gauge = new client.Gauge({ name: 'open', help, aggregator: 'own' });
    state.record = (times = 1) => {
      state.counter.inc(times);
      state.gauge.set(times);
      for (let number = 0; number < 20; number++) state.series.inc({ worker: cluster.worker.id, number });
    };
  },
};
const record = ({ state }, times) => state.record(times);
const defineOwn = ({ client }) => {
  client.aggregators.own = ([{ name, help, type }]) => {
    return { name, help, type, values: [{ value: 4, labels: {} }] };
  };
};

async function start(t, setup) {
  const cluster = await startCluster(t, { workers: 1, worker: counting, ...setup });
  await cluster.run(defineOwn);
  return cluster;
}

/** Three workers of which one has died, so that there are retired totals: 5 counted, and 10 by the living. */
async function startWithDead(t, setup) {
  const cluster = await start(t, { workers: 3, ...setup });
  await cluster.inWorkers([1, 2, 3], record, 5);
  assert.equal((await cluster.scrape()).get('done_total'), 15);
  await cluster.signal(3, 'SIGKILL');
  await cluster.gone(3);
  await until(async () => (await cluster.internals()).retiring === 0, 'it is among the retired');
  return cluster;
}

const terminate = ({ threads }) =>
  threads
    .at(-1)
    .terminate()
    .then(() => threads.length);

describe('a thread that dies costs no count', { concurrency: 3 }, () => {
  it('while it has nothing to do', async t => {
    const cluster = await startWithDead(t);
    const before = await cluster.scrape();
    await cluster.inWorkers([1, 2], record);
    await cluster.run(terminate);
    const after = await cluster.scrape();
    assert.equal(after.get('done_total'), 17);
    assert.equal(after.get('open'), 4);
    assert.equal(after.get('series_total{number="7",worker="3"}'), 1);
    assert.deepEqual([...after.keys()].sort(), [...before.keys()].sort());
    assert.equal(await cluster.run($ => $.threads.length), 2);
    assert.deepEqual((await cluster.internals()).refused, {});
    assert.equal(cluster.spools().length, 1, 'the new one took over the directory');
    await cluster.end();
  });

  const moments = {
    'a scrape begins': null,
    'the first worker has answered': 'answer',
    'it is to write the text': 'render',
    'it is to write the text with what a program aggregated': 'finish',
  };
  it(`when ${Object.keys(moments).join(', when ')}: the same scrape is right`, async t => {
    const cluster = await startWithDead(t);
    let [threads, expected] = [1, 15];
    for (const [moment, operation] of Object.entries(moments)) {
      await cluster.inWorkers([1, 2], record);
      expected += 2;
      const text = await cluster.run(({ threads, aggregator }, operation) => {
        const thread = threads.at(-1);
        thread.onPost = message => {
          if (message.op !== operation) return;
          thread.onPost = undefined;
          thread.terminate();
        };
        const scrape = aggregator.clusterMetrics();
        if (operation === null) thread.terminate();
        return scrape;
      }, operation);
      assert.match(text, new RegExp(`^done_total ${expected}$`, 'm'), moment);
      assert.match(text, /^open 4$/m, moment);
      assert.match(text, /^series_total\{worker="3",number="7"\} 1$/m, moment);
      threads++;
      await until(
        () => cluster.run(($, count) => $.threads.length === count, threads),
        'there is another thread',
      );
      assert.equal((await cluster.scrape()).get('done_total'), expected, moment);
      await until(() => cluster.spooledFiles().length === 0, 'what the dead thread did not read is removed');
    }
    await cluster.end();
  });

  it('by an error of its own', async t => {
    const preload = path.join(makePlace(t), 'preload.js');
    const once = path.join(path.dirname(preload), 'once');
    fs.writeFileSync(
      preload,
      `const { parentPort } = require('node:worker_threads');
      const fs = require('node:fs');
      const once = ${JSON.stringify(once)};
      const { postMessage } = parentPort;
      parentPort.postMessage = function (message, ...rest) {
        if (message.op === 'done' && fs.existsSync(once)) {
          fs.rmSync(once);
          setImmediate(() => { throw new Error('this thread is meant to die'); });
          return;
        }
        return postMessage.call(this, message, ...rest);
      };`,
    );
    const cluster = await startWithDead(t, { threadPreload: preload });
    await cluster.inWorkers([1, 2], record);
    fs.writeFileSync(once, '');
    assert.equal((await cluster.scrape()).get('done_total'), 17);
    assert.equal(await cluster.run($ => $.threads.length), 2);
    assert.doesNotMatch(cluster.output, /meant to die/);
    await cluster.end();
  });

  it('when it is told of a death: what the dead worker left is counted once', async t => {
    const cluster = await startWithDead(t);
    await cluster.run(({ threads }) => {
      const thread = threads.at(-1);
      thread.onPost = ({ op }) => op === 'retire' && thread.terminate();
    });
    cluster.tellWorker(2, ({ process, state }) => {
      state.record(100);
      process.exit();
    });
    await cluster.gone(2);
    assert.equal((await cluster.scrape()).get('done_total'), 115);
    await until(() => cluster.spooledFiles().length === 0, 'the exit file is removed');
    await cluster.run(terminate);
    assert.equal((await cluster.scrape()).get('done_total'), 115);
    await cluster.end();
  });

  it('while a worker dies, too', async t => {
    const cluster = await startWithDead(t);
    const threads = cluster.run(terminate);
    cluster.tellWorker(2, ({ process, state }) => {
      state.record(100);
      process.exit();
    });
    await Promise.all([threads, cluster.gone(2)]);
    assert.equal((await cluster.scrape()).get('done_total'), 115);
    await cluster.end();
  });

  it('with its directory: the retired totals are what nobody can tell again, all else is there', async t => {
    const cluster = await startWithDead(t);
    const { spool } = cluster;
    await cluster.run(terminate);
    fs.rmSync(spool, { recursive: true });
    const samples = await cluster.scrape();
    assert.equal(samples.get('series_total{number="7",worker="1"}'), 1);
    assert.ok(samples.get('done_total') >= 10);
    cluster.tellWorker(2, ({ process, state }) => {
      state.record(100);
      process.exit();
    });
    await cluster.gone(2);
    assert.ok((await cluster.scrape()).get('done_total') >= 110);
    await cluster.end();
  });

  it('again and again: at last the work is done in place, and the totals go on', async t => {
    const cluster = await startWithDead(t);
    let threads = 1;
    for (let i = 0; i < 20; i++) {
      await cluster.run(terminate);
      await cluster.inWorkers([1, 2], record);
      assert.equal((await cluster.scrape()).get('done_total'), 15 + 2 * (i + 1));
      const now = await cluster.run($ => $.threads.length);
      if (now === threads) break;
      threads = now;
    }
    assert.ok(threads > 2 && threads < 20, `${threads} threads`);
    cluster.tellWorker(2, ({ process, state }) => {
      state.record(100);
      process.exit();
    });
    await cluster.gone(2);
    const before = (await cluster.scrape()).get('done_total');
    assert.ok(before > 115);
    assert.equal((await cluster.scrape()).get('done_total'), before);
    await cluster.end();
  });
});

describe('where no thread can be had', { concurrency: 3 }, () => {
  it('because its file is missing, the work is done in place', async t => {
    const library = copyPackage(t, { without: ['lib/cluster/aggregator/aggregator-thread.js'] });
    const cluster = await startWithDead(t, { library });
    await cluster.inWorkers([1, 2], record);
    assert.equal((await cluster.scrape()).get('done_total'), 17);
    assert.equal((await cluster.scrape()).get('open'), 4);
    assert.deepEqual((await cluster.internals()).refused, {});
    await cluster.end();
  });

  it('because none starts in time, the call is rejected, and the application goes on', async t => {
    const preload = path.join(makePlace(t), 'preload.js');
    fs.writeFileSync(preload, 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);');
    const cluster = await start(t, { threadPreload: preload });
    await assert.rejects(cluster.scrape({ timeout: 300 }), { message: 'Operation timed out.' });
    assert.equal(await cluster.run(() => 1 + 1), 2);
  });

  it('without its dependencies, because a loader provides them (Yarn PnP), it inherits the loader', async t => {
    const library = copyPackage(t, { dependencies: false });
    const preload = path.join(makePlace(t), 'loader.js');
    fs.writeFileSync(
      preload,
      `const Module = require('node:module');
      const resolve = Module._resolveFilename;
      const own = ${JSON.stringify(library)};
      Module._resolveFilename = function (request, parent, ...rest) {
        const isDependency = parent?.filename?.startsWith(own) && /^[a-z]/.test(request);
        if (!isDependency || Module.isBuiltin(request)) return resolve.call(this, request, parent, ...rest);
        return require.resolve(request, { paths: [${JSON.stringify(LIBRARY)}] });
      };`,
    );
    const env = { NODE_OPTIONS: `--require ${preload}` };
    const cluster = await startWithDead(t, { library, env });
    assert.equal((await cluster.scrape()).get('done_total'), 15);
    const rendered = await cluster.run(({ threads }) =>
      threads.map(({ posted }) => posted.filter(({ op }) => op === 'render').length > 0),
    );
    assert.deepEqual(rendered, [false, true], 'the first, clean one did not start, the second works');
    await cluster.end();
  });
});

describe('the thread', { concurrency: 3 }, () => {
  it('aggregates, and the primary loads no code that does', async t => {
    const cluster = await startWithDead(t);
    const { files, thread } = await cluster.run(({ require, threads }) => ({
      files: Object.keys(require('node:module')._cache).map(file => file.replaceAll('\\\\', '/')),
      thread: threads.map(({ posted }) => posted.some(({ op }) => op === 'render')),
    }));
    assert.deepEqual(thread, [true], 'one thread, and it has written pages');
    assert.deepEqual(
      files.filter(file => /\/lib\/cluster\/(aggregator|store)\//.test(file)),
      [],
    );
    await cluster.end();
  });

  it('runs no preloads of the application', async t => {
    const place = makePlace(t);
    const preload = path.join(place, 'preload.js');
    fs.writeFileSync(
      preload,
      `const { isMainThread } = require('node:worker_threads');
      require('node:fs').appendFileSync(${JSON.stringify(path.join(place, 'ran'))}, isMainThread + '\\n');`,
    );
    const env = { NODE_OPTIONS: `--require ${preload}` };
    const cluster = await start(t, { env });
    await cluster.inWorker(1, record);
    assert.equal((await cluster.scrape()).get('done_total'), 1);
    assert.deepEqual(await cluster.run($ => $.threads.length), 1);
    const ran = fs.readFileSync(path.join(place, 'ran'), 'utf8').trim().split('\n');
    assert.deepEqual(ran, ['true', 'true'], 'in the primary and in the worker');
    await cluster.end();
  });

  it('and the work in place give the same text, in both formats', async t => {
    const various = {
      start: ({ client, cluster }) => {
        const { id } = cluster.worker;
        const help = 'h';
        client.register.setContentType(client.openMetricsContentType);
        const counter = new client.Counter({ name: 'c', help, labelNames: ['a', 'b'] });
        for (let i = 0; i < 3000; i++) counter.inc({ a: i % 1000, b: `"${id}"\n` }, i / 7);
        new client.Gauge({ name: 'g', help, aggregator: 'average' }).set(id / 3);
        const options = { name: 'h', help, labelNames: ['a'], buckets: [0.1, 1, 10], enableExemplars: true };
        const histogram = new client.Histogram(options);
        for (let value = 0; value < 50; value++) {
          histogram.observe({
            labels: { a: 'ü' },
            value: value * id,
            exemplarLabels: { trace: `${id}${value}` },
          });
        }
        const summary = new client.Summary({ name: 's', help, percentiles: [0.5, 0.99] });
        for (let value = 0; value < 500; value++) summary.observe(value * id);
        new client.Gauge({ name: 'special', help, labelNames: ['v'], aggregator: 'max' }).set(
          { v: 'inf' },
          Infinity,
        );
      },
    };
    const texts = [];
    for (const inPlace of [false, true]) {
      const cluster = await startCluster(t, { workers: 2, worker: various, options: { inPlace } });
      texts.push(
        await cluster.run(async ({ aggregator, client }) => {
          const plain = await aggregator.clusterMetrics();
          aggregator.setContentType(client.openMetricsContentType);
          return [plain, await aggregator.clusterMetrics()];
        }),
      );
      assert.equal(await cluster.run($ => $.threads.length), inPlace ? 0 : 1);
      await cluster.end();
    }
    // Exemplars carry the second they were observed in.
    const timeless = text => text.replace(/(# \{.*\} \S+) \S+$/gm, '$1');
    const [[plain, openMetrics], [plainInPlace, openMetricsInPlace]] = texts;
    assert.ok(plain.split('\n').length > 2000);
    assert.equal(plainInPlace, plain);
    assert.match(openMetrics, / # \{trace="/);
    assert.match(openMetrics, /# EOF\n$/);
    assert.equal(timeless(openMetricsInPlace), timeless(openMetrics));
  });

  it('keeps no process alive that has nothing else to do', async t => {
    const cluster = await startWithDead(t);
    cluster.tellWorker(1, ({ process }) => process.exit());
    cluster.tellWorker(2, ({ process }) => process.exit());
    await Promise.all([cluster.gone(1), cluster.gone(2)]);
    await cluster.run(({ process }) => process.disconnect()).catch(() => {});
    assert.deepEqual(await cluster.hasEnded(), { code: 0, signal: null });
    assert.deepEqual(fs.readdirSync(cluster.place), []);
  });

  for (const inPlace of [false, true]) {
    it(`keeps a process alive until a scrape is answered${inPlace ? ', in place' : ''}`, async t => {
      const cluster = await startWithDead(t, { options: { inPlace } });
      cluster.tellWorker(1, ({ process }) => process.exit());
      cluster.tellWorker(2, ({ process }) => process.exit());
      await Promise.all([cluster.gone(1), cluster.gone(2)]);
      cluster
        .run(({ aggregator, process }) => {
          aggregator.clusterMetrics().then(text => process.stdout.write(text));
          process.disconnect();
        })
        .catch(() => {});
      assert.deepEqual(await cluster.hasEnded(), { code: 0, signal: null });
      await until(() => cluster.output.includes('done_total 15\n'), 'the text has come');
      assert.deepEqual(fs.readdirSync(cluster.place), []);
    });
  }
});

describe('close', { concurrency: 3 }, () => {
  const resources = ({ process }) => {
    // A thread that starts makes node open these two, for good.
    void [process.stdout, process.stderr];
    return process.getActiveResourcesInfo().sort();
  };
  const listeners = ({ cluster, process }) => [
    process.listenerCount('exit'),
    ...['fork', 'online', 'message', 'disconnect', 'exit'].map(name => cluster.listenerCount(name)),
  ];

  for (const inPlace of [false, true]) {
    it(`leaves no handle, listener, thread or file${inPlace ? ', in place' : ''}`, async t => {
      const cluster = await start(t, { workers: 2, construct: false });
      const before = await cluster.run(listeners);
      const resourcesBefore = await cluster.run(resources);
      const text = await cluster.run(async ({ construct, state }, inPlace) => {
        state.registry = construct({ inPlace });
        const text = await state.registry.clusterMetrics();
        await state.registry.close();
        return text;
      }, inPlace);
      assert.match(text, /^done_total 0$/m);
      assert.deepEqual(fs.readdirSync(cluster.place), []);
      assert.deepEqual(await cluster.run(listeners), before);
      // In place, the sweep of old directories may still read.
      const isQuiet = async () => String(await cluster.run(resources)) === String(resourcesBefore);
      await until(isQuiet, 'all handles are closed');
      assert.equal(await cluster.run(({ state }) => state.registry.clusterMetrics()), '');
      await cluster.run(({ state }) => state.registry.close());
      await cluster.end();
    });
  }

  it('rejects or answers a scrape that is under way, and ends', async t => {
    const cluster = await startWithDead(t);
    await cluster.signal(2, 'SIGSTOP');
    const outcome = await cluster.run(async ({ aggregator }) => {
      const scrape = aggregator.clusterMetricsBytes({ timeout: 600_000 });
      const ended = scrape.then(
        () => 'answered',
        () => 'rejected',
      );
      await aggregator.close();
      return ended;
    });
    assert.match(outcome, /answered|rejected/);
    await cluster.signal(2, 'SIGCONT');
    assert.deepEqual(cluster.spools(), []);
    await cluster.end();
  });

  it('may come before the thread has started, and a new registry begins anew', async t => {
    const cluster = await start(t, { workers: 2, construct: false });
    await cluster.inWorkers([1, 2], record);
    const text = await cluster.run(async ({ construct }) => {
      await construct().close();
      const next = construct();
      const text = await next.clusterMetrics();
      await next.close();
      return text;
    });
    assert.match(text, /^done_total 2$/m);
    assert.deepEqual(fs.readdirSync(cluster.place), []);
    await cluster.end();
  });

  it('leaves the cluster to other registries', async t => {
    const cluster = await start(t);
    await cluster.inWorker(1, record);
    await cluster.run(({ construct, state }) => (state.second = construct()) && undefined);
    await cluster.run(({ state }) => state.second.close());
    assert.equal((await cluster.scrape()).get('done_total'), 1);
    await cluster.end();
  });
});

/** How nice each thread of a process is (proc_pid_stat(5), field 19), the main one first. */
function nicenessOfThreads(pid) {
  return fs.readdirSync(`/proc/${pid}/task`).map(id => {
    const [, fields] = fs.readFileSync(`/proc/${pid}/task/${id}/stat`, 'latin1').split(') ');
    return Number(fields.split(' ')[16]);
  });
}

describe('the priority of the thread', { skip: process.platform !== 'linux' && 'Linux only' }, () => {
  it('is below that of the primary, which keeps its own', async t => {
    const cluster = await start(t);
    await cluster.scrape();
    const pid = await cluster.run($ => $.process.pid);
    const own = os.getPriority();
    assert.ok(own < 10, 'this test was started with a low priority itself');
    assert.deepEqual(
      nicenessOfThreads(pid).filter(niceness => niceness !== own),
      [10],
    );
    assert.equal(os.getPriority(pid), own);
  });
});
