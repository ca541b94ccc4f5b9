'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const {
  startCluster,
  makePlace,
  removeWhileUsed,
  until,
  PREFIX,
  preloadFile,
  READ_ONLY,
} = require('../fixtures/cluster-harness.js');
const { sharedCluster } = require('../fixtures/shared-cluster.js');

const MINUTE = 60_000;
const onlyRoot = { skip: process.geteuid?.() === 0 ? false : 'needs root, to become somebody else' };
const onlyShm = { skip: fs.existsSync('/dev/shm') ? false : 'needs /dev/shm' };

const counting = {
  start: ({ client, state }) => {
    state.counter = new client.Counter({ name: 'done_total', help: 'h' });
  },
};
const record = ({ state }, times = 1) => state.counter.inc(times);
const exit = ({ process }) => process.exit();
/** From now on, the last snapshot of a worker arrives in a file or not at all. */
const sendNoLastSource = ({ process }) => {
  const { send } = process;
  process.send = (message, ...rest) =>
    message.type === 'prom-client-cluster:last' || send.call(process, message, ...rest);
};
const counted = samples => samples.get('done_total');

function start(t, setup) {
  return startCluster(t, { workers: 1, worker: counting, ...setup });
}

/** Starts a cluster of one worker that has counted one; another one has counted ten and was killed. */
async function startWithDead(t, setup) {
  const cluster = await start(t, setup);
  await cluster.inWorker(1, record);
  assert.equal(await addDead(cluster, 10), 11);
  return cluster;
}

/**
 * Has a new worker count, be scraped, and be killed.
 *
 * @returns {Promise<number>} the total
 */
async function addDead(cluster, times) {
  const id = await cluster.fork();
  await cluster.inWorker(id, record, times);
  const total = counted(await cluster.scrape());
  await cluster.killWorker(id);
  await cluster.allRetired();
  return total;
}

const pidsOf = cluster =>
  cluster.run($ => Object.values($.cluster.workers).map(({ process }) => process.pid));

/** Whether a process runs. A zombie does not. */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return !/^State:\sZ/m.test(
      fs.existsSync('/proc/self') ? fs.readFileSync(`/proc/${pid}/status`, 'utf8') : '',
    );
  } catch {
    return false;
  }
}

/** Sets the times of a directory and of everything in it to some minutes ago. */
function age(directory, minutes) {
  const time = new Date(Date.now() - minutes * MINUTE);
  for (const name of fs.readdirSync(directory)) {
    const file = path.join(directory, name);
    if (fs.lstatSync(file).isDirectory()) age(file, minutes);
    else fs.lutimesSync(file, time, time);
  }
  fs.lutimesSync(directory, time, time);
}

describe('a process without workers', { concurrency: 3 }, () => {
  it('a primary without workers has no thread, no directory, no timer, and no metrics', async t => {
    const cluster = await start(t, { workers: 0 });
    const texts = await cluster.run(async ({ aggregator, construct }) => [
      await aggregator.clusterMetrics(),
      await construct().clusterMetrics(),
      (await aggregator.clusterMetricsBytes({ gzip: true })).toString(),
    ]);
    assert.deepEqual(texts, ['', '', '']);
    assert.equal(await cluster.run($ => $.threads.length), 0);
    assert.deepEqual(fs.readdirSync(cluster.place), []);
    const timers = await cluster.run(({ process }) =>
      process.getActiveResourcesInfo().filter(name => /Timeout|Message/.test(name)),
    );
    assert.deepEqual(timers, []);
    await cluster.end();
  });
});

describe('the end of the primary', { concurrency: 3 }, () => {
  // Each cluster of these tests whose end() is called ends because nothing keeps it, with a thread.
  for (const [how, end, expected, inPlace] of [
    [
      'by an uncaught exception',
      () => {
        setImmediate(() => {
          throw new Error('this primary is meant to die');
        });
      },
      1,
      false,
    ],
    ['by process.exit(), in place', ({ process }) => process.exit(3), 3, true],
  ]) {
    it(`the primary's directory is removed when it ends ${how}`, async t => {
      const cluster = await start(t, { options: { inPlace } });
      await cluster.inWorker(1, record);
      assert.equal(counted(await cluster.scrape()), 1);
      const pids = await pidsOf(cluster);
      cluster.run(end).catch(() => {});
      assert.deepEqual(await cluster.hasEnded(), { code: expected, signal: null });
      // Workers write their last columns only if there is a directory: none of them creates one.
      await until(() => !pids.some(isAlive), 'its workers are dead, too');
      assert.deepEqual(fs.readdirSync(cluster.place), []);
    });
  }

  it('the thread creates no other directory when it misses the one that the exit handler has removed', async t => {
    const cluster = await start(t);
    await cluster.inWorker(1, record);
    assert.equal(counted(await cluster.scrape()), 1);
    cluster
      .run(({ process, threads }) => {
        // After the library's own listener. The thread could go on while this one waits.
        process.on('exit', () => {
          const file = `w1-r9-${'0'.repeat(24)}.columns`;
          threads[0].postMessage({ op: 'answer', args: [{ workerId: 1, file }] });
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
        });
        process.exit();
      })
      .catch(() => {});
    await cluster.hasEnded();
    assert.deepEqual(fs.readdirSync(cluster.place), []);
  });
});

describe('a primary that was killed', () => {
  it('a later primary removes the directory of a killed one, and no live one', async t => {
    const killed = await start(t);
    await killed.inWorker(1, record);
    assert.equal(counted(await killed.scrape()), 1);
    const { spool, place } = killed;
    const pids = await pidsOf(killed);
    await killed.kill();
    await until(() => !pids.some(isAlive), 'its workers are dead, too');

    age(spool, 2);
    const live = await startWithDead(t, { place });
    const { directory } = await live.internals();
    const foreign = path.join(place, 'somebody-elses');
    fs.mkdirSync(foreign);
    age(foreign, 1000);
    const last = await start(t, { place });
    await last.inWorker(1, record);
    assert.equal(counted(await last.scrape()), 1);
    // A directory has another name while its files are removed.
    const isSwept = () => !fs.existsSync(spool) && last.spools().length === 2;
    await until(isSwept, 'only the directories of live primaries are there');
    await last.end([path.basename(directory), 'somebody-elses']);
    assert.equal(counted(await live.scrape()), 11);
    await live.end(['somebody-elses']);
  });
});

describe('no directory where one was wanted', { concurrency: 3 }, () => {
  const missing = place => path.join(place, 'missing');

  it('the primary takes shared memory if every other directory is missing', onlyShm, async t => {
    const place = makePlace(t);
    const options = { directory: missing(place) };
    const cluster = await start(t, { place, options, env: { TMPDIR: missing(place) } });
    await cluster.inWorker(1, record);
    assert.equal(counted(await cluster.scrape()), 1);
    const { directory } = await cluster.internals();
    assert.equal(path.dirname(directory), '/dev/shm');
    assert.ok(path.basename(directory).startsWith(PREFIX));
    assert.ok(fs.existsSync(directory));
    await cluster.end();
    assert.ok(!fs.existsSync(directory));
  });

  /** Workers 1 and 2, which have counted 4, end; so do others. */
  async function assertEnds(cluster) {
    const fork = async () => {
      const id = await cluster.fork();
      await cluster.inWorker(id, record);
      return id;
    };
    await cluster.inWorker(2, record);
    // Wherever the thread is lost, a small snapshot is not. A large one lacks label sets that the primary
    // has.
    await cluster.run(({ cluster, threads, state }) => {
      state.lost = new Promise(resolve => {
        cluster.on('message', ({ id }, { type }) => {
          if (id === 2 && type === 'prom-client-cluster:last') resolve(threads.at(-1)?.terminate());
        });
      });
    });
    await cluster.endWorker(2, exit);
    await cluster.run(({ state }) => void state.lost);
    assert.equal(counted(await cluster.scrape()), 5);
    const large = await fork();
    await cluster.inWorker(large, ({ client }) => {
      const many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['number'] });
      for (let number = 0; number < 12_000; number++) many.inc({ number });
    });
    // Its second request says what the primary has.
    for (let i = 0; i < 2; i++) assert.equal(counted(await cluster.scrape()), 6);
    await cluster.inWorker(large, record);
    await cluster.endWorker(large, exit);
    assert.equal(counted(await cluster.scrape()), 7);
    const saved = await fork();
    await cluster.inWorker(saved, ({ client }) => new client.AggregatorRegistry().shutdown(60_000));
    await cluster.killWorker(saved);
    assert.equal(counted(await cluster.scrape()), 8);
    assert.equal((await cluster.internals()).refused['exit-missing'], undefined);
    // Whatever this one counts after its last answer cannot be sent, because it has closed the channel.
    const closed = await fork();
    assert.equal(counted(await cluster.scrape()), 9);
    await cluster.inWorker(closed, record);
    await cluster.endWorker(closed, ({ cluster }) => cluster.worker.disconnect());
    assert.equal(counted(await cluster.scrape()), 9);
    await cluster.allRetired();
    const { refused, retired } = await cluster.internals();
    assert.deepEqual([refused['exit-missing'], retired], [1, 4]);
    await cluster.run(async ({ threads }) => void (await threads.at(-1)?.terminate()));
    assert.equal(counted(await cluster.scrape()), 9, 'the totals are not lost with the thread');
  }

  for (const inPlace of process.env.EVERY_VARIANT ? [false, true] : [false]) {
    it(`snapshots travel over IPC if no directory can be written${inPlace ? ', in place' : ''}`, async t => {
      const threadPreload = preloadFile(t, READ_ONLY);
      const env = inPlace ? { NODE_OPTIONS: `--require ${threadPreload}` } : {};
      const cluster = await start(t, { workers: 2, threadPreload, env, options: { inPlace } });
      await cluster.inWorkers([1, 2], record);
      assert.equal(counted(await cluster.scrape()), 2);
      await cluster.inWorkers([1, 2], record);
      assert.equal(counted(await cluster.scrape()), 4);
      const { directory, refused } = await cluster.internals();
      assert.equal(directory, '');
      assert.deepEqual(refused, { 'over-ipc': 4 });
      await assertEnds(cluster);
      await cluster.end();
    });
  }
});

it(
  'a primary that becomes another user gets the numbers of workers that do not, and of those that do',
  onlyRoot,
  async t => {
    const place = makePlace(t);
    fs.chmodSync(place, 0o777);
    const cluster = await start(t, { workers: 2, place });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    const { spool } = cluster;
    await cluster.run(({ process }) => process.setuid(65534));
    await cluster.inWorker(2, ({ process }) => process.setuid(65534));
    const scrape = async total => {
      await cluster.inWorkers([1, 2], record);
      assert.equal(counted(await cluster.scrape()), total);
      return cluster.internals();
    };
    const { directory, refused: before } = await scrape(4);
    assert.notEqual(directory, spool);
    await scrape(6);
    const { refused, failing } = await scrape(8);
    assert.equal(failing, 0);
    // Files of worker 1 belong to root, in the new directory, too. It may have tried once more, after five
    // seconds.
    assert.ok(refused['over-ipc'] >= before['over-ipc'] + 2, JSON.stringify({ before, refused }));
    const shown = fs.readdirSync(directory).filter(name => /^w1-r/.test(name));
    assert.deepEqual(shown, []);
    await cluster.inWorkers([1, 2], record);
    for (const id of [1, 2]) {
      await cluster.endWorker(id, exit);
    }
    assert.equal(counted(await cluster.scrape()), 10);
    assert.equal((await cluster.internals()).refused['exit-missing'], undefined);
    await cluster.end([path.basename(spool)]);
  },
);

describe('the last snapshot of a worker', () => {
  const cluster = sharedCluster({ workers: 1, worker: counting });

  const withoutSpace = ({ require }) => {
    require('node:fs').writevSync = () => {
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    };
  };

  /**
   * Has a new worker be scraped, count, prepare something, and exit. Its last snapshot does not arrive over
   * IPC unless `isSent` is set. Returns how many of its counts arrive, and how many refused answers that
   * adds.
   */
  async function endAfter(prepare, { isSent = false } = {}) {
    const id = await cluster().fork();
    await cluster().inWorker(id, record);
    const total = counted(await cluster().scrape());
    await cluster().inWorker(id, record);
    const { refused: before } = await cluster().internals();
    if (!isSent) await cluster().inWorker(id, sendNoLastSource);
    await cluster().inWorker(id, prepare);
    await cluster().endWorker(id, exit);
    const counts = counted(await cluster().scrape()) - total;
    const { refused } = await cluster().internals();
    return { counts, missing: (refused['exit-missing'] ?? 0) - (before['exit-missing'] ?? 0) };
  }

  it('the last snapshot of a worker replaces its other files if the disk is full', async () => {
    const result = await endAfter(({ require }) => {
      const fs = require('node:fs');
      const { writevSync, rmSync } = fs;
      let isFull = true;
      fs.writevSync = (...args) => {
        if (isFull) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
        return writevSync(...args);
      };
      fs.rmSync = (file, options) => {
        rmSync(file, options);
        if (/-r[1-9]\d*-[0-9a-f]+\.columns$/.test(file)) isFull = false;
      };
    });
    assert.deepEqual(result, { counts: 1, missing: 0 });
  });

  it('the last snapshot of a worker is sent over IPC if the disk has no space at all', async () => {
    const result = await endAfter(withoutSpace, { isSent: true });
    assert.deepEqual(result, { counts: 1, missing: 0 });
  });

  it('the last snapshot of a worker is counted as missing if it cannot be sent either', async () => {
    const result = await endAfter(withoutSpace);
    assert.deepEqual(result, { counts: 0, missing: 1 });
  });
});

describe('a directory that vanishes under a live primary', () => {
  const cluster = sharedCluster({ workers: 2, worker: counting });
  const scrape = async () => counted(await cluster().scrape());

  /** Has a worker die, so that there are retired totals; returns the total. */
  async function prepare() {
    await cluster().inWorkers([1, 2], record);
    return addDead(cluster(), 10);
  }

  /** Waits until the primary has announced a new directory. */
  function replaced(cluster, before) {
    const isAnother = directory => directory !== '' && directory !== before;
    return until(async () => isAnother((await cluster.internals()).directory), 'there is another directory');
  }

  it('a scrape is right although the directory vanishes between the writing and the reading of files', async t => {
    const total = await prepare();
    await cluster().inWorkers([1, 2], record);
    const before = cluster().spool;
    await cluster().run(
      ({ cluster, require }, spool, elsewhere) => {
        // When the first file is announced, and before it is read.
        cluster.prependOnceListener('message', () => require('node:fs').renameSync(spool, elsewhere));
      },
      before,
      path.join(makePlace(t), 'moved'),
    );
    const text = await cluster().run(({ aggregator }) => aggregator.clusterMetrics());
    assert.equal(Number(/^done_total (.*)$/m.exec(text)[1]), total + 2);
    await replaced(cluster(), before);
  });

  it('a worker that dies before its directory is replaced keeps what was scraped last', async () => {
    const id = await cluster().fork();
    await cluster().inWorker(id, record);
    const total = await prepare();
    const before = cluster().spool;
    removeWhileUsed(before);
    await cluster().endWorker(id, exit);
    assert.equal(await scrape(), total);
    assert.equal(await scrape(), total);
    await replaced(cluster(), before);
    await cluster().allRetired();
  });
});
