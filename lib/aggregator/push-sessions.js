'use strict';

// Runs with the aggregator. The sessions whose pushes are built from the cluster's families.

/** Limited, because a program that creates a RemoteWrite for each push leaves sessions behind. */
const MAX_SESSIONS = 16;

/**
 * By format; loaded on first use, because few programs need one.
 *
 * @type {Record<string, () => new (settings: any) => PushSession>}
 */
const SESSIONS = {
  'remote-write': () => require('../push/remote-write/remote-write-session').RemoteWriteSession,
};

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../push/push-senders').PushSession} PushSession */
/** @typedef {import('../push/push-senders').BuiltPush} BuiltPush */
/** @typedef {import('../push/push-senders').Outcome} Outcome */
/** @typedef {import('../push/push-senders').DeliveryRequest} DeliveryRequest */

/**
 * The settings come with each push, so that a new thread can go on.
 *
 * @typedef {object} PushRequest
 * @property {import('../push/push-senders').Session} session
 * @property {number} timestamp milliseconds since the epoch
 * @property {import('../push/push-senders').Totals} totals
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
  build(families, format, { session: { id, format: name, settings }, timestamp, totals }) {
    const session = this.#sessions.get(id) ?? new (SESSIONS[name]())(settings);
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
    if (end === undefined) return session.deliver(isSuperseded);
    return session.end(end, isSuperseded).finally(() => this.#sessions.delete(id));
  }

  /** @param {import('../push/push-senders').SupersedeRequest} request */
  supersede({ session, isAborted }) {
    this.#sessions.get(session)?.supersede(isAborted);
  }
}

module.exports = { PushSessions };
