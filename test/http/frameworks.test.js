'use strict';

// What every endpoint does, and what is particular to those besides metricsHandler(): for fetch-style
// servers, for fastify, and on a port of their own.

const { describe, it } = require('node:test');
const assert = require('node:assert');
const { once } = require('node:events');
const http = require('node:http');
const { gunzipSync } = require('node:zlib');
const { fastify } = require('fastify');
const { Counter, Registry, metricsHandler, metricsResponse, register, startMetricsServer } = require('../..');
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

/** By name: serves a registry until the test ends; resolves with what makes a request. */
const ENDPOINTS = {
  async 'metricsHandler()'(t, registry, options) {
    const server = http.createServer(metricsHandler(registry, options)).listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
    return request => get(server.address().port, request);
  },
  async 'metricsResponse()'(_, registry, options) {
    return async ({ headers, method, path = '/metrics' }) => {
      const request = new Request(`http://localhost${path}`, { headers, method });
      const response = await metricsResponse(registry, request, options);
      assert.ok(response instanceof Response);
      const body = Buffer.from(await response.arrayBuffer());
      return { status: response.status, headers: Object.fromEntries(response.headers), body };
    };
  },
  async 'the fastify plugin'(t, registry, options) {
    const app = fastify();
    t.after(() => app.close());
    await app.register(fastifyMetrics, { registry, ...options });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return request => get(app.server.address().port, request);
  },
  async 'startMetricsServer()'(t, registry, options) {
    const server = await startMetricsServer({ port: 0, registry, ...options });
    t.after(() => server.close());
    return request => get(server.address().port, request);
  },
};

for (const [name, open] of Object.entries(ENDPOINTS)) {
  it(`${name} serves the page with its length, compressed, in the format and with the metrics that are asked for`, async t => {
    const registry = smallRegistry();
    const request = await open(t, registry, { formats: ['text', 'openmetrics'] });
    for (const encoding of [undefined, 'gzip']) {
      for (const [accept, contentType, page] of [
        ['*/*', registry.contentType, await registry.metrics()],
        [OPENMETRICS, OPENMETRICS, '# HELP c ünï ☃\n# TYPE c counter\nc_total 2\n# EOF\n'],
      ]) {
        const headers = { accept, 'accept-encoding': encoding ?? 'identity' };
        const whole = await request({ headers });
        const head = await request({ headers, method: 'HEAD' });
        assert.strictEqual(String(encoding === undefined ? whole.body : gunzipSync(whole.body)), page);
        assert.strictEqual(head.body.length, 0);
        for (const each of [whole, head]) {
          assert.strictEqual(each.status, 200);
          assert.strictEqual(each.headers['content-type'], contentType);
          assert.strictEqual(each.headers['content-length'], String(whole.body.length));
          assert.strictEqual(each.headers['content-encoding'], encoding);
          assert.strictEqual(each.headers.vary, 'Accept, Accept-Encoding');
        }
      }
    }
    const none = await request({ headers: { accept: OPENMETRICS }, path: '/metrics?name[]=none' });
    assert.strictEqual(none.body.toString(), '# EOF\n');
  });

  it(`${name} answers with status 500, without the reason, if the registry fails`, async t => {
    const fail = () => {
      throw new Error('secret of /etc/shadow');
    };
    for (const metrics of [fail, async () => fail(), () => Promise.reject(undefined)]) {
      const registry = { contentType: Registry.PROMETHEUS_CONTENT_TYPE, metrics };
      const request = await open(t, registry, { onError });
      const { status, headers, body } = await request({ headers: { 'accept-encoding': 'gzip' } });
      assert.deepStrictEqual([status, body.toString()], [500, 'Metrics are not available.\n']);
      assert.strictEqual(headers['content-type'], 'text/plain; charset=utf-8');
      assert.strictEqual(headers['content-encoding'], undefined);
      assert.ok(!JSON.stringify(headers).includes('secret'));
      const head = await request({ method: 'HEAD' });
      assert.deepStrictEqual([head.status, head.body.length], [500, 0]);
    }
  });
}

describe('metricsResponse()', () => {
  const request = init => new Request('http://localhost/metrics', init);

  it('a cluster gets the timeout of the scraper', async () => {
    const asked = [];
    const cluster = {
      contentType: OPENMETRICS,
      metrics() {},
      clusterMetricsBytes: async options => {
        asked.push(options);
        return Buffer.from('x 1\n');
      },
    };
    const headers = { 'x-prometheus-scrape-timeout-seconds': '1' };
    const response = await metricsResponse(cluster, request({ headers }), { selfMetrics: false });
    assert.strictEqual(await response.text(), 'x 1\n');
    assert.deepStrictEqual(asked, [
      {
        ...{ gzip: false, timeout: 800, selfMetrics: false, names: undefined },
        ...{ contentType: OPENMETRICS, nativeContentType: OPENMETRICS },
      },
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
