'use strict';

// Deadlines of scrapes, with workers and threads that hang. The clock of the primary moves when a test says
// so.

const assert = require('node:assert/strict');
const { it } = require('node:test');

const { startCluster, until } = require('../../fixtures/cluster-harness.js');

/** The timeout of the registry, in milliseconds. */
const DEFAULT_TIMEOUT = 300_000;

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
const unusable = {
  start: context => {
    context.require('../cluster/processes/fixtures/cluster-tampering').installTampering(context);
    context.state.tamper = ({ type, requestId }) => ({ type, requestId, source: '', reason: 'ENOSPC' });
  },
};

it('deadlines of scrapes in a cluster of two workers', async t => {
  const cluster = await startCluster(t, {
    workers: 2,
    worker: counting,
    options: { timeout: DEFAULT_TIMEOUT },
  });
  const total = async options => (await cluster.scrape(options)).get('done_total');
  const isBack = async () => (await cluster.scrape(), (await cluster.internals()).unresponsive === 0);
  assert.equal(await total(), 200);
  let expected = 200;

  await t.test('a timeout may be longer than the longest timer', async () => {
    await cluster.inWorker(2, ({ state }) => void state.hold());
    const scrape = cluster.run(({ aggregator, process }) => {
      const warnings = [];
      process.on('warning', ({ name }) => warnings.push(name));
      return aggregator
        .clusterMetricsBytes({ timeout: 2 ** 40 })
        .then(page => ({ warnings, text: page.toString() }));
    });
    // The scrape waits for the hook of the worker, too: neither has run out of time at once.
    await cluster.inWorker(2, ({ state }) => {
      state.counter.inc();
      state.release();
    });
    const { warnings, text } = await scrape;
    assert.deepEqual(warnings, []);
    assert.match(text, /^done_total 201$/m);
    expected = 201;
    assert.deepEqual((await cluster.internals()).failures, []);
  });

  await t.test(
    'a scrape whose thread hangs is rejected at its deadline, and the next one is answered',
    async () => {
      const outcome = await cluster.run(async ({ aggregator, answers, clock, threads }) => {
        const thread = threads.at(-1);
        const { postMessage } = thread;
        thread.postMessage = function (message, ...rest) {
          if (message.op !== 'render') postMessage.call(this, message, ...rest);
        };
        const earlier = answers.length;
        let outcome;
        aggregator.clusterMetricsBytes({ timeout: 50_000 }).then(
          () => (outcome = 'answered'),
          error => (outcome = error.message),
        );
        const turn = () => new Promise(resolve => setImmediate(resolve));
        while (answers.length < earlier + 2) await turn();
        await turn();
        for (; outcome === undefined; await turn()) clock.advance(1000);
        thread.terminate();
        return outcome;
      });
      assert.equal(outcome, 'Operation timed out.');
      assert.equal(await total(), expected);
    },
  );

  await t.test('a scrape waits as long as its call says, else as long as the registry says', async () => {
    for (const name of ['clusterMetrics', 'clusterMetricsBytes']) {
      await cluster.signal(2, 'SIGSTOP');
      const order = await cluster.run(async ({ aggregator, answers, clock }, name) => {
        const order = [];
        const earlier = answers.length;
        const call = (what, options) => aggregator[name](options).then(() => order.push(what));
        const calls = {
          default: call('default'),
          longer: call('longer', { timeout: 200_000 }),
          none: call('no timeout', {}),
          short: call('short', { timeout: 100_000 }),
        };
        const hasAnswered = () => answers.slice(earlier).some(({ message }) => message.requestId >= 0);
        while (!hasAnswered()) await new Promise(resolve => setImmediate(resolve));
        for (const waited of [[calls.short], [calls.longer], [calls.default, calls.none]]) {
          order.push('100 seconds pass');
          clock.advance(100_000);
          await Promise.all(waited);
        }
        return order;
      }, name);
      const passes = '100 seconds pass';
      // The last two have the same deadline.
      assert.deepEqual(
        [...order.slice(0, -2), ...order.slice(-2).sort()],
        [passes, 'short', passes, 'longer', passes, 'default', 'no timeout'],
        `${name}()`,
      );
      await cluster.signal(2, 'SIGCONT');
      await until(isBack, 'worker 2 answers');
    }
  });

  await t.test('a worker whose answers cannot be used, and which then hangs, fails no scrape', async () => {
    await cluster.fork(unusable);
    assert.equal(await total(), expected);
    await cluster.inWorker(3, ({ state }) => (state.tamper = () => undefined));
    assert.equal(await total({ without: [3] }), expected);
  });

  await cluster.end();
});
