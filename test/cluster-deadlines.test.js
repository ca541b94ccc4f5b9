'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster } = require('./fixtures/cluster-harness.js');

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
