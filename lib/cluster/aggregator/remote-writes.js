'use strict';

// Runs with the aggregator. The sessions of remote write whose pushes are built from the cluster's families.

const { runInSlices } = require('../../event-loop/slices');

/** A program that creates a RemoteWrite for each push leaves sessions behind. */
const MAX_SESSIONS = 16;

/** @typedef {import('../../exposition/text-format').Family} Family */
/** @typedef {import('../../remote-write/remote-write-session').RemoteWriteSession} RemoteWriteSession */
/** @typedef {import('../../remote-write/remote-write-session').BuiltPush} BuiltPush */
/** @typedef {import('../../remote-write/remote-write-session').Outcome} Outcome */
/** @typedef {import('../../remote-write/push-senders').DeliveryRequest} DeliveryRequest */

/**
 * The settings come with each push, so that a new thread can go on.
 *
 * @typedef {object} PushRequest
 * @property {string} session
 * @property {import('../../remote-write/remote-write-session').SessionSettings} settings
 * @property {number} timestamp milliseconds since the epoch
 * @property {import('../../remote-write/remote-write-session').Totals} totals
 */

class RemoteWrites {
  /** @type {Map<string, RemoteWriteSession>} by id; the one that was used last is the last */
  #sessions = new Map();

  /**
   * @param {Family[]} families
   * @param {import('../../exposition/formats').Format} format whose names samples have
   * @param {PushRequest} push
   * @returns {Generator<void, BuiltPush>}
   */
  build(families, format, { session: id, settings, timestamp, totals }) {
    // Loaded on first use: few programs need it.
    const { RemoteWriteSession } = require('../../remote-write/remote-write-session');
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
    if (end === undefined) return session.deliver(isSuperseded);
    try {
      await runInSlices(session.buildEnd(end));
      return await session.deliver(isSuperseded);
    } finally {
      this.#sessions.delete(id);
    }
  }

  /** @param {import('../../remote-write/push-senders').SupersedeRequest} request */
  supersede({ session, isAborted }) {
    this.#sessions.get(session)?.supersede(isAborted);
  }
}

module.exports = { RemoteWrites };
