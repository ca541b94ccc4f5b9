'use strict';

// Runs on the primary's loop. What the primary knows about its cluster, for clusterState() and the
// self-metrics.

/**
 * Where the metrics of a cluster are aggregated.
 *
 * @typedef {object} ClusterState
 * @property {'thread' | 'in place' | 'none'} aggregator none if there is no worker yet, and while an
 *   aggregator is started
 * @property {'' | 'option' | 'missing' | 'start' | 'memory'} aggregatorReason why not in a thread, see
 *   AggregatorSupervisor.place
 * @property {string} directory of the snapshot files; '' if none can be written
 * @property {GroupState} [group] of this process
 */

/**
 * The group of a process.
 *
 * @typedef {object} GroupState
 * @property {string} directory
 * @property {number} id of this process: the time when it joined, the lower 32 bits of its milliseconds; 0
 *   before that
 * @property {boolean} isLeader whether this process aggregates
 * @property {{pid: number, id: number} | undefined} leader which process does; undefined if that is not
 *   known
 * @property {number} members of the group, its leader included; 0 if that is not known
 * @property {number} leaderChanges how often the leader has changed
 * @property {number} generation `leaderChanges` + 1; 0 if this process knows no leader
 * @property {string} failure why this process is not linked to the leader; '' if it is
 */

/**
 * @typedef {object} Sources
 * @property {import('./worker-record').WorkerRecord[]} records of all workers that are not retired
 * @property {import('./aggregator-supervisor').AggregatorSupervisor} supervisor
 * @property {import('./worker-messages').WorkerMessages} messages
 * @property {number[]} threads ids of this process's threads, whose numbers are always current
 */

/**
 * @param {Sources} sources
 * @param {ReturnType<typeof import('./scrape-durations').scrapeDurations>} durations
 * @param {number} startedAt when the workers were asked, by performance.now()
 * @returns {Promise<import('../../aggregator/self-metrics').PrimaryFacts>} what only the primary knows about
 *   scrapes
 */
async function primaryFacts({ records, supervisor, messages, threads }, durations, startedAt) {
  const timedOut = records.filter(({ timedOut }) => timedOut).length;
  const fresh = records.filter(({ timedOut, answeredAt }) => !timedOut && answeredAt >= startedAt);
  return {
    workers: {
      fresh: [...fresh.map(({ worker }) => worker.id), ...threads],
      stale: records.length - fresh.length - timedOut,
      // The public name: the label of the metric, and its alert.
      unresponsive: timedOut,
      retired: supervisor.dead,
    },
    refused: [...messages.refused],
    overIpc: [...messages.overIpc],
    lostThreads: supervisor.lostThreads,
    inPlaceReason: supervisor.place.aggregatorReason,
    group: supervisor.group,
    durations: await Promise.all([durations.collect.get(), durations.merge.get()]),
  };
}

module.exports = { primaryFacts };
