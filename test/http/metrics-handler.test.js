'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { gunzipSync } = require('node:zlib');
const { Registry, Counter, metricsHandler } = require('../..');
const { pageOrNothing } = require('../../lib/exposition/page-bytes');
const { UNAVAILABLE, unavailable } = require('../../lib/registry/unavailable');

/** A registry with a name that takes more bytes than characters. */
function smallRegistry(contentType) {
  const registry = new Registry(contentType);
  new Counter({ name: 'c_total', help: 'ünï ☃', labelNames: ['a'], registers: [registry] }).inc(
    { a: 'é' },
    2,
  );
  return registry;
}

/** A request and a response with what the handler needs, and a record of its calls. */
function fakeExchange({ headers = {}, method = 'GET', sent = {} } = {}) {
  const written = { headers: { ...sent }, body: undefined, ended: 0, destroyed: 0 };
  const res = {
    destroyed: false,
    headersSent: false,
    statusCode: 0,
    setHeader: (name, value) => (written.headers[name.toLowerCase()] = value),
    getHeader: name => written.headers[name.toLowerCase()],
    removeHeader: name => delete written.headers[name.toLowerCase()],
    end: body => {
      written.body = body;
      written.ended++;
    },
    destroy: () => written.destroyed++,
  };
  return { req: { headers, method }, res, written };
}

/** A cluster's registry that records the options of each call. */
function fakeCluster({ bytes = Buffer.from('x 1\n'), ...rest } = {}) {
  const asked = [];
  return {
    asked,
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    metrics: () => assert.fail('metrics() was called, which is the text of the primary only'),
    clusterMetricsBytes: async options => {
      asked.push(options);
      return bytes;
    },
    ...rest,
  };
}

test('the handler rejects with what it wants if it gets objects of a framework', async () => {
  const handler = metricsHandler(smallRegistry());
  const request = new Request('http://localhost/metrics');
  const next = () => {};
  for (const args of [
    [],
    [request],
    [request, {}],
    [{ req: { raw: request } }, next],
    [{ req: {}, res: {} }, next],
  ]) {
    await assert.rejects(async () => handler(...args), {
      name: 'TypeError',
      message:
        /^the handler of metricsHandler\(\) expected a request and a response of node:http\..*metricsResponse\(\)/,
    });
  }
});

test('Accept-Encoding chooses gzip', async () => {
  const accepting = ['gzip', 'GZIP', 'x-gzip', '*'];
  accepting.push('deflate, gzip;q=0.5, br', 'gzip;q=1.0, identity; q=0.5, *;q=0');
  const others = [undefined, '', 'gzip;q=0', 'gzip; q=0.000', 'gzip ;q=0, *', '*;q=0', 'identity'];
  others.push('br, deflate', 'gzipped', 'gzip;q=nonsense');
  for (const header of [...accepting, ...others]) {
    const cluster = fakeCluster();
    const headers = header === undefined ? {} : { 'accept-encoding': header };
    const { req, res, written } = fakeExchange({ headers });
    await metricsHandler(cluster)(req, res);
    assert.strictEqual(cluster.asked[0].gzip, accepting.includes(header), header);
    assert.strictEqual(written.headers['content-encoding'], cluster.asked[0].gzip ? 'gzip' : undefined);
  }
});

test('Vary keeps the values that a middleware has set', async () => {
  for (const [before, after] of [
    ['Origin', 'Origin, Accept-Encoding'],
    [['Origin', 'Cookie'], 'Origin, Cookie, Accept-Encoding'],
    ['*', '*, Accept-Encoding'],
  ]) {
    const { req, res, written } = fakeExchange({ sent: { vary: before } });
    await metricsHandler(smallRegistry())(req, res);
    assert.strictEqual(written.headers.vary, after);
  }
});

/** A registry whose hook counts scrapes and waits until it is released. */
function gatedRegistry() {
  const registry = new Registry();
  const releases = [];
  const requests = new Counter({ name: 'requests_total', help: 'h', registers: [registry] });
  const collect = () => new Promise(resolve => releases.push(resolve));
  new Counter({ name: 'gate_total', help: 'h', registers: [registry], collect });
  return { registry, requests, releases };
}

/** Lets everything run that waits for nothing. */
const settled = () => new Promise(resolve => setImmediate(resolve));

for (const encoding of [undefined, 'gzip']) {
  test(`concurrent scrapes share a render, but none that began before them (${encoding ?? 'plain'})`, async () => {
    const { registry, requests, releases } = gatedRegistry();
    const scrapes = [];
    const scrape = () => {
      // An application may create the handler at each request.
      const handler = metricsHandler(registry);
      const { req, res, written } = fakeExchange({ headers: { 'accept-encoding': encoding } });
      scrapes.push({ done: handler(req, res), written });
    };
    const countOf = ({ written }) => {
      const text = encoding ? gunzipSync(written.body) : written.body;
      return Number(/^requests_total (\d+)/m.exec(text)[1]);
    };

    scrape();
    await settled();
    assert.strictEqual(releases.length, 1, 'the first scrape waits for nothing');
    for (let i = 0; i < 50; i++) {
      requests.inc();
      scrape();
    }
    await settled();
    assert.strictEqual(releases.length, 1, 'the other 50 wait');
    requests.inc(50);
    releases[0]();
    await scrapes[0].done;
    while (releases.length < 2) await settled();
    scrape();
    await settled();
    assert.strictEqual(releases.length, 2, 'one that arrives during the second render waits for a third');
    requests.inc(900);
    releases[1]();
    await Promise.all(scrapes.slice(0, 51).map(({ done }) => done));
    while (releases.length < 3) await settled();
    releases[2]();
    await scrapes[51].done;
    assert.ok(scrapes.slice(1, 51).every(each => countOf(each) >= 100));
    assert.strictEqual(countOf(scrapes[51]), 1000);
    assert.deepStrictEqual(new Set(scrapes.map(({ written }) => written.ended)), new Set([1]));
  });
}

test('a scrape whose collect hook never finishes delays later ones by five seconds, once', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { registry, releases } = gatedRegistry();
  const handler = metricsHandler(registry);
  const scrape = () => {
    const { req, res, written } = fakeExchange();
    return { done: handler(req, res), written };
  };
  scrape();
  await settled();
  const late = [scrape(), scrape()];
  t.mock.timers.tick(4999);
  await settled();
  assert.strictEqual(releases.length, 1);
  t.mock.timers.tick(1);
  await settled();
  assert.strictEqual(releases.length, 2);
  releases[1]();
  await Promise.all(late.map(({ done }) => done));
  const next = scrape();
  while (releases.length < 3) await settled();
  releases[2]();
  await next.done;
  assert.strictEqual(next.written.ended, 1);
});

test('scrapes that share a render that fails all get status 500, and the next one succeeds', async () => {
  const registry = new Registry();
  let failing = true;
  const collect = async () => {
    if (failing) throw new Error('no numbers');
  };
  new Counter({ name: 'c_total', help: 'h', registers: [registry], collect });
  const handler = metricsHandler(registry);
  const exchanges = Array.from({ length: 3 }, () => fakeExchange());
  await Promise.all(exchanges.map(({ req, res }) => handler(req, res)));
  const shown = exchanges.map(({ res }) => res.statusCode);
  assert.deepStrictEqual(shown, [500, 500, 500]);
  failing = false;
  const { req, res } = fakeExchange();
  await handler(req, res);
  assert.strictEqual(res.statusCode, 200);
});

test('the scrape timeout that a scraper states gives workers their time', async () => {
  for (const [header, expected, own] of [
    ...[undefined, '0', '-3', 'soon', '', 'Infinity', '1e999'].map(header => [header, undefined]),
    ['10', 9500],
    ['1', 800],
    ['0.5', 400],
    ['2.5', 2000],
    ['3600', 10_000],
    ['3600', 60_000, 60_000],
    ['20', 19_500, 60_000],
  ]) {
    const cluster = fakeCluster(own === undefined ? {} : { timeout: own });
    const headers = header === undefined ? {} : { 'x-prometheus-scrape-timeout-seconds': header };
    const { req, res, written } = fakeExchange({ headers });
    await metricsHandler(cluster)(req, res);
    const [{ gzip, timeout, selfMetrics }] = cluster.asked;
    assert.deepStrictEqual([gzip, timeout, selfMetrics], [false, expected, true], header);
    assert.strictEqual(written.ended, 1);
  }
});

test('a cluster with nothing to show is answered with status 503 and its reason', async () => {
  for (const [reason, text] of [
    [undefined, 'There are no metrics.\n'],
    ['There are no workers.', 'There are no workers.\n'],
  ]) {
    const nothing = { clusterMetricsBytes: async () => pageOrNothing(undefined), [UNAVAILABLE]: reason };
    const failure = { clusterMetricsBytes: () => Promise.reject(unavailable('secret', reason)) };
    for (const outcome of reason === undefined ? [nothing] : [nothing, failure]) {
      const { req, res, written } = fakeExchange({ headers: { 'accept-encoding': 'gzip' } });
      const errors = [];
      await metricsHandler(fakeCluster(outcome), { onError: error => errors.push(error) })(req, res);
      assert.strictEqual(res.statusCode, 503);
      assert.strictEqual(written.body.toString(), text);
      assert.strictEqual(written.headers['content-encoding'], undefined);
      assert.strictEqual(written.headers['content-length'], text.length);
      assert.strictEqual(errors.length, 1);
    }
  }
});

test('a response that was destroyed or sent during the scrape is not written to', async () => {
  for (const property of ['destroyed', 'headersSent', 'writableEnded']) {
    for (const outcome of ['text', 'failure']) {
      const { req, res, written } = fakeExchange();
      const metrics = async () => {
        res[property] = true;
        if (outcome === 'failure') throw new Error('late');
        return 'x 1\n';
      };
      await metricsHandler({ metrics, contentType: Registry.PROMETHEUS_CONTENT_TYPE })(req, res);
      assert.strictEqual(written.ended, 0);
      assert.deepStrictEqual(written.headers, {});
    }
  }
});
