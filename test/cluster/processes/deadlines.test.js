'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, until } = require('../../fixtures/cluster-harness.js');

const counting = {
  start: ({ client, state }) => {
    state.counter = new client.Counter({
      name: 'done_total',
      help: 'h',
      // A test may hold the hook up, and let it go on when something has happened.
      collect: () => state.held,
    });
    state.counter.inc(100);
    state.hold = () => (state.held = new Promise(resolve => (state.release = resolve)));
  },
};

const start = (t, setup) => startCluster(t, { workers: 2, worker: counting, ...setup });

describe('a deadline runs from the call it belongs to', { concurrency: 3 }, () => {
  it('also while the round of a more patient caller waits for a worker that hangs', async t => {
    const cluster = await start(t);
    assert.equal((await cluster.scrape()).get('done_total'), 200);
    await cluster.signal(2, 'SIGSTOP');
    const order = await cluster.run(async ({ aggregator }) => {
      const order = [];
      const call = (name, timeout) =>
        aggregator.clusterMetricsBytes({ timeout }).then(() => order.push(name));
      const patient = call('patient', 3000);
      // A later turn: the first round is collecting by now.
      await new Promise(resolve => setImmediate(resolve));
      await Promise.all([patient, call('hasty', 200), call('hastier', 100)]);
      return order;
    });
    assert.deepEqual(order, ['hastier', 'hasty', 'patient']);
    await cluster.signal(2, 'SIGCONT');
    await cluster.end();
  });

  it('and may be longer than a timer can be', async t => {
    const cluster = await start(t);
    await cluster.inWorker(2, ({ state }) => void state.hold());
    const scrape = cluster.run(({ aggregator, process }) => {
      const warnings = [];
      process.on('warning', ({ name }) => warnings.push(name));
      return aggregator
        .clusterMetricsBytes({ timeout: 2 ** 40 })
        .then(({ bytes }) => ({ warnings, text: bytes.toString() }));
    });
    // The worker's hook is waited for as well: it has not run out of time at once.
    await cluster.inWorker(2, ({ state }) => {
      state.counter.inc();
      state.release();
    });
    const { warnings, text } = await scrape;
    assert.deepEqual(warnings, []);
    assert.match(text, /^done_total 201$/m);
    const { failures } = await cluster.run(({ aggregator }) => aggregator.clusterState());
    assert.deepEqual(failures, []);
    await cluster.end();
  });

  it('holds where the thread hangs: the caller is rejected, and a later one is not held up by it', async t => {
    const cluster = await start(t);
    const outcome = await cluster.run(async ({ aggregator, threads }) => {
      const thread = threads.at(-1);
      const { postMessage } = thread;
      thread.postMessage = function (message, ...rest) {
        if (message.op !== 'render') postMessage.call(this, message, ...rest);
      };
      return aggregator.clusterMetricsBytes({ timeout: 100 }).then(
        () => 'answered',
        error => {
          thread.terminate();
          return error.message;
        },
      );
    });
    assert.equal(outcome, 'Operation timed out.');
    assert.equal((await cluster.scrape()).get('done_total'), 200);
    await cluster.end();
  });
});

describe('a thread that dies while a round waits', () => {
  it('takes no answer with it: those who had answered are asked again', async t => {
    const cluster = await start(t);
    assert.equal((await cluster.scrape()).get('done_total'), 200);
    await cluster.inWorker(2, ({ state }) => void state.hold());
    const scrape = cluster.run(({ aggregator, threads }) => {
      const before = threads.length;
      const thread = threads.at(-1);
      const { postMessage } = thread;
      // It dies when it was told of the first worker's answer; the second's is held up until another is there.
      thread.postMessage = function (message, ...rest) {
        postMessage.call(this, message, ...rest);
        if (message.op === 'answer') thread.terminate();
      };
      return aggregator.clusterMetrics().then(text => ({ text, more: threads.length - before }));
    });
    await cluster.run(async ({ threads }) => {
      while (threads.length < 2) await new Promise(resolve => setImmediate(resolve));
      await new Promise(resolve => threads.at(-1).once('message', resolve));
    });
    await cluster.inWorker(2, ({ state }) => state.release());
    const { text, more } = await scrape;
    assert.match(text, /^done_total 200$/m);
    assert.equal(more, 1);
    await cluster.end();
  });
});

describe('a worker that hangs', { concurrency: 3 }, () => {
  /** Scrapes every so many milliseconds, one after the other, while something is done. */
  async function scrapeDuring(cluster, { timeout, pause }, action) {
    await cluster.run(
      ({ aggregator, state }, timeout, pause) => {
        state.scrapes = [];
        state.going = true;
        const turn = async () => {
          while (state.going) {
            const text = await aggregator.clusterMetrics({ timeout });
            state.scrapes.push(Number(/^done_total (.*)$/m.exec(text)[1]));
            await new Promise(resolve => setTimeout(resolve, pause));
          }
        };
        state.turning = turn();
      },
      timeout,
      pause,
    );
    await action();
    const scrapes = await cluster.run(({ state }) => {
      state.going = false;
      return state.turning.then(() => state.scrapes);
    });
    scrapes.forEach((total, i) => {
      assert.ok(i === 0 || total >= scrapes[i - 1], `a total fell to ${total} at scrape ${i}`);
    });
    return scrapes;
  }

  it('answers 20 callers in the order of their deadlines, with the right numbers', async t => {
    const cluster = await start(t);
    assert.equal((await cluster.scrape()).get('done_total'), 200);
    await cluster.signal(2, 'SIGSTOP');
    await cluster.inWorker(1, ({ state }) => void state.counter.inc());
    const answers = await cluster.run(async ({ aggregator, answers: messages, clock }) => {
      const deadlines = Array.from({ length: 20 }, (_, i) => 100_000 + ((i * 13) % 20) * 10_000);
      const answered = [];
      const earlier = messages.length;
      const turn = () => new Promise(resolve => setImmediate(resolve));
      // In no order, and most of them while the round of others is collecting.
      const calls = [];
      for (const [i, timeout] of deadlines.entries()) {
        const call = aggregator.clusterMetrics({ timeout });
        calls.push(
          call.then(text => answered.push({ timeout, total: Number(/^done_total (.*)$/m.exec(text)[1]) })),
        );
        if (i % 5 === 4) await turn();
      }
      while (!messages.slice(earlier).some(({ message }) => message.requestId >= 0)) await turn();
      await turn();
      const early = answered.length;
      // All deadlines pass, in their order.
      clock.advance(400_000);
      await Promise.all(calls);
      return { early, answered };
    });
    assert.equal(answers.early, 0, 'nobody is answered before a deadline, as worker 2 does not answer');
    const timeouts = answers.answered.map(({ timeout }) => timeout);
    assert.deepEqual(
      timeouts,
      timeouts.toSorted((a, b) => a - b),
    );
    assert.equal(timeouts.length, 20);
    for (const { timeout, total } of answers.answered) assert.equal(total, 201, `within ${timeout} ms`);
    await cluster.signal(2, 'SIGCONT');
    await cluster.end();
  });

  it('in its own loop for 2 seconds costs one deadline, no total falls, and it comes back', async t => {
    const cluster = await start(t);
    const scrapes = await scrapeDuring(cluster, { timeout: 400, pause: 50 }, () =>
      cluster.inWorker(2, ({ state }) => {
        state.counter.inc(10);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000);
        state.counter.inc(10);
      }),
    );
    assert.ok(scrapes.length > 0, 'scrapes were answered meanwhile');
    await until(async () => (await cluster.scrape()).get('done_total') === 220, 'it is back');
    assert.equal((await cluster.internals()).silent, 0);
    await cluster.end();
  });

  it('again and again, stopped and resumed, never lets a total fall, and loses nothing', async t => {
    const cluster = await start(t);
    await cluster.scrape();
    await scrapeDuring(cluster, { timeout: 150, pause: 20 }, async () => {
      for (let i = 0; i < 4; i++) {
        await cluster.inWorkers([1, 2], ({ state }) => void state.counter.inc(5));
        await cluster.signal(2, 'SIGSTOP');
        await cluster.inWorker(1, ({ state }) => void state.counter.inc(5));
        await until(async () => (await cluster.internals()).silent === 1, 'it is silent');
        await cluster.signal(2, 'SIGCONT');
        await until(async () => (await cluster.internals()).silent === 0, 'it speaks again');
      }
    });
    assert.equal((await cluster.scrape()).get('done_total'), 200 + 4 * 15);
    await until(() => cluster.spooledFiles().length === 0, 'all files are taken');
    await cluster.end();
  });

  it('in a collect hook, or in one that throws, costs neither numbers nor the deadlines of others', async t => {
    const cluster = await start(t);
    await cluster.inWorker(1, ({ client }) => {
      const collect = () => {
        throw new Error('it throws');
      };
      new client.Gauge({ name: 'throws', help: 'h', collect });
    });
    await cluster.inWorker(2, ({ state }) => void state.hold());
    for (let i = 1; i <= 5; i++) {
      await cluster.inWorkers([1, 2], ({ state }) => void state.counter.inc());
      // The hook is this counter's own: what it shows is of the instant all the same.
      const samples = await cluster.scrape({ timeout: i === 1 ? 3000 : 600_000 });
      assert.equal(samples.get('done_total'), 200 + 2 * i);
    }
    const { failures, silent } = await cluster.internals();
    assert.deepEqual(failures.map(({ stage, metric }) => [stage, metric]).sort(), [
      ['collect', 'done_total'],
      ['collect', 'throws'],
    ]);
    assert.equal(silent, 0);
    await cluster.inWorker(2, ({ state }) => state.release());
    await cluster.end();
  });
});

describe('clusterMetrics', { concurrency: 2 }, () => {
  it('waits as long as each call asks for, and as the registry says where it does not', async t => {
    const cluster = await start(t, { options: { timeout: 900 } });
    assert.equal((await cluster.scrape()).get('done_total'), 200);
    for (const name of ['clusterMetrics', 'clusterMetricsBytes']) {
      await cluster.signal(2, 'SIGSTOP');
      const order = await cluster.run(async ({ aggregator }, name) => {
        const order = [];
        const call = (what, options) => aggregator[name](options).then(() => order.push(what));
        await Promise.all([
          call('default'),
          call('longer', { timeout: 400 }),
          call('no timeout', {}),
          call('short', { timeout: 100 }),
        ]);
        return order;
      }, name);
      assert.deepEqual(order, ['short', 'longer', 'default', 'no timeout'], name);
      await cluster.signal(2, 'SIGCONT');
      await until(
        async () => (await cluster.scrape(), (await cluster.internals()).silent === 0),
        'it is back',
      );
    }
    await cluster.end();
  });

  it('refuses a timeout that is no number of milliseconds', async t => {
    const cluster = await start(t);
    const refused = await cluster.run(async ({ aggregator }) => {
      const names = [];
      for (const timeout of [-1, NaN, '100', null, {}]) {
        for (const name of ['clusterMetrics', 'clusterMetricsBytes']) {
          await aggregator[name]({ timeout }).catch(error => names.push(error.name));
        }
      }
      return names;
    });
    assert.deepEqual(refused, Array(10).fill('TypeError'));
    await cluster.end();
  });
});
