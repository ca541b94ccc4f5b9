'use strict';

// metricsHandler() of a cluster over HTTP: encodings, deadlines of scrapers, and scrapers that go away.

const assert = require('node:assert/strict');
const http = require('node:http');
const { once } = require('node:events');
const { before, describe, it } = require('node:test');
const { gunzipSync } = require('node:zlib');

const { startCluster, parseText, until } = require('../../fixtures/cluster-harness.js');
const { ExpositionReader, missingReader } = require('../../fixtures/exposition-reader.js');
const { familiesOf } = require('../../fixtures/protobuf-page.js');
const { sharedCluster } = require('../../fixtures/shared-cluster.js');

const skipReader = process.env.REQUIRE_ALL !== '1' && missingReader();
const TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

const counting = {
  start: ({ client, state }) => {
    state.counter = new client.Counter({ name: 'done_total', help: 'h', labelNames: ['what'] });
    state.counter.inc({ what: 'ünïcode ☃' });
  },
};
const count = ({ state }) => state.counter.inc({ what: 'ünïcode ☃' });
const totalIn = text => parseText(text).get('done_total{what="ünïcode ☃"}');

/** @returns {Promise<number>} the port of a server in the primary, which ends with it */
const serve = cluster =>
  cluster.run(async ({ require, client, aggregator, state }) => {
    state.server = require('node:http').createServer(
      client.metricsHandler(aggregator, { selfMetrics: false }),
    );
    state.arrived = 0;
    state.server.on('request', () => state.arrived++);
    state.server.unref();
    await new Promise(resolve => state.server.listen(0, '127.0.0.1', resolve));
    return state.server.address().port;
  });

async function get(port, headers, method = 'GET', path = '/') {
  const request = http.request({ host: '127.0.0.1', port, path, method, agent: false, headers }).end();
  const [response] = await once(request, 'response');
  const chunks = await response.toArray();
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
}

describe('metricsHandler of a cluster', () => {
  const shared = sharedCluster({
    worker: counting,
    options: { timeout: 600_000, formats: ['text', 'openmetrics'] },
  });
  const SCRAPER_SECONDS = 100;
  let port;
  before(async () => (port = await serve(shared())));

  /** A scrape whose scraper waits 100 seconds, which pass when these workers have answered. */
  async function getInTime(workerIds) {
    const cluster = shared();
    const arrived = await cluster.run(({ state, answers }) => {
      answers.length = 0;
      return state.arrived;
    });
    const response = get(port, {
      'accept-encoding': 'gzip',
      'x-prometheus-scrape-timeout-seconds': String(SCRAPER_SECONDS),
    });
    await until(async () => (await cluster.run(({ state }) => state.arrived)) > arrived, 'it has arrived');
    await cluster.run(
      async ({ answers, clock }, workerIds, seconds) => {
        const turn = () => new Promise(resolve => setImmediate(resolve));
        const hasAnswered = id =>
          answers.some(({ workerId, message }) => workerId === id && message.requestId >= 0);
        while (!workerIds.every(hasAnswered)) await turn();
        await turn();
        clock.advance(1000 * seconds);
      },
      workerIds,
      SCRAPER_SECONDS,
    );
    return response;
  }

  it('metricsHandler answers with status 503 and the reason if there is no worker', async () => {
    const { status, body } = await get(port, { 'accept-encoding': 'gzip' });
    assert.deepEqual(
      [status, body.toString()],
      [503, 'There are no metrics: this process has no workers, and none of its own.\n'],
    );
  });

  it('metricsHandler answers with status 503 and the reason if no worker has answered by the deadline', async () => {
    const cluster = shared();
    const id = await cluster.fork();
    await cluster.signal(id, 'SIGSTOP');
    const response = await getInTime([]);
    assert.equal(response.status, 503);
    assert.equal(response.headers['content-encoding'], undefined);
    assert.equal(
      response.body.toString(),
      'No worker has answered in time. Do the workers load prom-client-cluster?\n',
    );
    await cluster.signal(id, 'SIGCONT');
    await until(async () => (await get(port, {})).status === 200, 'the worker has answered');
    await cluster.fork();
  });

  it('metricsHandler serves the same text plain and compressed, with its length', async () => {
    const plain = await get(port, {});
    assert.equal(plain.status, 200);
    assert.equal(plain.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.equal(Number(plain.headers['content-length']), plain.body.length);
    assert.equal(totalIn(plain.body.toString()), 2);
    const compressed = await get(port, { 'accept-encoding': 'gzip;q=0.8, br' });
    assert.equal(compressed.headers['content-encoding'], 'gzip');
    assert.equal(compressed.headers.vary, 'Accept, Accept-Encoding');
    assert.equal(Number(compressed.headers['content-length']), compressed.body.length);
    assert.equal(gunzipSync(compressed.body).toString(), plain.body.toString());
    const refused = await get(port, { 'accept-encoding': 'gzip;q=0' });
    assert.equal(refused.body.toString(), plain.body.toString());
    const head = await get(port, {}, 'HEAD');
    assert.equal(head.body.length, 0);
    assert.equal(head.headers['content-length'], plain.headers['content-length']);
  });

  it('metricsHandler serves the format and the metrics that the scraper asks for', async () => {
    const accept = 'application/openmetrics-text;version=1.0.0, text/plain;q=0.5';
    const [text, openMetrics, ...filtered] = await Promise.all([
      get(port, {}),
      get(port, { accept }),
      get(port, { accept }, 'GET', '/?name[]=done_total'),
      get(port, { accept }, 'GET', '/?name[]=none'),
      get(port, {}, 'GET', '/?name[]=none'),
    ]);
    assert.equal(openMetrics.headers['content-type'], OPENMETRICS);
    assert.match(openMetrics.body.toString(), /^# TYPE done counter$.*^# EOF$/ms);
    assert.equal(totalIn(openMetrics.body.toString()), totalIn(text.body.toString()));
    const counter = openMetrics.body.toString().match(/^# HELP done h\n(.*done.*\n)+/m)[0];
    const shown = filtered.map(({ body }) => body.toString());
    assert.deepEqual(shown, [`${counter}# EOF\n`, '# EOF\n', '\n']);
    if (skipReader) return;
    const reader = new ExpositionReader();
    for (const { body } of [openMetrics, ...filtered.slice(0, 2)]) {
      await reader.read(body.toString(), 'openmetrics');
    }
    await reader.stop();
  });

  it('metricsResponse() in a worker shows the metrics of the cluster', async () => {
    const [status, text] = await shared().inWorker(1, async ({ client }) => {
      const request = new Request('http://localhost/metrics?name[]=done_total');
      const response = await client.metricsResponse(
        new client.AggregatorRegistry({ timeout: 60_000 }),
        request,
      );
      return [response.status, await response.text()];
    });
    assert.equal(status, 200);
    const { body } = await get(port, {}, 'GET', '/?name[]=done_total');
    assert.equal(text, body.toString());
  });

  it("metricsHandler answers within the scraper's own timeout while a worker is stopped", async () => {
    const cluster = shared();
    const total = async workerIds => {
      const { status, body } = await getInTime(workerIds);
      assert.equal(status, 200);
      return totalIn(gunzipSync(body).toString());
    };
    assert.equal(await total([1, 2]), 2);
    await cluster.signal(2, 'SIGSTOP');
    await cluster.inWorker(1, count);
    // The registry's own timeout is ten minutes.
    assert.equal(await total([1]), 3);
    assert.equal((await cluster.internals()).unresponsive, 1);
    await cluster.inWorker(1, count);
    assert.equal(await total([1]), 4);
    await cluster.signal(2, 'SIGCONT');
    await until(async () => (await cluster.internals()).unresponsive === 0, 'the worker is back');
    assert.equal(await total([1, 2]), 4);
  });
});

describe('metricsHandler of a cluster that aggregates in place', () => {
  it('metricsHandler serves compressed OpenMetrics if the cluster aggregates in place', async t => {
    const cluster = await startCluster(t, {
      workers: 1,
      worker: counting,
      contentType: OPENMETRICS,
      options: { inPlace: true, formats: ['text', 'openmetrics'] },
    });
    const { headers, body } = await get(await serve(cluster), {
      'accept-encoding': 'gzip',
      accept: 'application/openmetrics-text',
    });
    assert.equal(headers['content-type'], OPENMETRICS);
    const text = gunzipSync(body).toString();
    assert.match(text, /# EOF\n$/);
    assert.equal(totalIn(text), 1);
    const page = await cluster.text({ selfMetrics: true });
    assert.match(page, /^prom_client_cluster_in_place\{reason="option"\} 1$/m);
    await cluster.end();
  });
});

describe('native histograms of a cluster', () => {
  const accept =
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
  const PROTOBUF =
    'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited';
  const cluster = sharedCluster({ worker: counting, workers: 1 });
  const native = {
    start: ({ client, cluster, state }) => {
      const options = { help: 'h', buckets: [], nativeHistogramBucketFactor: 2, labelNames: ['worker'] };
      state.durations = new client.Histogram({ name: 'durations', ...options });
      for (const worker of ['all', cluster.worker.id])
        for (const value of [1, 3, 3]) state.durations.observe({ worker }, value);
    },
  };
  const nativeRow = body => {
    const { metric } = familiesOf(body).find(({ name }) => name === 'durations');
    return metric.find(({ labels }) => labels.worker === 'all').histogram;
  };
  const typeAndVary = ({ headers }) => [headers['content-type'], headers.vary];

  it('a scraper that prefers protobuf gets it from the first page on that has a native histogram, all others text', async () => {
    const port = await serve(cluster());
    assert.deepEqual(typeAndVary(await get(port, { accept })), [TEXT, 'Accept-Encoding']);
    for (const workers of [1, 2]) {
      await cluster().fork(native);
      const [protobuf, zipped, text] = await Promise.all([
        get(port, { accept }),
        get(port, { accept, 'accept-encoding': 'gzip' }),
        get(port, {}),
      ]);
      assert.deepEqual(typeAndVary(protobuf), [PROTOBUF, 'Accept, Accept-Encoding']);
      assert.deepEqual(typeAndVary(text), [TEXT, 'Accept, Accept-Encoding']);
      assert.deepEqual(familiesOf(gunzipSync(zipped.body)), familiesOf(protobuf.body));
      const { count, sum, positiveSpan, positiveDelta } = nativeRow(protobuf.body);
      assert.deepEqual(
        [count, sum, positiveDelta],
        [3 * workers, 7 * workers, [workers, -workers, 2 * workers]],
      );
      assert.deepEqual(positiveSpan, [{ offset: 0, length: 3 }]);
      assert.match(text.body.toString(), new RegExp(`^durations_count{worker="all"} ${3 * workers}$`, 'm'));
    }
  });

  it('a worker serves it, too, and still does when those with native histograms have ended', async () => {
    const port = await cluster().inWorker(1, async ({ client, require, state }) => {
      state.server = require('node:http').createServer(
        client.metricsHandler(new client.AggregatorRegistry({ timeout: 60_000 })),
      );
      await new Promise(resolve =>
        state.server.listen({ port: 0, host: '127.0.0.1', exclusive: true }, resolve),
      );
      state.server.unref();
      return state.server.address().port;
    });
    for (const id of [2, 3]) {
      const [protobuf, text] = await Promise.all([
        get(port, { accept }),
        get(port, { accept: 'text/plain' }),
      ]);
      assert.deepEqual(typeAndVary(protobuf), [PROTOBUF, 'Accept, Accept-Encoding']);
      assert.deepEqual(typeAndVary(text), [TEXT, 'Accept, Accept-Encoding']);
      assert.equal(nativeRow(protobuf.body).count, 6);
      await cluster().endWorker(id, ({ process }) => process.exit());
      await cluster().allRetired();
    }
    assert.equal(nativeRow((await get(port, { accept })).body).count, 6);
  });

  for (const inPlace of [false, true]) {
    it(`one that the application has aggregated is served, too, ${inPlace ? 'in place' : 'by a thread'}`, async t => {
      const start = ({ client }) =>
        new client.Histogram({ name: 'own', help: 'h', nativeHistogramBucketFactor: 2, aggregator: 'own' });
      const own = await startCluster(t, { workers: 2, worker: { start }, options: { inPlace } });
      await own.run(({ client }) => void (client.aggregators.own = client.aggregators.sum));
      const port = await serve(own);
      const [protobuf, text] = await Promise.all([get(port, { accept }), get(port, {})]);
      assert.deepEqual(typeAndVary(protobuf), [PROTOBUF, 'Accept, Accept-Encoding']);
      assert.equal(familiesOf(protobuf.body)[0].name, 'own');
      assert.deepEqual(typeAndVary(text), [TEXT, 'Accept, Accept-Encoding']);
      assert.match(text.body.toString(), /^own_count 0$/m);
      await own.end();
    });
  }

  it('clusterMetrics() and clusterMetricsBytes() write protobuf if they are told to', async () => {
    const [page, asked] = await cluster().run(async ({ client, aggregator }, contentType) => {
      const asked = await aggregator.clusterMetricsBytes({ contentType, names: ['durations'] });
      const registry = new client.AggregatorRegistry(contentType);
      const page = await registry.clusterMetrics();
      await registry.close();
      return [page, asked].map(bytes => bytes.toString('base64'));
    }, PROTOBUF);
    const [all, some] = [page, asked].map(text => familiesOf(Buffer.from(text, 'base64')));
    const shown = all.map(({ name }) => name);
    assert.deepEqual(shown, ['done_total', 'durations']);
    assert.deepEqual(some, all.slice(1));
  });
});
