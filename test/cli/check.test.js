'use strict';

const assert = require('node:assert/strict');
const http = require('node:http');
const path = require('node:path');
const { it } = require('node:test');
const { check } = require('../../lib/cli/check');
const { Registry, Counter, collectDefaultMetrics, metricsHandler } = require('../..');
const { Program } = require('../fixtures/program');

/**
 * @param {import('node:test').TestContext} t
 * @param {http.RequestListener} listener
 * @returns {Promise<string>} URL
 */
async function serve(t, listener) {
  const server = http.createServer(listener);
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${/** @type {any} */ (server.address()).port}/metrics`;
}

/**
 * @param {string} address
 * @param {object} [limits]
 */
async function checked(address, limits) {
  /** @type {string[]} */
  const lines = [];
  const status = await check(address, text => lines.push(text), limits);
  return { status, lines };
}

it('check accepts the default metrics, also without a scheme', async t => {
  const register = new Registry();
  collectDefaultMetrics({ register, runtime: true });
  const url = await serve(t, metricsHandler(register));
  for (const address of [url, url.replace('http://', '')]) {
    const { status, lines } = await checked(address);
    assert.equal(status, 0, lines.join('\n'));
    assert.match(lines.join(), /^3 default metrics keep prom-client's name, .*,\d+ metrics, 0 problems$/);
  }
});

it('check prints what promtool would say of a page', async t => {
  const register = new Registry();
  new Counter({ name: 'requests', help: 'h', registers: [register] });
  const url = await serve(t, metricsHandler(register));
  assert.deepEqual(await checked(url), {
    status: 1,
    lines: ['requests counter metrics should have "_total" suffix', '1 metrics, 1 problems'],
  });
});

it('check says what is not a page of metrics', async t => {
  const { status, lines } = await checked(
    await serve(t, (_, response) => response.end('<html>\n<body>Log in')),
  );
  assert.equal(status, 1);
  assert.match(lines.join(), /this is not a page of metrics\. .*<html>/);
});

it('check has exit status 2 if there is no page, and says why', async t => {
  const url = await serve(t, (_, response) => response.writeHead(503).end('No worker is running.\nMore\n'));
  const cases = {
    [url]: /: status 503: No worker is running\.$/,
    'ftp://localhost/metrics': /: the URL must be one of http or https$/,
    'http://': /: Invalid URL$/,
    [await unused()]: /: connect ECONNREFUSED /,
  };
  for (const [address, pattern] of Object.entries(cases)) {
    const { status, lines } = await checked(address);
    assert.equal(status, 2);
    assert.equal(lines.length, 1);
    assert.match(lines[0], pattern);
  }
});

/** @returns {Promise<string>} a URL at which nobody listens */
async function unused() {
  const server = http.createServer().listen(0, '127.0.0.1');
  await new Promise(resolve => server.once('listening', resolve));
  const { port } = /** @type {any} */ (server.address());
  await new Promise(resolve => server.close(resolve));
  return `http://127.0.0.1:${port}/metrics`;
}

it('check does not wait for a page that does not begin or does not end', async t => {
  const silent = await serve(t, () => {});
  const slow = await serve(t, (_, response) => response.write('a 1\n'));
  for (const url of [silent, slow]) {
    assert.deepEqual(await checked(url, { timeout: 50 }), {
      status: 2,
      lines: [`${url}: no complete answer within 50 ms`],
    });
  }
});

it('check sends the user of the URL, and asks for Prometheus text', async t => {
  /** @type {http.IncomingHttpHeaders[]} */
  const seen = [];
  const url = await serve(t, ({ headers }, response) => response.end(seen.push(headers) ? 'a 1\n' : ''));
  await checked(url.replace('//', '//me:se%20cret@'));
  assert.equal(seen[0].authorization, `Basic ${Buffer.from('me:se cret').toString('base64')}`);
  assert.match(seen[0].accept ?? '', /^text\/plain;version=0\.0\.4/);
});

it('check is a subcommand of prom-client-cluster, which ends with its exit status', async t => {
  const url = await serve(t, (_, response) => response.end('# TYPE a counter\na 1\n'));
  const program = new Program([path.join(__dirname, '../../lib/cli/main.js'), 'check', url]);
  assert.equal(await program.ended(), 1);
  assert.match(program.output, /^a no help text$/m);
});
