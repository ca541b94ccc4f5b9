'use strict';

// What holds for every type of metric, from its registry to a cluster, a group, threads and remote write. The
// fifth type is artificial: beside its class it needs a kind of layout and nothing else.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const { BroadcastChannel, receiveMessageOnPort } = require('node:worker_threads');
const client = require('../../index');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { GroupDirectory } = require('../../lib/cluster/group/group-directory');
const { WorkerResponder } = require('../../lib/cluster/worker/worker-responder');
const { WELCOME } = require('../../lib/cluster/wire/messages');
const { runThrough } = require('../../lib/event-loop/slices');
const { PROTOBUF, TEXT } = require('../../lib/exposition/formats');
const { Metric } = require('../../lib/metric/metric');
const { liveFamily } = require('../../lib/exposition/live-family');
const { viewOf } = require('../../lib/registry/metric-view');
const { scrapeFamilies } = require('../../lib/registry/scrape');
const { requestSteps } = require('../../lib/push/write-request');
const { WrittenSeries } = require('../../lib/push/written-series');
const { KINDS } = require('../../lib/series/layouts');
const { MemberThreads } = require('../../lib/threads/member-threads');
const { inboxOf } = require('../../lib/threads/thread-messages');
const { ThreadMirror } = require('../../lib/source/thread-mirror');
const { ThreadPublisher } = require('../../lib/threads/thread-publisher');
const { makePlace } = require('../fixtures/cluster-harness');
const { EXTREMES } = require('../fixtures/extremes');
const { MovedClock } = require('../fixtures/idle-clock');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const { protobufSamples, nativeHistograms } = require('../fixtures/protobuf-page');
const { decodedBody } = require('../push/fixtures/receiver');
const {
  bytesOf,
  makeWorker,
  pageOf,
  scrape,
  samplesOf,
  seriesKey,
  textOf,
} = require('../fixtures/unit-scrape');

const NAME = 'm';

/** What several processes record. */
const VALUES = [{ x: [0.5, 7], y: [2] }, { x: [3] }, { x: [4, 0.25], z: [1] }];

it('every type of metric and every kind of layout is in test/fixtures/metric-types.js', () => {
  const classes = Object.values(client).filter(exported => exported.prototype instanceof Metric);
  assert.deepEqual(new Set(METRIC_TYPES.map(({ Type }) => Type)), new Set(classes));
  const files = fs.readdirSync(path.join(__dirname, '../../lib/metric'));
  for (const file of files) {
    for (const exported of Object.values(require(`../../lib/metric/${file}`))) {
      if (!(exported?.prototype instanceof Metric)) continue;
      assert.ok(classes.includes(exported), `${file} has a type that index.js does not export`);
    }
  }
  const layouts = [...METRIC_TYPES, EXTREMES].map(({ make }) => {
    const registers = [new client.Registry()];
    return make({ name: NAME, help: 'h', registers });
  });
  const kinds = layouts.map(metric => viewOf(metric).layout.kind);
  assert.deepEqual(new Set(kinds), new Set(KINDS.map(({ name }) => name)));
});

for (const type of [...METRIC_TYPES, EXTREMES]) {
  describe(`a ${type.name}`, () => {
    /** @param {Record<string, number[]>} values by label value */
    function workerWith(values) {
      const worker = makeWorker();
      const metric = makeIn(worker.registry);
      record(metric, values);
      return { ...worker, metric };
    }

    /** @param {any} registry */
    function makeIn(registry, options = {}) {
      return type.make({ name: NAME, help: 'h', labelNames: ['a'], registers: [registry], ...options });
    }

    /**
     * @param {any} metric
     * @param {Record<string, number[]>} values
     */
    function record(metric, values) {
      for (const [a, list] of Object.entries(values))
        for (const value of list) type.record(metric, { a }, value);
    }

    /** @param {Record<string, number[]>[]} all values of several processes @returns the page's samples */
    function expected(...all) {
      /** @type {Map<string, number[]>} */
      const byLabel = new Map();
      for (const values of all)
        for (const [a, list] of Object.entries(values)) byLabel.set(a, [...(byLabel.get(a) ?? []), ...list]);
      const samples = Array.from(byLabel, ([a, list]) =>
        type
          .samples(list)
          .map(([suffix, label, value]) => [seriesKey(NAME + suffix, { a, ...label }), value]),
      );
      return new Map(/** @type {[string, number][]} */ (samples.flat()));
    }

    /** That the page of a store has this, in text and in protobuf, which has sparse buckets, too. */
    function assertShows(/** @type {any} */ store, ...all) {
      assert.deepEqual(samplesOf(textOf(store)), expected(...all));
      const one = makeIn(new client.Registry());
      for (const values of all) record(one, values);
      const family = Buffer.concat([...PROTOBUF.write(liveFamily(viewOf(one), {}))]);
      const shown = nativeHistograms(pageOf(store, PROTOBUF));
      assert.deepEqual(shown, nativeHistograms(family));
      assert.equal(shown.size > 0, type.isNative === true && all.length > 0);
    }

    /** A store with a worker for each of these. */
    function clusterOf(...all) {
      const store = new ClusterStore();
      all.forEach((values, i) => scrape(workerWith(values), store, i + 1));
      return store;
    }

    it('is on the page of its registry, as text and as OpenMetrics', async () => {
      const { registry } = workerWith(VALUES[0]);
      assert.deepEqual(samplesOf(await registry.metrics()), expected(VALUES[0]));
      assert.match(
        await registry.metrics(),
        new RegExp(`^# HELP ${NAME} h\n# TYPE ${NAME} ${type.type ?? type.name}\n`),
      );
      registry.setContentType(client.Registry.OPENMETRICS_CONTENT_TYPE);
      const page = (await registry.metrics()).replaceAll(`${NAME}_total{`, `${NAME}{`);
      assert.deepEqual(samplesOf(page), expected(VALUES[0]));
    });

    it('is on the page in the protobuf format, of its registry and of a cluster', async () => {
      const { registry } = workerWith(VALUES[0]);
      registry.setContentType(client.Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE);
      assert.deepEqual(protobufSamples(await registry.metrics()), expected(VALUES[0]));
      const page = pageOf(clusterOf(...VALUES), PROTOBUF);
      assert.deepEqual(protobufSamples(page), expected(...VALUES));
    });

    it('has one place in a registry, by its name', async () => {
      const { registry, metric } = workerWith(VALUES[0]);
      assert.throws(() => makeIn(registry), /already been registered/);
      assert.equal(registry.getSingleMetric(NAME), metric);
      registry.removeSingleMetric(NAME);
      assert.equal((await registry.metrics()).trim(), '');
    });

    it('is in JSON, from which a worker with prom-client is shown', async () => {
      const { registry } = workerWith(VALUES[0]);
      const json = await registry.getMetricsAsJSON();
      const samples = json[0].values.map(({ metricName = NAME, labels, value }) => [
        seriesKey(metricName, labels),
        value,
      ]);
      assert.deepEqual(new Map(samples), expected(VALUES[0]));
      const store = new ClusterStore();
      store.applyJson(1, [JSON.parse(JSON.stringify(json))]);
      assertShows(store, VALUES[0]);
    });

    it('drops a label set in remove(), all in reset(), and starts from nothing after both', async () => {
      const { registry, metric } = workerWith(VALUES[0]);
      metric.remove({ a: 'x' });
      assert.deepEqual(samplesOf(await registry.metrics()), expected({ y: VALUES[0].y }));
      record(metric, { x: [3] });
      assert.deepEqual(samplesOf(await registry.metrics()), expected({ y: VALUES[0].y, x: [3] }));
      metric.reset();
      record(metric, VALUES[0]);
      assert.deepEqual(samplesOf(await registry.metrics()), expected(VALUES[0]));
    });

    it('drops what nobody uses for maxIdleSeconds, and starts from nothing after that', async t => {
      const clock = new MovedClock(t);
      const { registry } = makeWorker();
      const metric = makeIn(registry, { maxIdleSeconds: 600 });
      record(metric, VALUES[0]);
      await clock.move(599);
      assert.deepEqual(samplesOf(await registry.metrics()), expected(VALUES[0]));
      record(metric, { y: [2] });
      await clock.move(200);
      assert.deepEqual(samplesOf(await registry.metrics()), expected({ y: [...VALUES[0].y, 2] }));
      record(metric, { x: [3] });
      assert.deepEqual(samplesOf(await registry.metrics()), expected({ y: [...VALUES[0].y, 2], x: [3] }));
      await clock.move(1200);
      assert.deepEqual([metric.seriesCount, metric.expiredCount], [0, 3]);
      record(metric, VALUES[0]);
      assert.deepEqual(samplesOf(await registry.metrics()), expected(VALUES[0]));
    });

    it('has one series for all label sets beyond maxSeries', async () => {
      const { registry } = makeWorker();
      const metric = makeIn(registry, { maxSeries: 1 });
      record(metric, { x: [3], y: [2], z: [4] });
      assert.deepEqual(samplesOf(await registry.metrics()), expected({ x: [3], overflow: [2, 4] }));
    });

    it('is merged with those of other workers of a cluster; custom aggregators get what prom-client would send', async () => {
      const store = clusterOf(...VALUES);
      assertShows(store, ...VALUES);
      const [{ metrics }] = /** @type {any} */ (runThrough(store.merge(new Set(['sum']))));
      const jsonOf = (/** @type {any} */ { values, name, help, type: own, aggregator }) => ({
        ...{ name, help, type: own, aggregator },
        values: values.map((/** @type {any} */ { exemplar: _, ...sample }) => sample),
      });
      for (const [i, values] of VALUES.entries()) {
        const [json] = await workerWith(values).registry.getMetricsAsJSON();
        assert.deepEqual(jsonOf(metrics[i]), jsonOf(json));
      }
    });

    it('outlives its worker if it is a total, in the next aggregator thread, too', () => {
      const store = clusterOf(...VALUES);
      const lasting = type.lasts ? VALUES[1] : {};
      store.retire(2);
      assertShows(store, VALUES[0], lasting, VALUES[2]);
      const next = new ClusterStore();
      const totals = store.encodeRetired();
      next.restoreRetired(bytesOf({ chunks: [totals], bytes: totals.length }));
      scrape(workerWith(VALUES[0]), next, 1);
      assertShows(next, VALUES[0], lasting);
      next.retire(1);
      assertShows(next, ...(type.lasts ? [VALUES[0], lasting] : []));
    });

    it('is in the last columns of a member of a group', t => {
      const place = makePlace(t);
      const { registry } = workerWith(VALUES[0]);
      const directory = new GroupDirectory(path.join(place, 'd'));
      const link = {
        ...{ id: 1, isConnected: () => false, directory: () => directory.spool() },
        send: () => {},
      };
      const source = new WorkerResponder(link, () => [registry]);
      source.receive({ type: WELCOME, directory: place, checkpointInterval: 0 });
      source.writeLast();
      const [columns, log] = ['.columns', '.log'].map(suffix => {
        const file = fs.readdirSync(place).find(name => name.endsWith(suffix));
        return fs.readFileSync(path.join(place, file));
      });
      const store = new ClusterStore();
      store.apply(1, bytesOf({ chunks: [columns, log], bytes: columns.length + log.length }));
      assertShows(store, VALUES[0]);
    });

    it('of a thread is read in shared memory, and outlives it if it is a total', t => {
      const inbox = new BroadcastChannel(inboxOf(''));
      const { registry, metric } = workerWith({ x: VALUES[0].x });
      const publisher = new ThreadPublisher(() => [registry]);
      t.after(() => {
        publisher.close();
        inbox.close();
      });
      /** @type {any} */
      let mirror;
      // The store of a process reads threads without the mirror's registries.
      const own = new ClusterStore();
      const receive = () => {
        for (let received; (received = receiveMessageOnPort(inbox)) !== undefined;) {
          const { join, parts = {} } = /** @type {any} */ (received).message;
          if (join === true) mirror = new ThreadMirror();
          mirror.add(parts);
          own.share(1, parts);
        }
        runThrough(mirror.read());
        runThrough(own.readThreads());
      };
      const storeOf = registries => {
        const store = new ClusterStore();
        scrape(makeWorker(registries), store, 1);
        return store;
      };
      receive();
      record(metric, { y: VALUES[0].y });
      receive();
      assertShows(storeOf(mirror.registries), VALUES[0]);
      assertShows(own, VALUES[0]);
      own.retire(1);
      assertShows(own, ...(type.lasts ? [VALUES[0]] : []));

      const others = VALUES.slice(1).map(values => workerWith(values).registry);
      assertShows(storeOf([...mirror.registries, ...others]), ...VALUES);
      const retired = new MemberThreads();
      for (const registries of [[others[0]], mirror.registries]) {
        retired.ended.add(/** @type {any} */ ({ registries, *read() {} }));
        runThrough(retired.merge());
      }
      const ended = type.lasts ? [VALUES[1], VALUES[0]] : [];
      assertShows(storeOf([...retired.registries, others[1]]), ...ended, VALUES[2]);
    });

    it('is in a push of remote write', async () => {
      const { registry } = workerWith(VALUES[0]);
      const families = await scrapeFamilies([registry], {
        deadline: new Promise(() => {}),
        onFailure: (_, error) => assert.fail(String(error)),
        onUnreadableLabel: error => assert.fail(String(error)),
      });
      const { samples: pushed } = runThrough(new WrittenSeries({}).push(families, TEXT));
      for (const protocol of /** @type {const} */ (['1.0', '2.0'])) {
        const [{ body }] = runThrough(requestSteps(pushed, protocol, 1));
        const samples = decodedBody(body, protocol).map(({ labels, value }) => {
          const { __name__: name, ...others } = Object.fromEntries(labels);
          return [seriesKey(name, others), value];
        });
        assert.deepEqual(new Map(/** @type {any} */ (samples)), expected(VALUES[0]));
      }
    });
  });
}
