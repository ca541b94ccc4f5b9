'use strict';

// Runs in every process of a group, on its event loop. The link to another process that leads: it receives
// the leader's requests, requests the group's page, and detects a leader that does not answer.

const { SocketLink } = require('../links/socket');
const { ClusterPages } = require('../worker/cluster-pages');
const { HELLO, PING, hasType } = require('../wire/messages');
const { unref } = require('../../event-loop/timers');
const { debug } = require('../../options/debug-log');

// While this process waits for the leader, it checks at this interval whether the leader has sent anything,
// and sends a ping if so. If four checks in a row (2 seconds) find nothing, the leader is stopped or its
// event loop is blocked: another process takes over. If this process itself was stopped, that is one check,
// and messages that have arrived are read before the next.
const LOOK_MILLISECONDS = 500;
const MAX_MISSED_LOOKS = 4;

/** @typedef {import('../wire/scrape-callers').Format} Format */
/** @typedef {import('../../exposition/page-bytes').PageBytes} PageBytes */

/**
 * @typedef {object} LeaderEvents
 * @property {() => void} onWelcome called when the leader has answered
 * @property {(message: any) => void} onRequest called with its messages, the first included
 * @property {() => void} onUnresponsive called when the leader does not answer; the link ends
 * @property {() => void} onEnd called once, whichever side ends the link
 */

class LeaderLink extends SocketLink {
  #events;
  #pages;
  #isWelcome = false;
  /** How many looks in a row have found nothing; -1 if the leader has sent anything since the last look. */
  #missedLooks = 0;
  /** How many callers wait for the leader. */
  #waiting = 0;
  /** @type {NodeJS.Timeout | undefined} while there are callers */
  #timer = undefined;
  /** @type {(value?: unknown) => void} */
  #onWelcome = () => {};
  /** @type {(error: Error) => void} */
  #onEnded = () => {};

  /**
   * @param {import('node:net').Socket} socket connected to the leader
   * @param {number} generation of the leader
   * @param {number} id of this process
   * @param {LeaderEvents} events
   */
  constructor(socket, generation, id, events) {
    super(socket, {
      onMessage: message => this.#receive(message),
      onEnd: () => {
        const error = new Error('the link to the leader has ended');
        this.#onEnded(error);
        this.#pages.rejectAll(error);
        events.onEnd();
      },
    });
    this.generation = generation;
    this.#events = events;
    const welcome = new Promise((resolve, reject) => {
      this.#onWelcome = resolve;
      this.#onEnded = reject;
    });
    this.#pages = new ClusterPages({
      id,
      isConnected: () => this.isConnected,
      send: (message, onSent) => this.send(message, onSent),
    });
    this.send({ type: HELLO, id });
    /** Resolved when the leader has answered; rejected if the link ends before that. */
    this.welcome = this.#watched(welcome);
  }

  /**
   * The group's page, from the leader.
   *
   * @param {Format} format
   * @param {number} timeout milliseconds after which the last known numbers of missing members are used
   * @returns {Promise<PageBytes | undefined>} undefined if there are no metrics
   */
  page(format, timeout) {
    return this.#watched(this.#pages.page(format, timeout));
  }

  /** @param {unknown} message */
  #receive(message) {
    if (!hasType(message)) return;
    // A leader names its directory in the first message.
    if (!this.#isWelcome && typeof (/** @type {any} */ (message).directory) !== 'string') return;
    this.#missedLooks = -1;
    // That the leader answers no requests is ignored: if pages failed at once, nobody would wait for an
    // answer, and a leader that does not answer would never be replaced.
    this.#pages.receive({ pageId: 0, ...message });
    if (!this.#isWelcome) {
      this.#isWelcome = true;
      this.#events.onWelcome();
      this.#onWelcome();
    }
    this.#events.onRequest(message);
  }

  /**
   * Ends the link if the leader sends nothing for some time, while a promise is pending.
   *
   * @template T
   * @param {Promise<T>} promise
   * @returns {Promise<T>}
   */
  async #watched(promise) {
    if (this.#waiting++ === 0) {
      // The leader's welcome answers HELLO, and the first ping is sent at the first check.
      this.#missedLooks = this.#isWelcome ? -1 : 0;
      this.#timer = unref(setInterval(() => this.#look(), LOOK_MILLISECONDS));
    }
    try {
      return await promise;
    } finally {
      if (--this.#waiting === 0) clearInterval(this.#timer);
    }
  }

  #look() {
    this.#missedLooks++;
    if (this.#missedLooks === 0) this.send({ type: PING });
    if (this.#missedLooks === MAX_MISSED_LOOKS) {
      debug('generation %d does not answer', this.generation);
      this.#events.onUnresponsive();
      this.close();
    }
  }
}

module.exports = { LeaderLink };
