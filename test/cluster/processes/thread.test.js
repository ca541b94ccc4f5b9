'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');
const { execFile } = require('node:child_process');
const { promisify } = require('node:util');

const { startCluster, makePlace, until, LIBRARY } = require('../../fixtures/cluster-harness.js');

const counting = {
  start: ({ client, state }) => {
    state.counter = new client.Counter({ name: 'done_total', help: 'h' });
  },
};
const record = ({ state }, times = 1) => state.counter.inc(times);

function start(t, setup) {
  return startCluster(t, { workers: 1, worker: counting, ...setup });
}

/** How nice each thread of a process is (proc_pid_stat(5), field 19), the main one first. */
function nicenessOfThreads(pid) {
  return fs.readdirSync(`/proc/${pid}/task`).map(id => {
    const [, fields] = fs.readFileSync(`/proc/${pid}/task/${id}/stat`, 'latin1').split(') ');
    return Number(fields.split(' ')[16]);
  });
}

describe('the thread', { concurrency: 2 }, () => {
  it("a running thread may do no more than its process under Node's permission model", async t => {
    const place = makePlace(t);
    const program = path.join(place, 'program.js');
    fs.writeFileSync(
      program,
      `const cluster = require('node:cluster');
      const client = require(${JSON.stringify(LIBRARY)});
      if (cluster.isPrimary) {
        const registry = new client.AggregatorRegistry({ timeout: 60_000 });
        cluster.fork().once('online', async () => {
          const page = await registry.clusterMetrics();
          console.log(registry.clusterState().aggregator, /^done_total .*$/m.exec(page)[0]);
          process.exit();
        });
      } else {
        new client.Counter({ name: 'done_total', help: 'h' }).inc(7);
      }`,
    );
    const tmp = path.join(place, 'tmp');
    fs.mkdirSync(tmp);
    const isStable = process.allowedNodeEnvironmentFlags.has('--permission');
    const flags = [isStable ? '--permission' : '--experimental-permission', '--allow-fs-read=*'];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...flags, '--allow-child-process', '--allow-worker', program],
      { env: { ...process.env, TMPDIR: tmp } },
    );
    assert.equal(stdout, 'thread done_total 7\n');
    assert.deepEqual(fs.readdirSync(tmp), []);
  });

  it('a thread starts where a tracer has replaced the functions of node:fs, without their properties', async t => {
    const cluster = await start(t, {
      // As instrumentations of fs do: https://github.com/open-telemetry/opentelemetry-js-contrib/issues/1315
      before: ({ require }) => {
        const fs = require('node:fs');
        for (const [name, original] of Object.entries(fs)) {
          // Constructors, and what has no callback, stay.
          if (typeof original !== 'function' || !/^[a-z]/.test(name)) continue;
          fs[name] = function (...args) {
            return original.apply(this, args);
          };
        }
      },
    });
    await cluster.inWorker(1, record, 7);
    assert.equal((await cluster.scrape()).get('done_total'), 7);
    assert.equal((await cluster.internals()).aggregator, 'thread');
    await cluster.end();
  });

  it('a running thread leaves its process as it was', async t => {
    const place = makePlace(t);
    const preload = path.join(place, 'preload.js');
    fs.writeFileSync(
      preload,
      `const { isMainThread } = require('node:worker_threads');
      require('node:fs').appendFileSync(${JSON.stringify(path.join(place, 'ran'))}, isMainThread + '\\n');`,
    );
    const cluster = await start(t, { lowPriority: true, env: { NODE_OPTIONS: `--require ${preload}` } });
    await cluster.inWorker(1, record);
    assert.equal((await cluster.scrape()).get('done_total'), 1);

    await t.test('the thread aggregates: the primary loads no code of aggregation', async () => {
      const { files, thread } = await cluster.run(({ require, threads }) => ({
        files: Object.keys(require('node:module')._cache).map(file => file.replaceAll('\\\\', '/')),
        thread: threads.map(({ posted }) => posted.some(({ op }) => op === 'render')),
      }));
      assert.deepEqual(thread, [true], 'one thread, which has written pages');
      assert.deepEqual(
        files.filter(file => /\/lib\/cluster\/(aggregator|store)\//.test(file)),
        [],
      );
    });

    await t.test('the heap of the thread is limited', async () => {
      const limits = await cluster.run(({ require, threads }) => {
        const { heap_size_limit } = require('node:v8').getHeapStatistics();
        return [threads.at(-1).resourceLimits.maxOldGenerationSizeMb, Math.ceil(heap_size_limit / 2 ** 20)];
      });
      assert.equal(limits[0], limits[1]);
    });

    await t.test('the thread does not load preloads of the application', () => {
      const ran = fs.readFileSync(path.join(place, 'ran'), 'utf8').trim().split('\n');
      assert.deepEqual(ran, ['true', 'true'], 'in the primary and in the worker');
    });

    const skip = process.platform !== 'linux' && 'Linux only';
    await t.test(
      'the thread has a lower priority than the primary, which keeps its own',
      { skip },
      async () => {
        const pid = await cluster.run($ => $.process.pid);
        const own = os.getPriority();
        assert.ok(own < 10, 'this test was started with a low priority itself');
        const shown = nicenessOfThreads(pid).filter(niceness => niceness !== own);
        assert.deepEqual(shown, [10]);
        assert.equal(os.getPriority(pid), own);
      },
    );

    await t.test('the thread does not keep a primary alive that has nothing else to do', async () => {
      await cluster.endWorker(1, ({ process }) => process.exit());
      await cluster.run(({ process }) => process.disconnect()).catch(() => {});
      assert.deepEqual(await cluster.hasEnded(), { code: 0, signal: null });
      assert.deepEqual(fs.readdirSync(cluster.place), []);
    });
  });

  // test/long/every-variant.test.js tries it in place, too.
  for (const inPlace of process.env.EVERY_VARIANT ? [false, true] : [false]) {
    it(`a scrape keeps its process alive until it is answered${inPlace ? ', in place' : ''}`, async t => {
      const cluster = await start(t, { options: { inPlace } });
      await cluster.scrape();
      await cluster.inWorker(1, record, 5);
      await cluster.endWorker(1, ({ process }) => process.exit());
      cluster
        .run(({ aggregator, process }) => {
          aggregator.clusterMetrics().then(text => process.stdout.write(text));
          process.disconnect();
        })
        .catch(() => {});
      assert.deepEqual(await cluster.hasEnded(), { code: 0, signal: null });
      await until(() => cluster.output.includes('done_total 5\n'), 'the text has come');
      assert.deepEqual(fs.readdirSync(cluster.place), []);
    });
  }
});

describe('close()', () => {
  const resources = ({ process }) => {
    // A thread that starts makes node open these two, for good.
    void [process.stdout, process.stderr];
    return process.getActiveResourcesInfo().sort();
  };
  const listeners = ({ cluster, process }) => [
    process.listenerCount('exit'),
    ...['fork', 'online', 'message', 'disconnect', 'exit'].map(name => cluster.listenerCount(name)),
  ];

  it('close() ends aggregation, which a new registry begins anew', async t => {
    const cluster = await start(t, { workers: 2, construct: false });
    await cluster.inWorkers([1, 2], record);

    for (const inPlace of [false, true]) {
      const way = inPlace ? 'in place' : 'in a thread';
      await t.test(
        `close() of a registry that aggregated ${way} leaves no handle, listener or file`,
        async () => {
          const before = await cluster.run(listeners);
          const resourcesBefore = await cluster.run(resources);
          const text = await cluster.run(async ({ construct, state }, inPlace) => {
            state.registry = construct({ inPlace });
            const text = await state.registry.clusterMetrics();
            await state.registry.close();
            return text;
          }, inPlace);
          assert.match(text, /^done_total 2$/m);
          assert.deepEqual(fs.readdirSync(cluster.place), []);
          assert.deepEqual(await cluster.run(listeners), before);
          // In place, the sweep of old directories may still read.
          const isQuiet = async () => String(await cluster.run(resources)) === String(resourcesBefore);
          await until(isQuiet, 'all handles are closed');
          assert.equal(await cluster.run(({ state }) => state.registry.clusterMetrics()), '');
          await cluster.run(({ state }) => state.registry.close());
        },
      );
    }

    await t.test('close() may be called before the thread has started', async () => {
      const text = await cluster.run(async ({ construct }) => {
        await construct().close();
        const next = construct();
        const text = await next.clusterMetrics();
        await next.close();
        return text;
      });
      assert.match(text, /^done_total 2$/m);
      assert.deepEqual(fs.readdirSync(cluster.place), []);
    });

    await cluster.end();
  });
});

describe('removeMatching() of an AggregatorRegistry', { concurrency: 2 }, () => {
  const tenants = {
    construct: true,
    start: ({ client, state }) => {
      state.metric = new client.Counter({ name: 'done_total', help: 'h', labelNames: ['tenant', 'path'] });
      for (const tenant of ['a', 'b'])
        for (const path of ['x', 'y']) state.metric.inc({ tenant, path }, tenant === 'a' ? 1 : 2);
    },
  };
  const remove = async ({ aggregator }, labels, name) => {
    // Waits until dead workers are part of the totals.
    await aggregator.shutdown(60_000);
    return aggregator.removeMatching(labels, name);
  };

  // test/long/every-variant.test.js tries it in place, too.
  for (const inPlace of process.env.EVERY_VARIANT ? [false, true] : [false]) {
    it(`removeMatching() of an AggregatorRegistry drops totals of dead workers ${inPlace ? 'in place' : 'in the thread, and in the next one'}`, async t => {
      const cluster = await startCluster(t, { workers: 2, worker: tenants, options: { inPlace } });
      const value = async (tenant, path = 'x') =>
        (await cluster.scrape()).get(`done_total{path="${path}",tenant="${tenant}"}`);
      assert.equal(await cluster.run(remove, { tenant: 'a' }), 0, 'nobody is dead');
      await cluster.endWorker(1, ({ process }) => process.exit());
      assert.equal(await value('a'), 2);
      await assert.rejects(cluster.run(remove), /removeMatching\(\) expected an object of labels: undefined/);
      assert.equal(await cluster.run(remove, { tenant: 'a', path: 'y' }), 1);
      assert.equal(await cluster.run(remove, { tenant: 'a' }, 'other_total'), 0);
      assert.equal(await cluster.run(remove, { tenant: 'a' }, 'done_total'), 1);
      if (!inPlace) await cluster.run(({ threads }) => threads.at(-1).terminate());
      assert.deepEqual([await value('a'), await value('a', 'y'), await value('b')], [1, 1, 4]);
      // Living workers drop their own.
      await assert.rejects(cluster.inWorker(2, remove, { tenant: 'a' }), /in a primary only/);
      assert.equal(await cluster.inWorker(2, ({ state }) => state.metric.removeMatching({ tenant: 'a' })), 2);
      assert.deepEqual([await value('a'), await value('b')], [undefined, 4]);
      assert.equal(await cluster.run(remove, {}), 2);
      assert.equal(await value('b'), 2);
      await cluster.end();
    });
  }
});
