'use strict';

// Runs in every process of a group, on its event loop. The link to the process that aggregates (the holder):
// requests of the holder arrive here, the group's page is requested here, and here is noticed that the holder
// does not answer.

const { SocketLink } = require('../links/socket');
const { ClusterPages } = require('../worker/cluster-pages');
const { REQUEST, WELCOME, PAGE, HELLO, PING, hasType } = require('../wire/messages');
const { unref } = require('../../event-loop/timers');
const { debug } = require('../../options/debug-log');

// While a page is requested, the holder gets a ping each time it has answered the one before. If it has sent
// nothing at so many looks in a row (2 seconds), it is stopped, or its event loop is held: another process
// takes over. Then what has arrived meanwhile is read first, because this process may have been stopped.
const LOOK_MILLISECONDS = 500;
const MAX_SILENT_LOOKS = 4;
const LAST_CHANCE_MILLISECONDS = 100;

// However often this process is scraped, it sends no more than one ping in this time.
const PING_MILLISECONDS = 250;

/** @typedef {import('../wire/scrape-callers').Format} Format */
/** @typedef {import('../../exposition/page-bytes').PageBytes} PageBytes */

/**
 * @typedef {object} HolderEvents
 * @property {(id: number) => void} onHello called with the id that the holder gives this process
 * @property {(message: any) => void} onRequest called with messages of type REQUEST and WELCOME
 * @property {() => void} onSilence called when the holder does not answer; the link ends
 * @property {() => void} onEnd called once, whichever side ends the link
 */

class HolderLink {
  #link;
  #events;
  /** @type {ClusterPages | undefined} once the holder has answered */
  #pages = undefined;
  /** When the holder's last message came, and when a ping was last sent, by performance.now(). */
  #heardAt = -Infinity;
  #pingedAt = -Infinity;
  /** @type {NodeJS.Timeout | undefined} until the next ping */
  #pingTimer = undefined;
  /** @type {(value?: unknown) => void} */
  #onWelcome = () => {};
  /** @type {(error: Error) => void} */
  #onEnded = () => {};
  /** Resolved when the holder has answered; rejected when the link ends before. */
  welcome = new Promise((resolve, reject) => {
    this.#onWelcome = resolve;
    this.#onEnded = reject;
  });

  /**
   * @param {import('node:net').Socket} socket connected to the holder
   * @param {number} generation of the holder
   * @param {{key: string, id: number | undefined}} self key of this process, and the id that it had before
   * @param {HolderEvents} events
   */
  constructor(socket, generation, { key, id }, events) {
    this.generation = generation;
    this.#events = events;
    this.#link = new SocketLink(socket, {
      onMessage: message => this.#receive(message),
      onEnd: () => {
        const error = new Error('the link to the process that aggregates has ended');
        this.#onEnded(error);
        this.#pages?.rejectAll(error);
        events.onEnd();
      },
    });
    this.#link.trust();
    const stop = this.#watch();
    this.welcome.then(stop, stop);
    this.#link.send({ type: HELLO, key, id, pid: process.pid });
  }

  get isConnected() {
    return this.#link.isConnected;
  }

  /**
   * @param {object} message
   * @param {() => void} [onSent] called when it was sent, or cannot be
   */
  send(message, onSent) {
    this.#link.send(message, onSent);
  }

  close() {
    this.#link.close();
  }

  /**
   * The group's page, from the holder.
   *
   * @param {Format} format
   * @param {number} timeout milliseconds after which the last known numbers of missing members are used
   * @returns {Promise<PageBytes | undefined>} undefined if there are no metrics
   */
  async page(format, timeout) {
    const pages = /** @type {ClusterPages} */ (this.#pages);
    const stop = this.#watch();
    try {
      return await pages.page(format, timeout);
    } finally {
      stop();
    }
  }

  /** @param {unknown} message */
  #receive(message) {
    this.#heardAt = performance.now();
    if (!hasType(message)) return;
    if (this.#pages === undefined) this.#receiveHello(message);
    else if ([REQUEST, WELCOME, PAGE].includes(message.type)) {
      // Whoever holds the group aggregates. If pages failed because it says otherwise, nobody would wait for
      // an answer, and one that does not answer would never be replaced.
      this.#pages.receive({ ...message, pages: true });
      if (message.type !== PAGE) this.#events.onRequest(message);
    }
  }

  /** @param {any} message */
  #receiveHello({ type, id }) {
    if (type !== HELLO || !Number.isSafeInteger(id) || id <= 0) return;
    this.#events.onHello(id);
    this.#pages = new ClusterPages({
      id,
      isConnected: () => this.isConnected,
      send: (message, onSent) => this.send(message, onSent),
    });
    this.#pages.receive({ type: PAGE, pages: true });
    this.#onWelcome();
  }

  /**
   * Ends the link if the holder sends nothing for some time.
   *
   * @returns {() => void} stops that
   */
  #watch() {
    let askedAt = performance.now();
    let silentLooks = 0;
    if (this.#pages !== undefined) this.#pingSoon();
    const isAnswered = () => this.#heardAt >= askedAt && this.#pages !== undefined;
    const look = () => {
      if (isAnswered()) {
        // It may be stopped at any time before it has sent the page.
        askedAt = performance.now();
        silentLooks = 0;
        this.#pingSoon();
      } else if (++silentLooks >= MAX_SILENT_LOOKS) {
        timer = unref(setTimeout(onLastChance, LAST_CHANCE_MILLISECONDS));
        return;
      }
      timer = unref(setTimeout(look, LOOK_MILLISECONDS));
    };
    const onLastChance = () => {
      if (!this.isConnected) return;
      if (isAnswered()) {
        look();
        return;
      }
      if (this.#heardAt < askedAt) {
        debug('generation %d does not answer', this.generation);
        this.#events.onSilence();
      }
      this.close();
    };
    let timer = unref(setTimeout(look, LOOK_MILLISECONDS));
    return () => clearTimeout(timer);
  }

  #pingSoon() {
    if (this.#pingTimer !== undefined) return;
    const pause = this.#pingedAt + PING_MILLISECONDS - performance.now();
    this.#pingTimer = unref(setTimeout(() => this.#ping(), Math.max(pause, 0)));
  }

  #ping() {
    this.#pingTimer = undefined;
    this.#pingedAt = performance.now();
    this.send({ type: PING });
  }
}

module.exports = { HolderLink };
