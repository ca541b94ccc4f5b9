'use strict';

const assert = require('node:assert/strict');
const { fork } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const { startCluster, makePlace, until, LIBRARY } = require('../../fixtures/cluster-harness.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');

const tampering = {
  start: context => {
    context.require('../cluster/processes/fixtures/cluster-tampering').installTampering(context);
    const { client, state } = context;
    state.counter = new client.Counter({ name: 'done_total', help: 'h' });
    state.series = new client.Counter({ name: 'series_total', help: 'h', labelNames: ['number'] });
    /** Counts, and makes a new series. */
    state.record = () => {
      state.counter.inc();
      state.series.inc({ number: state.next++ });
    };
    state.next = 1;
  },
};
const record = ({ state }) => state.record();
const beHonest = ({ state }) => void (state.tamper = undefined);

/** How many of the workers' series a scrape shows. */
const seriesIn = samples => [...samples.keys()].filter(sample => sample.startsWith('series_total')).length;

function assertCounted(samples, count) {
  assert.equal(samples.get('done_total') ?? 0, count);
  assert.equal(seriesIn(samples), count);
}

/** What a scrape of a cluster shows that all workers' later counts add to. */
const totalOf = async cluster => (await cluster.scrape()).get('done_total') ?? 0;

describe('a message that is not ours is ignored', () => {
  const cluster = sharedCluster({ workers: 2, worker: tampering });
  const strange = [
    null,
    0,
    '',
    'prom-client:getMetricsRes',
    true,
    [],
    [null],
    {},
    { type: null },
    { type: {} },
    { type: 'prom-client:getMetricsReq', requestId: 1 },
    { type: 'prom-client-cluster:welcome', directory: '/', checkpointInterval: 'x' },
    { type: 'prom-client:getMetricsRes' },
    { type: 'prom-client:getMetricsRes', requestId: null },
    { type: 'prom-client:getMetricsRes', requestId: 0, metrics: [] },
    { type: 'prom-client:getMetricsRes', requestId: 987654, metrics: [[{ name: 'x' }]] },
    { type: 'prom-client:getMetricsRes', requestId: -1, error: 'e' },
    { type: 'prom-client:getMetricsRes', requestId: '1', error: 'e' },
    { type: 'prom-client:getMetricsRes', requestId: {}, file: '/etc/passwd' },
  ];
  const sendAll = ({ process }, messages) => messages.forEach(message => process.send(message));

  it('a strange message is ignored by the primary before, during and after a scrape', async () => {
    const total = await totalOf(cluster());
    await cluster().inWorker(1, sendAll, strange);
    await cluster().inWorkers([1, 2], record);
    await cluster().inWorker(
      1,
      ({ state }, messages) => {
        state.tamper = message => {
          for (const message of messages) state.send(message);
          return message;
        };
      },
      strange,
    );
    assert.equal(await totalOf(cluster()), total + 2);
    await cluster().inWorker(2, sendAll, strange);
    assert.equal(await totalOf(cluster()), total + 2);
    const { refused } = await cluster().internals();
    assert.deepEqual(refused, {});
    await cluster().inWorker(1, beHonest);
  });

  it('a strange message is ignored by a worker, which writes nothing outside the directory', async t => {
    const total = await totalOf(cluster());
    const id = await cluster().fork();
    const elsewhere = makePlace(t);
    const request = { type: 'prom-client:getMetricsReq', requestId: 77 };
    await cluster().run(
      ({ cluster }, id, messages) => messages.forEach(message => cluster.workers[id].send(message)),
      id,
      [
        ...strange.filter(message => message?.type !== request.type),
        { type: 'prom-client-cluster:welcome', directory: 5 },
        { type: 'prom-client-cluster:welcome', directory: elsewhere, checkpointInterval: '../evil' },
        { type: 'prom-client-cluster:welcome', directory: elsewhere, checkpointInterval: [100] },
      ],
    );
    await cluster().inWorker(id, record);
    assert.equal(await totalOf(cluster()), total + 1);
    await cluster().endWorker(id, ({ process, state }) => {
      state.record();
      process.exit();
    });
    assert.deepEqual(fs.readdirSync(elsewhere), []);
    assert.equal(await totalOf(cluster()), total + 2);
  });

  it('a file for a request that nobody waits for is removed unread', async () => {
    await totalOf(cluster());
    const { spool } = cluster();
    const file = `w1-r4711-${'a'.repeat(24)}.columns`;
    const others = [`w2-r4711-${'a'.repeat(24)}.columns`, `w1-r4712-${'a'.repeat(24)}.columns`, 'notes.txt'];
    for (const name of [file, ...others]) fs.writeFileSync(path.join(spool, name), 'x');
    await cluster().inWorker(
      1,
      ({ process }, files) => {
        // Before the response to a request, because a worker has no more responses than requests.
        const respond = message => {
          if (message.type !== 'prom-client:getMetricsReq') return;
          process.removeListener('message', respond);
          for (const file of files)
            process.send({ type: 'prom-client:getMetricsRes', requestId: 4711, file });
        };
        process.prependListener('message', respond);
      },
      [...others, file],
    );
    await totalOf(cluster());
    await until(() => !fs.existsSync(path.join(spool, file)), 'it is removed');
    for (const name of others) {
      assert.ok(fs.existsSync(path.join(spool, name)), name);
      fs.rmSync(path.join(spool, name));
    }
  });
});

describe('a file that cannot be used', () => {
  const shared = sharedCluster({ workers: 1, worker: tampering });

  it('a worker whose files cannot be used sends its snapshots over IPC, in the same scrape', async () => {
    const cluster = shared();
    for (const [what, tamper] of [
      ['removed', (message, spool) => require('node:fs').rmSync(`${spool}/${message.file}`)],
      ['emptied', (message, spool) => require('node:fs').truncateSync(`${spool}/${message.file}`)],
    ]) {
      const id = await cluster.fork();
      const counted = await totalOf(cluster);
      await cluster.inWorker(
        id,
        ({ require, state }, tamper) => {
          const run = new Function('require', `return ${tamper}`)(require);
          state.record();
          state.tamper = (message, spool) => {
            if (message.file !== undefined) run(message, spool);
            return message;
          };
        },
        String(tamper),
      );
      assert.equal(await totalOf(cluster), counted + 1, what);
      await cluster.inWorker(id, record);
      assert.equal(await totalOf(cluster), counted + 2, what);
      const left = cluster.spooledFiles().filter(name => name.startsWith(`w${id}-`));
      assert.deepEqual(left, []);
    }
  });
});

describe('a snapshot that does not fit is rejected and counted', () => {
  const shared = sharedCluster({ workers: 2, worker: tampering });

  it('a snapshot that does not fit is rejected and counted, and asked for again', async () => {
    // source-format.test.js has every code.
    const changes = {
      magic: bytes => void bytes.write('PK', 0),
      length: bytes => bytes.subarray(0, bytes.length - 24),
      EFBIG: bytes => Buffer.concat([bytes, Buffer.alloc(8)]),
      log: bytes => void bytes.writeDoubleLE(1e6, 72),
      checksum: bytes => void (bytes[48] ^= 1),
    };
    const cluster = shared();
    let total = await totalOf(cluster);
    for (const [reason, change] of Object.entries(changes)) {
      await cluster.inWorker(
        1,
        ({ require, state }, change) => {
          const { changeFile } = require('../cluster/processes/fixtures/cluster-tampering');
          state.record();
          state.tamper = (message, spool) => {
            state.tamper = undefined;
            changeFile(message, spool, new Function(`return ${change}`)());
            return message;
          };
        },
        String(change),
      );
      assert.equal(await totalOf(cluster), ++total, reason);
      assert.equal((await cluster.internals()).refused[reason], 1);
      assert.deepEqual(cluster.spooledFiles(), []);
    }
  });

  it('an answer that is no base64 at all, or JSON of something else, is rejected and counted', async () => {
    const cluster = shared();
    await cluster.inWorker(1, record);
    const total = await totalOf(cluster);
    const { refused: before } = await cluster.internals();
    const answers = [
      { source: '' },
      { source: '\u0000\uffff not base64' },
      { source: 'x'.repeat(100_000) },
      { source: 7 },
      { error: 'it did not work' },
      { error: null },
      {},
      // JSON text of its own, because the way to the worker would fail at it, too.
      '{"source":"","reason":{"toString":null}}',
      `{"metrics":${'['.repeat(4000)}${']'.repeat(4000)}}`,
      `{"error":${'['.repeat(4000)}${']'.repeat(4000)}}`,
    ];
    for (const answer of answers) {
      await cluster.inWorker(
        1,
        ({ state }, answer) => {
          const fields = typeof answer === 'string' ? JSON.parse(answer) : answer;
          state.tamper = ({ type, requestId }) => ({ type, requestId, ...fields });
        },
        answer,
      );
      assert.equal(await totalOf(cluster), total);
    }
    const { refused } = await cluster.internals();
    assert.equal(refused['worker-error'] - (before['worker-error'] ?? 0), 1);
    assert.equal(refused.answer - (before.answer ?? 0), 5);
    await cluster.inWorker(1, beHonest);
    await cluster.inWorker(1, record);
    assert.equal(await totalOf(cluster), total + 1);
  });

  it('a scrape is rejected with the error of its only worker', async t => {
    const cluster = await startCluster(t, { workers: 1, worker: tampering });
    await cluster.inWorker(1, ({ state }) => {
      state.tamper = ({ type, requestId }) => ({ type, requestId, error: 'it did not work' });
    });
    await assert.rejects(cluster.scrape(), { message: 'it did not work' });
    await cluster.inWorker(1, beHonest);
    await cluster.inWorker(1, record);
    assertCounted(await cluster.scrape(), 1);
    await cluster.end();
  });
});

describe('what crosses IPC', { concurrency: 3 }, () => {
  it('a scrape takes less than 768 bytes of IPC per worker, both ways, with many series', async t => {
    const cluster = await startCluster(t, { workers: 2, worker: tampering });
    await cluster.inWorkers([1, 2], ({ process, state }) => {
      for (let i = 0; i < 2000; i++) state.series.inc({ number: `a rather long label value ${i}` });
      state.received = [];
      process.on('message', message => {
        if (message?.type === 'prom-client:getMetricsReq') state.received.push(message);
      });
    });
    await cluster.run($ => void $.answers.splice(0));
    const scrapes = 3;
    for (let i = 0; i < scrapes; i++) {
      await cluster.inWorkers([1, 2], record);
      assert.ok(seriesIn(await cluster.scrape()) > 2000);
    }
    const answers = await cluster.run($ => $.answers);
    for (const id of [1, 2]) {
      const requests = await cluster.inWorker(id, ({ state }) => state.received);
      const own = answers
        .filter(({ workerId, message }) => workerId === id && message.type === 'prom-client:getMetricsRes')
        .map(({ message }) => message);
      assert.equal(requests.length, scrapes, 'one request a scrape');
      assert.equal(own.length, scrapes, 'one answer a scrape');
      requests.forEach((request, i) => {
        // As node writes them: a line of JSON each.
        const bytes = [request, own[i]].map(message => Buffer.byteLength(JSON.stringify(message)) + 1);
        assert.ok(bytes[0] + bytes[1] < 768, `${bytes}`);
        assert.equal(request.requestId, own[i].requestId);
        assert.ok(own[i].bytes > 0);
      });
      const grown = requests.at(-1).known.bytes - requests.at(-2).known.bytes;
      assert.ok(grown > 0 && grown < 1000, 'names are written once');
    }
    await cluster.end();
  });

  it('a worker sends nothing that nobody asked for', async t => {
    const cluster = await startCluster(t, { library: null, construct: false });
    await cluster.fork({ ...tampering, library: LIBRARY });
    await cluster.inWorker(1, record);
    await cluster.endWorker(1, ({ process }) => process.exit());
    const messages = (await cluster.run($ => $.answers)).map(({ message }) => message);
    const shown = messages.filter(message => !message.ready);
    assert.deepEqual(shown, []);
    await cluster.end();
  });

  it('a worker answers only the newest of several requests that have piled up', async t => {
    const cluster = await startCluster(t, { library: null, construct: false });
    await cluster.fork({ ...tampering, library: LIBRARY });
    const directory = fs.mkdtempSync(path.join(cluster.place, 'spool-'));
    const isColumns = name => name.endsWith('.columns');
    await cluster.inWorker(1, record);
    await cluster.signal(1, 'SIGSTOP');
    await cluster.run(({ cluster }, directory) => {
      for (let requestId = 1; requestId <= 5; requestId++) {
        cluster.workers[1].send({ type: 'prom-client:getMetricsReq', requestId, directory });
      }
    }, directory);
    await cluster.signal(1, 'SIGCONT');
    const responses = ({ answers }) =>
      answers.map(({ message }) => message).filter(({ type }) => type === 'prom-client:getMetricsRes');
    await until(
      async () => (await cluster.run(responses)).some(({ requestId }) => requestId === 5),
      'it answers',
    );
    // The worker answers calls in order: nothing more is on its way.
    await cluster.inWorker(1, record);
    const [answer, ...more] = await cluster.run(responses);
    assert.deepEqual(more, []);
    const file = path.join(directory, answer.file);
    assert.deepEqual(fs.readdirSync(directory).filter(isColumns), [answer.file]);
    assert.match(answer.file, /^w1-r5-[0-9a-f]{24}\.columns$/);
    const { size, mode } = fs.statSync(file);
    assert.equal(size, answer.bytes);
    if (process.platform !== 'win32') assert.equal(mode & 0o777, 0o600);
    cluster.release();
    await cluster.hasEnded();
    const [log, last, ...others] = fs
      .readdirSync(directory)
      .filter(name => name !== answer.file)
      .sort();
    assert.match(log, /^w1-[0-9a-f]{24}\.log$/);
    assert.match(last, /^w1-r0-[0-9a-f]{24}\.columns$/);
    assert.deepEqual(others, []);
  });
});

describe('listeners', { concurrency: 3 }, () => {
  it("a worker has one more 'message' listener and two more 'exit' listeners, by loading the library or otherwise", async t => {
    const cluster = await startCluster(t, { workers: 1, worker: { construct: true } });
    const added = await cluster.inWorker(1, ({ client, process, listenersAddedByLoading }) => {
      new client.AggregatorRegistry();
      new client.AggregatorRegistry();
      const counts = [process.listenerCount('message'), process.listenerCount('exit')];
      return { listenersAddedByLoading, counts };
    });
    assert.deepEqual(added.listenersAddedByLoading, { message: 1, exit: 2 });
    // One 'message' listener more is the test's own.
    const bare = await cluster.fork({ library: null, construct: false });
    const without = await cluster.inWorker(bare, ({ process }) => [
      process.listenerCount('message'),
      process.listenerCount('exit'),
    ]);
    assert.deepEqual(added.counts, [without[0] + 1, without[1] + 2]);
    await cluster.scrape({ without: [bare] });
    const afterwards = await cluster.inWorker(1, ({ process }) => [
      process.listenerCount('message'),
      process.listenerCount('exit'),
    ]);
    assert.deepEqual(afterwards, added.counts);
    await cluster.end();
  });

  it('a primary has no listener by loading the library, and five however many registries there are', async t => {
    const cluster = await startCluster(t, { construct: false });
    assert.deepEqual(await cluster.run($ => $.listenersAddedByLoading), { process: {}, cluster: {} });
    const counts = await cluster.run(({ cluster, construct }) => {
      const count = () =>
        ['fork', 'online', 'message', 'disconnect', 'exit'].map(name => cluster.listenerCount(name));
      const all = [count()];
      for (let i = 0; i < 20; i++) {
        construct();
        all.push(count());
      }
      return all;
    });
    const [before, first] = counts;
    const shown = first.map((count, i) => count - before[i]);
    assert.deepEqual(shown, [1, 1, 1, 1, 1]);
    assert.deepEqual(counts.at(-1), first);
    await cluster.end();
  });

  it('a plain fork has no listener, and ends by itself although its channel is open', async () => {
    const child = fork(path.join(__dirname, 'fixtures/cluster-plain-fork.js'), [LIBRARY]);
    const [{ added, text }] = await once(child, 'message');
    assert.deepEqual(added, {});
    assert.equal(text, '');
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
  });
});
