'use strict';

// Chooses where a push is built and sent: by a session in this process, or in the aggregator of a cluster.

const { UNAVAILABLE } = require('../registry/unavailable');

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/formats').Format} Format */
/** @typedef {{url: string, timeout: number}} SessionSettings and those of a format */
/** @typedef {{pushed: number, failed: number, dropped: number}} Results */
/** @typedef {{pushes: Results, samples: Results, seconds: number}} Totals of all earlier pushes */
/** @typedef {{samples: number, dropped: number}} BuiltPush how many samples it has, and leaves out */

/**
 * @typedef {object} Outcome of a push
 * @property {number} samples
 * @property {number} pushed how many of them were written
 * @property {number} seconds
 * @property {string | undefined} protocol undefined if the receiver has not accepted all of it
 * @property {string} error why not
 */

/**
 * One receiver: builds pushes and delivers them, one at a time. Runs where the families are.
 *
 * @typedef {object} PushSession
 * @property {(families: Family[], push: PushHead) => Generator<void, BuiltPush>} build
 * @property {(isSuperseded: boolean) => Promise<Outcome>} deliver sends what was built last; never rejected
 * @property {(timestamp: number, isSentOnce: boolean) => Promise<Outcome>} end of all series
 * @property {(isAborted: boolean) => void} supersede a newer push waits
 */

/**
 * What pushes are written in. A format crosses threads by its name.
 *
 * @typedef {object} PushFormat
 * @property {string} name
 * @property {string} title in warnings
 * @property {(settings: SessionSettings) => PushSession} createSession
 */

/** @typedef {{format: Format, timestamp: number, totals: Totals}} PushHead */

/** @typedef {{families: Family[], failed: number}} Captured `failed`: metrics that cannot be read */

/** @typedef {{id: string, format: string, settings: SessionSettings}} Session */

/**
 * @typedef {object} DeliveryRequest
 * @property {string} session
 * @property {boolean} isSuperseded whether a newer push waits: this one is sent once
 * @property {number} [end] send stale markers of all series instead, with this timestamp
 */

/** @typedef {{session: string, isAborted: boolean}} SupersedeRequest */

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
    const push = { session: this.#session, timestamp, totals };
    const built = await this.#primary.buildPush(push, format.name, this.#registry.timeout);
    if (built === undefined) throw new Error(this.#registry[UNAVAILABLE]);
    return built;
  }

  /**
   * @param {boolean} isSuperseded
   * @returns {Promise<Outcome>}
   */
  deliver(isSuperseded) {
    return this.#primary.supervisor.request('deliverPush', { session: this.#session.id, isSuperseded });
  }

  /**
   * @param {number} timestamp
   * @param {boolean} isSentOnce whether it is not sent again
   * @returns {Promise<Outcome>}
   */
  end(timestamp, isSentOnce) {
    const request = { session: this.#session.id, isSuperseded: isSentOnce, end: timestamp };
    return this.#primary.supervisor.request('deliverPush', request);
  }

  /** @param {boolean} isAborted see PushSession */
  supersede(isAborted) {
    // The aggregator may be gone, and the push with it.
    const request = { session: this.#session.id, isAborted };
    this.#primary.supervisor.request('supersedePush', request).catch(() => {});
  }
}

module.exports = { AggregatorSender };
