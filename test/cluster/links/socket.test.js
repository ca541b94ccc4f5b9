'use strict';

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { StringDecoder } = require('node:string_decoder');
const { describe, it } = require('node:test');

const { Counter, Registry } = require('../../..');
const { WorkerResponder } = require('../../../lib/cluster/worker/worker-responder.js');
const { REQUEST } = require('../../../lib/cluster/wire/messages.js');
const { SocketLink } = require('../../../lib/cluster/links/socket.js');

class FakeSocket extends EventEmitter {
  writable = true;
  writableLength = 0;
  /** @type {string[]} */
  sent = [];
  #decoder = new StringDecoder();
  setEncoding() {}
  unref() {}
  /** @param {Buffer | string} bytes */
  receive(bytes) {
    this.emit('data', this.#decoder.write(Buffer.from(bytes)));
  }
  write(line, callback) {
    this.sent.push(line);
    callback();
  }
  destroy() {
    this.writable = false;
    this.emit('close');
  }
}

const lineOf = message => `${JSON.stringify(message)}\n`;

function connected() {
  const socket = new FakeSocket();
  const messages = [];
  let ends = 0;
  const link = new SocketLink(/** @type {any} */ (socket), {
    onMessage: message => messages.push(message),
    onEnd: () => ends++,
  });
  return { socket, link, messages, ends: () => ends };
}

describe('a link over a socket', () => {
  it('delivers messages however they are split', () => {
    const bytes = Buffer.from([{ a: 1 }, ['ä', null], 7].map(lineOf).join(''));
    for (const size of [1, 3, 5, bytes.length]) {
      const { socket, messages } = connected();
      for (let start = 0; start < bytes.length; start += size)
        socket.receive(bytes.subarray(start, start + size));
      assert.deepEqual(messages, [{ a: 1 }, ['ä', null], 7]);
    }
  });

  it('ends with a message that is too long', () => {
    const { socket, link, messages, ends } = connected();
    socket.receive(lineOf('x'.repeat(100_000)));
    assert.equal(messages.length, 1);
    const part = 'x'.repeat(2 ** 20);
    for (let i = 0; i < 32; i++) socket.receive(part);
    assert.equal(ends(), 0);
    socket.receive('x');
    assert.equal(ends(), 1);
    assert.equal(link.isConnected, false);
  });

  it('ends with a message that is not JSON', () => {
    const { socket, messages, ends } = connected();
    socket.receive('{\n1\n');
    assert.equal(ends(), 1);
    assert.deepEqual(messages, []);
  });

  it('survives an error of its listener', () => {
    const socket = new FakeSocket();
    const messages = [];
    new SocketLink(/** @type {any} */ (socket), {
      onMessage(message) {
        messages.push(message);
        throw new Error('unexpected');
      },
      onEnd() {},
    });
    socket.receive('1\n2\n');
    assert.deepEqual(messages, [1, 2]);
  });

  it('says that a message cannot be sent', () => {
    const { socket, link } = connected();
    const errors = [];
    socket.writableLength = 2 ** 27;
    link.send({}, error => errors.push(error.message));
    socket.destroy();
    link.send({}, error => errors.push(error.message));
    assert.deepEqual(errors, ['the link cannot be written', 'the link cannot be written']);
  });

  it('stays if a snapshot is too long for a message, and says so in the answer', async () => {
    const from = connected();
    const to = connected();
    from.socket.write = (line, callback) => {
      to.socket.receive(line);
      callback();
    };
    const registry = new Registry();
    const counter = new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers: [registry] });
    counter.inc({ a: 'x'.repeat(2 ** 25) });
    const responder = new WorkerResponder(
      {
        id: 1,
        isConnected: () => from.link.isConnected,
        send: (message, onSent) => from.link.send(message, onSent),
      },
      () => [registry],
    );
    for (const requestId of [1, 2]) {
      responder.receive({ type: REQUEST, requestId, directory: '' });
      while (to.messages.length + to.ends() < requestId) await new Promise(resolve => setImmediate(resolve));
      assert.match(to.messages.at(-1).error, /^a message of \d+ characters is too long for the link/);
    }
    assert.equal(from.link.isConnected, true);
    assert.equal(to.ends(), 0);
  });
});
