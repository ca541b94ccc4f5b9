'use strict';

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { describe, it } = require('node:test');

const { startCluster, makePlace, until, LIBRARY, PREFIX } = require('../../fixtures/cluster-harness.js');

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
const counted = samples => samples.get('done_total');

function start(t, setup) {
  return startCluster(t, { workers: 2, worker: counting, ...setup });
}

/** Starts a cluster whose workers have counted one each, and of which one more has died after it counted ten. */
async function startWithDead(t, setup) {
  const cluster = await start(t, { workers: 3, ...setup });
  await cluster.inWorkers([1, 2], record);
  await cluster.inWorker(3, record, 10);
  assert.equal(counted(await cluster.scrape()), 12);
  await cluster.signal(3, 'SIGKILL');
  await cluster.gone(3);
  await until(async () => (await cluster.internals()).retiring === 0, 'it is among the retired');
  return cluster;
}

const pidsOf = cluster =>
  cluster.run($ => Object.values($.cluster.workers).map(({ process }) => process.pid));
/** Whether a process runs: one that has ended is still there until somebody has asked for its code. */
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

/** Makes everything in a directory, and it, look as if nobody had touched it for some time. */
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
  it('has no thread, no directory, no timer, and no metrics', async t => {
    const cluster = await start(t, { workers: 0 });
    const texts = await cluster.run(async ({ aggregator, construct }) => [
      await aggregator.clusterMetrics(),
      await construct().clusterMetrics(),
      (await aggregator.clusterMetricsBytes({ gzip: true })) ?? 'undefined',
    ]);
    assert.deepEqual(texts, ['', '', 'undefined']);
    assert.equal(await cluster.run($ => $.threads.length), 0);
    assert.deepEqual(fs.readdirSync(cluster.place), []);
    const timers = await cluster.run(({ process }) =>
      process.getActiveResourcesInfo().filter(name => /Timeout|Message/.test(name)),
    );
    assert.deepEqual(timers, []);
    await cluster.end();
  });

  it('ends at once when nothing else keeps it', async t => {
    const place = makePlace(t);
    const program = `
      const { AggregatorRegistry } = require(${JSON.stringify(LIBRARY)});
      new AggregatorRegistry().clusterMetrics().then(text => console.log(JSON.stringify(text)));`;
    const env = { ...process.env, TMPDIR: place };
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { env });
    assert.equal(stdout, '""\n');
    assert.deepEqual(fs.readdirSync(place), []);
  });
});

describe('the directory is removed', { concurrency: 3 }, () => {
  const ends = {
    'when the primary ends by itself': [({ process }) => process.disconnect(), 0],
    'by process.exit': [({ process }) => process.exit(3), 3],
    'by an uncaught exception': [
      () => {
        setImmediate(() => {
          throw new Error('this primary is meant to die');
        });
      },
      1,
    ],
    'by an unhandled rejection': [() => void Promise.reject(new Error('this primary is meant to die')), 1],
    'by SIGTERM, where the application ends on it': [
      ({ process }) => {
        process.on('SIGTERM', () => process.exit(143));
        process.kill(process.pid, 'SIGTERM');
      },
      143,
    ],
  };
  for (const [how, [end, code]] of Object.entries(ends)) {
    for (const inPlace of [false, true]) {
      it(`${how}${inPlace ? ', in place' : ''}`, async t => {
        const cluster = await start(t, { workers: 1, options: { inPlace } });
        await cluster.inWorker(1, record);
        assert.equal(counted(await cluster.scrape()), 1);
        const pids = await pidsOf(cluster);
        if (code === 0) {
          cluster.tellWorker(1, exit);
          await cluster.gone(1);
        }
        cluster.run(end).catch(() => {});
        assert.deepEqual(await cluster.hasEnded(), { code, signal: null });
        // Workers write their last numbers only where there is a directory: none of them makes one.
        await until(() => !pids.some(isAlive), 'its workers are dead, too');
        assert.deepEqual(fs.readdirSync(cluster.place), []);
      });
    }
  }

  it('also while a scrape is under way', async t => {
    const cluster = await startWithDead(t);
    const pids = await pidsOf(cluster);
    cluster
      .run(({ aggregator, process }) => {
        aggregator.clusterMetrics();
        setImmediate(() => process.exit());
      })
      .catch(() => {});
    await cluster.hasEnded();
    await until(() => !pids.some(isAlive), 'its workers are dead, too');
    assert.deepEqual(fs.readdirSync(cluster.place), []);
  });
});

describe('a primary that was killed', { concurrency: 3 }, () => {
  async function killed(t) {
    const cluster = await startWithDead(t);
    const pids = await pidsOf(cluster);
    const { spool, place } = cluster;
    await cluster.kill();
    await until(() => !pids.some(isAlive), 'its workers are dead, too');
    return { spool, place };
  }

  it('leaves a directory that the next start sweeps, when it is old enough', async t => {
    const { spool, place } = await killed(t);
    const left = fs.readdirSync(spool).filter(name => /^w[12]-exit-/.test(name));
    assert.equal(left.length, 2, 'its workers have left their last numbers');
    const next = await start(t, { place });
    await next.inWorkers([1, 2], record);
    assert.equal(counted(await next.scrape()), 2);
    assert.ok(fs.existsSync(spool), 'it is too young to be swept');
    await next.end([path.basename(spool)]);

    age(spool, 11);
    const foreign = path.join(place, 'somebody-elses');
    fs.mkdirSync(foreign);
    age(foreign, 1000);
    const last = await start(t, { place });
    await until(() => !fs.existsSync(spool), 'it is swept');
    assert.ok(fs.existsSync(foreign));
    assert.equal(last.spools().length, 1, 'its own is there');
    await last.end(['somebody-elses']);
  });

  it('leaves nothing to one that lives: old files of a live primary stay', async t => {
    const cluster = await startWithDead(t);
    age(cluster.spool, 30);
    const { spool } = cluster;
    const other = await start(t, { place: cluster.place });
    await other.inWorkers([1, 2], record);
    assert.equal(counted(await other.scrape()), 2);
    await other.end([path.basename(spool)]);
    assert.equal(counted(await cluster.scrape()), 12);
    await cluster.end();
  });
});

describe('where a directory cannot be written', { concurrency: 3 }, () => {
  const missing = place => path.join(place, 'missing');
  const aFile = place => {
    fs.writeFileSync(path.join(place, 'file'), '');
    return path.join(place, 'file');
  };
  for (const [what, make] of Object.entries({ 'is missing': missing, 'is a file': aFile })) {
    it(`the primary takes the system's where the one it was given ${what}`, async t => {
      const place = makePlace(t);
      const cluster = await start(t, { place, options: { directory: make(place) } });
      await cluster.inWorkers([1, 2], record);
      assert.equal(counted(await cluster.scrape()), 2);
      assert.equal(path.dirname(cluster.spool), place);
      assert.deepEqual((await cluster.internals()).refused, {});
      fs.rmSync(make(place), { force: true });
      await cluster.end();
    });
  }

  it('the primary takes shared memory where there is no other', onlyShm, async t => {
    const place = makePlace(t);
    const options = { directory: missing(place) };
    const cluster = await start(t, { place, options, env: { TMPDIR: missing(place) } });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    const { directory } = await cluster.internals();
    assert.equal(path.dirname(directory), '/dev/shm');
    assert.ok(path.basename(directory).startsWith(PREFIX));
    assert.ok(fs.existsSync(directory));
    await cluster.end();
    assert.ok(!fs.existsSync(directory));
  });

  /** What a read-only file system does. */
  const readOnly = `
    const fs = require('node:fs');
    for (const name of ['mkdirSync', 'mkdtempSync']) {
      fs[name] = () => {
        throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
      };
    }`;
  for (const inPlace of [false, true]) {
    it(`nowhere, snapshots travel over IPC, and the numbers are right${inPlace ? ', in place' : ''}`, async t => {
      const threadPreload = path.join(makePlace(t), 'preload.js');
      fs.writeFileSync(threadPreload, readOnly);
      const env = inPlace ? { NODE_OPTIONS: `--require ${threadPreload}` } : {};
      const cluster = await start(t, { workers: 3, threadPreload, env, options: { inPlace } });
      await cluster.inWorkers([1, 2, 3], record);
      assert.equal(counted(await cluster.scrape()), 3);
      await cluster.inWorkers([1, 2, 3], record);
      assert.equal(counted(await cluster.scrape()), 6);
      const { directory, refused } = await cluster.internals();
      assert.equal(directory, '');
      assert.deepEqual(refused, { 'over-ipc': 6 });
      cluster.tellWorker(3, exit);
      await cluster.gone(3);
      assert.equal(counted(await cluster.scrape()), 6);
      await cluster.end();
    });
  }

  it('by a worker that became another user, its snapshot travels over IPC', onlyRoot, async t => {
    const cluster = await start(t);
    await until(async () => (await cluster.internals()).directory !== '', 'there is a directory');
    await cluster.inWorker(2, ({ process }) => process.setuid(65534));
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 4);
    const { refused, silent, failing } = await cluster.internals();
    assert.deepEqual({ refused, silent, failing }, { refused: { 'over-ipc': 2 }, silent: 0, failing: 0 });
    assert.deepEqual(cluster.spooledFiles(), []);
    cluster.tellWorker(2, exit);
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 4);
    await cluster.end();
  });

  it('by a worker whose disk is full, its snapshot travels over IPC, and no half a file stays', async t => {
    const cluster = await start(t);
    await cluster.inWorker(2, ({ require }) => {
      const fs = require('node:fs');
      // A disk that takes a hundred bytes more.
      const { writeSync } = fs;
      fs.writevSync = (descriptor, chunks) => writeSync(descriptor, chunks[0], 0, 100);
      fs.writeSync = () => {
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      };
    });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    assert.deepEqual((await cluster.internals()).refused, { 'over-ipc': 1 });
    assert.deepEqual(cluster.spooledFiles(), []);
    await cluster.end();
  });

  it('in one piece, what the kernel does not take at once is written after', async t => {
    const cluster = await start(t);
    await cluster.inWorker(2, ({ require, client }) => {
      const series = new client.Counter({ name: 'series_total', help: 'h', labelNames: ['number'] });
      for (let number = 0; number < 20_000; number++) series.inc({ number }, number);
      const fs = require('node:fs');
      const { writevSync, writeSync } = fs;
      fs.writevSync = (descriptor, chunks, position) =>
        writevSync(descriptor, [chunks[0].subarray(0, 77)], position);
      fs.writeSync = (descriptor, chunk, from, length, position) =>
        writeSync(descriptor, chunk, from, Math.min(60_001, length), position);
    });
    await cluster.inWorkers([1, 2], record);
    const samples = await cluster.scrape();
    assert.equal(counted(samples), 2);
    assert.equal(samples.get('series_total{number="19999"}'), 19999);
    assert.deepEqual((await cluster.internals()).refused, {});
    await cluster.end();
  });
});

describe('a directory that vanishes under a live primary', { concurrency: 3 }, () => {
  for (const inPlace of [false, true]) {
    it(`is replaced, and nothing is lost${inPlace ? ', in place' : ''}`, async t => {
      const cluster = await startWithDead(t, { options: { inPlace } });
      const before = cluster.spool;
      fs.rmSync(before, { recursive: true });
      await cluster.inWorkers([1, 2], record);
      assert.equal(counted(await cluster.scrape()), 14);
      await until(() => cluster.spools().length === 1, 'there is another');
      await until(
        async () => (await cluster.internals()).directory === cluster.spool,
        'the primary knows it',
      );
      assert.notEqual(cluster.spool, before);
      await cluster.inWorkers([1, 2], record);
      assert.equal(counted(await cluster.scrape()), 16);
      // A worker that ends knows it, too, and the totals of the dead are in it.
      cluster.tellWorker(2, ({ process, state }) => {
        state.counter.inc(100);
        process.exit();
      });
      await cluster.gone(2);
      assert.equal(counted(await cluster.scrape()), 116);
      await until(async () => (await cluster.internals()).retiring === 0, 'it is among the retired');
      if (!inPlace) {
        await cluster.run(({ threads }) => threads.at(-1).terminate());
        assert.equal(counted(await cluster.scrape()), 116);
      }
      await cluster.end();
    });
  }

  it('and has become a file is replaced, and the file is left alone', async t => {
    const cluster = await startWithDead(t);
    const before = cluster.spool;
    fs.rmSync(before, { recursive: true });
    fs.writeFileSync(before, 'somebody wrote this');
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 14);
    await until(() => cluster.spools().length === 2, 'there is another');
    await until(async () => (await cluster.internals()).directory !== before, 'the primary knows it');
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 16);
    assert.equal(fs.readFileSync(before, 'utf8'), 'somebody wrote this');
    fs.rmSync(before);
    await cluster.end();
  });

  it('while workers write into it: the same scrape is right', async t => {
    const cluster = await startWithDead(t);
    await cluster.inWorkers([1, 2], record);
    await cluster.run(
      ({ cluster, require }, spool, elsewhere) => {
        // When the first file is announced, and before it is read.
        cluster.prependOnceListener('message', () => require('node:fs').renameSync(spool, elsewhere));
      },
      cluster.spool,
      path.join(makePlace(t), 'moved'),
    );
    const scrape = cluster.run(({ aggregator }) => aggregator.clusterMetrics());
    assert.match(await scrape, /^done_total 14$/m);
    await until(() => cluster.spools().length === 1, 'there is another');
    await cluster.end();
  });

  it('with a worker that dies before it is replaced: what was scraped last stands', async t => {
    const cluster = await startWithDead(t);
    fs.rmSync(cluster.spool, { recursive: true });
    cluster.tellWorker(2, exit);
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 12);
    assert.equal(counted(await cluster.scrape()), 12);
    await cluster.end();
  });

  it('with a worker that died, and nobody is left who could tell', async t => {
    const cluster = await startWithDead(t);
    cluster.tellWorker(1, exit);
    await cluster.gone(1);
    await until(async () => (await cluster.internals()).retiring === 0, 'it is among the retired');
    fs.rmSync(cluster.spool, { recursive: true });
    cluster.tellWorker(2, exit);
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 12);
    await cluster.end();
  });
});
