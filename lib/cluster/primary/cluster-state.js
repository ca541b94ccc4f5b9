'use strict';

// Runs on the primary's loop. What the primary knows about its cluster: for clusterState(), and for the
// self-metrics.

/** @typedef {import('../../aggregator/aggregator').RenderResult} RenderResult */

/**
 * How the cluster's metrics are collected.
 *
 * @typedef {object} ClusterState
 * @property {number} workers that are connected, or were and are not retired yet
 * @property {number} unresponsive workers that have not answered in time; scrapes show their last numbers
 * @property {number} failing workers whose last answer was an error
 * @property {number} retiring dead workers that are not part of the retired totals yet
 * @property {number} retired dead workers that are part of the retired totals
 * @property {number} lostThreads aggregator threads that ended or hung, and were replaced
 * @property {'thread' | 'in place' | 'none'} aggregator where metrics are aggregated; none if there is no
 *   worker yet, and while an aggregator is started
 * @property {'' | 'option' | 'missing' | 'start' | 'memory'} aggregatorReason why not in a thread,
 *   see AggregatorSupervisor.place
 * @property {string} directory of the snapshot files; '' if none can be written
 * @property {Record<string, number>} refused answers that could not be used, or came over IPC, by reason
 * @property {{stage: string, metric: string, count: number}[]} failures in workers: `collect` hooks by
 *   metric, writes
 * @property {number} conflicts how often a metric of a worker was left out because a worker with a lower id
 *   has its name with another type
 * @property {number | undefined} oldestCapture when the oldest numbers of the last scrape were captured, in
 *   milliseconds since the epoch
 * @property {number} snapshotBytes size of all workers' last snapshots together
 * @property {GroupState} [group] of this process
 */

/**
 * The group of a process.
 *
 * @typedef {object} GroupState
 * @property {string} directory
 * @property {number} id of this process: when it has joined, in milliseconds of 32 bits; 0 before
 * @property {boolean} isLeader whether this process aggregates
 * @property {{pid: number, id: number} | undefined} leader which process does; undefined if that is not
 *   known
 * @property {number} members of the group, its leader included; 0 if that is not known
 * @property {number} leaderChanges how often another process has become the leader
 * @property {number} generation 1 more than that; 0 if this process knows no leader
 * @property {string} failure why this process is not linked to the leader; '' if it is
 */

/**
 * @typedef {object} Sources
 * @property {import('./worker-record').WorkerRecord[]} records of all workers that are not retired
 * @property {import('./aggregator-supervisor').AggregatorSupervisor} supervisor
 * @property {import('./worker-messages').WorkerMessages} messages
 * @property {number[]} threads ids of this process's threads, whose numbers are always those of now
 */

/**
 * The state of a process that aggregates nothing.
 *
 * @type {ClusterState}
 */
const NOTHING_AGGREGATED = {
  workers: 0,
  unresponsive: 0,
  failing: 0,
  retiring: 0,
  retired: 0,
  lostThreads: 0,
  aggregator: 'none',
  aggregatorReason: '',
  directory: '',
  refused: {},
  failures: [],
  conflicts: 0,
  oldestCapture: undefined,
  snapshotBytes: 0,
};

/**
 * @param {Sources} sources
 * @param {RenderResult['refused']} refusedByAggregator
 * @param {RenderResult['state'] | undefined} storeState as of the last render
 * @returns {ClusterState}
 */
function clusterState({ records, supervisor, messages }, refusedByAggregator, storeState) {
  const refused = new Map([...refusedByAggregator, ...messages.refused]);
  const overIpc = [...messages.overIpc.values()].reduce((sum, count) => sum + count, 0);
  if (overIpc > 0) refused.set('over-ipc', overIpc);
  return {
    workers: records.length,
    unresponsive: records.filter(({ timedOut }) => timedOut).length,
    failing: records.filter(({ error }) => error !== undefined).length,
    retiring: supervisor.retiring,
    retired: supervisor.retired,
    lostThreads: supervisor.lostThreads,
    ...supervisor.place,
    directory: supervisor.directory,
    refused: Object.fromEntries(refused),
    failures: storeState?.failures ?? [],
    conflicts: storeState?.conflicts ?? 0,
    oldestCapture: storeState?.oldestCapture,
    snapshotBytes: storeState?.snapshotBytes ?? 0,
  };
}

/**
 * @param {Sources} sources
 * @param {import('./scrape-durations').ScrapeDurations} durations
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
      // The name in public: ClusterState, the label of the metric, and its alert.
      unresponsive: timedOut,
      retired: supervisor.retired + supervisor.retiring,
    },
    refused: [...messages.refused],
    overIpc: [...messages.overIpc],
    lostThreads: supervisor.lostThreads,
    inPlaceReason: supervisor.place.aggregatorReason,
    group: supervisor.group,
    durations: await durations.toJSON(),
  };
}

module.exports = { NOTHING_AGGREGATED, clusterState, primaryFacts };
