'use strict';

const net = require('node:net');

const HEAD_END = '\r\n\r\n';

/** One connection to a service, kept open, on which one request at a time is under way. */
class KeptConnection {
  #socket;
  #received = '';
  #settle;

  /** @param {number} port on loopback */
  constructor(port) {
    this.#socket = net.connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1');
    this.#socket.on('data', text => this.#take(text));
    this.#socket.on('error', () => {}); // 'close' follows
    this.#socket.on('close', () => this.#settle?.(false));
  }

  /**
   * @param {string} text the whole request
   * @returns {Promise<boolean>} whether there was a whole answer
   */
  ask(text) {
    this.#socket.write(text);
    return new Promise(resolve => (this.#settle = resolve));
  }

  /** An answer is whole when its body has the length that its head says. */
  #take(text) {
    this.#received += text;
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const [, length] = /^content-length: (\d+)\r$/im.exec(this.#received.slice(0, headEnd + 1));
    if (this.#received.length < headEnd + HEAD_END.length + Number(length)) return;
    this.#received = '';
    this.#settle(true);
  }

  close() {
    this.#socket.destroy();
  }
}

/**
 * @param {{method: string, path: string, body?: string, headers?: Record<string, string>}} request
 * @returns {string}
 */
function textOf({ method, path, body = '', headers = {} }) {
  const all = { host: 'localhost', ...headers, ...(body && { 'content-length': body.length }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

module.exports = { KeptConnection, textOf };
