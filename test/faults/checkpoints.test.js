'use strict';

// Option checkpointInterval: a worker writes its numbers to a file while it runs, and the primary adds them
// to the totals if the worker is killed.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const { removeWhileUsed, until } = require('../fixtures/cluster-harness.js');
const { sharedCluster } = require('../fixtures/shared-cluster.js');
const { BY_HAND } = require('../fixtures/cluster-checkpoints.js');

const counting = {
  start: ({ require, client, ...context }) => {
    const { state } = context;
    require('../fixtures/cluster-checkpoints').observeCheckpoints(context);
    const [help, labelNames] = ['h', ['route']];
    client.register.setContentType(client.openMetricsContentType);
    state.collected = 0;
    const collect = () => void state.collected++;
    state.metrics = {
      counter: new client.Counter({ name: 'done_total', help, collect }),
      labelled: new client.Counter({ name: 'requests_total', help, labelNames, enableExemplars: true }),
      gauge: new client.Gauge({ name: 'open', help }),
      histogram: new client.Histogram({ name: 'took', help, buckets: [1, 2] }),
      summary: new client.Summary({ name: 'size', help, percentiles: [0.5] }),
    };
    state.record = (times = 1) => state.metrics.counter.inc(times);
  },
};

const record = ({ state }, times) => state.record(times);
const tick = ({ state }) => state.tick();
const welcomed = ({ state }, times) => state.welcomed(times);
const counted = samples => samples.get('done_total') ?? 0;

/** @param {number} checkpointInterval milliseconds; BY_HAND if the test makes the time pass */
const sharedClusterWith = checkpointInterval =>
  sharedCluster({ worker: counting, options: { checkpointInterval } });

/** Starts a worker and waits until it knows where its file goes. */
async function startWorker(cluster) {
  const id = await cluster.fork();
  await cluster.inWorker(id, welcomed);
  return id;
}

/** @returns {string[]} names of columns of a worker, finished or not, that nobody has asked for */
function checkpointsOf(cluster, workerId) {
  return fs.readdirSync(cluster.spool).filter(name => name.startsWith(`w${workerId}-r0-`));
}

/** @returns {{name: string, changed: number}} the only one */
function checkpointOf(cluster, workerId) {
  const names = checkpointsOf(cluster, workerId);
  assert.equal(names.length, 1, String(names));
  const { mtimeMs } = fs.statSync(path.join(cluster.spool, names[0]));
  return { name: names[0], changed: mtimeMs };
}

/** What a worker may do between two checkpoints; test/cluster/worker/change-detector.test.js has all. */
const changes = {
  'one number': ({ state }) => state.metrics.counter.inc(),
  'a new label set': ({ state }) => state.metrics.labelled.inc({ route: 'new' }, 0),
  'another registry': ({ client }) => {
    const registers = [new client.Registry()];
    new client.Counter({ name: 'second_total', help: 'h', registers });
    client.AggregatorRegistry.setRegistries([client.register, ...registers]);
  },
};

describe('checkpoints', () => {
  const shared = sharedClusterWith(BY_HAND);

  it("checkpoints go on although the program emits 'exit' itself, or has a metric that cannot be read", async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, ({ client, process }) => {
      const odd = new client.Gauge({ name: 'odd', help: 'h' });
      odd.help = { toString: null };
      process.emit('exit', 0);
    });
    await cluster.inWorker(id, record, 7);
    await cluster.inWorker(id, tick);
    await cluster.killWorker(id);
    assert.equal(counted(await cluster.scrape()), before + 7);
  });

  it('a killed worker keeps what a scrape has shown after its last checkpoint', async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, record, 3);
    await cluster.inWorker(id, tick);
    await cluster.inWorker(id, record, 4);
    assert.equal(counted(await cluster.scrape()) - before, 7);
    await cluster.inWorker(id, record, 100);
    await cluster.killWorker(id);
    assert.equal(counted(await cluster.scrape()) - before, 7);
  });

  it('a killed worker keeps label sets, buckets and sums of a checkpoint that follows several scrapes', async () => {
    const cluster = shared();
    const id = await startWorker(cluster);
    const recordAll = ({ state }, route) => {
      state.metrics.labelled.inc({ route }, 2);
      state.metrics.histogram.observe(1.5);
      state.metrics.summary.observe(4);
    };
    for (const route of ['a', 'b', 'c']) {
      await cluster.inWorker(id, recordAll, route);
      await cluster.scrape();
    }
    await cluster.inWorker(id, recordAll, 'd');
    await cluster.inWorker(id, tick);
    await cluster.killWorker(id);
    const samples = await cluster.scrape();
    for (const route of ['a', 'b', 'c', 'd']) {
      assert.equal(samples.get(`requests_total{route="${route}"}`), 2, route);
    }
    assert.equal(samples.get('took_bucket{le="2"}'), 4);
    assert.equal(samples.get('took_sum'), 6);
    assert.equal(samples.get('size_count'), 4);
    assert.equal(samples.get('size_sum'), 16);
  });

  it('a worker killed while it writes a checkpoint keeps the one before, and leaves no file', async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, record, 3);
    await cluster.inWorker(id, tick);
    const { name: complete } = checkpointOf(cluster, id);
    await cluster.inWorker(id, record, 100);
    cluster.tellWorker(id, ({ require, state }) => {
      const { writevSync } = require('node:fs');
      require('node:fs').writevSync = (descriptor, chunks) => {
        writevSync(descriptor, chunks.slice(0, -1));
        // Until it is killed.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      };
      state.tick();
    });
    const isHalfWritten = name => fs.statSync(path.join(cluster.spool, name)).size > 0;
    await until(
      () => checkpointsOf(cluster, id).some(name => name !== complete && isHalfWritten(name)),
      'half of the file is written',
    );
    await cluster.killWorker(id);
    assert.equal(counted(await cluster.scrape()) - before, 3);
    await until(() => cluster.keptFiles(id).length === 0, 'all its files are removed');
  });

  it('a checkpoint is written if anything has changed, and only then', async () => {
    const cluster = shared();
    const id = await startWorker(cluster);
    assert.equal(await cluster.inWorker(id, tick), 1, 'the first');
    let last = checkpointOf(cluster, id);
    for (const [what, change] of Object.entries(changes)) {
      assert.equal(await cluster.inWorker(id, tick), 0, `nothing has changed before ${what}`);
      assert.deepEqual(checkpointOf(cluster, id), last, `nothing has changed before ${what}`);
      await cluster.inWorker(id, change);
      assert.equal(await cluster.inWorker(id, tick), 1, what);
      const now = checkpointOf(cluster, id);
      assert.notEqual(now.name, last.name, what);
      last = now;
    }
    // Neither a scrape nor an increment of 0 is a change.
    await cluster.scrape();
    await cluster.inWorker(id, ({ state }) => state.metrics.counter.inc(0));
    assert.equal(await cluster.inWorker(id, tick), 0);
    await cluster.killWorker(id);
  });

  it('a checkpoint runs no collect hooks', async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const id = await startWorker(cluster);
    const collected = ({ state }) => state.collected;
    for (let i = 0; i < 3; i++) {
      await cluster.inWorker(id, record);
      assert.equal(await cluster.inWorker(id, tick), 1);
    }
    assert.equal(await cluster.inWorker(id, collected), 0);
    assert.equal(counted(await cluster.scrape()) - before, 3);
    assert.equal(await cluster.inWorker(id, collected), 1);
    await cluster.killWorker(id);
  });

  it('checkpoints continue in a new directory if theirs was removed', async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, record, 3);
    await cluster.inWorker(id, tick);
    assert.equal(counted(await cluster.scrape()) - before, 3);
    removeWhileUsed(cluster.spool);
    await cluster.inWorker(id, record, 4);
    // The application does not notice that the checkpoint fails.
    assert.equal(await cluster.inWorker(id, tick), 1);
    assert.equal(counted(await cluster.scrape()) - before, 7);
    await cluster.inWorker(id, welcomed, 2);
    await cluster.inWorker(id, record, 5);
    assert.equal(await cluster.inWorker(id, tick), 1);
    await cluster.killWorker(id);
    assert.equal(counted(await cluster.scrape()) - before, 12);
  });
});

describe('checkpoints every 100 ms', () => {
  const shared = sharedClusterWith(100);

  it('a killed worker keeps what it had counted after it disconnected', async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const id = await startWorker(cluster);
    cluster.tellWorker(id, ({ cluster, process, state }) => {
      cluster.worker.once('disconnect', async () => {
        // Otherwise nothing keeps it alive until then.
        const busy = setInterval(() => {}, 1000);
        state.record(5);
        await state.checkpointed();
        process.kill(process.pid, 'SIGKILL');
        clearInterval(busy);
      });
      cluster.worker.disconnect();
    });
    const { signal } = await cluster.gone(id);
    assert.equal(signal, 'SIGKILL');
    assert.equal(counted(await cluster.scrape()) - before, 5);
  });

  it('the timer of checkpoints keeps no process alive', async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const id = await startWorker(cluster);
    await cluster.inWorker(id, record, 3);
    await cluster.inWorker(id, ({ cluster, state, afterwards }) => {
      // Nothing else is left to do then.
      afterwards(() => cluster.worker.disconnect());
      return state.checkpoints;
    });
    const { code, signal } = await cluster.gone(id);
    assert.deepEqual({ code, signal }, { code: 0, signal: null });
    assert.equal(counted(await cluster.scrape()) - before, 3);
  });
});

describe('without checkpoints', () => {
  const shared = sharedClusterWith(0);

  it('checkpointInterval 0: a worker writes nothing before its end, and a killed one keeps what was scraped', async () => {
    const cluster = shared();
    const id = await startWorker(cluster);
    for (let i = 1; i <= 3; i++) {
      await cluster.inWorker(id, record);
      assert.equal(counted(await cluster.scrape()), i);
      assert.deepEqual(checkpointsOf(cluster, id), []);
    }
    assert.equal(await cluster.inWorker(id, ({ state }) => state.checkpoints), 0);
    await cluster.inWorker(id, record, 10);
    await cluster.killWorker(id);
    assert.equal(counted(await cluster.scrape()), 3);
  });
});

describe('checkpointInterval in a worker', () => {
  const shared = sharedCluster({ worker: counting });
  const construct = ({ client, state }, checkpointInterval) => {
    state.aggregator = new client.AggregatorRegistry(undefined, { checkpointInterval });
  };

  it('checkpointInterval in a worker applies to that worker, although the primary has none', async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const [id, other] = [await startWorker(cluster), await startWorker(cluster)];
    await cluster.inWorker(id, construct, BY_HAND);
    // It keeps it when the primary sends another, and a later one changes nothing.
    await cluster.inWorker(id, construct, 100);
    await cluster.scrape();
    await cluster.inWorkers([id, other], record, 3);
    assert.equal(await cluster.inWorker(id, tick), 1);
    await cluster.inWorker(id, record, 100);
    await Promise.all([cluster.killWorker(id), cluster.killWorker(other)]);
    assert.equal(counted(await cluster.scrape()) - before, 3);
  });

  it('checkpointInterval in a worker applies if it is given before the primary has sent anything', async () => {
    const cluster = shared();
    const before = counted(await cluster.scrape());
    const id = await cluster.fork({
      start: context => {
        context.require('../fixtures/cluster-checkpoints').observeCheckpoints(context);
        const { client, state } = context;
        const counter = new client.Counter({ name: 'done_total', help: 'h' });
        state.record = (times = 1) => counter.inc(times);
        new client.AggregatorRegistry(undefined, { checkpointInterval: 3_600_007 });
      },
    });
    await cluster.inWorker(id, welcomed);
    await cluster.inWorker(id, record, 7);
    assert.equal(await cluster.inWorker(id, tick), 1);
    await cluster.killWorker(id);
    assert.equal(counted(await cluster.scrape()) - before, 7);
  });
});
