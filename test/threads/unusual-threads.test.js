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
const { HookRequests } = require('../../lib/threads/hook-requests');
const { LogWriter } = require('../../lib/source/shared-log');
const { REGISTRY, DEFINE, PAGE, ROW } = require('../../lib/source/log-records');
const { inboxOf, channelOf } = require('../../lib/threads/thread-messages');
const { joinedThread } = require('./fixtures/start-thread');

const { BroadcastChannel, Worker } = worker;
const LIBRARY = JSON.stringify(path.join(__dirname, '../../index.js'));
const STARTS = `
  const { parentPort, Worker } = require('node:worker_threads');
  const { Counter, Gauge, Summary, WorkerRegistry } = require(${LIBRARY});
  const counter = new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'] });
`;
const PRELUDE = `${STARTS} new WorkerRegistry();`;
const STAYS = `parentPort.postMessage('ready'); parentPort.on('message', () => {});`;

describe('unusual threads', () => {
  /** @type {WorkerRegistry} */
  let registry;
  /** @type {Worker[]} */
  let threads;

  beforeEach(() => {
    threads = [];
    registry = new WorkerRegistry({ timeout: 60_000 });
  });

  afterEach(async () => {
    await Promise.all(threads.map(thread => thread.terminate()));
    await registry.shutdown();
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

  it('a help text that is none costs its metric, and not the thread', async () => {
    const thread = await start(`
      new Counter({ name: 'odd', help: 'h' }).help = { toString: null };
      counter.inc({ kind: 'a' }, 3);
      parentPort.on('message', () => {
        counter.inc({ kind: 'b' }, 4);
        parentPort.postMessage('done');
      });
      parentPort.postMessage('ready');`);
    await turn();
    assert.deepEqual(await jobs(), { a: 3 });
    thread.postMessage('go on');
    await once(thread, 'message');
    assert.deepEqual(await jobs(), { a: 3, b: 4 });
  });

  it('a custom metric object without a name, and a metric whose aggregator has no text, cost no other metric', async () => {
    await start(`
      const { register } = require(${LIBRARY});
      const name = { toString: null };
      const get = async () => ({ name: 'custom', help: 'h', type: 'gauge', values: [{ value: 1, labels: {} }] });
      register.registerMetric({ name, get });
      register.registerMetric({ name: 'other', get: async () => ({ ...(await get()), name: 'other' }) });
      new Counter({ name: 'unreadable_total', help: 'h', aggregator: { toString: null } }).inc();
      counter.inc({ kind: 'a' }, 7);
      new Counter({ name: 'later_total', help: 'h' }).inc();
      ${STAYS}`);
    let page = await registry.workerMetrics();
    // A thread that does not respond in 250 ms, as on a busy machine, is not waited for.
    for (let more = 0; more < 20 && !/^other /m.test(page); more++) page = await registry.workerMetrics();
    const samples = page.split('\n').filter(line => line !== '' && !line.startsWith('#'));
    assert.deepEqual(samples.sort(), ['custom 1', 'jobs_total{kind="a"} 7', 'later_total 1', 'other 1']);
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

  it('a thread whose log is not valid leaves no open channel', t => {
    /** @type {string[]} */
    const opened = [];
    t.mock.method(worker, 'BroadcastChannel', function open(/** @type {string} */ name) {
      opened.push(name);
      return new BroadcastChannel(name);
    });
    const inbox = new BroadcastChannel(inboxOf(''));
    for (const bytes of [0, 4, 9]) {
      const join = new SharedArrayBuffer(bytes);
      inbox.postMessage({
        thread: `${bytes} bytes`,
        join,
        listening: new SharedArrayBuffer(4),
        threadId: 10_000,
      });
    }
    inbox.close();
    assert.equal(registry.workerCount(), 0);
    assert.deepEqual(opened, []);
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

  /** What a thread sends. Its log has three chunks: a metric is defined in the second one. */
  function longLog() {
    /** @type {SharedArrayBuffer[]} */
    const chunks = [];
    const log = new LogWriter(chunk => void chunks.push(chunk));
    const fill = (/** @type {number} */ count) => {
      while (chunks.length < count) log.append(REGISTRY, [0], JSON.stringify([['a', 'x'.repeat(1000)]]));
    };
    fill(1);
    log.append(DEFINE, [0, 0], definitionOf({ name: 'late_total' }));
    fill(2);
    log.append(REGISTRY, [0], '[]');
    log.append(PAGE, [0, 0, 0, 0, 1]);
    log.append(ROW, [0, 0, 0, 0]);
    const memory = new SharedArrayBuffer(8);
    new Float64Array(memory)[0] = 5;
    const listening = new Int32Array(new SharedArrayBuffer(4));
    const join = {
      thread: 'x',
      join: log.first,
      listening: listening.buffer,
      threadId: 10_000,
      published: true,
    };
    return { join, listening, memory: { thread: 'x', memory, memoryNumber: 0 }, chunks };
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

  it('messages of a thread are applied in their order, also while it changes to a channel of its own', async t => {
    const inbox = new BroadcastChannel(inboxOf(''));
    const own = new BroadcastChannel(channelOf('x'));
    const { join, listening, memory, chunks } = longLog();
    inbox.postMessage(join);
    assert.equal(registry.workerCount(), 1);
    assert.deepEqual(listening, new Int32Array([1]));
    // They arrive after the inbox was read, and before the channel is.
    atEndOfInbox(t, () => {
      if (chunks.length === 0) return;
      inbox.postMessage(memory);
      inbox.postMessage({ thread: 'x', chunk: chunks.shift() });
      own.postMessage({ thread: 'x', chunk: chunks.shift() });
    });
    const page = await registry.workerMetrics();
    t.mock.restoreAll();
    inbox.close();
    own.close();
    assert.match(page, /^late_total 5$/m);
  });

  it('messages of a thread are applied in their order, also those that arrive while it joins', async t => {
    const inbox = new BroadcastChannel(inboxOf(''));
    const { join, memory, chunks } = longLog();
    for (const message of [join, memory, { thread: 'x', chunk: chunks.shift() }]) inbox.postMessage(message);
    atEndOfInbox(t, () => {
      if (chunks.length > 0) inbox.postMessage({ thread: 'x', chunk: chunks.shift() });
    });
    assert.equal(registry.workerCount(), 1);
    t.mock.restoreAll();
    const page = await registry.workerMetrics();
    inbox.close();
    assert.match(page, /^late_total 5$/m);
  });

  it('a copy takes only the answers to its own requests', t => {
    /** @type {any[]} */
    const sent = [];
    const [one, other] = [1, 2].map(() => new HookRequests(message => sent.push(message)));
    t.after(() => [one, other].forEach(requests => requests.end()));
    for (const requests of [one, other]) requests.collect('jobs_total');
    const shown = sent.map(({ request }) => [one.isCurrent(request), other.isCurrent(request)]);
    assert.deepEqual(shown, [
      [true, false],
      [false, true],
    ]);
  });

  it('a thread is shown when it has published all; one that joins again with its former numbers until then', async () => {
    const inbox = new BroadcastChannel(inboxOf(''));
    const first = longLog();
    inbox.postMessage({ ...first.join, published: undefined });
    for (const message of [first.memory, ...first.chunks.map(chunk => ({ thread: 'x', chunk }))])
      inbox.postMessage(message);
    assert.equal(registry.workerCount(), 0);
    assert.equal(await registry.workerMetrics(), '');
    inbox.postMessage({ thread: 'x', published: true });
    assert.match(await registry.workerMetrics(), /^late_total 5$/m);
    const again = longLog();
    inbox.postMessage({ ...again.join, thread: 'y', previous: 'x', published: undefined });
    assert.match(await registry.workerMetrics(), /^late_total 5$/m);
    assert.equal(registry.workerCount(), 1);
    for (const message of [again.memory, ...again.chunks.map(chunk => ({ chunk }))])
      inbox.postMessage({ ...message, thread: 'y' });
    inbox.postMessage({ thread: 'y', published: true });
    assert.match(await registry.workerMetrics(), /^late_total 5$/m);
    inbox.close();
  });

  it('a thread that joins again is shown once, whichever of its messages is read first', async t => {
    const [inbox, own] = [inboxOf(''), channelOf('x')].map(name => new BroadcastChannel(name));
    t.after(() => [inbox, own].forEach(channel => channel.close()));
    // From now on, the aggregator runs.
    await registry.workerMetrics({ selfMetrics: true });
    const first = longLog();
    inbox.postMessage({ ...first.join, published: undefined });
    assert.equal(registry.workerCount(), 0);
    own.postMessage(first.memory);
    for (const chunk of first.chunks) own.postMessage({ thread: 'x', chunk });
    own.postMessage({ thread: 'x', published: true });
    const again = longLog();
    const join = { ...again.join, previous: 'x', published: undefined };
    const sent = [join, again.memory, ...again.chunks.map(chunk => ({ chunk })), { published: true }];
    // They arrive after the inbox was read, and before the channel is.
    atEndOfInbox(t, () => {
      for (const message of sent.splice(0)) inbox.postMessage({ ...message, thread: 'y' });
    });
    const page = await registry.workerMetrics();
    t.mock.restoreAll();
    assert.match(page, /^late_total 5$/m);
    assert.equal(registry.workerCount(), 1);
  });

  it('a thread that joins again, and ends before it has published all, is gone; its former counts stay', async t => {
    const inbox = new BroadcastChannel(inboxOf(''));
    t.after(() => inbox.close());
    const first = longLog();
    inbox.postMessage(first.join);
    for (const message of [first.memory, ...first.chunks.map(chunk => ({ thread: 'x', chunk }))])
      inbox.postMessage(message);
    assert.equal(registry.workerCount(), 1);
    // Without /proc, only this message says that it has ended.
    inbox.postMessage({ ...longLog().join, thread: 'y', previous: 'x', published: undefined });
    inbox.postMessage({ thread: 'y', ended: true });
    assert.equal(registry.workerCount(), 0);
    assert.match(await registry.workerMetrics(), /^late_total 5$/m);
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

  it('a scrape does not wait for a thread that leaves while its hook runs', { timeout: 60_000 }, async () => {
    await startAs(`
      ${STARTS}
      const registry = new WorkerRegistry();
      new Gauge({ name: 'hooked', help: 'h', async collect() {
        await registry.shutdown();
        await new Promise(() => {});
      } });
      ${STAYS}`);
    assert.match(await registry.workerMetrics({ timeout: 600_000 }), /^hooked/m);
  });

  it('a thread that leaves while its hook runs is warned of nothing', { timeout: 60_000 }, async () => {
    const thread = await startAs(`
      ${STARTS}
      const warnings = [];
      process.on('warning', ({ message }) => warnings.push(message));
      const registry = new WorkerRegistry();
      new Gauge({ name: 'hooked', help: 'h', async collect() {
        await registry.shutdown();
        // The hook has ended by then.
        setImmediate(() => setImmediate(() => parentPort.postMessage(warnings)));
      } });
      ${STAYS}`);
    const warned = once(thread, 'message');
    await registry.workerMetrics();
    assert.deepEqual(await warned, [[]]);
  });

  it('names that are not valid affect only the thread that has shared them', async () => {
    const good = await joinedThread(['inc', { kind: 'a', value: 2 }]);
    threads.push(good.worker);
    const inbox = new BroadcastChannel('prom-client-cluster.threads.v1.inbox.');
    for (const [i, [defaultLabels, labelNames]] of [
      [[['not valid', 'x']], []],
      [[], ['not valid']],
      [[], ['a', 'a']],
    ].entries()) {
      const log = new SharedArrayBuffer(1024);
      const words = new Int32Array(log);
      const text = definitionOf({ labelNames });
      words[0] = write(words, write(words, 2, 1, [0], JSON.stringify(defaultLabels)), 2, [0, 0], text);
      const listening = new SharedArrayBuffer(4);
      inbox.postMessage({ thread: `bad${i}`, join: log, listening, threadId: 10_000 + i, published: true });
    }
    inbox.close();
    assert.deepEqual(await jobs(), { a: 2 });
    await good.do('inc', { kind: 'a', value: 1 });
    assert.deepEqual(await jobs(), { a: 3 });
  });

  it('memory that is not valid affects only the thread that has shared it', async () => {
    const good = await joinedThread(['inc', { kind: 'a', value: 2 }]);
    threads.push(good.worker);
    const inbox = new BroadcastChannel('prom-client-cluster.threads.v1.inbox.');
    const random = randomOf(1);
    for (let i = 0; i < 300; i++) {
      const log = new SharedArrayBuffer(256);
      const words = new Int32Array(log);
      for (let word = 2; word < words.length; word++) words[word] = Math.floor(random() ** 4 * 40);
      // Records that are whole: a registry, a metric with one label, then anything.
      const end = write(words, 2, 1, [0], '[]');
      const start = i % 2 === 0 ? 2 : write(words, end, 2, [0, 0], '{"a":');
      words[0] = start + Math.floor(random() * 60);
      const thread = `bad${i}`;
      inbox.postMessage({
        thread,
        join: log,
        listening: new SharedArrayBuffer(4),
        threadId: 10_000 + i,
        published: true,
      });
      inbox.postMessage({ thread, memory: new SharedArrayBuffer(8 * (i % 9)), memoryNumber: i % 40 });
      inbox.postMessage({ thread, chunk: new SharedArrayBuffer(i % 20) });
      inbox.postMessage({ thread, extras: { digests: [[0, 0, new Float64Array(3)]] }, hook: i, failed: 5 });
      if (i % 3 === 0) inbox.postMessage({ thread, ended: true });
    }
    inbox.close();
    assert.deepEqual(await jobs(), { a: 2 });
    await good.do('inc', { kind: 'a', value: 1 });
    assert.deepEqual(await jobs(), { a: 3 });
  });
});

/** @param {object} fields */
function definitionOf(fields) {
  const metric = { name: 'm', help: 'h', type: 'counter', aggregator: 'sum', labelNames: [] };
  return JSON.stringify({
    ...metric,
    layout: { kind: 'value', marks: [] },
    width: 1,
    pageShift: 0,
    ...{ exemplarWidth: 0, maxIdleSeconds: 0, expiredCount: 0 },
    ...fields,
  });
}

/**
 * @param {Int32Array} words
 * @param {number} start
 * @param {number} kind
 * @param {number[]} integers
 * @param {string} text
 * @returns {number} where the next record begins
 */
function write(words, start, kind, integers, text) {
  words.set([kind, integers.length, text.length, ...integers], start);
  const textStart = start + 3 + integers.length;
  Buffer.from(/** @type {any} */ (words.buffer)).write(text, textStart * 4);
  return textStart + Math.ceil(text.length / 4);
}

/** @param {number} seed */
function randomOf(seed) {
  let state = seed;
  return () => (state = (state * 16807) % 2147483647) / 2147483647;
}
