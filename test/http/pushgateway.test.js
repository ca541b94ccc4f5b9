'use strict';

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const { EventEmitter, once } = require('node:events');
const http = require('http');
const path = require('node:path');
const { afterEach, beforeEach, describe, it, mock } = require('node:test');
const { gunzipSync } = require('node:zlib');
const { Counter, Registry, register } = require('../..');
const { Pushgateway } = require('../../lib/http/pushgateway');
const { startCluster } = require('../fixtures/cluster-harness');
const { RecordingServer } = require('../fixtures/pushgateway-recorder');

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const EXPOSITION = '# HELP done_total h\n# TYPE done_total counter\ndone_total 3\n';
const LIBRARY = path.join(__dirname, '../../lib/http/pushgateway');
const GATEWAY = 'http://127.0.0.1:9091';
const LIMITS = { timeout: 120_000 };

/** @type {RecordingServer} */
let server;
/** @type {Registry} */
let registry;

beforeEach(async () => {
  registry = new Registry();
  new Counter({ name: 'done_total', help: 'h', registers: [registry] }).inc(3);
});

afterEach(async () => {
  await server?.stop();
  server = undefined;
});

async function serve(answer) {
  server = await RecordingServer.start(answer);
  return server;
}

/** Pushes the registry of the test to its server. */
function push(options = {}, pushed = registry) {
  return new Pushgateway(server.url, options, pushed).push({ jobName: 'j' });
}

/** Answers with a status and a text. */
function answerWith(status, text, headers) {
  return (_request, response) => response.writeHead(status, headers).end(text);
}

/** Receives requests and does not answer them. */
function answerNever() {}

function failsWith(message) {
  return { name: 'Error', message };
}

describe('Pushgateway: an instance', LIMITS, () => {
  it('a Pushgateway has its arguments as properties: options or a registry as second, a registry as third', () => {
    const options = { timeout: 5, headers: { a: 'b' } };
    const duck = { metrics: () => '', path: '/mine', requireJobName: false };
    const other = new Registry();
    for (const [args, expected] of [
      [[{ ...options, requireJobName: false }, registry], { requireJobName: false, requestOptions: options }],
      [[undefined], { registry: register }],
      [[null], { registry: register }],
      [[{}], { registry: register }],
      [[registry], {}],
      [[duck], { registry: duck }],
      [[registry, other], { registry: other }],
    ]) {
      const gatewayUrl = 'http://127.0.0.1:1';
      assert.deepStrictEqual(
        { ...new Pushgateway(gatewayUrl, ...args) },
        { registry, gatewayUrl, requireJobName: true, requestOptions: {}, ...expected },
      );
    }
  });

  it('a Pushgateway uses the values that its properties have when it pushes', async () => {
    await serve();
    const gateway = new Pushgateway('http://127.0.0.1:1/none', {}, new Registry());
    Object.assign(gateway, {
      gatewayUrl: server.url,
      registry,
      requireJobName: false,
      requestOptions: { headers: { 'x-late': 'yes' } },
    });
    await gateway.push({});
    assert.strictEqual(server.last.headers['x-late'], 'yes');
    assert.strictEqual(server.last.path, '/metrics');
    assert.strictEqual(server.last.body.toString(), EXPOSITION);
  });
});

describe('Pushgateway: the request', LIMITS, () => {
  beforeEach(() => serve());

  it("the request has the Content-Type of the registry's format", async () => {
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    await push();
    assert.strictEqual(server.last.headers['content-type'], Registry.OPENMETRICS_CONTENT_TYPE);
    assert.match(server.last.body.toString(), /# EOF\n$/);
  });

  it("the request has the caller's Content-Type, in any letter case", async () => {
    await push({ headers: { 'CONTENT-type': 'a/b' } });
    assert.strictEqual(server.last.headers['content-type'], 'a/b');
  });

  it('a Pushgateway can push any object whose metrics() returns a text or a promise of one', async () => {
    for (const result of [EXPOSITION, Promise.resolve(EXPOSITION)]) {
      const own = { metrics: () => result };
      await new Pushgateway(server.url, {}, own).push({ jobName: 'third' });
      await new Pushgateway(server.url, own).push({ jobName: 'second' });
    }
    for (const { body, headers } of server.requests) {
      assert.strictEqual(body.toString(), EXPOSITION);
      assert.strictEqual(headers['content-type'], undefined);
    }
    assert.strictEqual(server.requests.length, 4);
  });
});

describe('Pushgateway: compression', LIMITS, () => {
  beforeEach(() => serve());

  it('compression is requested by a header, and still works after a delete with the same options', async () => {
    const options = Object.freeze({ headers: Object.freeze({ 'Content-Encoding': 'gzip', 'X-A': '1' }) });
    const gateway = new Pushgateway(server.url, options, registry);
    await gateway.push({ jobName: 'j' });
    await gateway.delete({ jobName: 'j' });
    await gateway.pushAdd({ jobName: 'j' });
    const [first, deletion, second] = server.requests;
    for (const request of [first, second]) {
      assert.strictEqual(request.headers['content-encoding'], 'gzip');
      assert.strictEqual(request.headers['content-type'], PROMETHEUS_TEXT);
      assert.strictEqual(gunzipSync(request.body).toString(), EXPOSITION);
    }
    assert.strictEqual(deletion.headers['content-encoding'], undefined);
    assert.strictEqual(deletion.headers['x-a'], '1');
    assert.strictEqual(deletion.body.length, 0);
    assert.deepStrictEqual(options, { headers: { 'Content-Encoding': 'gzip', 'X-A': '1' } });
  });
});

describe('Pushgateway: the response', LIMITS, () => {
  it('a push resolves for a status below 400, without following a redirect, and rejects for others', async () => {
    let status;
    await serve((_request, response) =>
      response.writeHead(status, { Location: '/other' }).end('no such\nthing'),
    );
    for (status of [200, 202, 302, 399]) {
      const { resp, body } = await push();
      assert.deepStrictEqual([resp.statusCode, body], [status, 'no such\nthing']);
    }
    assert.strictEqual(server.requests.length, 4);
    for (status of [400, 401, 404, 500]) {
      const refused = failsWith(`push failed with status ${status}, no such\nthing`);
      await assert.rejects(push(), refused);
      await assert.rejects(new Pushgateway(server.url, {}, registry).delete({ jobName: 'j' }), refused);
    }
  });

  it('the response is decoded as UTF-8, even if a chunk ends within a character', async () => {
    await serve((_request, response) => {
      const bytes = Buffer.from('grün');
      response.write(bytes.subarray(0, 3), () => response.end(bytes.subarray(3)));
    });
    assert.strictEqual((await push()).body, 'grün');
  });

  it('a push rejects if the response is incomplete, or there is none', async () => {
    for (const answer of [
      (_request, response) => response.destroy(),
      (_request, response) => {
        response.writeHead(200, { 'Content-Length': 10 });
        response.write('half', () => response.destroy());
      },
    ]) {
      await serve(answer);
      await assert.rejects(push(), { code: 'ECONNRESET' });
      await server.stop();
    }
  });

  it('a push rejects a response without an end once it is longer than 16 MiB, and closes the connection', async () => {
    const megabyte = Buffer.alloc(2 ** 20, 'x');
    for (const status of [200, 500]) {
      let closed;
      await serve((_request, response) => {
        closed = once(response, 'close');
        response.writeHead(status);
        const more = () => {
          while (!response.destroyed && response.write(megabyte));
        };
        response.on('drain', more);
        more();
      });
      const pushed = push();
      const message = `push failed with status ${status}, the response is longer than 16 MiB`;
      await assert.rejects(pushed, failsWith(message));
      await closed;
      await server.stop();
    }
  });

  it('a push rejects if the response upgrades the connection', async () => {
    await serve(answerWith(101, undefined, { Connection: 'Upgrade', Upgrade: 'other' }));
    await assert.rejects(push(), failsWith('push failed, the gateway upgrades the connection'));
  });
});

describe('Pushgateway: an error before the response', LIMITS, () => {
  /** The URL of a server that has stopped. */
  async function stoppedUrl() {
    const { url } = await serve();
    await server.stop();
    server = undefined;
    return url;
  }

  it('a push rejects with the error of the socket', async () => {
    const gateway = new Pushgateway(await stoppedUrl(), {}, registry);
    for (const operation of ['pushAdd', 'push', 'delete']) {
      await assert.rejects(gateway[operation]({ jobName: 'j' }), { code: 'ECONNREFUSED' });
    }
  });

  it('a push rejects and closes the connection if a collect hook rejects', async () => {
    await serve();
    const connected = once(server.listener, 'connection');
    registry.getSingleMetric('done_total').collect = async () => {
      await connected;
      throw new Error('no numbers');
    };
    const pushed = push();
    await assert.rejects(pushed, failsWith('no numbers'));
    const [socket] = await connected;
    if (!socket.destroyed) await once(socket, 'close');
    assert.deepStrictEqual(server.requests, []);
  });

  it('a push rejects if metrics() throws or does not return text', async () => {
    await serve();
    const throwing = {
      metrics() {
        throw new Error('no numbers');
      },
    };
    await assert.rejects(
      new Pushgateway(server.url, throwing).push({ jobName: 'j' }),
      failsWith('no numbers'),
    );
    const withoutText = { metrics() {} };
    await assert.rejects(new Pushgateway(server.url, withoutText).push({ jobName: 'j' }), TypeError);
    assert.deepStrictEqual(server.requests, []);
  });

  it('a push ignores metrics that arrive, or fail to, after the connection failed', async () => {
    const url = await stoppedUrl();
    for (const end of ['resolve', 'reject']) {
      let finish;
      const collected = new Promise((resolve, reject) => (finish = { resolve, reject }[end]));
      const pushed = new Pushgateway(url, { metrics: () => collected }).push({ jobName: 'j' });
      await assert.rejects(pushed, { code: 'ECONNREFUSED' });
      finish(end === 'resolve' ? EXPOSITION : new Error('too late'));
      // An unhandled rejection would fail this test.
      await new Promise(setImmediate);
    }
  });
});

describe('Pushgateway: the timeout', LIMITS, () => {
  const options = { timeout: 50 };
  const timedOut = failsWith('Pushgateway request timed out');

  it('the timeout rejects each operation, and closes the connection, if there is no response', async () => {
    await serve(answerNever);
    for (const operation of ['pushAdd', 'push', 'delete']) {
      const connected = once(server.listener, 'connection');
      const gateway = new Pushgateway(server.url, options, registry);
      await assert.rejects(gateway[operation]({ jobName: 'j' }), timedOut);
      const [socket] = await connected;
      if (!socket.destroyed) await once(socket, 'close');
    }
  });

  it('the timeout covers the collect hooks, and a response that does not end', async () => {
    await serve((_request, response) => response.writeHead(200).write('half'));
    const endless = { metrics: () => new Promise(() => {}) };
    for (const pushed of [registry, endless]) {
      await assert.rejects(push(options, pushed), timedOut);
    }
  });
});

// Applications test their pushes by replacing http.request(). These tests replace it in ways that they use.

/**
 * A minimal mock: a request with on, write and end, and a response with setEncoding and on.
 *
 * @returns {{options: any, body: any[], ended: number}[]} the requests
 */
function replaceRequest() {
  const calls = [];
  mock.method(http, 'request', (options, callback) => {
    const call = { options, body: [], ended: 0 };
    calls.push(call);
    const listeners = {};
    const response = {
      statusCode: 202,
      setEncoding() {},
      on(event, listener) {
        listeners[event] = listener;
        if (event === 'end') setImmediate(() => (listeners.data('answer'), listener()));
      },
    };
    return {
      on() {},
      write: chunk => call.body.push(chunk),
      end() {
        call.ended++;
        callback(response);
      },
    };
  });
  return calls;
}

describe('Pushgateway: a function that replaces http.request()', LIMITS, () => {
  afterEach(() => mock.restoreAll());

  it('a function that replaces http.request() has been called when push() returns, with its module as this', async () => {
    const calls = replaceRequest();
    const pushed = new Pushgateway(GATEWAY, {}, registry).push({ jobName: 'j' });
    assert.strictEqual(calls[0].options.path, '/metrics/job/j');
    assert.strictEqual(http.request.mock.calls[0].this, http);
    const { resp, body } = await pushed;
    assert.deepStrictEqual([resp.statusCode, body], [202, 'answer']);
    // One write for the body.
    assert.deepStrictEqual([calls[0].body, calls[0].ended], [[EXPOSITION], 1]);
  });

  it('a function that replaces http.request() may return a request without destroy(), even if collecting fails', async () => {
    replaceRequest();
    const failing = { metrics: () => Promise.reject(new Error('no numbers')) };
    await assert.rejects(new Pushgateway(GATEWAY, failing).push({ jobName: 'j' }), { message: 'no numbers' });
  });

  it('a function that replaces http.request() may return an emitter that emits several errors', async () => {
    const request = Object.assign(new EventEmitter(), { write() {}, end() {} });
    mock.method(http, 'request', () => request);
    const pushed = new Pushgateway(GATEWAY, {}, registry).push({ jobName: 'j' });
    request.emit('error', new Error('first'));
    request.emit('error', new Error('second'));
    await assert.rejects(pushed, { message: 'first' });
    request.emit('error', new Error('third'));
  });
});

it('the metrics of a cluster are pushed for an AggregatorRegistry', LIMITS, async t => {
  await serve();
  const start = ({ client, cluster }) =>
    new client.Counter({ name: 'work_total', help: 'h' }).inc(cluster.worker.id);
  const cluster = await startCluster(t, { workers: 2, worker: { start } });
  await cluster.run(async ({ client, aggregator }, url) => {
    // The primary's own metrics are not part of the cluster's.
    const registers = [aggregator, client.register];
    new client.Gauge({ name: 'of_the_primary', help: 'h', registers }).set(1);
    const headers = { 'Content-Encoding': 'gzip' };
    await new client.Pushgateway(url, { timeout: 60_000 }, aggregator).push({ jobName: 'j' });
    await new client.Pushgateway(url, { timeout: 60_000, headers }, aggregator).pushAdd({ jobName: 'j' });
    await new client.Pushgateway(url, aggregator).push({ jobName: 'j' });
  }, server.url);
  const [plain, gzipped, second] = server.requests;
  const methods = server.requests.map(request => request.method);
  assert.deepStrictEqual(methods, ['PUT', 'POST', 'PUT']);
  for (const text of [plain.body, gunzipSync(gzipped.body), second.body].map(String)) {
    assert.match(text, /^work_total 3$/m);
    assert.doesNotMatch(text, /of_the_primary/);
  }
  for (const { headers } of server.requests) assert.strictEqual(headers['content-type'], PROMETHEUS_TEXT);
  await cluster.end();
});

it('the module of Pushgateway uses nothing that Node.js deprecates', LIMITS, () => {
  const program = `
    const { Pushgateway } = require(${JSON.stringify(LIBRARY)});
    new Pushgateway('http://u:p@127.0.0.1:1/x').push({ jobName: 'j' }).catch(error => console.log(error.code));`;
  const flags = ['--pending-deprecation', '--throw-deprecation', '-e', program];
  assert.strictEqual(execFileSync(process.execPath, flags).toString(), 'ECONNREFUSED\n');
});
