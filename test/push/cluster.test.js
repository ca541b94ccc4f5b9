'use strict';

// Pushes of a whole cluster: the aggregator builds and sends them.

const assert = require('node:assert');
const { after, before, beforeEach, describe, it } = require('node:test');
const client = require('../..');
const { samples } = require('../../lib/testing/testing');
const { sharedCluster } = require('../fixtures/shared-cluster');
const { startCluster, until } = require('../fixtures/cluster-harness');
const { TestGroup } = require('../fixtures/group');
const { joinedThread } = require('../threads/fixtures/start-thread');
const { FakeReceiver, accept, nameOf } = require('./fixtures/receiver');

const { Counter, RemoteWrite, WorkerRegistry, register } = client;

const labels = { instance: 'box-1', job: 'shop' };

/** A receiver for all tests of a suite; `answer` is what it does. */
function sharedReceiver() {
  const shared = { answer: accept, count: 0 };
  before(async () => {
    shared.receiver = await FakeReceiver.start((response, request) =>
      shared.answer(response, request, ++shared.count),
    );
    shared.url = shared.receiver.url;
  });
  beforeEach(() => {
    shared.answer = accept;
    shared.count = 0;
    shared.receiver.requests = [];
  });
  after(() => shared.receiver.stop());
  return shared;
}

/** Pushes once from the primary, with a new RemoteWrite if there are options. */
function push(cluster, url, options) {
  return cluster.run(
    ($, url, options) => {
      if (options) $.remoteWrite = new $.client.RemoteWrite(url, options, $.aggregator);
      return $.remoteWrite.push();
    },
    url,
    options,
  );
}

const resultsOf = (receiver, name) => receiver.results(name, labels);

/** Metrics of every kind in a worker. */
function record({ client }, id) {
  client.register.setContentType(client.Registry.OPENMETRICS_CONTENT_TYPE);
  const labelNames = ['path', 'Method'];
  const counter = new client.Counter({
    name: 'requests_total',
    help: 'h1',
    labelNames,
    enableExemplars: true,
  });
  counter.inc({ labels: { path: 'a"b\\c\nd' }, value: id, exemplarLabels: { trace: `t${id}` } });
  counter.inc({ labels: { path: `/${id}`, Method: 'GET' }, value: 0.1 });
  new client.Gauge({ name: 'temperature', help: 'h' }).set(id / 3);
  const histogram = new client.Histogram({ name: 'sizes', help: 'h', labelNames, buckets: [0.1, 1] });
  histogram.observe({ path: '/' }, id);
  new client.Summary({ name: 'times', help: 'h', percentiles: [0.5] }).observe(id);
}

for (const inPlace of process.env.EVERY_VARIANT ? [false, true] : [false]) {
  describe(`RemoteWrite of a cluster${inPlace ? ', in place' : ''}`, () => {
    const contentType = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
    const shared = sharedReceiver();
    const started = sharedCluster({ workers: 2, contentType, options: { inPlace } });
    let cluster;

    before(async () => {
      cluster = started();
      for (const id of [1, 2]) await cluster.inWorker(id, record, id);
    });

    for (const protocol of ['1.0', '2.0']) {
      it(`version ${protocol} has the samples of the page, with exemplars`, async () => {
        const result = await push(cluster, shared.url, { labels, protocol });
        const page = await samples(await cluster.text({ selfMetrics: true }));
        // Durations of scrapes, for example, change from one to the next.
        const comparable = (name, value) => (name.startsWith('prom_client_') ? 'any' : value);
        const expected = page.map(({ name, labels: own, value }) => [
          JSON.stringify(
            Object.entries({ ...labels, ...own, __name__: name })
              .filter(([, text]) => text !== '')
              .sort(),
          ),
          comparable(name, value),
        ]);
        const received = [...shared.receiver.series.values()].flatMap(({ labels: pairs, value }) => {
          const name = new Map(pairs).get('__name__');
          if (name.startsWith('prom_client_cluster_remote_write_')) return [];
          return [[JSON.stringify([...pairs].sort()), comparable(name, value)]];
        });
        assert.deepStrictEqual(new Map(received), new Map(expected));
        assert.deepStrictEqual(result, { protocol, samples: expected.length + 8, dropped: 0 });
        const [{ type, help, exemplar }] = shared.receiver.seriesOf('requests_total');
        assert.deepStrictEqual([type, help], ['counter', 'h1']);
        assert.match(exemplar.labels[0][1], /^t[12]$/);
      });
    }

    it('has native histograms if it is told to, and since when series count, also when a worker has ended', async () => {
      const begun = Math.floor(Date.now() / 1000) * 1000;
      const observe = ({ client }, values) => {
        const options = { buckets: [], nativeHistogramBucketFactor: 2, labelNames: ['kind'] };
        const metric = new client.Histogram({ name: 'native', help: 'h', ...options });
        for (const value of values) metric.observe({ kind: 'a' }, value);
      };
      const id = await cluster.fork();
      await cluster.inWorker(id, observe, [1, 3, -2]);
      await cluster.inWorker(1, observe, [3, 3, 0]);
      const expected = {
        ...{ count: 6, schema: 0, zeroThreshold: 2 ** -128, zeroCount: 1 },
        ...{ positive: { indices: [0, 2], counts: [1, 3] }, negative: { indices: [1], counts: [1] } },
      };
      const starts = [];
      const check = () => {
        const [native, ...others] = shared.receiver.seriesOf('native');
        assert.deepStrictEqual([native.histogram, native.value, others], [expected, 8, []]);
        starts.push(native.start, shared.receiver.seriesOf('requests_total')[0].start);
      };
      await push(cluster, shared.url, { labels, protocol: '2.0', nativeHistograms: true });
      check();
      await cluster.run(($, worker) => $.cluster.workers[worker].disconnect(), id);
      await cluster.gone(id);
      await push(cluster);
      check();
      assert.deepStrictEqual(starts.slice(2), starts.slice(0, 2));
      assert.ok(starts[0] >= begun && starts[0] <= Date.now() && starts[1] <= starts[0], starts.join());
      await cluster.inWorker(1, ({ client: { register } }) => register.removeSingleMetric('native'));
    });

    it('a series of a worker that has ended gets a stale marker, unless others have it', async () => {
      const id = await cluster.fork();
      await cluster.inWorker(id, ({ client }) => {
        new client.Gauge({ name: 'short', help: 'h' }).set(1);
        new client.Gauge({ name: 'temperature', help: 'h' }).set(100);
        new client.Counter({ name: 'jobs_total', help: 'h' }).inc(5);
      });
      await push(cluster, shared.url, { labels });
      assert.strictEqual(shared.receiver.seriesOf('short')[0].value, 1);
      await cluster.run(($, id) => $.cluster.workers[id].disconnect(), id);
      await cluster.gone(id);
      await push(cluster);
      const values = ['short', 'temperature', 'jobs_total'].map(
        name => shared.receiver.seriesOf(name)[0].value,
      );
      assert.deepStrictEqual(values, ['stale', 1 / 3 + 2 / 3, 5]);
    });

    it("a metric with an aggregator of the application's own is pushed as it aggregates", async () => {
      await cluster.run(({ client }) => {
        client.aggregators.largest = ([{ name, help, type, values }, ...others]) => {
          const all = [values, ...others.map(metric => metric.values)].map(([{ value }]) => value);
          return { name, help, type, values: [{ labels: {}, value: Math.max(...all) }] };
        };
      });
      await cluster.inWorkers([1, 2], ({ client, cluster }) =>
        new client.Gauge({ name: 'top', help: 'h', aggregator: 'largest' }).set(cluster.worker.id * 3),
      );
      await push(cluster, shared.url, { labels });
      const shown = shared.receiver.seriesOf('top').map(({ value }) => value);
      assert.deepStrictEqual(shown, [6]);
    });

    it('while a receiver hangs, the page is served, and a newer push ends the older one', async () => {
      let arrived;
      const hanging = new Promise(resolve => (arrived = resolve));
      shared.answer = (response, request, count) => {
        if (count > 1) {
          accept(response, request);
          return;
        }
        // A minute's pause: the test ends earlier only if the second push cuts it short.
        response.writeHead(503, { 'Retry-After': '60' }).end();
        response.on('close', arrived);
      };
      const first = push(cluster, shared.url, { labels, protocol: '1.0' });
      await hanging;
      assert.match(await cluster.text(), /requests_total/);
      await Promise.all([assert.rejects(first, /status 503/), push(cluster)]);
      assert.strictEqual(shared.receiver.requests.length, 2);
    });

    it('stop() ends after its timeout, and nothing is sent then, whether the push or the end is under way', async () => {
      const pause = response => response.writeHead(503, { 'Retry-After': '60' }).end();
      for (const accepted of [0, 1]) {
        let arrived;
        const waiting = new Promise(resolve => (arrived = resolve));
        shared.receiver.requests = [];
        shared.count = 0;
        shared.answer = (response, request, count) => {
          if (count <= accepted + 1) accept(response, request);
          else {
            pause(response);
            response.on('close', arrived);
          }
        };
        await push(cluster, shared.url, { labels, protocol: '1.0' });
        await cluster.run($ => {
          const { setTimeout } = globalThis;
          globalThis.setTimeout = (callback, milliseconds, ...args) => {
            if (milliseconds === 500_000) $.state.expire = callback;
            return setTimeout(callback, milliseconds, ...args);
          };
          $.state.stopped = $.remoteWrite.stop({ timeout: 500_000 });
          globalThis.setTimeout = setTimeout;
        });
        await waiting;
        await cluster.run(({ state }) => {
          state.expire();
          return state.stopped;
        });
        assert.strictEqual(shared.receiver.requests.length, accepted + 2);
        shared.answer = accept;
        // They are counted when the thread has given up.
        await until(async () => {
          await push(cluster);
          return resultsOf(shared.receiver, 'pushes').failed === 1;
        }, 'the push that was given up is counted');
        const { failed } = resultsOf(shared.receiver, 'samples');
        assert.ok(failed > 0);
        await cluster.run($ => $.remoteWrite.stop());
      }
    });

    if (inPlace) return;

    it('the process of the primary loads nothing that builds or sends', async () => {
      await push(cluster, shared.url, { labels });
      const loaded = await cluster.run($ => Object.keys($.require.cache));
      assert.ok(loaded.some(file => /push.aggregator-sender\.js$/.test(file)));
      const building = /remote-write-session|written-series|write-request|protobuf|receiver|snappy/;
      const shown = loaded.filter(file => building.test(file));
      assert.deepStrictEqual(shown, []);
    });

    it('a push whose thread ends is rejected and counted, and the next one goes on', async () => {
      await push(cluster, shared.url, { labels, protocol: '1.0' });
      const { pushed } = resultsOf(shared.receiver, 'samples');
      assert.strictEqual(pushed, 0);
      let arrived;
      const hanging = new Promise(resolve => (arrived = resolve));
      shared.answer = () => arrived();
      const first = push(cluster);
      await hanging;
      await Promise.all([
        assert.rejects(first, /^Error: the aggregator thread is gone$/),
        cluster.run($ => $.threads.at(-1).terminate()),
      ]);
      shared.answer = accept;
      const { samples: sent } = await push(cluster);
      assert.deepStrictEqual(resultsOf(shared.receiver, 'pushes'), { pushed: 1, failed: 1, dropped: 0 });
      assert.deepStrictEqual(resultsOf(shared.receiver, 'samples'), {
        pushed: sent,
        failed: sent,
        dropped: 0,
      });
      assert.strictEqual(shared.receiver.seriesOf('requests_total').length, 3);
    });

    it('a worker does not push', async () => {
      const pushed = cluster.inWorker(
        1,
        ({ client }, url, labels) =>
          new client.RemoteWrite(url, { labels }, new client.AggregatorRegistry()).push(),
        shared.url,
        labels,
      );
      await assert.rejects(pushed, /RemoteWrite pushes the metrics of a cluster in its primary/);
    });
  });
}

describe('RemoteWrite of an AggregatorRegistry', () => {
  const shared = sharedReceiver();

  it('without workers, the metrics of the process are pushed, and those of a cluster once there is one', async t => {
    const cluster = await startCluster(t);
    await cluster.run($ => {
      new $.client.Gauge({ name: 'own', help: 'h' }).set(1);
      $.aggregator.registerMetric(new $.client.Gauge({ name: 'other', help: 'h', registers: [] }));
    });
    await push(cluster, shared.url, { labels });
    assert.strictEqual(shared.receiver.seriesOf('own')[0].value, 1);
    assert.strictEqual(shared.receiver.seriesOf('other')[0].value, 0);
    const id = await cluster.fork();
    await cluster.inWorker(id, ({ client }) => new client.Gauge({ name: 'own', help: 'h' }).set(5));
    await push(cluster);
    assert.strictEqual(shared.receiver.seriesOf('own')[0].value, 5);
    assert.deepStrictEqual(resultsOf(shared.receiver, 'pushes'), { pushed: 1, failed: 0, dropped: 0 });
    await cluster.run($ => $.aggregator.close());
    await assert.rejects(push(cluster), /The AggregatorRegistry was closed/);
    await cluster.end();
  });
});

describe('RemoteWrite in a group', () => {
  const shared = sharedReceiver();

  it('of the processes that all push, the leader does, and after it the next', async t => {
    const group = new TestGroup();
    t.after(() => group.close());
    await group.startMany(3);
    const arrivals = [];
    shared.answer = (response, request) => {
      accept(response, request);
      arrivals.shift()?.();
    };
    const options = { url: shared.url, options: { labels } };
    for (const member of group.running) await member.do('inc', 2);
    for (const running of [3, 2]) {
      const { leader, others } = await group.roles();
      shared.receiver.requests = [];
      const arrived = new Promise(resolve => arrivals.push(resolve));
      await Promise.all([leader, ...others].map(member => member.do('startPush', options)));
      await arrived;
      for (const member of others) await assert.rejects(member.do('push'), /Call start\(\) in each process/);
      assert.strictEqual(shared.receiver.requests.length, 1);
      assert.strictEqual(shared.receiver.seriesOf('requests_total')[0].value, 6);
      const [{ value: count }] = shared.receiver.seriesOf('prom_client_cluster_group_members');
      assert.strictEqual(count, running);
      // Others end without a push, and this one without stale markers.
      await others[0].do('stopPush');
      assert.strictEqual(shared.receiver.requests.length, 1);
      await leader.do('stopPush');
      assert.strictEqual(shared.receiver.seriesOf('requests_total')[0].value, 6);
      await leader.do('shutdown');
      await leader.kill();
      await group.until(page => page.get('prom_client_cluster_group_members') === running - 1);
    }
    const [last] = group.running;
    await last.do('startPush', options);
    await last.do('stopPush');
    assert.strictEqual(shared.receiver.seriesOf('requests_total')[0].value, 'stale');
    assert.deepStrictEqual(await last.do('warnings'), []);
  });
});

describe('RemoteWrite of a WorkerRegistry', () => {
  const shared = sharedReceiver();

  it('has the metrics of all threads, and is refused in a thread that does not serve them', async t => {
    shared.answer = (response, request) =>
      request.protocol === '2.0' ? response.writeHead(415).end() : accept(response, request);
    const registry = new WorkerRegistry({ timeout: 60_000 });
    t.after(() => register.clear());
    new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'] }).inc({ kind: 'a' }, 1);
    const thread = await joinedThread(['inc', { kind: 'a', value: 10 }]);
    const remoteWrite = new RemoteWrite(shared.url, { labels }, registry);
    await remoteWrite.push();
    assert.strictEqual(shared.receiver.seriesOf('jobs_total')[0].value, 11);
    await thread.do('inc', { kind: 'a', value: 100 });
    await remoteWrite.stop();
    const [refused, ...accepted] = shared.receiver.requests;
    assert.strictEqual(refused.protocol, '2.0');
    const values = accepted.map(
      ({ series }) => series.find(each => nameOf(each).startsWith('jobs_total')).value,
    );
    assert.deepStrictEqual(values, [11, 111, 'stale']);
    await thread.terminate();
    await registry.shutdown();
    const other = new WorkerRegistry(undefined, false);
    const pushed = new RemoteWrite(shared.url, { labels }, other).push();
    await assert.rejects(pushed, /in the main thread/);
    await other.shutdown();
  });
});
