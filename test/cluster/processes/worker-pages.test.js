'use strict';

// The cluster's page, asked for in a worker.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const { startCluster, until, LIBRARY, STOCK } = require('../../fixtures/cluster-harness.js');
const { counting, page, pagesIn } = require('../../fixtures/page-worker.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');

const NOBODY =
  /^Error: Nobody aggregates this cluster's metrics: create an AggregatorRegistry.* PROM_CLIENT_NO_AGGREGATOR$/s;

const count = ({ cluster, state }) => state.counter.inc({ worker: cluster.worker.id });
/** The error of a page, as text. */
const failureOf = ({ state }, options) =>
  state.page(options).then(
    () => 'none',
    error => `${error} ${error.code}`,
  );
const totalsIn = text =>
  Array.from(text.matchAll(/^done_total\{worker="(\d+)"\} (\d+)$/gm), match => match.slice(1).map(Number));

describe('the page from a worker', () => {
  const cluster = sharedCluster({ workers: 3, worker: counting });

  it('the page from a worker is that of the primary, in any worker', async () => {
    const expected = await cluster().text();
    assert.deepEqual(totalsIn(expected), [
      [1, 1],
      [2, 1],
      [3, 1],
    ]);
    assert.deepEqual(await cluster().inWorkers([1, 2, 3], page), [expected, expected, expected]);
  });

  it('the page from a worker has everything that was counted before the call, though calls follow each other closely', async () => {
    for (let times = 2; times < 6; times++) {
      await cluster().inWorkers([1, 2, 3], count);
      for (const id of [1, 2]) {
        assert.deepEqual(totalsIn(await cluster().inWorker(id, page)), [
          [1, times],
          [2, times],
          [3, times],
        ]);
      }
    }
  });

  it('the page from a worker comes as a file, whose name crosses the link, and of which nothing is left', async () => {
    const messages = await cluster().inWorker(1, async ({ state }) => {
      state.messages.length = 0;
      await state.page();
      return state.messages;
    });
    const shown = messages.map(message => Object.keys(message));
    assert.deepEqual(shown, [['type', 'pageId', 'file', 'bytes']]);
    assert.match(messages[0].file, /^w1-p\d+-[0-9a-f]{24}\.page$/);
    assert.deepEqual(pagesIn(cluster().spool), []);
  });

  it('the page from a worker is shared by concurrent callers', async () => {
    const [texts, requests] = await cluster().inWorker(2, async ({ state }) => {
      state.messages.length = 0;
      const texts = await Promise.all(Array.from({ length: 100 }, () => state.page()));
      return [[...new Set(texts)], state.messages.length];
    });
    assert.equal(texts.length, 1);
    assert.equal(requests, 1);
  });

  it('the page from a worker has exemplars in OpenMetrics', async () => {
    await cluster().inWorkers([1, 2], ({ client, cluster, state }) => {
      const registers = [new client.Registry(client.Registry.OPENMETRICS_CONTENT_TYPE)];
      client.AggregatorRegistry.setRegistries([client.register, ...registers]);
      const names = { name: 'traced_total', help: 'h', enableExemplars: true, registers };
      new client.Counter(names).inc({ value: 1, exemplarLabels: { trace: `of ${cluster.worker.id}` } });
      const type = client.Registry.OPENMETRICS_CONTENT_TYPE;
      state.openMetrics = new client.AggregatorRegistry(type, { timeout: 60_000 });
    });
    const text = await cluster().inWorker(2, ({ state }) => state.openMetrics.clusterMetrics());
    assert.match(text, /^traced_total 2.* # \{trace="of [12]"\} 1 /m);
    assert.ok(text.endsWith('# EOF\n'));
  });

  it('the page from a worker shows the last numbers of a worker that hangs', async () => {
    const before = totalsIn(await cluster().inWorker(1, page));
    await cluster().inWorkers([1, 2, 3], count);
    await cluster().signal(3, 'SIGSTOP');
    await cluster().scrape({ without: [3] });
    await cluster().inWorkers([1, 2], count);
    const after = totalsIn(await cluster().inWorker(1, page));
    await cluster().signal(3, 'SIGCONT');
    const expected = before.map(([id, total]) => [id, id === 3 ? total : total + 2]);
    assert.deepEqual(after, expected);
    await cluster().inWorkers([3], count);
    const hasAll = async () => totalsIn(await cluster().inWorker(1, page))[2][1] === before[2][1] + 2;
    await until(hasAll, 'worker 3 answers again');
  });

  it('the page from a worker is right although the thread ends meanwhile', async () => {
    await cluster().inWorkers([1, 2, 3], count);
    const [, text] = await Promise.all([
      cluster().run(({ threads }) => threads.at(-1).terminate()),
      cluster().inWorker(1, page),
    ]);
    assert.equal(text, await cluster().inWorker(2, page));
  });

  it('the page from a worker is removed if its callers do not wait any more', async () => {
    const names = ['w1-p900000-', 'w2-p900000-'].map(start => `${start}${'0'.repeat(24)}.page`);
    for (const name of names) fs.writeFileSync(path.join(cluster().spool, name), '');
    await cluster().inWorker(
      1,
      ({ process }, names) => {
        for (const file of names)
          process.emit('message', { type: 'prom-client-cluster:page', pageId: 900_000, file });
        process.emit('message', { type: 'prom-client-cluster:page', pageId: 1, file: '../../x' });
      },
      names,
    );
    assert.deepEqual(pagesIn(cluster().spool), [names[1]], 'of another worker');
    fs.rmSync(path.join(cluster().spool, names[1]));
  });

  it('the page from a worker is right although the primary sends answers of any form', async () => {
    const shown = await cluster().inWorker(1, async ({ process, state }) => {
      const shown = state.page();
      const untextable = { toString: null, valueOf: null };
      for (let pageId = 0; pageId < 1000; pageId++) {
        process.emit('message', {
          type: 'prom-client-cluster:page',
          pageId,
          page: untextable,
          file: untextable,
        });
      }
      return shown;
    });
    assert.equal(shown, await cluster().inWorker(2, page));
  });

  it('the page from a worker is removed if its worker is killed before it reads it', async () => {
    const id = await cluster().fork();
    await cluster().inWorker(id, ({ process, state }) => {
      const { emit } = process;
      process.emit = (event, message, ...rest) =>
        message?.type !== 'prom-client-cluster:page' && emit.call(process, event, message, ...rest);
      void state.page();
    });
    await until(() => pagesIn(cluster().spool).length === 1, 'its page is written');
    const { retired } = await cluster().internals();
    await cluster().killWorker(id);
    await until(async () => (await cluster().internals()).retired === retired + 1, 'it is retired');
    assert.deepEqual(pagesIn(cluster().spool), []);
  });

  it('the page from a worker costs a bounded number of rounds, however often a hostile worker asks', async () => {
    const id = await cluster().fork();
    const { refused } = await cluster().internals();
    const rounds = await cluster().run(async ({ answers, cluster }, id) => {
      answers.length = 0;
      cluster.workers[id].send({
        call: -1,
        args: [],
        source: String(({ process }) => {
          const type = 'prom-client-cluster:page';
          const format = { format: 'text', gzip: false, selfMetrics: false };
          const invalid = [
            {},
            { format: 5 },
            { format: null },
            { format: { names: [5] } },
            { format: { names: Array(1000).fill('x'.repeat(2000)) } },
            { format, timeout: '5' },
          ];
          for (const fields of invalid) process.send({ type, pageId: 1, timeout: 5, ...fields });
          for (const pageId of ['1', -1, NaN, 1e300]) process.send({ type, pageId, format, timeout: 5 });
          for (let pageId = 1; pageId <= 1000; pageId++)
            process.send({ type, pageId, format, timeout: 60_000 });
        }),
      });
      const isOf = (message, type) => message?.type === type;
      const ofWorker = type =>
        answers.filter(({ workerId, message }) => workerId === id && isOf(message, type));
      while (ofWorker('prom-client-cluster:page').length < 1010)
        await new Promise(resolve => setImmediate(resolve));
      return ofWorker('prom-client:getMetricsRes').length;
    }, id);
    assert.ok(rounds <= 2, `${rounds} rounds`);
    const refusals = (await cluster().internals()).refused.answer - (refused.answer ?? 0);
    assert.equal(refusals, 10 + 1000 - 64);
    const ids = totalsIn(await cluster().inWorker(1, page)).map(([workerId]) => workerId);
    assert.ok(ids.includes(id), 'others get their pages');
    const { retired } = await cluster().internals();
    await cluster().killWorker(id);
    await until(async () => (await cluster().internals()).retired === retired + 1, 'it is retired');
    // Possibly a moment later, if one was being written.
    await until(async () => pagesIn(cluster().spool).length === 0, 'its pages are removed');
  });
});

describe('the page from a worker of a cluster that nobody aggregates', () => {
  it('the page from a worker of a cluster that nobody aggregates is an error until the primary aggregates, and again after close()', async t => {
    const cluster = await startCluster(t, { construct: false, workers: 1, worker: counting });
    assert.match(await cluster.inWorker(1, failureOf), NOBODY);
    const { status, body } = await cluster.inWorker(1, async ({ client, require, state }) => {
      const server = require('node:http').createServer(client.metricsHandler(state.aggregator));
      await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
      const response = await fetch(`http://127.0.0.1:${server.address().port}`);
      await new Promise(resolve => server.close(resolve));
      return { status: response.status, body: await response.text() };
    });
    assert.equal(status, 503);
    assert.match(`Error: ${body.trim()} PROM_CLIENT_NO_AGGREGATOR`, NOBODY);

    await cluster.run($ => void ($.aggregator = $.construct()));
    await until(async () => (await cluster.inWorker(1, failureOf)) === 'none', 'the worker gets pages');
    assert.deepEqual(totalsIn(await cluster.inWorker(1, page)), [[1, 1]]);

    await cluster.run($ => $.aggregator.close());
    assert.match(await cluster.inWorker(1, failureOf), NOBODY);
    await cluster.run($ => void ($.aggregator = $.construct()));
    await until(async () => (await cluster.inWorker(1, failureOf)) === 'none', 'the worker gets pages again');
    await cluster.end();
  });

  it('the page from a worker of a cluster that nobody aggregates is an error if the primary runs prom-client', async t => {
    const worker = { ...counting, library: LIBRARY };
    const cluster = await startCluster(t, { library: STOCK, workers: 1, worker });
    assert.equal((await cluster.scrape()).get('done_total{worker="1"}'), 1);
    assert.match(await cluster.inWorker(1, failureOf), NOBODY);
    await cluster.end();
  });
});
