'use strict';

// Applications test their pushes by replacing http.request(). This file replaces it in the ways that they
// use.

const assert = require('node:assert');
const { EventEmitter, once } = require('node:events');
const http = require('http');
const https = require('https');
const { afterEach, beforeEach, describe, it, mock } = require('node:test');
const { Counter, Registry } = require('../..');
const { Pushgateway } = require('../../lib/http/pushgateway');

const GATEWAY = 'http://127.0.0.1:9091';
const EXPOSITION = '# HELP done_total h\n# TYPE done_total counter\ndone_total 3\n';
const LIMITS = { timeout: 120_000 };

/** @type {Registry} */
let registry;

beforeEach(() => {
  registry = new Registry();
  new Counter({ name: 'done_total', help: 'h', registers: [registry] }).inc(3);
});

afterEach(() => mock.restoreAll());

/**
 * A minimal mock: a request with on, write and end, and a response with setEncoding and on.
 *
 * @param {object} module http or https
 * @returns {{options: any, body: any[], ended: number}[]} the requests
 */
function replaceRequest(module) {
  const calls = [];
  mock.method(module, 'request', (options, callback) => {
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
  for (const [operation, method, body] of [
    ['pushAdd', 'POST', [EXPOSITION]],
    ['push', 'PUT', [EXPOSITION]],
    ['delete', 'DELETE', []],
  ]) {
    it(`a function that replaces http.request() is called with options for ${operation}, and one write for the body`, async () => {
      const calls = replaceRequest(http);
      const gateway = new Pushgateway(GATEWAY, { headers: { 'unit-test': '1' }, timeout: 10 }, registry);
      const pushed = await gateway[operation]({ jobName: 'j', groupings: { key: 'va&lue' } });
      assert.strictEqual(pushed.body, 'answer');
      assert.strictEqual(pushed.resp.statusCode, 202);
      assert.deepStrictEqual(calls, [
        {
          options: {
            protocol: 'http:',
            slashes: true,
            auth: null,
            host: '127.0.0.1:9091',
            port: '9091',
            hostname: '127.0.0.1',
            hash: null,
            search: null,
            query: null,
            pathname: '/metrics/job/j/key/va%26lue',
            path: '/metrics/job/j/key/va%26lue',
            href: 'http://127.0.0.1:9091/metrics/job/j/key/va%26lue',
            headers: { 'unit-test': '1' },
            timeout: 10,
            method,
          },
          body,
          ended: 1,
        },
      ]);
    });
  }

  it('a function that replaces http.request() has been called when push() returns, with its module as this', async () => {
    const calls = replaceRequest(http);
    const pushed = new Pushgateway(GATEWAY, {}, registry).push({ jobName: 'j' });
    assert.strictEqual(calls[0].options.path, '/metrics/job/j');
    assert.strictEqual(http.request.mock.calls[0].this, http);
    await pushed;
  });

  it('a function that replaces http.request() may be set after the Pushgateway was created, and is not called for https', async () => {
    const gateway = new Pushgateway('https://127.0.0.1', {}, registry);
    const [plain, secure] = [http, https].map(replaceRequest);
    await gateway.push({ jobName: 'j' });
    assert.deepStrictEqual([plain.length, secure.length], [0, 1]);
    assert.strictEqual(secure[0].options.protocol, 'https:');
  });

  it('a function that replaces http.request() may throw: the push rejects', async () => {
    mock.method(http, 'request', () => {
      throw new Error('no network in tests');
    });
    const pushed = new Pushgateway(GATEWAY, {}, registry).push({ jobName: 'j' });
    await assert.rejects(pushed, { message: 'no network in tests' });
  });

  it('a function that replaces http.request() may return a request without destroy(), even if collecting fails', async () => {
    replaceRequest(http);
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

  it('a function that replaces http.request() may return an emitter that emits timeout', async () => {
    const request = Object.assign(new EventEmitter(), { write() {}, end() {}, destroy: mock.fn() });
    mock.method(http, 'request', () => request);
    const pushed = new Pushgateway(GATEWAY, {}, registry).delete({ jobName: 'j' });
    request.emit('timeout');
    await assert.rejects(pushed, { message: 'Pushgateway request timed out' });
    assert.strictEqual(request.destroy.mock.callCount(), 1);
  });

  it('a function that replaces http.request() may call back with a response before it returns', async () => {
    mock.method(http, 'request', (_options, callback) => {
      callback(
        Object.assign(new EventEmitter(), { statusCode: 400, setEncoding() {} }).on('newListener', answer),
      );
      return Object.assign(new EventEmitter(), { write() {}, end() {} });
    });
    function answer(event, listener) {
      if (event === 'end') setImmediate(listener);
    }
    const pushed = new Pushgateway(GATEWAY, {}, registry).push({ jobName: 'j' });
    await assert.rejects(pushed, { message: 'push failed with status 400, ' });
  });
});

describe('Pushgateway: an HTTP interceptor', LIMITS, () => {
  it('an HTTP interceptor can redirect real requests to another server', async () => {
    const server = http.createServer((request, response) => {
      response.end(`${request.method} ${request.url} ${request.headers['content-type']}`);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const original = http.request;
    mock.method(http, 'request', (options, callback) => {
      const { port } = server.address();
      return original.call(http, { ...options, host: undefined, hostname: '127.0.0.1', port }, callback);
    });
    try {
      const { body } = await new Pushgateway('http://gateway.invalid:1', {}, registry).push({ jobName: 'j' });
      assert.strictEqual(body, `PUT /metrics/job/j ${registry.contentType}`);
    } finally {
      server.close();
    }
  });
});
