'use strict';

// A thread that ends, at any moment and again and again, or that cannot be started.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const {
  startCluster,
  copyPackage,
  makePlace,
  until,
  LIBRARY,
  preloadFile,
} = require('../fixtures/cluster-harness.js');

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

/**
 * One worker lives, and has counted 5. Worker 2 is dead, and part of the retired totals: it has counted 5,
 * too.
 */
async function startWithDead(t, setup) {
  const cluster = await start(t, { workers: 2, ...setup });
  await cluster.inWorkers([1, 2], record, 5);
  assert.equal((await cluster.scrape()).get('done_total'), 10);
  await cluster.killWorker(2);
  await cluster.allRetired();
  return cluster;
}

const terminate = ({ threads }) =>
  threads
    .at(-1)
    .terminate()
    .then(() => threads.length);

/** When a thread ends: the operation of the message that is being sent to it, null for none. */
const MOMENTS = {
  'a scrape begins': null,
  'a worker has answered': 'answer',
  'a page is requested': 'render',
  'a page with results of an own aggregator is requested': 'finish',
};

/** A file that a thread loads first. It makes a merge throw once there is another file. */
function sabotage(t) {
  const place = makePlace(t);
  const [file, trigger] = [path.join(place, 'preload.js'), path.join(place, 'trigger')];
  const store = path.join(LIBRARY, 'lib/store/cluster-store.js');
  fs.writeFileSync(
    file,
    `const fs = require('node:fs');
    const { ClusterStore } = require(${JSON.stringify(store)});
    const trigger = ${JSON.stringify(trigger)};
    const { merge } = ClusterStore.prototype;
    ClusterStore.prototype.merge = function (...given) {
      if (!fs.existsSync(trigger)) return merge.apply(this, given);
      fs.rmSync(trigger);
      throw new TypeError('this thread is meant to fail');
    };`,
  );
  return { threadPreload: file, failMerge: () => fs.writeFileSync(trigger, '') };
}

describe('a thread that ends', () => {
  it('a cluster whose threads end loses no count', async t => {
    const { threadPreload, failMerge } = sabotage(t);
    const cluster = await startWithDead(t, { threadPreload });
    let expected = 10;
    const recordOne = async () => {
      await cluster.inWorker(1, record);
      expected++;
    };
    const total = async () => (await cluster.scrape()).get('done_total');
    /** A worker that is made to record 100 and to end by itself. */
    const startWorker = async () => {
      const id = await cluster.fork();
      const end = () =>
        cluster.tellWorker(id, ({ process, state }) => {
          state.record(100);
          process.exit();
        });
      return { id, end };
    };
    /** After three losses within 40 seconds of one another no other thread would be started. */
    const letMinutePass = () => cluster.run(({ clock }) => clock.advance(61_000));

    for (const [moment, operation] of Object.entries(MOMENTS)) {
      await t.test(`a thread that ends when ${moment} costs that scrape one retry`, async () => {
        await letMinutePass();
        await recordOne();
        const { text, renders, more } = await cluster.run(async ({ threads, aggregator }, operation) => {
          const before = threads.length;
          const thread = threads.at(-1);
          const posted = thread.posted.length;
          thread.onPost = message => {
            if (message.op !== operation) return;
            thread.onPost = undefined;
            thread.terminate();
          };
          const scrape = aggregator.clusterMetrics();
          if (operation === null) thread.terminate();
          const text = await scrape;
          const added = threads.slice(before);
          const messages = [...thread.posted.slice(posted), ...added.flatMap($ => $.posted)];
          const renders = messages.filter(({ op, id }) => op === 'render' && id).length;
          return { text, renders, more: added.length };
        }, operation);
        assert.match(text, new RegExp(`^done_total ${expected}$`, 'm'));
        assert.match(text, /^open 4$/m);
        assert.match(text, /^series_total\{worker="2",number="7"\} 1$/m);
        assert.equal(more, 1, 'one other thread was started');
        assert.ok(renders <= 2, `${renders} requests for a page`);
        assert.equal(await total(), expected);
        await until(() => cluster.spooledFiles().length === 0, 'unread files of the dead thread are removed');
      });
    }

    await t.test('a thread that throws is replaced, and its error is not printed', async () => {
      await letMinutePass();
      await recordOne();
      const threads = await cluster.run($ => $.threads.length);
      failMerge();
      assert.equal(await total(), expected);
      assert.equal(await cluster.run($ => $.threads.length), threads + 1);
      assert.doesNotMatch(cluster.output, /meant to fail/);
    });

    await t.test(
      'a thread that ends when it is to retire a worker: its last numbers count once',
      async () => {
        await letMinutePass();
        const { id, end } = await startWorker();
        await cluster.run(({ threads }) => {
          const thread = threads.at(-1);
          thread.onPost = ({ op }) => op === 'retire' && thread.terminate();
        });
        end();
        await cluster.gone(id);
        expected += 100;
        assert.equal(await total(), expected);
        await until(() => cluster.spooledFiles().length === 0, 'its files are removed');
        await cluster.run(terminate);
        assert.equal(await total(), expected);
      },
    );

    await cluster.end();
  });
});

describe('a cluster without a thread', { concurrency: 2 }, () => {
  it('a cluster without the file of the thread aggregates in place', async t => {
    const library = copyPackage(t, { without: ['lib/aggregator/aggregator-thread.js'] });
    const cluster = await startWithDead(t, { library });
    await cluster.inWorker(1, record);
    const samples = await cluster.scrape();
    assert.equal(samples.get('done_total'), 11);
    assert.equal(samples.get('open'), 4);
    const { refused, aggregatorReason } = await cluster.internals();
    assert.deepEqual({ refused, aggregatorReason }, { refused: {}, aggregatorReason: 'missing' });
    await cluster.end();
  });

  it('a thread of another version, as an old bundle has it, is not used', async t => {
    const other = copyPackage(t);
    const version = path.join(other, 'lib/options/package-version.js');
    assert.equal(require(version).PACKAGE_VERSION, require('../../package.json').version);
    const options = { thread: path.join(other, 'lib/aggregator/aggregator-thread.js') };
    const placeOf = async () => {
      const cluster = await start(t, { options });
      await cluster.inWorker(1, record);
      assert.equal((await cluster.scrape()).get('done_total'), 1);
      const { aggregator, aggregatorReason } = await cluster.internals();
      await cluster.end();
      return [aggregator, aggregatorReason];
    };
    // What test/long/every-variant.test.js shows: the same files are used before their version changes.
    if (process.env.EVERY_VARIANT) assert.deepEqual(await placeOf(), ['thread', '']);
    fs.writeFileSync(version, "exports.PACKAGE_VERSION = '15.1.9';");
    assert.deepEqual(await placeOf(), ['in place', 'start']);
  });

  it('a thread that never starts costs each call its timeout, and the application nothing', async t => {
    const preload = preloadFile(t, 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);');
    const cluster = await start(t, { threadPreload: preload });
    await assert.rejects(cluster.scrape({ timeout: 50 }), { message: 'Operation timed out.' });
    assert.equal(await cluster.run(() => 1 + 1), 2);
  });

  it('a thread that finds its dependencies only with a loader (Yarn PnP) inherits the loader', async t => {
    const library = copyPackage(t, { dependencies: false });
    const preload = preloadFile(
      t,
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
    const cluster = await start(t, { library, env });
    await cluster.inWorker(1, record);
    assert.equal((await cluster.scrape()).get('done_total'), 1);
    const rendered = await cluster.run(({ threads }) =>
      threads.map(({ posted }) => posted.filter(({ op }) => op === 'render').length > 0),
    );
    assert.deepEqual(rendered, [false, true], 'the first one, without the loader, did not start');
    await cluster.end();
  });
});
