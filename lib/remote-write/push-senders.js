'use strict';

// Where a push is built and sent: in this process, or by the aggregator of a cluster.

const { runInSlices } = require('../event-loop/slices');
const { UNAVAILABLE } = require('../registry/unavailable');

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/formats').Format} Format */
/** @typedef {import('./remote-write-session').SessionSettings} SessionSettings */
/** @typedef {import('./remote-write-session').Totals} Totals */
/** @typedef {import('./remote-write-session').BuiltPush} BuiltPush */
/** @typedef {import('./remote-write-session').Outcome} Outcome */

/** @typedef {{format: Format, timestamp: number, totals: Totals}} PushHead */

/** @typedef {{families: Family[], failed: number}} Captured `failed`: metrics that cannot be read */

/** @typedef {{id: string, settings: SessionSettings}} Session */

/**
 * @typedef {object} DeliveryRequest
 * @property {string} session
 * @property {boolean} isSuperseded whether a newer push waits: this one is sent once
 * @property {number} [end] send stale markers of all series instead, with this timestamp
 */

/** @typedef {{session: string, isAborted: boolean}} SupersedeRequest */

/** Builds and sends the pushes of a Registry, in slices on this loop. */
class LocalSender {
  #session;

  /** @param {SessionSettings} settings */
  constructor(settings) {
    // Loaded on first use: few programs need it, and the primary of a cluster does not.
    const { RemoteWriteSession } = require('./remote-write-session');
    this.#session = new RemoteWriteSession(settings);
  }

  /**
   * @param {PushHead} push
   * @param {Promise<Captured>} captured
   * @returns {Promise<BuiltPush>}
   */
  async build(push, captured) {
    const { families, failed } = await captured;
    const built = await runInSlices(this.#session.build(families, push));
    return { ...built, dropped: built.dropped + failed };
  }

  /**
   * @param {boolean} isSuperseded
   * @returns {Promise<Outcome>}
   */
  deliver(isSuperseded) {
    return this.#session.deliver(isSuperseded);
  }

  /**
   * @param {number} timestamp
   * @param {boolean} isSentOnce whether it is not sent again
   * @returns {Promise<Outcome>}
   */
  async end(timestamp, isSentOnce) {
    await runInSlices(this.#session.buildEnd(timestamp));
    return this.#session.deliver(isSentOnce);
  }

  /** @param {boolean} isAborted see RemoteWriteSession.supersede() */
  supersede(isAborted) {
    this.#session.supersede(isAborted);
  }
}

/**
 * Has the aggregator of an AggregatorRegistry or WorkerRegistry build and send its pushes. The first push
 * creates the session there.
 */
class AggregatorSender {
  #primary;
  #session;
  #registry;

  /**
   * @param {import('../cluster/primary/cluster-primary').ClusterPrimary} primary
   * @param {Session} session
   * @param {any} registry
   */
  constructor(primary, session, registry) {
    this.#primary = primary;
    this.#session = session;
    this.#registry = registry;
  }

  /**
   * @param {PushHead} push
   * @returns {Promise<BuiltPush>}
   */
  async build({ format, timestamp, totals }) {
    const { id, settings } = this.#session;
    const push = { session: id, settings, timestamp, totals };
    const built = await this.#primary.buildPush(push, format.name, this.#registry.timeout);
    if (built === undefined) throw new Error(this.#registry[UNAVAILABLE]);
    return built;
  }

  /**
   * @param {boolean} isSuperseded
   * @returns {Promise<Outcome>}
   */
  deliver(isSuperseded) {
    return this.#primary.deliverPush({ session: this.#session.id, isSuperseded });
  }

  /**
   * @param {number} timestamp
   * @param {boolean} isSentOnce whether it is not sent again
   * @returns {Promise<Outcome>}
   */
  end(timestamp, isSentOnce) {
    return this.#primary.deliverPush({ session: this.#session.id, isSuperseded: isSentOnce, end: timestamp });
  }

  /** @param {boolean} isAborted see RemoteWriteSession.supersede() */
  supersede(isAborted) {
    // The aggregator may be gone, and the push with it.
    this.#primary.supersedePush({ session: this.#session.id, isAborted }).catch(() => {});
  }
}

module.exports = { LocalSender, AggregatorSender };
