'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const { startCluster, makePlace, until, LIBRARY } = require('../../fixtures/cluster-harness.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');

/** Each worker has a counter, a gauge with its id as a label, and a histogram. */
const counting = {
  start: ({ client, cluster, process, state }) => {
    process.on('exit', () => state.exitsInListener && process.exit(1));
    const help = 'h';
    state.counter = new client.Counter({ name: 'done_total', help });
    state.gauge = new client.Gauge({ name: 'open', help, labelNames: ['worker'] });
    state.histogram = new client.Histogram({ name: 'took', help, buckets: [1] });
    state.record = (times = 1) => {
      state.counter.inc(times);
      state.gauge.set({ worker: cluster.worker.id }, 7);
      for (let i = 0; i < times; i++) state.histogram.observe(0.5);
    };
  },
};
/** A worker that loads no metrics library. */
const FOREIGN = { library: null, start: () => {} };

const record = ({ state }, times) => state.record(times);
const counted = samples => samples.get('done_total');

/** Makes the worker's IPC channel outlive it, in the hands of another process; returns how to end that. */
async function holdChannelOf(cluster, t, workerId) {
  const pid = await cluster.inWorker(workerId, ({ require, process }) => {
    const stdio = ['ignore', 'ignore', 'ignore', process.channel.fd];
    return require('node:child_process').spawn('sleep', ['600'], { stdio, detached: true }).pid;
  });
  let held = true;
  const release = () => {
    if (held) process.kill(pid, 'SIGKILL');
    held = false;
  };
  t.after(release);
  return release;
}

describe('a cluster whose workers come and go', () => {
  const cluster = sharedCluster({ workers: 1, worker: counting });
  const LONG = 600_000;

  const scraped = async options => counted(await cluster().scrape(options));

  /** Starts a worker, which is one more than worker 1. */
  const fork = options => cluster().fork(options);

  /** Has worker 1 and a new one count, and scrapes them; returns the new one's id and the total. */
  async function forkAndCount(times = 1) {
    const id = await fork();
    await cluster().inWorkers([1, id], record, times);
    return { id, total: await scraped() };
  }

  describe('a worker that ends by itself loses nothing', () => {
    const ends = {
      "by process.exit in an 'exit' listener": ({ process, state }) => {
        state.exitsInListener = true;
        state.record(3);
        process.exit();
      },
      'after it disconnected and went on working': ({ process, state }) => {
        process.disconnect();
        const rest = setInterval(() => {
          state.record(1);
          if (++state.turns === 3) clearInterval(rest);
        }, 1);
        state.turns = 0;
        // The cluster module ends a worker that loses its primary, unless it left of its own accord.
        process.exit = () => {};
      },
      'by worker.disconnect, counting until its end': ({ cluster, state }) => {
        cluster.worker.on('disconnect', () => state.record(3));
        cluster.worker.disconnect();
      },
    };
    for (const [how, end] of Object.entries(ends)) {
      it(`a worker that ends ${how} loses nothing`, async () => {
        const { id, total } = await forkAndCount(2);
        await cluster().endWorker(id, end);
        const samples = await cluster().scrape();
        assert.equal(counted(samples), total + 3);
        assert.equal(samples.get('took_bucket{le="1"}'), total + 3);
        assert.equal(samples.get('took_count'), total + 3);
        await until(() => cluster().spooledFiles().length === 0, 'the exit file is removed');
      });
    }

    it('a worker that disconnects and then exits is served from its last numbers in between', async t => {
      const { id, total } = await forkAndCount();
      const signal = path.join(makePlace(t), 'end');
      cluster().tellWorker(
        id,
        ({ require, process, state }, signal) => {
          const { existsSync } = require('node:fs');
          const { dirname } = require('node:path');
          const { exit } = process;
          // The directory vanishes with a test that fails.
          const mayEnd = () => existsSync(signal) || !existsSync(dirname(signal));
          process.exit = () => {}; // what the cluster module calls when the channel closes
          process.disconnect();
          state.record(10);
          const poll = setInterval(() => mayEnd() && (clearInterval(poll), exit.call(process, 0)), 5);
        },
        signal,
      );
      await cluster().event('disconnect', id);
      await cluster().inWorker(1, record);
      const between = await cluster().scrape();
      assert.equal(counted(between), total + 1);
      assert.equal(between.get(`open{worker="${id}"}`), 7);
      assert.deepEqual(cluster().eventsOf(id), ['disconnect']);
      fs.writeFileSync(signal, '');
      await cluster().gone(id);
      assert.equal(await scraped(), total + 11);
    });

    it('a worker whose channel closes after its exit is served from its last numbers in between', async t => {
      const { id, total } = await forkAndCount();
      const release = await holdChannelOf(cluster(), t, id);
      cluster().tellWorker(id, ({ process, state }) => {
        state.record(10);
        process.exit();
      });
      await cluster().event('exit', id);
      await cluster().inWorker(1, record);
      const between = await cluster().scrape();
      assert.equal(counted(between), total + 1);
      assert.equal(between.get(`open{worker="${id}"}`), 7);
      assert.deepEqual(cluster().eventsOf(id), ['exit']);
      release();
      await cluster().gone(id);
      assert.equal(await scraped(), total + 11);
    });
  });

  describe('a worker that is killed', () => {
    const ends = {
      'dies by abort()': ({ process, state }) => {
        state.record(100);
        process.abort();
      },
      // In test/long/every-variant.test.js. Few large arrays: with small ones the collector may work for
      // minutes before it gives up.
      ...(process.env.EVERY_VARIANT && {
        'runs out of memory': ({ state }) => {
          state.record(100);
          state.hoard = [];
          for (;;) state.hoard.push(new Array(1_000_000).fill(0.5));
        },
      }),
    };
    for (const [how, end] of Object.entries(ends)) {
      it(`a worker that ${how} keeps what was scraped last`, async t => {
        await cluster().run($ => $.cluster.setupPrimary({ execArgv: ['--max-old-space-size=40'] }));
        const { id, total } = await forkAndCount(2);
        await cluster().run($ => $.cluster.setupPrimary({ execArgv: [] }));
        const pid = await cluster().inWorker(id, ({ process }) => process.pid);
        let isGone = false;
        t.after(() => isGone || process.kill(pid, 'SIGKILL'));
        const { code, signal } = await cluster().endWorker(id, end);
        isGone = true;
        assert.ok(signal !== null || code > 128, `ended with ${code}, ${signal}`);
        await cluster().inWorker(1, record, 3);
        assert.equal(await scraped(), total + 3);
      });
    }

    it('a killed worker keeps what was scraped last, and its gauges leave', async () => {
      const { id, total } = await forkAndCount(2);
      assert.equal((await cluster().scrape()).get(`open{worker="${id}"}`), 7);
      await cluster().inWorker(id, record, 100); // nobody has seen these
      const { signal } = await cluster().killWorker(id);
      assert.equal(signal, 'SIGKILL');
      const after = await cluster().scrape();
      assert.equal(counted(after), total);
      assert.equal(after.get('took_count'), total);
      assert.equal(after.get('open{worker="1"}'), 7);
      assert.equal(after.has(`open{worker="${id}"}`), false);
    });

    it('a scrape that waits for a worker goes on when the worker is killed, with its last numbers', async () => {
      const { id, total } = await forkAndCount(2);
      await cluster().signal(id, 'SIGSTOP');
      await cluster().inWorker(1, record);
      const scrape = scraped({ timeout: LONG });
      await cluster().signal(id, 'SIGKILL');
      assert.equal(await scrape, total + 1);
      await cluster().gone(id);
      assert.equal(await scraped(), total + 1);
    });

    it('half a file of a killed worker counts nothing and is removed', async () => {
      const { id, total } = await forkAndCount(2);
      const file = path.join(cluster().spool, `w${id}-r99999-${'0'.repeat(24)}.columns`);
      fs.writeFileSync(file, 'PCCCOLS\x01 and then it was killed');
      await cluster().killWorker(id);
      assert.equal(await scraped(), total);
      await until(() => cluster().spooledFiles().length === 0, 'the half file is removed');
      const { refused } = await cluster().internals();
      assert.deepEqual(refused, {}, 'nobody was promised it');
    });
  });

  it('a worker that starts during a scrape is in the next one', async () => {
    const before = await scraped();
    for (let i = 1; i <= 2; i++) {
      const [, id] = await Promise.all([scraped(), fork(), scraped()]);
      await cluster().inWorker(id, record);
      assert.equal(await scraped(), before + i);
    }
  });

  describe('scrapes that overlap', () => {
    it('no scrape shows numbers older than its call', async () => {
      const { id, total } = await forkAndCount();
      const late = await cluster().run(
        async ({ aggregator, cluster }, ids, total) => {
          // The worker sends its total over IPC; a scrape that is called then may show more, and never less.
          const totals = [];
          const scrapes = [];
          const ask = worker =>
            new Promise(resolve => {
              const call = ask.next++;
              const onMessage = message => {
                if (message?.reply !== call) return;
                worker.process.removeListener('message', onMessage);
                resolve();
              };
              worker.process.on('message', onMessage);
              worker.send({ call, source: '({ state }) => state.record()', args: [] });
            });
          ask.next = 1_000_000;
          for (let i = 0; i < 100; i++) {
            await ask(cluster.workers[ids[i % 2]]);
            totals.push(total + i + 1);
            scrapes.push(aggregator.clusterMetrics());
          }
          const texts = await Promise.all(scrapes);
          const shown = texts.map(text => Number(/^done_total (.*)$/m.exec(text)[1]));
          return shown.flatMap((value, i) => (value < totals[i] ? [[i, value]] : []));
        },
        [1, id],
        total,
      );
      assert.deepEqual(late, []);
    });
  });

  describe('a worker that does not answer', () => {
    it('a stopped worker is served from its last numbers, delays one scrape, and comes back', async () => {
      const { id, total } = await forkAndCount();
      await cluster().inWorker(id, record, 10);
      await cluster().signal(id, 'SIGSTOP');
      await cluster().inWorker(1, record);
      // With a deadline it ends; the scrapes after it wait for no deadline at all.
      assert.equal(await scraped({ without: [id] }), total + 1);
      assert.equal((await cluster().internals()).unresponsive, 1);
      await cluster().inWorker(1, record);
      assert.equal(await scraped({ timeout: LONG }), total + 2);
      assert.equal(await scraped({ timeout: LONG }), total + 2);
      await cluster().signal(id, 'SIGCONT');
      await until(async () => (await scraped()) === total + 12, 'it is back');
      assert.equal((await cluster().internals()).unresponsive, 0);
      await cluster().inWorker(id, record);
      assert.equal(await scraped(), total + 13);
      assert.deepEqual(cluster().spooledFiles(), []);
      await cluster().killWorker(id);
    });
  });

  describe('a worker that never loads a metrics library', () => {
    it('a worker without a metrics library delays one scrape, and later ones not', async () => {
      const { total } = await forkAndCount();
      const id = await fork(FOREIGN);
      assert.equal(await scraped({ without: [id] }), total);
      assert.equal((await cluster().internals()).unresponsive, 1);
      await cluster().inWorker(1, record);
      assert.equal(await scraped({ timeout: LONG }), total + 1);
      await cluster().endWorker(id, ({ process }) => process.exit());
      assert.equal(await scraped({ timeout: LONG }), total + 1);
    });

    it('a worker that loads the library late answers from then on', async () => {
      const { total } = await forkAndCount();
      const id = await fork(FOREIGN);
      assert.equal(await scraped({ without: [id] }), total);
      await cluster().inWorker(
        id,
        ({ require, state }, library) => {
          const client = require(library);
          state.counter = new client.Counter({ name: 'done_total', help: 'h' });
          state.counter.inc(5);
        },
        LIBRARY,
      );
      // It never listened to the first request: it is asked again some time.
      await until(async () => (await scraped()) === total + 5, 'it has answered');
      await cluster().killWorker(id);
    });
  });
});

describe('a worker that was never scraped', () => {
  /** Counts as the others do, and knows when the primary has announced where its exit file goes. */
  const welcomed = {
    start: ({ client, cluster, process, state }) => {
      const isWelcome = ({ type, directory }) => type === 'prom-client-cluster:welcome' && directory !== '';
      state.welcomed = new Promise(resolve => {
        // In a later turn: the library is another listener.
        process.on('message', message => isWelcome(message) && setImmediate(resolve));
      });
      const counter = new client.Counter({ name: 'done_total', help: 'h', labelNames: ['worker'] });
      const histogram = new client.Histogram({ name: 'took', help: 'h', buckets: [1] });
      state.record = (times = 1) => {
        counter.inc({ worker: cluster.worker.id }, times);
        for (let i = 0; i < times; i++) histogram.observe(0.5);
      };
    },
  };
  const ends = {
    'by process.exit': ({ process, state }) => (state.record(3), process.exit(1)),
    'by process.exit in the middle of its work': ({ process, state }) => {
      setImmediate(() => (state.record(3), process.exit(), state.record(7)));
    },
    'by an uncaught exception': ({ state }) => {
      state.record(3);
      setImmediate(() => {
        throw new Error('this worker is meant to die');
      });
    },
    'by an unhandled rejection': ({ state }) => {
      state.record(3);
      setImmediate(() => Promise.reject(new Error('this worker is meant to die')));
    },
    'by its own disconnect': ({ cluster, state }) => (state.record(3), cluster.worker.disconnect()),
    'by a disconnect of its channel': ({ process, state }) => (state.record(3), process.disconnect()),
    'at the end of its work': ({ cluster, state }) => {
      let turns = 3;
      const work = setInterval(() => {
        state.record(1);
        if (--turns === 0) clearInterval(work);
      }, 1);
      cluster.worker.disconnect();
    },
  };
  const signals = {
    'by a SIGTERM handler that exits': ({ process, state }) => {
      process.once('SIGTERM', () => (state.record(2), process.exit(0)));
    },
    'by a SIGTERM handler that disconnects, and has work left': ({ cluster, process, state }) => {
      process.once('SIGTERM', () => {
        cluster.worker.disconnect();
        setTimeout(() => state.record(2), 10);
      });
    },
  };

  const usual = ['by process.exit', 'by an uncaught exception', 'at the end of its work'];
  // test/long/every-variant.test.js has every end, and runs it in place, too.
  for (const inPlace of process.env.EVERY_VARIANT ? [false, true] : [false]) {
    it(`a worker that was never scraped loses nothing, however it ends${inPlace ? ', in place' : ''}`, async t => {
      const cluster = await startCluster(t, { worker: welcomed, options: { inPlace } });
      const fork = async () => {
        const id = await cluster.fork();
        await cluster.inWorker(id, ({ state }) => state.welcomed);
        return id;
      };
      const how = new Map();
      const named = Object.entries(ends).filter(
        ([name]) => process.env.EVERY_VARIANT || usual.includes(name),
      );
      const lives = named.map(async ([name, end]) => {
        const id = await fork();
        how.set(id, name);
        await cluster.endWorker(id, end);
      });
      lives.push(
        ...Object.entries(signals).map(async ([name, handle]) => {
          const id = await fork();
          how.set(id, name);
          await cluster.inWorker(id, handle);
          await cluster.inWorker(id, record, 1);
          await cluster.signal(id, 'SIGTERM');
          await cluster.gone(id);
        }),
      );
      await Promise.all(lives);
      const samples = await cluster.scrape();
      for (const [id, name] of how) assert.equal(samples.get(`done_total{worker="${id}"}`), 3, name);
      assert.equal(samples.get('took_count'), 3 * lives.length);
      assert.equal(samples.get('took_bucket{le="1"}'), 3 * lives.length);
      await until(() => cluster.spooledFiles().length === 0, 'the exit files are removed');
      await cluster.end();
    });
  }
});

describe('clusters of their own', { concurrency: 2 }, () => {
  it('totals of the dead are dropped after retiredMaxAge if no live worker has the series', async t => {
    const cluster = await startCluster(t, { worker: counting, workers: 2, options: { retiredMaxAge: 0 } });
    await cluster.inWorkers([1, 2], ({ client, cluster }) => {
      const help = 'h';
      const own = new client.Counter({ name: 'own_total', help, labelNames: ['worker'] });
      own.inc({ worker: cluster.worker.id });
    });
    await cluster.inWorkers([1, 2], record);
    await cluster.scrape();
    await cluster.endWorker(2, ({ process }) => process.exit());
    await until(async () => !(await cluster.scrape()).has('own_total{worker="2"}'), 'it is dropped');
    const samples = await cluster.scrape();
    assert.equal(samples.get('own_total{worker="1"}'), 1);
    assert.equal(counted(samples), 2);
    await cluster.end();
  });

  it("a worker that started before the AggregatorRegistry was made is found by it; until it answers, a scrape is rejected with prom-client's error", async t => {
    const cluster = await startCluster(t, { worker: counting, workers: 1, construct: false });
    await cluster.inWorker(1, record);
    await cluster.run($ => ($.aggregator = $.construct()) && undefined);
    await cluster.signal(1, 'SIGSTOP');
    await assert.rejects(cluster.scrape({ without: [1] }), { message: 'Operation timed out.' });
    await cluster.signal(1, 'SIGCONT');
    await until(async () => counted(await cluster.scrape().catch(() => new Map())) === 1, 'it has answered');
    await cluster.endWorker(1, ({ process, state }) => {
      state.record();
      process.exit();
    });
    assert.equal(counted(await cluster.scrape()), 2);
    await cluster.end();
  });
});
