'use strict';

const assert = require('node:assert');
const { execFileSync, execFile } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { promisify } = require('node:util');
const { gunzipSync } = require('node:zlib');
const { AggregatorRegistry, Counter, Registry, register } = require('../..');
const { Pushgateway } = require('../../lib/http/pushgateway');
const { RecordingServer } = require('../fixtures/pushgateway-recorder');

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const EXPOSITION = '# HELP done_total h\n# TYPE done_total counter\ndone_total 3\n';
const LIBRARY = path.join(__dirname, '../../lib/http/pushgateway');
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

async function serve(answer, tls, address) {
  server = await RecordingServer.start(answer, tls, address);
  return server;
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
  it('a Pushgateway has its arguments as properties', () => {
    const options = { timeout: 5, headers: { a: 'b' } };
    const gateway = new Pushgateway('http://127.0.0.1:1', { ...options, requireJobName: false }, registry);
    assert.deepStrictEqual(
      { ...gateway },
      {
        registry,
        gatewayUrl: 'http://127.0.0.1:1',
        requireJobName: false,
        requestOptions: options,
      },
    );
  });

  for (const options of [undefined, null, {}]) {
    it(`a Pushgateway requires a jobName and pushes the global registry if its options are ${options && '{}'}`, () => {
      const gateway = new Pushgateway('http://127.0.0.1:1', options);
      assert.deepStrictEqual(
        { ...gateway },
        {
          registry: register,
          gatewayUrl: 'http://127.0.0.1:1',
          requireJobName: true,
          requestOptions: {},
        },
      );
    });
  }

  it('a Pushgateway takes a registry as second argument; its properties are not options', () => {
    for (const second of [registry, { metrics: () => '', path: '/mine', requireJobName: false }]) {
      const gateway = new Pushgateway('http://127.0.0.1:1', second);
      assert.strictEqual(gateway.registry, second);
      assert.strictEqual(gateway.requireJobName, true);
      assert.deepStrictEqual(gateway.requestOptions, {});
    }
  });

  it('a Pushgateway prefers a registry as third argument to one as second', () => {
    const other = new Registry();
    assert.strictEqual(new Pushgateway('http://127.0.0.1:1', registry, other).registry, other);
  });

  for (const operation of ['pushAdd', 'push', 'delete']) {
    for (const params of [undefined, {}, { jobName: '' }, { groupings: { a: 'b' } }]) {
      it(`a Pushgateway throws synchronously for ${operation}(${JSON.stringify(params) ?? ''}), because there is no jobName`, () => {
        const gateway = new Pushgateway('http://127.0.0.1:1', {}, registry);
        assert.throws(() => gateway[operation](params), failsWith('Missing jobName parameter'));
      });
    }
  }

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

  for (const [operation, method] of [
    ['pushAdd', 'POST'],
    ['push', 'PUT'],
  ]) {
    it(`the request of ${operation} is a ${method} with the registry's metrics as body`, async () => {
      const { resp, body } = await new Pushgateway(server.url, {}, registry)[operation]({ jobName: 'j' });
      assert.strictEqual(resp.statusCode, 200);
      assert.strictEqual(body, 'ok');
      const { method: sent, path: sentPath, headers, body: sentBody } = server.last;
      assert.deepStrictEqual([sent, sentPath, sentBody.toString()], [method, '/metrics/job/j', EXPOSITION]);
      assert.deepStrictEqual(headers, {
        host: server.host,
        connection: 'keep-alive',
        'content-type': PROMETHEUS_TEXT,
        'transfer-encoding': 'chunked',
      });
    });
  }

  it('the request of delete is a DELETE without a body', async () => {
    await new Pushgateway(server.url, {}, registry).delete({ jobName: 'j' });
    assert.strictEqual(server.last.method, 'DELETE');
    assert.strictEqual(server.last.body.length, 0);
    assert.deepStrictEqual(server.last.headers, { host: server.host, connection: 'keep-alive' });
  });

  it("the request has the Content-Type of the registry's format", async () => {
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    await new Pushgateway(server.url, {}, registry).push({ jobName: 'j' });
    assert.strictEqual(server.last.headers['content-type'], Registry.OPENMETRICS_CONTENT_TYPE);
    assert.match(server.last.body.toString(), /# EOF\n$/);
  });

  it("the request has the caller's Content-Type, in any letter case", async () => {
    await new Pushgateway(server.url, { headers: { 'CONTENT-type': 'a/b' } }, registry).push({
      jobName: 'j',
    });
    assert.strictEqual(server.last.headers['content-type'], 'a/b');
  });

  it('the request has only the given headers if they are an array', async () => {
    const headers = ['Host', server.host, 'X-A', '1', 'Transfer-Encoding', 'chunked', 'Connection', 'close'];
    await new Pushgateway(server.url, { headers }, registry).push({ jobName: 'j' });
    assert.strictEqual(server.last.headers['x-a'], '1');
    assert.strictEqual(server.last.headers['content-type'], undefined);
    assert.strictEqual(server.last.body.toString(), EXPOSITION);
  });

  for (const result of [EXPOSITION, Promise.resolve(EXPOSITION)]) {
    it(`a Pushgateway can push any object whose metrics() returns a ${result.constructor.name}`, async () => {
      const own = { metrics: () => result };
      await new Pushgateway(server.url, {}, own).push({ jobName: 'third' });
      await new Pushgateway(server.url, own).push({ jobName: 'second' });
      for (const { body, headers } of server.requests) {
        assert.strictEqual(body.toString(), EXPOSITION);
        assert.strictEqual(headers['content-type'], undefined);
      }
      assert.strictEqual(server.requests.length, 2);
    });
  }

  it('the request has a line feed as body if the registry is empty', async () => {
    await new Pushgateway(server.url, new Registry()).push({ jobName: 'j' });
    assert.strictEqual(server.last.body.toString(), '\n');
  });

  it('the request ignores the option method', async () => {
    await new Pushgateway(server.url, { method: 'PATCH' }, registry).push({ jobName: 'j' });
    assert.strictEqual(server.last.method, 'PUT');
  });

  it('the request has the path of the option path', async () => {
    await new Pushgateway(server.url, { path: '/elsewhere' }, registry).push({ jobName: 'j' });
    assert.strictEqual(server.last.path, '/elsewhere');
  });
});

describe('Pushgateway: the path', LIMITS, () => {
  beforeEach(() => serve());

  for (const [what, params, expected] of [
    ['is /metrics without a job, even with groupings', { groupings: { a: 'b' } }, ''],
    ['has the job', { jobName: 'nightly' }, '/job/nightly'],
    ['has groupings in their order', { jobName: 'j', groupings: { b: '1', a: '2' } }, '/job/j/b/1/a/2'],
    [
      'percent-encodes special characters',
      { jobName: 'a?b', groupings: { k: 'ü &%#' } },
      '/job/a%3Fb/k/%C3%BC%20%26%25%23',
    ],
    ['has a value with a slash in base64', { jobName: 'j', groupings: { k: 'a/b' } }, '/job/j/k@base64/YS9i'],
    ['encodes an empty value as =', { jobName: 'j', groupings: { k: '', l: 'x' } }, '/job/j/k@base64/=/l/x'],
    [
      'uses the URL-safe alphabet of base64',
      { jobName: 'j', groupings: { k: '/?>~~' } },
      '/job/j/k@base64/Lz8-fn4',
    ],
    ['has dot segments in base64', { jobName: '..', groupings: { k: '.' } }, '/job@base64/Li4/k@base64/Lg'],
    ['has a job with a slash in base64', { jobName: 'a/b' }, '/job@base64/YS9i'],
    [
      'does not change a value that the caller encoded in base64',
      { jobName: 'j', groupings: { 'k@base64': 'YS9i' } },
      '/job/j/k%40base64/YS9i',
    ],
    [
      'does not encode a value in base64 if its label name ends in @base64',
      { jobName: 'j', groupings: { 'k@base64': '/' } },
      '/job/j/k%40base64/%2F',
    ],
    ['converts other values to text', { jobName: 5, groupings: { a: 0, b: null } }, '/job/5/a/0/b/null'],
    ['ends at the job with null for groupings', { jobName: 'j', groupings: null }, '/job/j'],
  ]) {
    it(what, async () => {
      const gateway = new Pushgateway(server.url, { requireJobName: false }, registry);
      for (const operation of ['pushAdd', 'push', 'delete']) await gateway[operation](params);
      const paths = new Set(server.requests.map(request => request.path));
      assert.deepStrictEqual([...paths], [`/metrics${expected}`]);
      assert.strictEqual(server.requests.length, 3);
    });
  }

  for (const [suffix, expected] of [
    ['/', '/metrics/job/j'],
    ['/prefix', '/prefix/metrics/job/j'],
    ['/prefix/', '/prefix/metrics/job/j'],
    ['/a/b//', '/a/b/metrics/job/j'],
    ['/prefix/?query=1#hash', '/prefix/metrics/job/j'],
    ['?query=1', '/metrics/job/j'],
  ]) {
    it(`the path is ${expected} for a URL that ends in ${suffix}`, async () => {
      await new Pushgateway(server.url + suffix, {}, registry).push({ jobName: 'j' });
      assert.strictEqual(server.last.path, expected);
    });
  }

  it('a lone surrogate in the path is rejected', async () => {
    const pushed = new Pushgateway(server.url, {}, registry).push({ jobName: '\ud800' });
    await assert.rejects(pushed, URIError);
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

  for (const headers of [{ 'content-encoding': 'gzip' }, { 'Content-Encoding': 'identity' }]) {
    it(`compression is not applied with the headers ${JSON.stringify(headers)}`, async () => {
      await new Pushgateway(server.url, { headers }, registry).push({ jobName: 'j' });
      assert.strictEqual(server.last.body.toString(), EXPOSITION);
    });
  }
});

describe('Pushgateway: basic authentication', LIMITS, () => {
  const answer = ({ headers }, response) => {
    const [scheme, credentials] = (headers.authorization ?? '').split(' ');
    const isCorrect = scheme === 'Basic' && Buffer.from(credentials, 'base64').toString() === 'us@er:p:ass/';
    if (isCorrect) response.end('welcome');
    else response.writeHead(401).end('who are you');
  };
  const withCredentials = credentials => server.url.replace('//', `//${credentials}@`);

  beforeEach(() => serve(answer));

  it('basic authentication takes user and password from the URL', async () => {
    const gateway = new Pushgateway(withCredentials('us%40er:p%3Aass%2F'), {}, registry);
    for (const operation of ['pushAdd', 'push', 'delete']) {
      assert.strictEqual((await gateway[operation]({ jobName: 'j' })).body, 'welcome');
    }
  });

  it('basic authentication prefers the option auth', async () => {
    const gateway = new Pushgateway(withCredentials('some:body'), { auth: 'us@er:p:ass/' }, registry);
    assert.strictEqual((await gateway.push({ jobName: 'j' })).body, 'welcome');
  });

  it('a push rejects if the server refuses the credentials', async () => {
    const pushed = new Pushgateway(server.url, {}, registry).push({ jobName: 'j' });
    await assert.rejects(pushed, failsWith('push failed with status 401, who are you'));
  });
});

describe('Pushgateway: the response', LIMITS, () => {
  const push = () => new Pushgateway(server.url, {}, registry).push({ jobName: 'j' });

  for (const status of [200, 202, 302, 399]) {
    it(`a push resolves for status ${status}`, async () => {
      await serve(answerWith(status, 'text', { Location: '/other' }));
      const { resp, body } = await push();
      assert.deepStrictEqual([resp.statusCode, body], [status, 'text']);
      // A redirect was not followed.
      assert.strictEqual(server.requests.length, 1);
    });
  }

  for (const status of [400, 404, 500]) {
    it(`a push rejects for status ${status}`, async () => {
      await serve(answerWith(status, 'no such\nthing'));
      await assert.rejects(push(), failsWith(`push failed with status ${status}, no such\nthing`));
      await assert.rejects(
        new Pushgateway(server.url, {}, registry).delete({ jobName: 'j' }),
        failsWith(`push failed with status ${status}, no such\nthing`),
      );
    });
  }

  it('the response is decoded as UTF-8, even if a chunk ends within a character', async () => {
    await serve((_request, response) => {
      const bytes = Buffer.from('grün');
      response.write(bytes.subarray(0, 3), () => response.end(bytes.subarray(3)));
    });
    assert.strictEqual((await push()).body, 'grün');
  });

  it('a push rejects if the response is incomplete', async () => {
    await serve((_request, response) => {
      response.writeHead(200, { 'Content-Length': 10 });
      response.write('half', () => response.destroy());
    });
    await assert.rejects(push(), { code: 'ECONNRESET' });
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
      const pushed = new Pushgateway(server.url, {}, registry).push({ jobName: 'j' });
      const message = `push failed with status ${status}, the response is longer than 16 MiB`;
      await assert.rejects(pushed, failsWith(message));
      await closed;
      await server.stop();
    }
  });

  it('a push rejects if the connection closes without a response', async () => {
    await serve((_request, response) => response.destroy());
    await assert.rejects(push(), { code: 'ECONNRESET' });
  });

  it('a push rejects if the response upgrades the connection', async () => {
    await serve(answerWith(101, undefined, { Connection: 'Upgrade', Upgrade: 'other' }));
    await assert.rejects(
      push(),
      failsWith('push failed with status 101, the gateway upgrades the connection'),
    );
  });
});

describe('Pushgateway: an error before the response', LIMITS, () => {
  it('a push rejects with the error of the socket', async () => {
    const { url } = await serve();
    await server.stop();
    server = undefined;
    const gateway = new Pushgateway(url, {}, registry);
    for (const operation of ['pushAdd', 'push', 'delete']) {
      await assert.rejects(gateway[operation]({ jobName: 'j' }), { code: 'ECONNREFUSED' });
    }
  });

  for (const url of ['ftp://127.0.0.1/', 'localhost:9091']) {
    it(`a push rejects the URL ${url} because of its scheme`, async () => {
      const pushed = new Pushgateway(url, {}, registry).push({ jobName: 'j' });
      await assert.rejects(pushed, { name: 'TypeError', code: 'ERR_INVALID_PROTOCOL' });
    });
  }

  for (const url of [undefined, null, 5]) {
    it(`a push rejects ${url} as URL`, async () => {
      const pushed = new Pushgateway(url, {}, registry).push({ jobName: 'j' });
      await assert.rejects(pushed, { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' });
    });
  }

  it('a push rejects headers that cannot be sent', async () => {
    const pushed = new Pushgateway('http://127.0.0.1:1', { headers: { 'a b': '' } }, registry).push({
      jobName: 'j',
    });
    await assert.rejects(pushed, { code: 'ERR_INVALID_HTTP_TOKEN' });
  });

  for (const [how, fail] of [
    ['rejects', () => Promise.reject(new Error('no numbers'))],
    [
      'throws',
      () => {
        throw new Error('no numbers');
      },
    ],
  ]) {
    it(`a push rejects and closes the connection if a collect hook ${how}`, async () => {
      await serve();
      const connected = once(server.listener, 'connection');
      registry.getSingleMetric('done_total').collect = async () => {
        await connected;
        return fail();
      };
      const pushed = new Pushgateway(server.url, {}, registry).push({ jobName: 'j' });
      await assert.rejects(pushed, failsWith('no numbers'));
      const [socket] = await connected;
      if (!socket.destroyed) await once(socket, 'close');
      assert.deepStrictEqual(server.requests, []);
    });
  }

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

  it('a push leaves no rejection unhandled if a collect hook fails after the connection', async () => {
    const { url } = await serve();
    await server.stop();
    server = undefined;
    let fail;
    const collected = new Promise((_resolve, reject) => (fail = reject));
    const pushed = new Pushgateway(url, { metrics: () => collected }).push({ jobName: 'j' });
    await assert.rejects(pushed, { code: 'ECONNREFUSED' });
    fail(new Error('too late'));
    // An unhandled rejection would fail this test.
    await new Promise(setImmediate);
  });

  it('a push ignores metrics that arrive after the connection failed', async () => {
    const { url } = await serve();
    await server.stop();
    server = undefined;
    let finish;
    const collected = new Promise(resolve => (finish = resolve));
    const pushed = new Pushgateway(url, { metrics: () => collected }).push({ jobName: 'j' });
    await assert.rejects(pushed, { code: 'ECONNREFUSED' });
    finish(EXPOSITION);
    await new Promise(setImmediate);
  });
});

describe('Pushgateway: the timeout', LIMITS, () => {
  const options = { timeout: 50 };
  const timedOut = failsWith('Pushgateway request timed out');

  async function assertThatConnectionCloses(connected) {
    const [socket] = await connected;
    if (!socket.destroyed) await once(socket, 'close');
  }

  for (const operation of ['pushAdd', 'push', 'delete']) {
    it(`the timeout rejects ${operation} and closes the connection if there is no response`, async () => {
      await serve(answerNever);
      const connected = once(server.listener, 'connection');
      await assert.rejects(
        new Pushgateway(server.url, options, registry)[operation]({ jobName: 'j' }),
        timedOut,
      );
      await assertThatConnectionCloses(connected);
    });
  }

  it('the timeout rejects if the response does not end', async () => {
    await serve((_request, response) => response.writeHead(200).write('half'));
    await assert.rejects(new Pushgateway(server.url, options, registry).push({ jobName: 'j' }), timedOut);
  });

  it('the timeout covers the collect hooks', async () => {
    await serve();
    const connected = once(server.listener, 'connection');
    const endless = { metrics: () => new Promise(() => {}) };
    await assert.rejects(new Pushgateway(server.url, options, endless).push({ jobName: 'j' }), timedOut);
    await assertThatConnectionCloses(connected);
  });
});

describe('Pushgateway: options of http.request()', LIMITS, () => {
  it('options of http.request() can abort a push (signal)', async () => {
    const abortion = new AbortController();
    await serve(() => abortion.abort());
    const pushed = new Pushgateway(server.url, { signal: abortion.signal }, registry).push({ jobName: 'j' });
    await assert.rejects(pushed, { name: 'AbortError' });
  });

  it(
    'options of http.request() can connect to a Unix socket (socketPath)',
    { skip: process.platform === 'win32' && 'has no Unix sockets' },
    async () => {
      const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'pushgateway-test-'));
      try {
        const socketPath = path.join(directory, 'socket');
        await serve(undefined, undefined, { path: socketPath });
        await new Pushgateway('http://localhost/', { socketPath }, registry).push({ jobName: 'j' });
        assert.strictEqual(server.last.path, '/metrics/job/j');
        await server.stop();
        server = undefined;
      } finally {
        fs.rmSync(directory, { recursive: true });
      }
    },
  );
});

describe('Pushgateway: https', { ...LIMITS, skip: noCertificateReason() }, () => {
  /** @type {{key: string, cert: string}} */
  let tls;

  beforeEach(async () => {
    tls ??= selfSigned();
    await serve(undefined, tls);
  });

  it('a Pushgateway with an https URL pushes if the certificate is trusted', async () => {
    const gateway = new Pushgateway(server.url, { ca: tls.cert }, registry);
    for (const operation of ['pushAdd', 'push', 'delete']) await gateway[operation]({ jobName: 'j' });
    assert.deepStrictEqual(
      server.requests.map(({ method, body }) => [method, body.toString()]),
      [
        ['POST', EXPOSITION],
        ['PUT', EXPOSITION],
        ['DELETE', ''],
      ],
    );
  });

  it('a Pushgateway with an https URL rejects if the certificate is not trusted', async () => {
    const pushed = new Pushgateway(server.url, {}, registry).push({ jobName: 'j' });
    await assert.rejects(pushed, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });
});

describe('Pushgateway: the metrics of a cluster', LIMITS, () => {
  it('the metrics of a cluster are pushed for an AggregatorRegistry', async () => {
    await serve();
    const program = path.join(__dirname, 'fixtures/pushgateway-cluster.js');
    await promisify(execFile)(process.execPath, [program, server.url]);
    const [plain, gzipped, second] = server.requests;
    assert.deepStrictEqual(
      server.requests.map(request => `${request.method} ${request.path}`),
      ['PUT /metrics/job/plain', 'POST /metrics/job/gzipped', 'PUT /metrics/job/second-argument'],
    );
    for (const text of [plain.body, gunzipSync(gzipped.body), second.body].map(String)) {
      assert.match(text, /^work_total 3$/m);
      assert.doesNotMatch(text, /of_the_primary/);
    }
    for (const { headers } of server.requests) assert.strictEqual(headers['content-type'], PROMETHEUS_TEXT);
  });

  it("the metrics of a cluster are the AggregatorRegistry's own if there never was a worker", async () => {
    await serve();
    const aggregator = new AggregatorRegistry();
    try {
      aggregator.registerMetric(registry.getSingleMetric('done_total'));
      await new Pushgateway(server.url, {}, aggregator).push({ jobName: 'j' });
      assert.strictEqual(server.last.body.toString(), EXPOSITION);
    } finally {
      await aggregator.close();
    }
  });
});

describe('Pushgateway: loading the module', LIMITS, () => {
  const NETWORK = ['http', 'https', 'net', 'tls', 'url', 'zlib', 'cluster', 'fs', 'worker_threads'];

  it('the module of Pushgateway requires no Node.js module, so it works in other runtimes', () => {
    const program = `
      const Module = require('node:module');
      const load = Module._load;
      const refused = new Set(${JSON.stringify(NETWORK)}.flatMap(name => [name, 'node:' + name]));
      Module._load = function (name, ...rest) {
        if (refused.has(name)) throw new Error('no ' + name);
        return load.call(this, name, ...rest);
      };
      const { Pushgateway } = require(${JSON.stringify(LIBRARY)});
      new Pushgateway('http://127.0.0.1:1').push({ jobName: 'j' }).catch(error => console.log(error.message));`;
    assert.strictEqual(execFileSync(process.execPath, ['-e', program]).toString(), 'no url\n');
  });

  it('the module of Pushgateway uses nothing that Node.js deprecates', () => {
    const program = `
      const { Pushgateway } = require(${JSON.stringify(LIBRARY)});
      new Pushgateway('http://u:p@127.0.0.1:1/x').push({ jobName: 'j' }).catch(error => console.log(error.code));`;
    const flags = ['--pending-deprecation', '--throw-deprecation'];
    assert.strictEqual(
      execFileSync(process.execPath, [...flags, '-e', program]).toString(),
      'ECONNREFUSED\n',
    );
  });

  it('the module of Pushgateway does not keep the process alive', () => {
    const program = `const { Pushgateway } = require(${JSON.stringify(LIBRARY)}); new Pushgateway('http://127.0.0.1:1');`;
    assert.strictEqual(execFileSync(process.execPath, ['-e', program], { timeout: 60_000 }).toString(), '');
  });
});

function noCertificateReason() {
  try {
    execFileSync('openssl', ['version']);
    return undefined;
  } catch {
    return 'openssl is not installed';
  }
}

function selfSigned() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'pushgateway-test-'));
  const [key, cert] = ['key.pem', 'cert.pem'].map(name => path.join(directory, name));
  try {
    execFileSync(
      'openssl',
      [
        ...[
          'req',
          '-x509',
          '-nodes',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:prime256v1',
          '-days',
          '1',
        ],
        ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
      ],
      { stdio: 'ignore' },
    );
    return { key: fs.readFileSync(key, 'utf8'), cert: fs.readFileSync(cert, 'utf8') };
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}
