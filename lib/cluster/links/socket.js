'use strict';

// Runs in every process of a group, on its event loop. A link over a socket: each message is a line of JSON.
// The length of a line is limited: a link that exceeds the limit is closed.

const { once } = require('node:events');
const net = require('node:net');
const { debug } = require('../../options/debug-log');

// If no file can be written, a snapshot is sent in a message: 1 MB for 10,000 series.
const MAX_MESSAGE_CHARACTERS = 2 ** 25;

// Limits what queues up for a process that is stopped and reads nothing.
const MAX_UNSENT_BYTES = 2 ** 26;

/**
 * @typedef {object} LinkEvents
 * @property {(message: unknown) => void} onMessage
 * @property {() => void} onEnd called once, whichever side ends the link
 */

class SocketLink {
  #socket;
  #events;
  /** The start of a message that is not complete. */
  #line = '';
  #hasEnded = false;

  /**
   * @param {net.Socket} socket
   * @param {LinkEvents} events
   */
  constructor(socket, events) {
    this.#socket = socket;
    this.#events = events;
    socket.setEncoding('utf8');
    socket.on('data', text => this.#receive(/** @type {any} */ (text)));
    socket.on('error', error => debug('a link failed: %s', error));
    socket.on('close', () => this.close());
    socket.unref();
  }

  get isConnected() {
    return !this.#hasEnded && this.#socket.writable;
  }

  /**
   * @param {object} message
   * @param {(error: Error | null) => void} [onSent] called when it was sent, or cannot be
   * @throws {RangeError} if it is too long: the other side would end the link
   */
  send(message, onSent = () => {}) {
    const line = JSON.stringify(message);
    if (line.length > MAX_MESSAGE_CHARACTERS)
      throw new RangeError(`a message of ${line.length} characters is too long for the link`);
    if (!this.isConnected || this.#socket.writableLength > MAX_UNSENT_BYTES) {
      onSent(new Error('the link cannot be written'));
      return;
    }
    this.#socket.write(`${line}\n`, error => onSent(error ?? null));
  }

  close() {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#line = '';
    this.#socket.destroy();
    this.#events.onEnd();
  }

  /** @param {string} text */
  #receive(text) {
    const ends = text.split('\n');
    this.#line += ends[0];
    for (const next of ends.slice(1)) {
      if (this.#hasEnded) return;
      const line = this.#line;
      this.#line = next;
      this.#deliver(line);
    }
    if (this.#line.length > MAX_MESSAGE_CHARACTERS) this.#refuse('a message is too long');
  }

  /** @param {string} line */
  #deliver(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch (error) {
      this.#refuse(String(error));
      return;
    }
    try {
      this.#events.onMessage(message);
    } catch (error) {
      debug('a message cannot be handled: %s', error);
    }
  }

  /** @param {string} reason */
  #refuse(reason) {
    debug('a link is closed: %s', reason);
    this.close();
  }
}

/**
 * @param {string} place of a socket
 * @returns {Promise<net.Socket>}
 */
async function connect(place) {
  const socket = net.connect(place).unref();
  await once(socket, 'connect');
  return socket;
}

/**
 * @param {string} place
 * @param {(socket: net.Socket) => void} onConnection
 * @returns {Promise<net.Server>}
 */
async function listen(place, onConnection) {
  const server = net.createServer(onConnection).unref();
  // Exclusive, because in a cluster worker the primary would listen instead.
  server.listen({ path: place, exclusive: true });
  await once(server, 'listening');
  server.on('error', error => debug('a socket failed: %s', error));
  return server;
}

module.exports = { SocketLink, connect, listen };
