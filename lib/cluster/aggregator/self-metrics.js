'use strict';

// What a cluster's scrapes tell about themselves: whose numbers they show, how old these are, what went wrong. Names
// follow https://prometheus.io/docs/practices/naming/.

const PREFIX = 'prom_client_cluster_';

/**
 * What only the primary knows.
 *
 * @typedef {object} PrimaryFacts
 * @property {{fresh: number[], stale: number, silent: number, retired: number}} workers by state; of those who have
 *   answered this scrape, the ids
 * @property {[reason: string, count: number][]} refused answers, by reason
 * @property {[reason: string, count: number][]} overIpc snapshots that came over IPC, by why there was no file
 * @property {number} lostThreads how many aggregator threads were lost
 * @property {any[]} durations of the scrapes before, as JSON of metrics
 */

/**
 * @param {PrimaryFacts} facts
 * @param {ReturnType<import('../store/cluster-store').ClusterStore['state']> & {unusable: Set<number>}} state of the store, and
 *   whose last answer could not be used
 * @param {Iterable<[reason: string, count: number]>} refused by the aggregator
 * @param {number} now milliseconds since the epoch
 * @returns {any[]} metrics as JSON
 */
function selfMetrics(facts, state, refused, now) {
  const oldest = state.oldestCapture === undefined ? 0 : Math.max(now - state.oldestCapture, 0) / 1000;
  const { fresh, stale, ...others } = facts.workers;
  const unusable = fresh.filter(workerId => state.unusable.has(workerId)).length;
  const workers = { fresh: fresh.length - unusable, stale: stale + unusable, ...others };
  return [
    gauge(
      'workers',
      'Workers by what this scrape shows of them: fresh = numbers of this scrape; stale = earlier ones, because the last answer failed or there was none yet; silent = earlier ones, because the worker does not answer in time; retired = dead, its totals are kept.',
      Object.entries(workers).map(([workerState, count]) => sample(count, { state: workerState })),
    ),
    gauge('oldest_numbers_age_seconds', 'Age of the oldest numbers that this scrape shows.', [
      sample(oldest),
    ]),
    gauge('snapshot_bytes', "Size of all workers' last snapshots together.", [sample(state.snapshotBytes)]),
    ...facts.durations,
    counter(
      'failures_total',
      'What went wrong in workers, by stage and metric: collect = its collect hook threw or took too long; max-series = label sets folded into the overflow series; others = writing or capturing a snapshot.',
      state.failures.map(({ stage, metric, count }) => sample(count, { stage, metric })),
    ),
    counter(
      'conflicts_total',
      "Metrics of a worker that were left out because the name is another type's in a worker with a lower id.",
      [sample(state.conflicts)],
    ),
    counter(
      'refused_answers_total',
      'Answers that could not be used, so that a worker was asked again or shown with earlier numbers, by reason.',
      [...refused, ...facts.refused].map(([reason, count]) => sample(count, { reason })),
    ),
    counter('lost_threads_total', 'Aggregator threads that ended or hung and were replaced.', [
      sample(facts.lostThreads),
    ]),
    counter(
      'snapshots_over_ipc_total',
      'Snapshots that came over IPC because no file could be written, by reason.',
      facts.overIpc.map(([reason, count]) => sample(count, { reason })),
    ),
  ];
}

/**
 * @param {number} value
 * @param {Record<string, string>} [labels]
 */
function sample(value, labels = {}) {
  return { value, labels };
}

/**
 * @param {string} name
 * @param {string} help
 * @param {object[]} values
 */
function gauge(name, help, values) {
  return { name: PREFIX + name, help, type: 'gauge', values };
}

/**
 * @param {string} name
 * @param {string} help
 * @param {object[]} values
 */
function counter(name, help, values) {
  return { name: PREFIX + name, help, type: 'counter', values };
}

module.exports = { selfMetrics };
