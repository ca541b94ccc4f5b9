'use strict';

// Threads that are started in another way, end in another way, or publish what is not valid.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { setImmediate: turn } = require('node:timers/promises');
const { afterEach, beforeEach, describe, it } = require('node:test');
const worker = require('node:worker_threads');
const { Counter, WorkerRegistry, register } = require('../../index');
const { LogWriter } = require('../../lib/source/shared-log');
const { DEFINE, DROP, PAGE, ROW } = require('../../lib/source/log-records');
const { inboxOf, channelOf } = require('../../lib/threads/thread-messages');

const { BroadcastChannel, Worker } = worker;
const LIBRARY = JSON.stringify(path.join(__dirname, '../../index.js'));
const STARTS = `
  const { parentPort, Worker } = require('node:worker_threads');
  const { Counter, Gauge, Summary, WorkerRegistry } = require(${LIBRARY});
  const counter = new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'] });
`;
const DEFINITION = JSON.stringify({
  defaults: [],
  ...{ name: 'late_total', help: 'h', type: 'counter', aggregator: 'sum', labelNames: [] },
  ...{ layout: { kind: 'value', marks: [] }, width: 1, pageShift: 0, maxIdleSeconds: 0, expiredCount: 0 },
});
const PRELUDE = `${STARTS} new WorkerRegistry();`;
const STAYS = `parentPort.postMessage('ready'); parentPort.on('message', () => {});`;

describe('unusual threads', () => {
  /** @type {WorkerRegistry} */
  let registry;
  /** @type {Worker[]} */
  let threads;
  /** @type {any} */
  let inbox;

  beforeEach(() => {
    threads = [];
    inbox = new BroadcastChannel(inboxOf(''));
    registry = new WorkerRegistry({ timeout: 60_000 });
  });

  afterEach(async () => {
    await Promise.all(threads.map(thread => thread.terminate()));
    await registry.shutdown();
    inbox.close();
    register.clear();
  });

  /**
   * @param {string} code
   * @param {import('node:worker_threads').WorkerOptions} [options]
   */
  function start(code, options) {
    return startAs(PRELUDE + code, options);
  }

  async function startAs(code, options) {
    const thread = new Worker(code, { eval: true, ...options });
    threads.push(thread);
    await once(thread, 'message');
    return thread;
  }

  async function jobs() {
    const page = await registry.workerMetrics();
    return Object.fromEntries(
      Array.from(page.matchAll(/^jobs_total\{kind="(\w+)"\} (\d+)$/gm), ([, kind, count]) => [
        kind,
        Number(count),
      ]),
    );
  }

  it('messages that are none of a thread are left out', async () => {
    await start(`counter.inc({ kind: 'a' }, 2); ${STAYS}`);
    for (const message of [null, 'text', { join: true, thread: 'x' }, { thread: 'x', parts: 1 }])
      inbox.postMessage(message);
    assert.deepEqual(await jobs(), { a: 2 });
    assert.deepEqual(await jobs(), { a: 2 });
  });

  it('a thread whose code is a text, with execArgv and an environment of its own, is read', async () => {
    await start(`counter.inc({ kind: 'a' }); ${STAYS}`, { execArgv: ['--no-warnings'], env: {} });
    assert.deepEqual(await jobs(), { a: 1 });
  });

  it('a thread that runs out of memory leaves its counts', async () => {
    // Arrays that are large: with small ones, Node.js 26 may collect garbage for minutes before it gives up.
    const thread = await start(
      `counter.inc({ kind: 'a' }, 3); ${STAYS}
       const all = [];
       parentPort.on('message', () => { for (;;) all.push(new Array(100_000).fill({})); });`,
      { resourceLimits: { maxOldGenerationSizeMb: 12, maxYoungGenerationSizeMb: 2 } },
    );
    /** @type {any[]} */
    const errors = [];
    thread.on('error', error => errors.push(error));
    thread.postMessage('fill');
    await new Promise(resolve => thread.on('exit', resolve));
    assert.equal(errors[0]?.code, 'ERR_WORKER_OUT_OF_MEMORY');
    assert.deepEqual(await jobs(), { a: 3 });
    assert.equal(registry.workerCount(), 0);
  });

  it('a thread that has no SharedArrayBuffer warns, and its program goes on with its own metrics', async () => {
    const thread = new Worker(
      `delete globalThis.SharedArrayBuffer; ${STARTS}
       process.on('warning', ({ message }) => parentPort.postMessage(message));
       const registry = new WorkerRegistry();
       counter.inc({ kind: 'a' });
       registry.shutdown().then(() => counter.get()).then(({ values }) => parentPort.postMessage(values));`,
      { eval: true, stderr: true },
    );
    threads.push(thread);
    /** @type {any[]} */
    const received = [];
    thread.on('message', message => received.push(message));
    await once(thread, 'exit');
    assert.deepEqual(received.sort(), [
      "This thread's metrics are missing on the page of all threads: ReferenceError: SharedArrayBuffer is not defined",
      [{ value: 1, labels: { kind: 'a' } }],
    ]);
    assert.deepEqual(await jobs(), {});
  });

  it('a thread of a thread is read, and leaves its counts if it ends', async () => {
    const inner = `${PRELUDE} counter.inc({ kind: 'inner' }, 5); parentPort.postMessage('ready');
      parentPort.once('message', () => process.exit());`;
    const hasEnded = new Int32Array(new SharedArrayBuffer(4));
    const outer = await start(
      `
      counter.inc({ kind: 'outer' }, 2);
      const inner = new Worker(${JSON.stringify(inner)}, { eval: true });
      inner.once('message', () => parentPort.postMessage('ready'));
      const { workerData } = require('node:worker_threads');
      inner.on('exit', () => { Atomics.store(workerData, 0, 1); Atomics.notify(workerData, 0); });
      parentPort.on('message', () => inner.postMessage('end'));`,
      { workerData: hasEnded },
    );
    assert.deepEqual(await jobs(), { inner: 5, outer: 2 });
    assert.equal(registry.workerCount(), 2);
    outer.postMessage('end');
    // This thread's event loop does not deliver the last messages of the inner one.
    Atomics.wait(hasEnded, 0, 0);
    // The system may show it for a moment.
    while (registry.workerCount() === 2);
    assert.deepEqual(await jobs(), { inner: 5, outer: 2 });
  });

  const noTasks = !fs.existsSync('/proc/thread-self') && 'needs /proc/thread-self';

  it('a thread of a thread that is terminated leaves its counts', { skip: noTasks }, async () => {
    const inner = `${PRELUDE} counter.inc({ kind: 'inner' }, 5); new Gauge({ name: 'busy', help: 'h' }).set(1);
      parentPort.postMessage('ready'); ${STAYS}`;
    // The outer thread has not joined, and another inner thread stays.
    const outer = new Worker(
      `const { parentPort, Worker } = require('node:worker_threads');
      const code = ${JSON.stringify(inner)};
      const threads = [new Worker(code, { eval: true }), new Worker(code, { eval: true })];
      let ready = 0;
      for (const thread of threads)
        thread.once('message', () => ++ready === 2 && parentPort.postMessage('ready'));
      parentPort.on('message', () => threads[0].terminate().then(() => parentPort.postMessage('ended')));`,
      { eval: true },
    );
    threads.push(outer);
    await once(outer, 'message');
    assert.match(await registry.workerMetrics(), /^busy 2$/m);
    outer.postMessage('end');
    await once(outer, 'message');
    while (registry.workerCount() === 2) await turn();
    const page = await registry.workerMetrics();
    assert.match(page, /^jobs_total\{kind="inner"\} 10$/m);
    assert.match(page, /^busy 1$/m);
    await outer.terminate();
    while (registry.workerCount() === 1) await turn();
    assert.deepEqual(await jobs(), { inner: 10 });
  });

  it("what a thread of a thread counts in its 'exit' listeners is there", { skip: noTasks }, async () => {
    const words = new Int32Array(new SharedArrayBuffer(8));
    const inner = `${PRELUDE} const words = require('node:worker_threads').workerData;
      counter.inc({ kind: 'inner' }, 5);
      process.on('exit', () => {
        Atomics.store(words, 0, 1);
        Atomics.notify(words, 0);
        Atomics.wait(words, 1, 0);
        counter.inc({ kind: 'inner' });
        counter.inc({ kind: 'late' });
      });`;
    const outer = await start(
      `const { workerData } = require('node:worker_threads');
      const inner = new Worker(${JSON.stringify(inner)}, { eval: true, workerData });
      inner.once('exit', () => parentPort.postMessage('ended'));
      ${STAYS}`,
      { workerData: words },
    );
    await Atomics.waitAsync(words, 0, 0).value;
    // The library's listener has run.
    assert.deepEqual(await jobs(), { inner: 5 });
    Atomics.store(words, 1, 1);
    Atomics.notify(words, 1);
    await once(outer, 'message');
    while (registry.workerCount() === 2) await turn();
    assert.deepEqual(await jobs(), { inner: 6, late: 1 });
  });

  it(
    'a thread of a thread that exits during its collect hook is not waited for',
    { skip: noTasks, timeout: 60_000 },
    async () => {
      const inner = `${PRELUDE} counter.inc({ kind: 'inner' }, 5);
        new Gauge({
          name: 'slow',
          help: 'h',
          collect() {
            setImmediate(() => process.exit());
            return new Promise(() => {});
          },
        });
        setInterval(() => {}, 1000);
        parentPort.postMessage('ready');`;
      await start(`new Worker(${JSON.stringify(inner)}, { eval: true })
        .once('message', () => parentPort.postMessage('ready'));
        setInterval(() => {}, 1000);`);
      assert.match(await registry.workerMetrics({ timeout: 2 ** 31 - 1 }), /^jobs_total\{kind="inner"\} 5$/m);
    },
  );

  it('a custom metric object without a name, and metrics whose help or aggregator have no text, cost no other metric', async () => {
    const thread = await start(`
      const { register } = require(${LIBRARY});
      const name = { toString: null };
      const get = async () => ({ name: 'custom', help: 'h', type: 'gauge', values: [{ value: 1, labels: {} }] });
      register.registerMetric({ name, get });
      register.registerMetric({ name: 'other', get: async () => ({ ...(await get()), name: 'other' }) });
      new Counter({ name: 'unreadable_total', help: 'h', aggregator: { toString: null } }).inc();
      new Counter({ name: 'odd', help: 'h' }).help = { toString: null };
      counter.inc({ kind: 'a' }, 7);
      new Counter({ name: 'later_total', help: 'h' }).inc();
      parentPort.on('message', () => {
        counter.inc({ kind: 'b' }, 4);
        parentPort.postMessage('done');
      });
      parentPort.postMessage('ready');`);
    let page = await registry.workerMetrics();
    // A thread that does not respond in 250 ms, as on a busy machine, is not waited for.
    for (let more = 0; more < 20 && !/^other /m.test(page); more++) page = await registry.workerMetrics();
    const samples = page.split('\n').filter(line => line !== '' && !line.startsWith('#'));
    assert.deepEqual(samples.sort(), ['custom 1', 'jobs_total{kind="a"} 7', 'later_total 1', 'other 1']);
    thread.postMessage('go on');
    await once(thread, 'message');
    assert.deepEqual(await jobs(), { a: 7, b: 4 });
  });

  it('of two metrics of one name and different types, that of this thread or of the older thread is shown', async () => {
    new Counter({ name: 'size', help: 'h' }).inc(4);
    await start(
      `new Gauge({ name: 'size', help: 'h' }).set(7); new Gauge({ name: 'other', help: 'h' }).set(1); ${STAYS}`,
    );
    await start(`new Counter({ name: 'other', help: 'h' }).inc(2); ${STAYS}`);
    const page = await registry.workerMetrics({ selfMetrics: true });
    assert.match(page, /^# TYPE size counter\nsize 4$/m);
    assert.match(page, /^# TYPE other gauge\nother 1$/m);
    assert.match(page, /^prom_client_cluster_conflicts_total 2$/m);
  });

  it('a thread ends for its reader even if the program has removed all listeners of its Worker object', async () => {
    const thread = await start(`
      counter.inc({ kind: 'a' }, 3);
      new Gauge({ name: 'running', help: 'h' }).set(1);
      ${STAYS}`);
    assert.match(await registry.workerMetrics(), /^running 1$/m);
    thread.removeAllListeners();
    await thread.terminate();
    assert.equal(registry.workerCount(), 0);
    assert.doesNotMatch(await registry.workerMetrics(), /running/);
    assert.deepEqual(await jobs(), { a: 3 });
  });

  it('an ended thread hides no metric of a living one', async () => {
    const ended = await start(`new Counter({ name: 'size', help: 'h' }).inc(4); ${STAYS}`);
    await start(`new Gauge({ name: 'size', help: 'h' }).set(7); ${STAYS}`);
    await ended.terminate();
    assert.match(await registry.workerMetrics(), /^# TYPE size gauge\nsize 7$/m);
  });

  it('a thread that ends without a message, at its start, or before it joins, leaves nothing', async () => {
    await once(new Worker('', { eval: true }), 'exit');
    const early = new Worker(`${PRELUDE} process.exit();`, { eval: true });
    await once(early, 'exit');
    await new Worker(`${PRELUDE} for (;;);`, { eval: true }).terminate();
    assert.deepEqual(await jobs(), {});
    assert.equal(registry.workerCount(), 0);
  });

  /** The messages of a thread that joins. Its log has three chunks: a metric is defined in the second one. */
  function messagesOf(/** @type {string} */ thread, /** @type {object} */ more = {}) {
    /** @type {SharedArrayBuffer[]} */
    const chunks = [];
    const log = new LogWriter(chunk => void chunks.push(chunk));
    const fill = (/** @type {number} */ count) => {
      while (chunks.length < count) log.append(DROP, [9], 'x'.repeat(1000));
    };
    fill(2);
    log.append(DEFINE, [0], DEFINITION);
    fill(3);
    log.append(PAGE, [0, 0, 0, 1, 0]);
    log.append(ROW, [0, 0, 0, 0]);
    const memory = new SharedArrayBuffer(8);
    new Float64Array(memory)[0] = 5;
    const listening = new Int32Array(new SharedArrayBuffer(4));
    const [first, ...others] = chunks;
    const sent = [
      { join: true, listening, threadId: 10_000, ...more, parts: { chunks: [first] } },
      ...[{ memories: [[0, memory]] }, ...others.map(chunk => ({ chunks: [chunk] }))].map(parts => ({
        parts,
      })),
    ];
    return sent.map(message => ({ ...message, thread }));
  }

  /**
   * Calls a function each time the inbox was read to its end.
   *
   * @param {import('node:test').TestContext} t
   * @param {() => void} onEnd
   */
  function atEndOfInbox(t, onEnd) {
    const original = worker.receiveMessageOnPort;
    t.mock.method(worker, 'receiveMessageOnPort', (/** @type {any} */ port) => {
      const received = original(port);
      if (port.name === inboxOf('') && received === undefined) onEnd();
      return received;
    });
  }

  for (const isHeard of [false, true])
    it(`messages of a thread are applied in their order, also while it ${isHeard ? 'changes to a channel of its own' : 'joins'}`, async t => {
      const own = new BroadcastChannel(channelOf('x'));
      const [join, ...others] = messagesOf('x');
      inbox.postMessage(join);
      if (isHeard) {
        assert.equal(registry.workerCount(), 1);
        assert.deepEqual(join.listening, new Int32Array([1]));
      } else for (const message of others.splice(0, 2)) inbox.postMessage(message);
      // They arrive after the inbox was read, and before the channel is.
      atEndOfInbox(t, () => {
        for (const message of others.splice(0, 2)) inbox.postMessage(message);
        if (isHeard) for (const message of others.splice(0)) own.postMessage(message);
      });
      const page = await registry.workerMetrics();
      t.mock.restoreAll();
      own.close();
      assert.match(page, /^late_total 5$/m);
    });

  it('a thread that joins again is shown once, whichever of its messages is read first', async t => {
    const own = new BroadcastChannel(channelOf('x'));
    t.after(() => own.close());
    // From now on, the aggregator runs.
    await registry.workerMetrics({ selfMetrics: true });
    const [join, ...others] = messagesOf('x');
    inbox.postMessage(join);
    assert.equal(registry.workerCount(), 1);
    for (const message of others) own.postMessage(message);
    const again = messagesOf('y', { previous: 'x' });
    // They arrive after the inbox was read, and before the channel is.
    atEndOfInbox(t, () => {
      for (const message of again.splice(0)) inbox.postMessage(message);
    });
    const page = await registry.workerMetrics();
    t.mock.restoreAll();
    assert.match(page, /^late_total 5$/m);
    assert.equal(registry.workerCount(), 1);
  });

  it('a thread that runs out of shared memory while it joins shows what it has published', async () => {
    await startAs(`
      ${STARTS}
      counter.inc({ kind: 'a' }, 7);
      const large = new Gauge({ name: 'large', help: 'h', labelNames: ['l'] });
      for (let l = 0; l < 10_000; l++) large.set({ l }, 1);
      globalThis.SharedArrayBuffer = class extends SharedArrayBuffer {
        constructor(bytes) {
          if (bytes > 2 ** 17) throw new RangeError('Array buffer allocation failed');
          super(bytes);
        }
      };
      new WorkerRegistry();
      ${STAYS}`);
    assert.deepEqual(await jobs(), { a: 7 });
  });

  it('a thread that joins again shows its quantiles at once, even if it computes from then on', async () => {
    const thread = await startAs(`
      ${STARTS}
      new Summary({ name: 'seconds', help: 'h', percentiles: [0.5] }).observe(3);
      const registry = new WorkerRegistry();
      parentPort.on('message', async end => {
        await registry.shutdown();
        new WorkerRegistry();
        parentPort.postMessage('computes');
        while (Atomics.load(end, 0) === 0);
      });
      parentPort.postMessage('ready');`);
    const end = new Int32Array(new SharedArrayBuffer(4));
    thread.postMessage(end);
    await once(thread, 'message');
    assert.match(await registry.workerMetrics(), /^seconds\{quantile="0.5"\} 3$/m);
    Atomics.store(end, 0, 1);
  });

  it(
    'a scrape does not wait for a thread that leaves while its hook runs, and nobody is warned',
    {
      timeout: 60_000,
    },
    async () => {
      const thread = await startAs(`
      ${STARTS}
      const warnings = [];
      process.on('warning', ({ message }) => warnings.push(message));
      const registry = new WorkerRegistry();
      new Gauge({ name: 'hooked', help: 'h', async collect() {
        await registry.shutdown();
        await new Promise(resolve => parentPort.once('message', resolve));
        // The hook has ended by then.
        setImmediate(() => setImmediate(() => parentPort.postMessage(warnings)));
      } });
      ${STAYS}`);
      assert.match(await registry.workerMetrics({ timeout: 600_000 }), /^hooked/m);
      thread.postMessage('end');
      assert.deepEqual(await once(thread, 'message'), [[]]);
    },
  );
});
