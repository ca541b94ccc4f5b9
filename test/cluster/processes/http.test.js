'use strict';

const assert = require('node:assert/strict');
const http = require('node:http');
const { once } = require('node:events');
const { describe, it } = require('node:test');
const { gunzipSync } = require('node:zlib');

const { startCluster, parseText, until } = require('../../fixtures/cluster-harness.js');

const counting = {
  start: ({ client, state }) => {
    state.counter = new client.Counter({ name: 'done_total', help: 'h', labelNames: ['what'] });
    state.counter.inc({ what: 'ünïcode ☃' });
  },
};

/** A cluster whose primary serves metrics over HTTP on the loopback interface; of its workers alone, unless told. */
async function serve(t, setup) {
  const cluster = await startCluster(t, {
    workers: 2,
    worker: counting,
    handler: { selfMetrics: false },
    ...setup,
  });
  const port = await cluster.run(async ({ require, client, aggregator, state, setup }) => {
    state.server = require('node:http').createServer(client.metricsHandler(aggregator, setup.handler));
    await new Promise(resolve => state.server.listen(0, '127.0.0.1', resolve));
    return state.server.address().port;
  });
  const get = async (headers, method = 'GET') => {
    const request = http.request({ host: '127.0.0.1', port, method, agent: false, headers }).end();
    const [response] = await once(request, 'response');
    const chunks = await response.toArray();
    return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
  };
  const end = async () => {
    await cluster.run(({ state }) => new Promise(resolve => state.server.close(resolve)));
    await cluster.end();
  };
  return { cluster, port, get, end };
}

describe('metricsHandler of a cluster', { concurrency: 3 }, () => {
  it('serves the same text plain and compressed, with its length', async t => {
    const { get, end } = await serve(t);
    const plain = await get({});
    assert.equal(plain.status, 200);
    assert.equal(plain.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.equal(Number(plain.headers['content-length']), plain.body.length);
    assert.equal(parseText(plain.body.toString()).get('done_total{what="ünïcode ☃"}'), 2);
    const compressed = await get({ 'accept-encoding': 'gzip;q=0.8, br' });
    assert.equal(compressed.headers['content-encoding'], 'gzip');
    assert.equal(compressed.headers.vary, 'Accept-Encoding');
    assert.equal(Number(compressed.headers['content-length']), compressed.body.length);
    assert.equal(gunzipSync(compressed.body).toString(), plain.body.toString());
    const refused = await get({ 'accept-encoding': 'gzip;q=0' });
    assert.equal(refused.body.toString(), plain.body.toString());
    const head = await get({}, 'HEAD');
    assert.equal(head.body.length, 0);
    assert.equal(head.headers['content-length'], plain.headers['content-length']);
    await end();
  });

  it('serves OpenMetrics, compressed in place', async t => {
    const contentType = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
    const { get, end } = await serve(t, { contentType, options: { inPlace: true } });
    const { headers, body } = await get({ 'accept-encoding': 'gzip' });
    assert.equal(headers['content-type'], contentType);
    const text = gunzipSync(body).toString();
    assert.match(text, /# EOF\n$/);
    assert.equal(parseText(text).get('done_total{what="ünïcode ☃"}'), 2);
    await end();
  });

  it('keeps the time that the scraper has, while a worker is stopped', async t => {
    const { cluster, get, end } = await serve(t, { options: { timeout: 600_000 } });
    const headers = { 'accept-encoding': 'gzip', 'x-prometheus-scrape-timeout-seconds': '1.5' };
    const total = async () => {
      const { status, body } = await get(headers);
      assert.equal(status, 200);
      return parseText(gunzipSync(body).toString()).get('done_total{what="ünïcode ☃"}');
    };
    assert.equal(await total(), 2);
    await cluster.signal(2, 'SIGSTOP');
    await cluster.inWorker(1, ({ state }) => state.counter.inc({ what: 'ünïcode ☃' }));
    // Of a scrape that waited ten minutes we would not hear.
    assert.equal(await total(), 3);
    assert.equal((await cluster.internals()).silent, 1);
    await cluster.inWorker(1, ({ state }) => state.counter.inc({ what: 'ünïcode ☃' }));
    assert.equal(await total(), 4);
    await cluster.signal(2, 'SIGCONT');
    await until(async () => (await cluster.internals()).silent === 0, 'the worker is back');
    assert.equal(await total(), 4);
    await end();
  });

  it('answers many scrapers at once, each in its encoding', async t => {
    const { get, end } = await serve(t);
    const encodings = Array.from({ length: 40 }, (_, i) => (i % 2 ? 'gzip' : 'identity'));
    const responses = await Promise.all(encodings.map(encoding => get({ 'accept-encoding': encoding })));
    const texts = responses.map(({ headers, body }) =>
      (headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString(),
    );
    assert.equal(new Set(texts).size, 1);
    assert.equal(responses.filter(({ headers }) => headers['content-encoding'] === 'gzip').length, 20);
    await end();
  });

  it('answers nothing to scrape with an empty text', async t => {
    const { get, end } = await serve(t, { workers: 0 });
    const plain = await get({});
    assert.deepEqual([plain.status, plain.body.toString()], [200, '']);
    const compressed = await get({ 'accept-encoding': 'gzip' });
    assert.equal(gunzipSync(compressed.body).toString(), '');
    await end();
  });

  it('answers with status 500 and no detail where nothing can be told', async t => {
    const { cluster, get, end } = await serve(t, { workers: 1 });
    await cluster.signal(1, 'SIGSTOP');
    const headers = { 'accept-encoding': 'gzip', 'x-prometheus-scrape-timeout-seconds': '0.3' };
    const response = await get(headers);
    assert.equal(response.status, 500);
    assert.equal(response.headers['content-encoding'], undefined);
    assert.equal(response.body.toString(), 'Metrics are not available.\n');
    await cluster.signal(1, 'SIGCONT');
    await until(async () => (await get({})).status === 200, 'the worker has answered');
    await end();
  });

  it('survives scrapers that go away, and serves the next', async t => {
    const { cluster, port, get, end } = await serve(t);
    await get({});
    await cluster.run(({ state }) => {
      state.arrived = 0;
      state.server.on('request', () => state.arrived++);
    });
    await cluster.signal(1, 'SIGSTOP');
    for (let i = 1; i <= 5; i++) {
      const request = http.get({ host: '127.0.0.1', port, agent: false }).on('error', () => {});
      await until(async () => (await cluster.run(({ state }) => state.arrived)) === i, 'it has arrived');
      request.destroy();
    }
    await cluster.signal(1, 'SIGCONT');
    const { status, body } = await get({});
    assert.equal(status, 200);
    assert.equal(parseText(body.toString()).get('done_total{what="ünïcode ☃"}'), 2);
    await end();
  });
});
