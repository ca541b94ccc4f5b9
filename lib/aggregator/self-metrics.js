'use strict';

// Runs with the aggregator. Metrics about the scrapes of a cluster: which workers a page shows, how old their
// numbers are, and what failed. Names follow https://prometheus.io/docs/practices/naming/.

const { EXPIRED } = require('../source/failure-counts');

const PREFIX = 'prom_client_cluster_';

// If a series first appears with the value 1, Prometheus sees no increase(), so the first event would raise
// no alert. So all known series start at 0.
const STAGES = [
  ...['collect', 'max-series', 'write', 'checkpoint', 'capture', 'ended', 'aggregator', 'json', 'merge'],
];

const SOURCE_CODES = ['magic', 'byte-order', 'version', 'end-mark', 'log', 'checksum', 'numbers'];
const FILE_CODES = ['ENOENT', 'EACCES', 'EFBIG', 'EINVAL', 'EIO', 'ELOOP', 'EMFILE', 'ENFILE', 'ENOMEM'];
const REFUSED_REASONS = [
  ...['answer', 'worker-error', 'unknown'],
  ...[...SOURCE_CODES, 'length', 'worker', 'incarnation', 'sequence'],
  ...FILE_CODES,
  ...[...SOURCE_CODES, 'worker', 'incarnation', ...FILE_CODES].map(code => `exit-${code}`),
  'exit-missing',
  ...['save-retired', 'restore-retired', 'restore-worker'],
];
const IN_PLACE_REASONS = ['option', 'missing', 'start'];
const IPC_REASONS = [
  'the primary has no directory',
  ...['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'EIO'],
];

/**
 * What the primary knows about its scrapes.
 *
 * @typedef {object} PrimaryFacts
 * @property {{fresh: number[], stale: number, unresponsive: number, retired: number}} workers by state; for
 *   `fresh`, the ids of the workers that answered this scrape
 * @property {[reason: string, count: number][]} refused answers, by reason
 * @property {[reason: string, count: number][]} overIpc snapshots that came over IPC, by the
 *   reason why there was no file
 * @property {number} lostThreads aggregator threads that were lost
 * @property {string} inPlaceReason why the aggregation does not run in a thread, '' if it does
 * @property {import('../cluster/wire/messages').GroupFacts} [group] if the workers are members of a group
 * @property {any[]} durations of earlier scrapes, as JSON
 */

/**
 * @param {PrimaryFacts} facts
 * @param {ReturnType<import('../store/cluster-store').ClusterStore['state']>} state of the store
 * @param {ReadonlyMap<number, unknown>} failed by worker whose last answer could not be used
 * @param {Iterable<[reason: string, count: number]>} refused by the aggregator
 * @param {number} now milliseconds since the epoch
 * @param {import('../exposition/text-format').Family[]} [families] whose series are to be counted
 * @returns {any[]} metrics as JSON
 */
function selfMetrics(facts, state, failed, refused, now, families) {
  const oldest = state.oldestCapture === undefined ? 0 : Math.max(now - state.oldestCapture, 0) / 1000;
  const { fresh, stale, ...others } = facts.workers;
  const unusable = fresh.filter(workerId => failed.has(workerId)).length;
  const workers = { fresh: fresh.length - unusable, stale: stale + unusable, ...others };
  return [
    gauge(
      'workers',
      'Workers by the age of what this scrape shows. fresh: numbers of this scrape. stale: earlier numbers, because the last answer failed or there is none yet. unresponsive: earlier numbers, because the worker has timed out. retired: dead workers, included in the totals.',
      Object.entries(workers).map(([workerState, count]) => sample(count, { state: workerState })),
    ),
    gauge('oldest_numbers_age_seconds', 'Age of the oldest numbers in this scrape, in seconds.', [
      sample(oldest),
    ]),
    gauge('snapshot_bytes', "Total size of the workers' last snapshots, in bytes.", [
      sample(state.snapshotBytes),
    ]),
    ...facts.durations,
    counter(
      'failures_total',
      'Failures by stage and metric. collect: the collect hook threw or timed out. max-series: label sets recorded in the overflow series. aggregator: the primary has no aggregator of that name, or its result is not a metric. ended: series whose counts were dropped after they had ended, because nobody asked for them. json: a custom metric object cannot be read. merge: a metric cannot be merged. Other stages: a snapshot could not be captured or written.',
      withZeros(
        STAGES.map(stage => ({ stage, metric: '' })),
        state.failures.flatMap(({ stage, metric, count }) =>
          stage === EXPIRED ? [] : [[{ stage, metric }, count]],
        ),
      ),
    ),
    counter(
      'expired_series_total',
      'Series that workers have dropped because they were idle for maxIdleSeconds, by metric.',
      withZeros(
        [{ metric: '' }],
        state.failures.flatMap(({ stage, metric, count }) =>
          stage === EXPIRED ? [[{ metric }, count]] : [],
        ),
      ),
    ),
    ...(families === undefined ? [] : [activeSeries(families)]),
    counter(
      'conflicts_total',
      'Metrics of a worker that were left out of a scrape because a worker with a lower id has a metric of that name with another type.',
      [sample(state.conflicts)],
    ),
    counter(
      'refused_answers_total',
      'Answers of workers that could not be used, by reason. The worker was asked again or is shown with earlier numbers.',
      withZeros(
        REFUSED_REASONS.map(reason => ({ reason })),
        [...refused, ...facts.refused].map(([reason, count]) => [{ reason }, count]),
      ),
    ),
    counter('lost_threads_total', 'Aggregator threads that ended or hung and were replaced.', [
      sample(facts.lostThreads),
    ]),
    gauge(
      'in_place',
      "1 if metrics are merged on the primary's event loop and not in a thread, by reason. option: the option inPlace. missing: the file of the thread is missing, as in a bundle. start: no thread can be started, or threads ended again and again. Restart the primary to get a thread again.",
      IN_PLACE_REASONS.map(reason => sample(facts.inPlaceReason === reason ? 1 : 0, { reason })),
    ),
    counter(
      'snapshots_over_ipc_total',
      'Snapshots that were sent over IPC because no file could be written, by reason.',
      withZeros(
        IPC_REASONS.map(reason => ({ reason })),
        facts.overIpc.map(([reason, count]) => [{ reason }, count]),
      ),
    ),
    ...(facts.group === undefined ? [] : groupMetrics(facts.group)),
  ];
}

/** @param {import('../exposition/text-format').Family[]} families */
function activeSeries(families) {
  const counts = families.map(({ name, rows }) => {
    const all = rows();
    return sample('length' in all ? Number(all.length) : [...all].length, { metric: name });
  });
  return gauge('active_series', 'Label sets of each metric on this page, without self-metrics.', counts);
}

/** @param {import('../cluster/wire/messages').GroupFacts} group */
function groupMetrics({ members, generation, leader }) {
  return [
    gauge(
      'group_leader_info',
      'The leader of the group, which aggregates: its pid, and its id in the group.',
      leader === undefined ? [] : [sample(1, { pid: `${leader.pid}`, id: `${leader.id}` })],
    ),
    gauge('group_members', 'Processes of the group, its leader included.', [sample(members)]),
    counter('group_leader_changes_total', 'How often another process of the group has become its leader.', [
      sample(generation - 1),
    ]),
  ];
}

/**
 * @param {Record<string, string>[]} initial label sets that are shown from the start
 * @param {[labels: Record<string, string>, count: number][]} counts
 * @returns {object[]} samples
 */
function withZeros(initial, counts) {
  const sums = new Map(initial.map(labels => [JSON.stringify(labels), 0]));
  for (const [labels, count] of counts) {
    const key = JSON.stringify(labels);
    sums.set(key, (sums.get(key) ?? 0) + count);
  }
  return Array.from(sums, ([key, count]) => sample(count, JSON.parse(key)));
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
