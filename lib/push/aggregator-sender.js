'use strict';

// Pushes of an AggregatorRegistry or WorkerRegistry are built and sent by a session in the aggregator.

const { UNAVAILABLE } = require('../registry/unavailable');

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/formats').Format} Format */
/** @typedef {import('./remote-write-session').SessionSettings} SessionSettings */
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

/** @typedef {{format: Format, timestamp: number, totals: Totals}} PushHead */

/** @typedef {{families: Family[], failed: number}} Captured `failed`: metrics that cannot be read */

/** @typedef {{id: string, settings: SessionSettings}} Session */

/**
 * @typedef {object} DeliveryRequest
 * @property {string} session
 * @property {boolean} isSuperseded whether it is sent once
 * @property {number} [end] the timestamp of stale markers of all series, which are sent instead
 */

/** @typedef {{session: string, isAborted: boolean}} SupersedeRequest */

/**
 * @param {import('../cluster/primary/cluster-primary').ClusterPrimary} primary
 * @param {Session} session which the first push creates in the aggregator
 * @param {any} registry
 * @returns what pushes need of a RemoteWriteSession
 */
function aggregatorSender(primary, session, registry) {
  const { supervisor } = primary;
  return {
    /**
     * @param {PushHead} push
     * @returns {Promise<BuiltPush>}
     */
    async build({ format, timestamp, totals }) {
      const built = await primary.buildPush({ session, timestamp, totals }, format.name, registry.timeout);
      if (built === undefined) throw new Error(registry[UNAVAILABLE]);
      return built;
    },

    /**
     * @param {boolean} isSuperseded
     * @param {number} [end]
     * @returns {Promise<Outcome>}
     */
    deliver: (isSuperseded, end) =>
      supervisor.request('deliverPush', { session: session.id, isSuperseded, end }),

    /** @param {boolean} isAborted whether nothing more is sent of it */
    supersede(isAborted) {
      // The aggregator may be gone, and the push with it.
      supervisor.request('supersedePush', { session: session.id, isAborted }).catch(() => {});
    },
  };
}

module.exports = { aggregatorSender };
