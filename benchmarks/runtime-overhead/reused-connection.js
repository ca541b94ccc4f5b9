'use strict';

const net = require('node:net');

const HEAD_END = '\r\n\r\n';

/** A connection to a service that sends one request after the other. */
class ReusedConnection {
  #socket;
  #received = '';
  #settle;

  /** @param {number} port on the loopback interface */
  constructor(port) {
    this.#socket = net.connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1');
    this.#socket.on('data', text => this.#take(text));
    this.#socket.on('error', () => {}); // 'close' follows
    this.#socket.on('close', () => this.#settle?.(false));
  }

  /**
   * @param {string} text the whole request
   * @returns {Promise<boolean>} whether the response was complete
   */
  ask(text) {
    this.#socket.write(text);
    return new Promise(resolve => (this.#settle = resolve));
  }

  /** A response is complete when its body has the length of its Content-Length header. */
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

module.exports = { ReusedConnection, textOf };
