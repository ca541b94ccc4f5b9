'use strict';

// Paces autocannon's clients evenly. autocannon 9 alone cannot: with `reconnectRate: 1` it drops a connection
// as soon as the response is complete and never counts it, and with `overallRate` all clients send at the
// start of each second. So the client's methods to connect and to send are wrapped: they wait for their turn.
//
// Turns are fixed in advance, and a latency runs from its turn. A client that still waits for an answer at
// its next turn sends later, and that delay is part of the latency (no coordinated omission).

const PATIENCE = 10_000; // ms
const TIMER_GRAIN = 1; // ms: a timer of Node.js may fire this late, which is not a latency of the service
const LOOK_FOR_OVERDUE_EVERY = 100; // ms
const HEAD_START = 20; // ms between the creation of the last client and the first turn

/**
 * @typedef {object} Pace
 * @property {number} [rate] turns a second of all clients together; without it a client's next turn is when
 *   it is free
 * @property {number} seconds
 * @property {number} clients that take turns
 * @property {boolean} reused connections are opened before the first request and reused; else each request
 *   has its own
 * @property {number} [patience] ms from its turn after which a request has failed
 */

class PacedClients {
  /** @type {number[]} ms, of requests that were answered with 200 in time */
  latencies = [];
  failed = 0;
  #pace;
  #onBegin;
  #clients = [];
  #ready = 0;
  #begin;
  #overdueTimer;

  /**
   * @param {Pace} pace
   * @param {() => void} onBegin called when the first turn is near
   */
  constructor(pace, onBegin) {
    this.#pace = { ...pace, patience: pace.patience ?? PATIENCE };
    this.#onBegin = onBegin;
  }

  /** @returns {number} turns in all; only with a rate */
  get turns() {
    return Math.round(this.#pace.rate * this.#pace.seconds);
  }

  /** @returns {(client: object) => void} autocannon's `setupClient` */
  get setup() {
    return client => {
      this.#clients.push(new PacedClient(client, this.#clients.length, this.#pace, this));
    };
  }

  /** @returns {number} seconds since the first turn */
  get elapsed() {
    return (performance.now() - this.#begin) / 1e3;
  }

  clientIsReady() {
    this.#ready += 1;
    if (this.#ready < this.#pace.clients) return;
    this.#begin = performance.now() + HEAD_START;
    this.#onBegin();
    this.#overdueTimer = setInterval(() => {
      const now = performance.now();
      for (const client of this.#clients) client.giveUpIfOverdue(now);
    }, LOOK_FOR_OVERDUE_EVERY);
    // not at once: the constructor of the last client may not have returned
    setImmediate(() => this.#clients.forEach(client => client.begin(this.#begin)));
  }

  answered(latency, status) {
    if (status === 200 && latency < this.#pace.patience) this.latencies.push(latency);
    else this.notAnswered();
  }

  notAnswered() {
    this.failed += 1;
  }

  end() {
    clearInterval(this.#overdueTimer);
  }
}

/** One of autocannon's clients. */
class PacedClient {
  #client;
  #position;
  #pace;
  #all;
  #connect;
  #doRequest;
  /** @type {'opening' | 'ready' | 'waiting' | 'asking' | 'over'} */
  #state = 'opening';
  #isConnected = false;
  #isSending = false;
  #begin;
  #turn = 0;
  #start = 0;
  #status = 0;

  constructor(client, position, pace, all) {
    this.#client = client;
    this.#position = position;
    this.#pace = pace;
    this.#all = all;
    this.#connect = client._connect;
    this.#doRequest = client._doRequest;
    client.on('headers', ({ statusCode }) => (this.#status = statusCode));
    client._connect = () => this.#open(); // at the end of its constructor
    client._doRequest = () => this.#sendOrTakeAnswer();
    if (!pace.reused) client._resetConnection = () => this.#answeredAndDone();
  }

  /** @param {number} at ms of `performance.now()` */
  begin(at) {
    this.#begin = at;
    this.#takeTurn();
  }

  /** @param {number} now ms of `performance.now()` */
  giveUpIfOverdue(now) {
    if (this.#state === 'asking' && now - this.#start >= this.#pace.patience) this.#connectionIsGone();
  }

  /** The first request of a reused connection is not counted, because it passes through the primary. */
  #open() {
    this.#client._connect = () => this.#connectionIsGone(); // when it ended or failed
    if (this.#pace.reused) this.#send();
    else this.#isReady();
  }

  #isReady() {
    this.#state = 'ready';
    this.#all.clientIsReady();
  }

  #connectionIsGone() {
    this.#client._destroyConnection();
    this.#isConnected = false;
    if (this.#state === 'opening') {
      this.#isReady();
    } else if (this.#state === 'asking') {
      this.#all.notAnswered();
      this.#takeTurn();
    }
  }

  #send() {
    this.#isSending = true;
    if (this.#isConnected) this.#client._doRequest();
    else this.#connect.call(this.#client); // sends as well
    this.#isSending = false;
    this.#isConnected = true;
  }

  /** autocannon calls this for every new connection, and on a reused one after each response. */
  #sendOrTakeAnswer() {
    if (this.#isSending) this.#doRequest.call(this.#client);
    else if (this.#state === 'opening') this.#isReady();
    else this.#answered(performance.now() - this.#start);
  }

  /** What autocannon would do to open the next connection at once. */
  #answeredAndDone() {
    const latency = performance.now() - this.#start;
    this.#client.emit('response', this.#status, this.#client.conn.bytesRead, latency);
    this.#client._destroyConnection();
    this.#isConnected = false;
    this.#answered(latency);
  }

  #answered(latency) {
    this.#all.answered(latency, this.#status);
    this.#takeTurn();
  }

  #takeTurn() {
    const wait = this.#pace.rate ? this.#nextTurn() : this.#anyTime();
    if (wait === undefined) {
      this.#state = 'over';
      this.#client.destroy();
    } else if (wait <= 0) {
      this.#ask();
    } else {
      this.#state = 'waiting';
      setTimeout(() => {
        this.#start = Math.min(performance.now(), this.#start + TIMER_GRAIN);
        this.#ask();
      }, wait);
    }
  }

  #ask() {
    this.#state = 'asking';
    this.#send();
  }

  /**
   * Milliseconds to the next turn, undefined after the last. A turn that its client missed has failed.
   */
  #nextTurn() {
    const { rate, clients, patience } = this.#pace;
    for (;;) {
      const number = this.#position + this.#turn * clients;
      if (number >= this.#all.turns) return undefined;
      this.#turn += 1;
      this.#start = this.#begin + (number * 1e3) / rate;
      const wait = this.#start - performance.now();
      if (wait > -patience) return wait;
      this.#all.notAnswered();
    }
  }

  #anyTime() {
    const now = performance.now();
    this.#start = Math.max(now, this.#begin);
    return now < this.#begin + this.#pace.seconds * 1e3 ? this.#begin - now : undefined;
  }
}

module.exports = { PacedClients, PATIENCE };
