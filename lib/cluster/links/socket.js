'use strict';

// Runs in every process of a group, on its event loop. A link over a socket: each message is JSON after its
// length, 4 bytes. The length of a message is bounded: a link that exceeds that is closed.

const net = require('node:net');
const { debug } = require('../../options/debug-log');

const LENGTH_BYTES = 4;

// A snapshot of 10,000 series, which is sent in a message if no file can be written, has 1 MB.
const MAX_MESSAGE_BYTES = 2 ** 25;

// For a process that is stopped and reads nothing.
const MAX_UNSENT_BYTES = 2 ** 26;

/**
 * @typedef {object} LinkEvents
 * @property {(message: unknown) => void} onMessage
 * @property {() => void} onEnd called once, whichever side ends the link
 */

class SocketLink {
  #socket;
  #events;
  /** @type {Buffer[]} of a message that is not complete */
  #chunks = [];
  #bytes = 0;
  #hasEnded = false;

  /**
   * @param {net.Socket} socket
   * @param {LinkEvents} events
   */
  constructor(socket, events) {
    this.#socket = socket;
    this.#events = events;
    socket.on('data', chunk => this.#receive(chunk));
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
    const text = JSON.stringify(message);
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_MESSAGE_BYTES)
      throw new RangeError(`a message of ${bytes} bytes is too long for the link, which takes 32 MiB`);
    if (!this.isConnected || this.#socket.writableLength + bytes > MAX_UNSENT_BYTES) {
      onSent(new Error('the link cannot be written'));
      return;
    }
    const frame = Buffer.allocUnsafe(LENGTH_BYTES + bytes);
    frame.writeUInt32BE(bytes, 0);
    frame.write(text, LENGTH_BYTES);
    this.#socket.write(frame, error => onSent(error ?? null));
  }

  close() {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#chunks = [];
    this.#socket.destroy();
    this.#events.onEnd();
  }

  /** @param {Buffer} chunk */
  #receive(chunk) {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (!this.#hasEnded && this.#bytes >= LENGTH_BYTES) {
      const first = this.#chunks[0].length < LENGTH_BYTES ? this.#join() : this.#chunks[0];
      const length = first.readUInt32BE(0);
      if (length > MAX_MESSAGE_BYTES) this.#refuse(`a message of ${length} bytes`);
      else if (this.#bytes < LENGTH_BYTES + length) return;
      else this.#deliver(this.#join(), LENGTH_BYTES + length);
    }
  }

  #join() {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0];
  }

  /**
   * @param {Buffer} buffer
   * @param {number} end of the first message in it
   */
  #deliver(buffer, end) {
    this.#chunks = [buffer.subarray(end)];
    this.#bytes -= end;
    let message;
    try {
      message = JSON.parse(buffer.toString('utf8', LENGTH_BYTES, end));
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
function connect(place) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(place);
    socket.unref();
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.removeListener('error', reject);
      resolve(socket);
    });
  });
}

/**
 * @param {string} place
 * @param {(socket: net.Socket) => void} onConnection
 * @returns {Promise<net.Server>}
 */
function listen(place, onConnection) {
  return new Promise((resolve, reject) => {
    const server = net.createServer(onConnection);
    server.unref();
    server.once('error', reject);
    // Exclusive, because in a cluster worker the primary would listen.
    server.listen({ path: place, exclusive: true }, () => {
      server.removeListener('error', reject);
      server.on('error', error => debug('a socket failed: %s', error));
      resolve(server);
    });
  });
}

module.exports = { SocketLink, connect, listen };
