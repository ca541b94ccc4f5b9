'use strict';

// Runs with the aggregator. The sessions whose pushes are built from the cluster's families.

/** Limited, because a program that creates a RemoteWrite for each push leaves sessions behind. */
const MAX_SESSIONS = 16;

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../push/remote-write-session').RemoteWriteSession} PushSession */
/** @typedef {import('../push/aggregator-sender').BuiltPush} BuiltPush */
/** @typedef {import('../push/aggregator-sender').Outcome} Outcome */
/** @typedef {import('../push/aggregator-sender').DeliveryRequest} DeliveryRequest */

/**
 * The settings come with each push, so that a new thread can go on.
 *
 * @typedef {object} PushRequest
 * @property {import('../push/aggregator-sender').Session} session
 * @property {number} timestamp milliseconds since the epoch
 * @property {import('../push/aggregator-sender').Totals} totals
 */

class PushSessions {
  /** @type {Map<string, PushSession>} by id; the last one was used most recently */
  #sessions = new Map();

  /**
   * @param {Family[]} families
   * @param {import('../exposition/formats').Format} format whose names samples have
   * @param {PushRequest} push
   * @returns {Generator<void, BuiltPush>}
   */
  build(families, format, { session: { id, settings }, timestamp, totals }) {
    // Loaded on first use, because few programs need it.
    const { RemoteWriteSession } = require('../push/remote-write-session');
    const session = this.#sessions.get(id) ?? new RemoteWriteSession(settings);
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    if (this.#sessions.size > MAX_SESSIONS) {
      const [oldest] = this.#sessions.keys();
      this.#sessions.delete(oldest);
    }
    return session.build(families, { format, timestamp, totals });
  }

  /**
   * @param {DeliveryRequest} request
   * @returns {Promise<Outcome>}
   * @throws {Error} if another thread has built the push
   */
  async deliver({ session: id, isSuperseded, end }) {
    const session = this.#sessions.get(id);
    if (session === undefined) throw new Error('the aggregator thread that had the push is gone');
    const delivered = session.deliver(isSuperseded, end);
    return end === undefined ? delivered : delivered.finally(() => this.#sessions.delete(id));
  }

  /** @param {import('../push/aggregator-sender').SupersedeRequest} request */
  supersede({ session, isAborted }) {
    this.#sessions.get(session)?.supersede(isAborted);
  }
}

module.exports = { PushSessions };
