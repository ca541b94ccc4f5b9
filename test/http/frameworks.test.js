'use strict';

// The endpoints besides metricsHandler(): for fetch-style servers, for fastify, and on a port of their own.

const { describe, it } = require('node:test');
const assert = require('node:assert');
const http = require('node:http');
const { gunzipSync } = require('node:zlib');
const { fastify } = require('fastify');
const {
  AggregatorRegistry,
  Counter,
  Registry,
  metricsResponse,
  register,
  startMetricsServer,
} = require('../..');
const { get: fetchBytes } = require('../fixtures/program');
const fastifyMetrics = require('../../lib/http/fastify-plugin');

const OPENMETRICS = Registry.OPENMETRICS_CONTENT_TYPE;
const onError = () => {};

new Counter({ name: 'global_total', help: 'in the global registry' });

function smallRegistry() {
  const registry = new Registry();
  new Counter({ name: 'c_total', help: 'ünï ☃', registers: [registry] }).inc(2);
  return registry;
}

function get(port, { headers, method, path = '/metrics', host = '127.0.0.1' } = {}) {
  return fetchBytes(`http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`, headers, method);
}

describe('metricsResponse()', () => {
  const request = (init, query = '') => new Request(`http://localhost/metrics${query}`, init);

  it('a Response has the page, with its length', async () => {
    const registry = smallRegistry();
    const response = await metricsResponse(registry, request());
    assert.ok(response instanceof Response);
    assert.strictEqual(response.status, 200);
    assert.deepStrictEqual(Object.fromEntries(response.headers), {
      'content-type': Registry.PROMETHEUS_CONTENT_TYPE,
      'content-length': String(Buffer.byteLength(await registry.metrics())),
      vary: 'Accept-Encoding',
    });
    assert.strictEqual(await response.text(), await registry.metrics());
  });

  it('the request chooses encoding, format and metrics', async () => {
    const headers = { 'accept-encoding': 'gzip', accept: OPENMETRICS };
    const response = await metricsResponse(smallRegistry(), request({ headers }, '?name[]=c_total'), {
      formats: ['text', 'openmetrics'],
    });
    const body = Buffer.from(await response.arrayBuffer());
    assert.strictEqual(response.headers.get('content-encoding'), 'gzip');
    assert.strictEqual(response.headers.get('content-length'), String(body.length));
    assert.match(gunzipSync(body).toString(), /^# HELP c ünï ☃\n# TYPE c counter\nc_total 2\n# EOF\n$/);
  });

  it('HEAD has the headers of GET and no body', async () => {
    const registry = smallRegistry();
    const [head, whole] = [
      await metricsResponse(registry, request({ method: 'HEAD' })),
      await metricsResponse(registry, request()),
    ];
    assert.deepStrictEqual([...head.headers], [...whole.headers]);
    assert.strictEqual(head.body, null);
  });

  it('a cluster gets the timeout of the scraper', async () => {
    const asked = [];
    const cluster = {
      contentType: OPENMETRICS,
      metrics() {},
      clusterMetricsBytes: async options => {
        asked.push(options);
        return { bytes: Buffer.from('x 1\n') };
      },
    };
    const headers = { 'x-prometheus-scrape-timeout-seconds': '1' };
    const response = await metricsResponse(cluster, request({ headers }), { selfMetrics: false });
    assert.strictEqual(await response.text(), 'x 1\n');
    assert.deepStrictEqual(asked, [
      { gzip: false, timeout: 800, selfMetrics: false, contentType: OPENMETRICS, names: undefined },
    ]);
  });

  it('arguments of another kind are refused, with what is wanted', async () => {
    await assert.rejects(metricsResponse(undefined, request()), {
      name: 'TypeError',
      message: 'metricsResponse expected a Registry',
    });
    const message = /^metricsResponse\(\) expected a fetch Request as second argument\..*metricsHandler\(\)$/;
    for (const other of [undefined, {}, { headers: {} }]) {
      await assert.rejects(metricsResponse(register, other), { name: 'TypeError', message });
    }
  });
});

describe('the fastify plugin', () => {
  it('the route answers as metricsHandler() does, with the hooks of the application', async t => {
    const registry = smallRegistry();
    const app = fastify();
    app.addHook('onRequest', async (request, reply) => {
      reply.header('X-Hook', 'yes');
      reply.header('Vary', 'Origin');
      if (request.headers.authorization === 'none') return reply.code(401).send('no');
    });
    await app.register(fastifyMetrics, { registry, formats: ['text', 'openmetrics'] });
    await app.register(fastifyMetrics, { path: '/global' });
    await app.listen({ port: 0, host: '127.0.0.1' });
    t.after(() => app.close());
    const { port } = app.server.address();
    const { status, headers, body } = await get(port);
    assert.deepStrictEqual([status, body.toString()], [200, await registry.metrics()]);
    assert.strictEqual(headers['x-hook'], 'yes');
    assert.strictEqual(headers.vary, 'Origin, Accept, Accept-Encoding');
    const some = await get(port, { headers: { accept: OPENMETRICS }, path: '/metrics?name[]=none' });
    assert.strictEqual(some.body.toString(), '# EOF\n');
    assert.strictEqual((await get(port, { method: 'HEAD' })).body.length, 0);
    assert.strictEqual((await get(port, { headers: { authorization: 'none' } })).status, 401);
    assert.strictEqual((await get(port, { path: '/global' })).body.toString(), await register.metrics());
    assert.strictEqual((await app.inject('/metrics')).body, await registry.metrics());
  });

  it('an option that is not valid fails the start', async () => {
    await assert.rejects(async () => fastify().register(fastifyMetrics, { registry: {} }), {
      message: 'metricsHandler expected a Registry',
    });
  });
});

describe('startMetricsServer()', () => {
  const start = async (t, options) => {
    const server = await startMetricsServer({ port: 0, ...options });
    t.after(() => server.close());
    return server;
  };

  it('startMetricsServer() serves the global registry at /metrics, on the loopback interface', async t => {
    const server = await start(t);
    assert.ok(server instanceof http.Server);
    const { address, port } = server.address();
    assert.strictEqual(address, '127.0.0.1');
    assert.strictEqual(server.listenerCount('error'), 0);
    const { status, body } = await get(port);
    assert.deepStrictEqual([status, body.toString()], [200, await register.metrics()]);
    const root = await get(port, { path: '/' });
    assert.deepStrictEqual([root.status, root.body.toString()], [404, 'Metrics are at /metrics.\n']);
    const post = await get(port, { method: 'POST' });
    assert.deepStrictEqual([post.status, post.headers.allow], [405, 'GET, HEAD']);
    assert.strictEqual((await get(port, { method: 'HEAD' })).status, 200);
  });

  it('startMetricsServer() takes a registry, a path and the options of metricsHandler()', async t => {
    const registry = smallRegistry();
    const server = await start(t, { registry, path: '/m', host: '::1', formats: ['openmetrics'] }).catch(
      error => {
        if (error.code !== 'EADDRNOTAVAIL' && error.code !== 'EAFNOSUPPORT') throw error;
        return start(t, { registry, path: '/m', formats: ['openmetrics'] });
      },
    );
    const { port, address } = server.address();
    const { headers, body } = await get(port, { path: '/m?name[]=c_total', host: address });
    assert.strictEqual(headers['content-type'], OPENMETRICS);
    assert.match(body.toString(), /^c_total 2$/m);
  });

  it('startMetricsServer() serves an AggregatorRegistry', async t => {
    const registry = new AggregatorRegistry();
    t.after(() => registry.close());
    const server = await start(t, { registry, onError });
    const { status, body } = await get(server.address().port);
    assert.strictEqual(status, 200);
    assert.strictEqual(body.toString(), await registry.clusterMetrics());
  });

  it('startMetricsServer() rejects if the port is taken, or an option is not valid', async t => {
    const { port } = (await start(t)).address();
    await assert.rejects(startMetricsServer({ port }), { code: 'EADDRINUSE' });
    for (const [options, message] of [
      [undefined, 'startMetricsServer expected a port, as in { port: 9100 }'],
      [{ port: 0, host: '' }, "host must be an address, 0.0.0.0 or :: for all: ''"],
      [{ port: 0, host: null }, 'host must be an address, 0.0.0.0 or :: for all: null'],
      [{ port: 0, path: 'metrics' }, 'path must begin with /'],
      [{ port: 0, registry: {} }, 'metricsHandler expected a Registry'],
    ]) {
      await assert.rejects(startMetricsServer(options), { name: 'TypeError', message });
    }
    await assert.rejects(startMetricsServer({ port: 'http' }), { code: 'ERR_SOCKET_BAD_PORT' });
  });
});
