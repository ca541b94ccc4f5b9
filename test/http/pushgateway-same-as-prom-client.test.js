'use strict';

// Compares pushes of prom-client and this package: at a recording server, and at a replaced http.request().

const assert = require('node:assert');
const http = require('http');
const https = require('https');
const { after, afterEach, before, describe, it, mock } = require('node:test');
const promClient = require('prom-client');
const { Counter, Registry } = require('../..');
const { Pushgateway } = require('../../lib/http/pushgateway');
const { RecordingServer } = require('../fixtures/pushgateway-recorder');

const THEIRS = { ...promClient };
const OURS = { Counter, Registry, Pushgateway };
const OPERATIONS = ['pushAdd', 'push', 'delete'];
const LIMITS = { timeout: 120_000 };

const PARAMETERS = [
  { jobName: 'nightly' },
  { jobName: 'ü ?&%#"\'()*!~:@;,$\\' },
  { jobName: 5 },
  { jobName: 'j', groupings: {} },
  { jobName: 'j', groupings: null },
  {
    jobName: 'j',
    groupings: { b: '1', a: '2', 'a b': 'c d', 'k@base64': 'YS9i', u: undefined, n: null, t: true },
  },
  { jobName: 'j', groupings: { 'k@base64': '/' } },
  { jobName: 'j', groupings: { k: { toString: () => 'text' }, z: 'a@base64', dots: '...', "it's": "it's" } },
  { jobName: 'j', groupings: ['x'] },
  { jobName: 'j', groupings: Object.create({ inherited: '1' }) },
  { jobName: '\ud800' },
  { jobName: Symbol('job') },
  { groupings: { a: 'b' } },
  { jobName: '' },
  {},
  undefined,
  null,
];

const OPTIONS = [
  undefined,
  null,
  {},
  { headers: { 'X-A': '1', 'x-b': ['2', '3'] } },
  { headers: { 'Content-Encoding': 'gzip' } },
  { headers: { 'content-encoding': 'gzip' } },
  { headers: { 'Content-Encoding': 'identity', a: 'b' } },
  { headers: { 'Content-Type': 'a/b', 'User-Agent': 'c' } },
  { headers: null },
  { auth: 'other:one', method: 'PATCH' },
  { path: '/elsewhere', pathname: '/nowhere', agent: false },
  { requireJobName: false, timeout: 5000 },
  { requireJobName: undefined },
];

const URLS = [
  'http://127.0.0.1:9091',
  'http://127.0.0.1:9091/',
  'http://127.0.0.1/pre/fix',
  'http://127.0.0.1:9091/a b/%zz?q=1#h',
  'HTTP://EXAMPLE.invalid',
  'http://user:@a.invalid',
  'http://us%40er:p%3Aw@a.invalid/x',
  'http://:p@a.invalid',
  'http://[::1]:9091',
  'http://münchen.invalid',
  ' http://a.invalid\\x\\y ',
  'http://%zz:a@a.invalid',
  undefined,
  null,
  5,
];

/** prom-client sends to another host than these texts seem to name, or to this one. */
const NOT_URLS = ['', '/x', 'name', '//name/x', 'http://', 'http://[::1', 'http://a b/', 'http://a:b:c'];

/** The paths that differ: prom-client 15.1.3's path, which the gateway misreads or refuses, and ours. */
const DIFFERENT_PATHS = [
  ['a trailing slash', '/pre/', {}, '/pre//metrics/job/j', '/pre/metrics/job/j'],
  ['trailing slashes', '/a/b//?q=1#h', {}, '/a/b///metrics/job/j', '/a/b/metrics/job/j'],
  ['a slash in a value', '', { k: 'a/b' }, '/metrics/job/j/k/a%2Fb', '/metrics/job/j/k@base64/YS9i'],
  ['URL-safe base64', '', { k: '/?>~~' }, '/metrics/job/j/k/%2F%3F%3E~~', '/metrics/job/j/k@base64/Lz8-fn4'],
  ['an empty value', '', { k: '' }, '/metrics/job/j/k/', '/metrics/job/j/k@base64/='],
  ['a dot segment', '', { k: '..', l: '1' }, '/metrics/job/j/l/1', '/metrics/job/j/k@base64/Li4/l/1'],
  ['one dot', '', { k: '.' }, '/metrics/job/j/k/', '/metrics/job/j/k@base64/Lg'],
  ['a slash in the job', '', 'a/b', '/metrics/job/a%2Fb', '/metrics/job@base64/YS9i'],
  ['dots as the job', '', '..', '/metrics/', '/metrics/job@base64/Li4'],
].map(([what, suffix, given, ...paths]) => {
  const params = typeof given === 'string' ? { jobName: given } : { jobName: 'j', groupings: given };
  return [what, suffix, params, ...paths];
});

/** A description of a case for a test's name. */
function shown(value) {
  return (
    JSON.stringify(value, (_key, part) => (typeof part === 'symbol' ? String(part) : part)) ?? String(value)
  );
}

function pushgatewayOf(library, url, options) {
  const registry = new library.Registry();
  new library.Counter({ name: 'done_total', help: 'h', registers: [registry] }).inc(3);
  return new library.Pushgateway(url, options, registry);
}

const propertiesOf = ({ gatewayUrl, requireJobName, requestOptions }) => {
  return { gatewayUrl, requireJobName, requestOptions };
};

/** Calls an operation and returns its result or error. */
async function outcomeOf(library, url, options, operation, params) {
  let pushed;
  try {
    pushed = pushgatewayOf(library, url, options)[operation](params);
  } catch (error) {
    return { thrown: described(error) };
  }
  try {
    const { resp, body } = await pushed;
    return { status: resp.statusCode, body };
  } catch (error) {
    return { rejected: described(error) };
  }
}

/**
 * Removes what need not be the same: the name of a property that was read from null, how a value is printed,
 * the codes that only errors of this library have.
 */
function described({ name, code, message }) {
  const text = message.replace(/^Cannot .* null .*/, 'Cannot read null').replace(/ Received .*/, '');
  return { name, code: code?.startsWith('PROM_CLIENT_') ? undefined : code, message: text };
}

describe('Pushgateway: requests equal those of prom-client', LIMITS, () => {
  /** @type {RecordingServer} */
  let server;

  before(async () => {
    server = await RecordingServer.start(({ path }, response) => {
      response.writeHead(path === '/elsewhere' ? 404 : 202, { Location: '/other' }).end('answer');
    });
  });

  after(() => server.stop());

  async function recordedOf(library, url, options, operation, params) {
    server.requests.length = 0;
    const outcome = await outcomeOf(library, url, options, operation, params);
    const requests = server.requests.map(({ method, path, headers, body }) => {
      // Byte by byte, compressed bodies too: mocks of HTTP compare with gzipSync(text).
      return { method, path, headers: { ...headers }, body: body.toString('latin1') };
    });
    return { outcome, requests };
  }

  /** Removes the Content-Type, which prom-client does not send. */
  function withoutContentType({ outcome, requests }, options) {
    for (const { method, headers } of requests) {
      if (options?.headers?.['Content-Type'] !== undefined) continue;
      const expected = method === 'DELETE' ? undefined : 'text/plain; version=0.0.4; charset=utf-8';
      assert.strictEqual(headers['content-type'], expected);
      delete headers['content-type'];
    }
    return { outcome, requests };
  }

  async function assertSame(url, options, operation, params) {
    // A copy for each: prom-client deletes headers of the caller's object.
    const theirs = await recordedOf(THEIRS, url, copyOf(options), operation, params);
    const ours = await recordedOf(OURS, url, copyOf(options), operation, params);
    assert.deepStrictEqual(withoutContentType(ours, options), theirs);
    return theirs;
  }

  for (const params of PARAMETERS) {
    it(`requests equal those of prom-client for parameters ${shown(params)}`, async () => {
      for (const requireJobName of [true, false]) {
        for (const operation of OPERATIONS)
          await assertSame(server.url, { requireJobName }, operation, params);
      }
    });
  }

  for (const options of OPTIONS) {
    it(`requests and properties equal those of prom-client for options ${shown(options)}`, async () => {
      const [ours, theirs] = [OURS, THEIRS].map(each => pushgatewayOf(each, server.url, options));
      assert.deepStrictEqual(propertiesOf(ours), propertiesOf(theirs));
      for (const operation of OPERATIONS) {
        const { requests } = await assertSame(server.url, options, operation, { jobName: 'j' });
        assert.strictEqual(requests.length, 1);
      }
    });
  }

  it('requests equal those of prom-client for other schemes, which are rejected', async () => {
    for (const url of ['ftp://a.invalid', 'localhost:9091', '127.0.0.1:9091', 'unix:/x']) {
      for (const operation of OPERATIONS) {
        const { rejected } = (await assertSame(url, {}, operation, { jobName: 'j' })).outcome;
        assert.strictEqual(rejected.code, 'ERR_INVALID_PROTOCOL');
      }
    }
  });

  it('requests equal those of prom-client for credentials and a path in the URL', async () => {
    const url = `http://us%40er:p%3Aw@${server.host}/pre/fix?q=1#h`;
    for (const operation of OPERATIONS) {
      const { requests } = await assertSame(url, {}, operation, { jobName: 'j' });
      assert.strictEqual(requests[0].headers.authorization, `Basic ${btoa('us@er:p:w')}`);
      await assertSame(url, { auth: 'other:one' }, operation, { jobName: 'j' });
    }
  });

  for (const [what, suffix, params, theirPath, ourPath] of DIFFERENT_PATHS) {
    it(`requests equal those of prom-client except for ${what}`, async () => {
      for (const operation of OPERATIONS) {
        const theirs = await recordedOf(THEIRS, server.url + suffix, {}, operation, params);
        const ours = await recordedOf(OURS, server.url + suffix, {}, operation, params);
        assert.deepStrictEqual([theirs.requests[0].path, ours.requests[0].path], [theirPath, ourPath]);
      }
    });
  }
});

describe('Pushgateway: arguments of http.request() equal those of prom-client', LIMITS, () => {
  afterEach(() => mock.restoreAll());

  /** For tests of applications, which compare all of them. */
  function comparable(options) {
    // Ours is escaped.
    return { ...options, href: options.href?.replace('%3A', ':') };
  }

  /** The first arguments of all calls, and how the operation ended. */
  async function givenBy(library, url, options, operation, params) {
    const given = [];
    for (const module of [http, https]) {
      mock.method(module, 'request', (...args) => {
        given.push({ secure: module === https, amount: args.length, options: comparable(args[0]) });
        throw new Error('not connected');
      });
    }
    const outcome = await outcomeOf(library, url, options, operation, params);
    mock.restoreAll();
    return { given, outcome };
  }

  async function assertSame(url, options) {
    for (const operation of OPERATIONS) {
      const params = { jobName: 'j', groupings: { a: 'b' } };
      const theirs = await givenBy(THEIRS, url, copyOf(options), operation, params);
      assert.deepStrictEqual(await givenBy(OURS, url, copyOf(options), operation, params), theirs);
    }
  }

  for (const url of URLS) {
    it(`arguments of http.request() equal those of prom-client for the URL ${shown(url)}`, () =>
      assertSame(url, {}));
  }

  const { signal } = new AbortController();
  for (const options of [...OPTIONS, { socketPath: '/x', signal }, { ca: 'x', rejectUnauthorized: false }]) {
    it(`arguments of http.request() equal those of prom-client for options ${shown(options)}`, () =>
      assertSame('https://a:b@a.invalid/x', options));
  }

  it('arguments of http.request() equal those of prom-client except for what is not a URL', async () => {
    for (const url of NOT_URLS) {
      const { given, outcome } = await givenBy(OURS, url, {}, 'push', { jobName: 'j' });
      assert.deepStrictEqual(given, []);
      const expected = { name: 'TypeError', code: 'ERR_INVALID_URL', message: 'Invalid URL' };
      assert.deepStrictEqual(outcome.rejected, expected, url);
    }
  });

  it('arguments of http.request() equal those of prom-client except for a user without a password, who has an empty one', async () => {
    const { given } = await givenBy(OURS, 'http://user@a.invalid', {}, 'push', { jobName: 'j' });
    assert.strictEqual(given[0].options.auth, 'user:');
  });
});

it('the class Pushgateway has the methods of prom-client, with the same arity', () => {
  const names = ({ Pushgateway: { prototype } }) => Object.getOwnPropertyNames(prototype).sort();
  assert.deepStrictEqual(names(OURS), names(THEIRS));
  assert.strictEqual(OURS.Pushgateway.length, THEIRS.Pushgateway.length);
  assert.strictEqual(OURS.Pushgateway.name, THEIRS.Pushgateway.name);
});

function copyOf(options) {
  return options && { ...options, ...(options.headers && { headers: { ...options.headers } }) };
}
