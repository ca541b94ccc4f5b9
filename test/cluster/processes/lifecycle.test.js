'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const { startCluster, makePlace, until } = require('../../fixtures/cluster-harness.js');

/** Each worker has a counter, a gauge and a histogram, and counts by its own id. */
const counting = {
  start: ({ client, cluster, state }) => {
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
/** A worker that no metrics library is in. */
const FOREIGN = { library: null, start: () => {} };

const record = ({ state }, times) => state.record(times);
const counted = samples => samples.get('done_total');

function startCounting(t, setup) {
  return startCluster(t, { worker: counting, ...setup });
}

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

describe('a worker that ends by itself loses nothing', { concurrency: 3 }, () => {
  const ends = {
    'by process.exit': ({ process, state }) => {
      state.record(3);
      process.exit(5);
    },
    'by an uncaught exception': ({ state }) => {
      state.record(3);
      setImmediate(() => {
        throw new Error('this worker is meant to die');
      });
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
  it(Object.keys(ends).join(', '), async t => {
    const cluster = await startCounting(t, { workers: 1 });
    let expected = 0;
    for (const [how, end] of Object.entries(ends)) {
      const id = await cluster.fork();
      await cluster.inWorkers([1, id], record, 2);
      expected += 4;
      assert.equal(counted(await cluster.scrape()), expected, how);
      cluster.tellWorker(id, end);
      await cluster.gone(id);
      expected += 3;
      const samples = await cluster.scrape();
      assert.equal(counted(samples), expected, how);
      assert.equal(samples.get('took_bucket{le="1"}'), expected, how);
      assert.equal(samples.get('took_count'), expected, how);
      await until(() => cluster.spooledFiles().length === 0, 'the exit file is removed');
    }
    await cluster.end();
  });

  it('also if it was never scraped', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await until(() => cluster.run($ => $.internals().directory !== ''), 'there is a spool');
    await cluster.inWorkers([1, 2], record, 2);
    cluster.tellWorker(2, ({ process }) => process.exit());
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 4);
    await cluster.end();
  });

  it('also if nothing is left but it', async t => {
    const cluster = await startCounting(t, { workers: 1 });
    await cluster.inWorker(1, record, 2);
    assert.equal(counted(await cluster.scrape()), 2);
    cluster.tellWorker(1, ({ process }) => process.exit());
    await cluster.gone(1);
    assert.equal(counted(await cluster.scrape()), 2);
    await cluster.end();
  });

  it('in the order disconnect, exit: served from its last numbers in between', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    const signal = path.join(makePlace(t), 'end');
    cluster.tellWorker(
      2,
      ({ require, process, state }, signal) => {
        const { existsSync } = require('node:fs');
        const { exit } = process;
        process.exit = () => {}; // what the cluster module calls when the channel closes
        process.disconnect();
        state.record(10);
        const poll = setInterval(() => existsSync(signal) && (clearInterval(poll), exit.call(process, 0)), 5);
      },
      signal,
    );
    await cluster.event('disconnect', 2);
    await cluster.inWorker(1, record);
    const between = await cluster.scrape();
    assert.equal(counted(between), 3);
    assert.equal(between.get('open{worker="2"}'), 7);
    assert.deepEqual(cluster.eventsOf(2), ['disconnect']);
    fs.writeFileSync(signal, '');
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 13);
    await cluster.end();
  });

  it('in the order exit, disconnect: served from its last numbers in between', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    const release = await holdChannelOf(cluster, t, 2);
    cluster.tellWorker(2, ({ process, state }) => {
      state.record(10);
      process.exit();
    });
    await cluster.event('exit', 2);
    await cluster.inWorker(1, record);
    const between = await cluster.scrape();
    assert.equal(counted(between), 3);
    assert.equal(between.get('open{worker="2"}'), 7);
    assert.deepEqual(cluster.eventsOf(2), ['exit']);
    release();
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 13);
    await cluster.end();
  });
});

describe('a worker that nobody has scraped loses nothing', { concurrency: 3 }, () => {
  /** Counts as the others do, and knows when the primary has told it where its last numbers go. */
  const welcomed = {
    start: ({ client, cluster, process, state }) => {
      const isWelcome = message => message?.type === 'prom-client-cluster:welcome';
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

  for (const inPlace of [false, true]) {
    it(`however it ends of itself, or by a signal that it handles${inPlace ? ', in place' : ''}`, async t => {
      const cluster = await startCluster(t, { workers: 1, worker: welcomed, options: { inPlace } });
      const fork = async () => {
        const id = await cluster.fork();
        await cluster.inWorker(id, ({ state }) => state.welcomed);
        return id;
      };
      const how = new Map();
      const lives = Object.entries(ends).map(async ([name, end]) => {
        const id = await fork();
        how.set(id, name);
        cluster.tellWorker(id, end);
        await cluster.gone(id);
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

describe('a worker that is killed', { concurrency: 3 }, () => {
  const ends = {
    'by abort()': ({ process, state }) => {
      state.record(100);
      process.abort();
    },
    'for want of memory': ({ state }) => {
      state.record(100);
      state.hoard = [];
      for (;;) state.hoard.push(new Array(1000).fill({}));
    },
  };
  for (const [how, end] of Object.entries(ends)) {
    it(`${how} keeps what was scraped last`, async t => {
      const cluster = await startCounting(t, {
        workers: 2,
        settings: { execArgv: ['--max-old-space-size=40'] },
      });
      await cluster.inWorkers([1, 2], record, 2);
      assert.equal(counted(await cluster.scrape()), 4);
      cluster.tellWorker(2, end);
      const { code, signal } = await cluster.gone(2);
      assert.ok(signal !== null || code > 128, `ended with ${code}, ${signal}`);
      await cluster.inWorker(1, record, 3);
      assert.equal(counted(await cluster.scrape()), 7);
      await cluster.end();
    });
  }

  it('keeps what was scraped last, while its gauges leave', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record, 2);
    const before = await cluster.scrape();
    assert.equal(counted(before), 4);
    assert.equal(before.get('open{worker="2"}'), 7);
    await cluster.inWorker(2, record, 100); // nobody has seen these
    await cluster.signal(2, 'SIGKILL');
    const { signal } = await cluster.gone(2);
    assert.equal(signal, 'SIGKILL');
    const after = await cluster.scrape();
    assert.equal(counted(after), 4);
    assert.equal(after.get('took_count'), 4);
    assert.equal(after.get('open{worker="1"}'), 7);
    assert.equal(after.has('open{worker="2"}'), false);
    await cluster.end();
  });

  it('in the order exit, disconnect', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record, 2);
    assert.equal(counted(await cluster.scrape()), 4);
    const release = await holdChannelOf(cluster, t, 2);
    await cluster.signal(2, 'SIGKILL');
    await cluster.event('exit', 2);
    assert.equal(counted(await cluster.scrape()), 4);
    release();
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 4);
    await cluster.end();
  });

  it('while a scrape waits for it: the scrape goes on at once, with its last numbers', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record, 2);
    assert.equal(counted(await cluster.scrape()), 4);
    await cluster.signal(2, 'SIGSTOP');
    await cluster.inWorker(1, record);
    const scrape = cluster.scrape({ timeout: 600_000 });
    await cluster.signal(2, 'SIGKILL');
    assert.equal(counted(await scrape), 5);
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 5);
    await cluster.end();
  });

  it('never scraped, after it wrote what nobody took: half a file counts nothing', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record, 2);
    assert.equal(counted(await cluster.scrape()), 4);
    const file = path.join(cluster.spool, `w2-r99-${'0'.repeat(24)}.snap`);
    fs.writeFileSync(file, 'PCCSNAP\x01 and then it was killed');
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 4);
    await until(() => cluster.spooledFiles().length === 0, 'the half file is removed');
    const { refused } = await cluster.internals();
    assert.deepEqual(refused, {}, 'nobody was promised it');
    await cluster.end();
  });
});

describe('the totals of the dead', { concurrency: 3 }, () => {
  it('stay through many deaths of all kinds and never fall', async t => {
    const cluster = await startCounting(t, { workers: 1 });
    let expected = 0;
    for (let id = 2; id <= 9; id++) {
      await cluster.fork();
      await cluster.inWorker(id, record, id);
      expected += id;
      assert.equal(counted(await cluster.scrape()), expected);
      if (id % 2 === 0) await cluster.signal(id, 'SIGKILL');
      else cluster.tellWorker(id, ({ process }) => process.exit(1));
      await cluster.gone(id);
      assert.equal(counted(await cluster.scrape()), expected);
    }
    const samples = await cluster.scrape();
    assert.equal(samples.get('took_sum'), expected / 2);
    assert.deepEqual(
      [...samples.keys()].filter(sample => sample.startsWith('open')),
      [],
    );
    await cluster.end();
  });

  it('are dropped after retiredMaxAge, where no live worker has the series', async t => {
    const cluster = await startCounting(t, { workers: 2, options: { retiredMaxAge: 0 } });
    await cluster.inWorkers([1, 2], ({ client, cluster }) => {
      const help = 'h';
      const own = new client.Counter({ name: 'own_total', help, labelNames: ['worker'] });
      own.inc({ worker: cluster.worker.id });
    });
    await cluster.inWorkers([1, 2], record);
    await cluster.scrape();
    cluster.tellWorker(2, ({ process }) => process.exit());
    await cluster.gone(2);
    await until(async () => !(await cluster.scrape()).has('own_total{worker="2"}'), 'it is dropped');
    const samples = await cluster.scrape();
    assert.equal(samples.get('own_total{worker="1"}'), 1);
    assert.equal(counted(samples), 2);
    await cluster.end();
  });
});

describe('a worker that starts', { concurrency: 3 }, () => {
  it('is in the next scrape, whatever goes on', async t => {
    const cluster = await startCounting(t, { workers: 1 });
    await cluster.inWorker(1, record);
    for (let id = 2; id <= 4; id++) {
      await Promise.all([cluster.scrape(), cluster.fork(), cluster.scrape()]);
      await cluster.inWorker(id, record);
      assert.equal(counted(await cluster.scrape()), id);
    }
    await cluster.end();
  });

  it('before the AggregatorRegistry was made is found by it', async t => {
    const cluster = await startCounting(t, { workers: 2, construct: false });
    await cluster.inWorkers([1, 2], record);
    await cluster.run($ => ($.aggregator = $.construct()) && undefined);
    assert.equal(counted(await cluster.scrape()), 2);
    cluster.tellWorker(2, ({ process, state }) => {
      state.record();
      process.exit();
    });
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 3);
    await cluster.end();
  });
});

describe('nobody gets numbers older than their own call', { concurrency: 3 }, () => {
  it('while rounds overlap all the time', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    const late = await cluster.run(async ({ aggregator, cluster }) => {
      // The worker tells its total over IPC; a scrape that is called then may show more, and never less.
      const totals = [];
      const scrapes = [];
      const ask = worker =>
        new Promise(resolve => {
          const source =
            '({ state }) => { state.record(); return ++state.recorded || (state.recorded = 1); }';
          const call = ask.next++;
          const onMessage = message => {
            if (message?.reply !== call) return;
            worker.process.removeListener('message', onMessage);
            resolve(message.result);
          };
          worker.process.on('message', onMessage);
          worker.send({ call, source, args: [] });
        });
      ask.next = 1_000_000;
      for (let i = 0; i < 100; i++) {
        await ask(cluster.workers[1 + (i % 2)]);
        totals.push(i + 1);
        scrapes.push(aggregator.clusterMetrics());
      }
      const texts = await Promise.all(scrapes);
      const shown = texts.map(text => Number(/^done_total (.*)$/m.exec(text)[1]));
      return shown.flatMap((value, i) => (value < totals[i] ? [[i, value]] : []));
    });
    assert.deepEqual(late, []);
    await cluster.end();
  });
});

describe('a worker that does not answer', { concurrency: 6 }, () => {
  it('when it is stopped is served from its last numbers, costs one deadline, and comes back', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    await cluster.inWorker(2, record, 10);
    await cluster.signal(2, 'SIGSTOP');
    await cluster.inWorker(1, record);
    // With a deadline it ends; the scrapes after it wait for no deadline at all.
    assert.equal(counted(await cluster.scrape({ without: [2] })), 3);
    assert.equal((await cluster.internals()).silent, 1);
    await cluster.inWorker(1, record);
    assert.equal(counted(await cluster.scrape({ timeout: 600_000 })), 4);
    assert.equal(counted(await cluster.scrape({ timeout: 600_000 })), 4);
    await cluster.signal(2, 'SIGCONT');
    await until(async () => counted(await cluster.scrape()) === 14, 'it is back');
    assert.equal((await cluster.internals()).silent, 0);
    await cluster.inWorker(2, record);
    assert.equal(counted(await cluster.scrape()), 15);
    assert.deepEqual(cluster.spooledFiles(), []);
    await cluster.end();
  });

  it('when its loop is blocked is served from its last numbers, and comes back', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    const signal = path.join(makePlace(t), 'go on');
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    cluster.tellWorker(
      2,
      ({ require, state }, signal) => {
        const { existsSync } = require('node:fs');
        state.record(10);
        while (!existsSync(signal));
      },
      signal,
    );
    await cluster.inWorker(1, record);
    assert.equal(counted(await cluster.scrape({ without: [2] })), 3);
    assert.equal(counted(await cluster.scrape({ timeout: 600_000 })), 3);
    fs.writeFileSync(signal, '');
    await until(async () => counted(await cluster.scrape()) === 13, 'it is back');
    await cluster.end();
  });

  it('because one answer was lost comes back by itself', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    await cluster.inWorker(2, ({ process, state }) => {
      // A listener of the application that throws before the library's has its turn, and the application goes on.
      process.once('uncaughtException', () => {});
      process.prependOnceListener('message', () => {
        throw new Error('this message is lost');
      });
      state.record();
    });
    assert.equal(counted(await cluster.scrape({ without: [2] })), 2);
    await until(async () => counted(await cluster.scrape()) === 3, 'it is back');
    await cluster.end();
  });

  it('dies silent: its last numbers stay', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    await cluster.signal(2, 'SIGSTOP');
    assert.equal(counted(await cluster.scrape({ without: [2] })), 2);
    await cluster.signal(2, 'SIGKILL');
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape()), 2);
    assert.equal((await cluster.internals()).silent, 0);
    await cluster.end();
  });

  it('holds up only callers with more patience: each is answered by its own deadline', async t => {
    const cluster = await startCounting(t, { workers: 2 });
    await cluster.inWorkers([1, 2], record);
    assert.equal(counted(await cluster.scrape()), 2);
    await cluster.signal(2, 'SIGSTOP');
    const patient = cluster.scrape({ timeout: 600_000 });
    // Of the same turn, so of the same round.
    const hasty = cluster.run(async ({ aggregator }) => {
      const calls = [600_000, 200, 400].map(timeout => aggregator.clusterMetricsBytes({ timeout }));
      const order = [];
      calls.forEach((call, i) => call.then(() => order.push(i)));
      await Promise.all(calls.slice(1));
      return order;
    });
    assert.deepEqual(await hasty, [1, 2]);
    await cluster.inWorker(1, record);
    await cluster.signal(2, 'SIGCONT');
    assert.ok(counted(await patient) >= 2);
    assert.equal(counted(await cluster.scrape()), 3);
    await cluster.end();
  });

  it('is all there is, and nothing is known of it: the call is rejected as by prom-client', async t => {
    const cluster = await startCounting(t, { workers: 1 });
    await cluster.inWorker(1, record);
    await cluster.signal(1, 'SIGSTOP');
    await assert.rejects(cluster.scrape({ without: [1] }), { message: 'Operation timed out.' });
    await cluster.signal(1, 'SIGCONT');
    await until(async () => counted(await cluster.scrape().catch(() => new Map())) === 1, 'it has answered');
    await cluster.end();
  });
});

describe('a worker that never loads a metrics library', { concurrency: 3 }, () => {
  it('costs one deadline once, and then none', async t => {
    const cluster = await startCounting(t, { workers: [{}, FOREIGN] });
    await cluster.inWorker(1, record);
    assert.equal(counted(await cluster.scrape({ without: [2] })), 1);
    assert.equal((await cluster.internals()).silent, 1);
    await cluster.inWorker(1, record);
    assert.equal(counted(await cluster.scrape({ timeout: 600_000 })), 2);
    cluster.tellWorker(2, ({ process }) => process.exit());
    await cluster.gone(2);
    assert.equal(counted(await cluster.scrape({ timeout: 600_000 })), 2);
    await cluster.end();
  });

  it('answers as soon as it does', async t => {
    const cluster = await startCounting(t, { workers: [{}, FOREIGN] });
    await cluster.inWorker(1, record);
    assert.equal(counted(await cluster.scrape({ without: [2] })), 1);
    await cluster.inWorker(
      2,
      ({ require, state }, library) => {
        const client = require(library);
        state.counter = new client.Counter({ name: 'done_total', help: 'h' });
        state.counter.inc(5);
      },
      path.join(__dirname, '../../..'),
    );
    // It has not seen the question that it never listened to: it is asked again some time.
    await until(async () => counted(await cluster.scrape()) === 6, 'it has answered');
    await cluster.end();
  });
});
