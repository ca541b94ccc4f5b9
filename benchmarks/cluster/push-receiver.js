'use strict';

// Receives remote write of version 2.0. It stores what arrives, and decodes it when the window has ended.

const { once } = require('node:events');
const http = require('node:http');
const { decodedBody } = require('../../test/push/fixtures/receiver.js');

const MORE_THAN_ALL = String(2 ** 40); // samples

class PushReceiver {
  #server;
  /** @type {Buffer[]} */
  #bodies = [];

  /** @returns {Promise<PushReceiver>} listening on loopback */
  static async start() {
    const receiver = new PushReceiver();
    receiver.#server = http.createServer(async (request, response) => {
      receiver.#bodies.push(Buffer.concat(await request.toArray()));
      response.writeHead(204, { 'X-Prometheus-Remote-Write-Samples-Written': MORE_THAN_ALL }).end();
    });
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    receiver.url = `http://127.0.0.1:${receiver.#server.address().port}/api/v1/write`;
    return receiver;
  }

  /** @returns {{bytes: number, text: () => string}} what has arrived since the last call, as a page */
  take() {
    const bodies = this.#bodies;
    this.#bodies = [];
    const text = () => bodies.flatMap(body => decodedBody(body, '2.0').map(lineOf)).join('\n');
    return { bytes: bodies.reduce((sum, { length }) => sum + length, 0), text };
  }

  stop() {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** @param {import('../../test/push/fixtures/receiver.js').Series} series */
function lineOf({ labels, value }) {
  const { __name__: name, ...others } = Object.fromEntries(labels);
  const pairs = Object.entries(others).map(([label, text]) => `${label}="${text}"`);
  return `${name}{${pairs}} ${value}`;
}

module.exports = { PushReceiver };
