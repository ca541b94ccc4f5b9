'use strict';

// Writes and reads the retired totals as an ordinary snapshot, in which they survive the aggregator thread.
// Three further metrics list the workers that the totals include, the failures of these workers, and the
// batches of ended rows that the totals include.

const { WorkerSeries } = require('./worker-series');
const { RetiredSource } = require('./retired-source');
const { joined } = require('../source/byte-buffers');
const { Source } = require('../source/source');
const { VIEW, DEFAULT_LABELS } = require('../registry/metric-view');
const { VALUE_LAYOUT } = require('../series/layouts');
const { SeriesTable } = require('../series/series-table');

/** Used as the worker's id. No worker has it. */
const RETIRED_ID = 2 ** 32 - 1;

// Gauges, because totals never have this type.
const WORKERS = { name: 'retired_workers', type: 'gauge', labelNames: ['id'] };
const FAILURES = { name: 'retired_failures', type: 'gauge', labelNames: ['stage', 'metric'] };
const BATCHES = { name: 'retired_batches', type: 'gauge', labelNames: ['incarnation'] };

/** @typedef {import('../source/failure-counts').Failure} Failure */

/** @typedef {{incarnation: string, taken: number}} TakenBatches the last batch of a process */

/**
 * @param {RetiredSource} retired
 * @param {Iterable<number>} workers ids
 * @param {readonly Failure[]} failures
 * @param {readonly TakenBatches[]} batches
 * @returns {Buffer}
 */
function encodeRetired(retired, workers, failures, batches) {
  const metrics = [
    ...retired.savedMetrics,
    metricOf(
      WORKERS,
      Array.from(workers, id => [{ id }, 1]),
    ),
    metricOf(
      FAILURES,
      failures.map(([stage, metric, count]) => [{ stage, metric }, count]),
    ),
    metricOf(
      BATCHES,
      batches.map(({ incarnation, taken }) => [{ incarnation }, taken]),
    ),
  ];
  const registry = { [DEFAULT_LABELS]: {}, getMetricsAsArray: () => metrics };
  return wholeSnapshot(new Source(() => [registry], { keepsEnded: false }), RETIRED_ID);
}

/**
 * @param {Source} source
 * @param {number} workerId
 * @returns {Buffer} the complete snapshot, in its own memory
 */
function wholeSnapshot(source, workerId) {
  return joined(source.captureWithLog(workerId, undefined, { isLast: true }).chunks);
}

/**
 * @param {{name: string, type: string, labelNames: string[]}} definition
 * @param {[labels: Record<string, unknown>, value: number][]} rows
 */
function metricOf({ name, type, labelNames }, rows) {
  const table = new SeriesTable(labelNames, 1);
  for (const [labels, value] of rows) {
    const row = table.start(labels);
    table.pageOf(row)[table.offsetOf(row)] = value;
  }
  const view = { name, help: '', type, aggregator: 'sum', layout: VALUE_LAYOUT, table };
  return { name, [VIEW]: () => view };
}

/**
 * Adds the totals that an earlier thread has written. Rows that are not folded count as seen now, because
 * live workers that have them may not have answered yet, unless their metric has `maxIdleSeconds`: they are
 * as old as they were.
 *
 * @param {Buffer} buffer in an ArrayBuffer of its own
 * @param {RetiredSource} retired
 * @param {number} now milliseconds, by the store's clock
 * @param {(stage: string, name: unknown, error: unknown) => void} onUnreadable called for each metric that
 *   cannot be read
 * @returns {{workers: number[], failures: Failure[], batches: TakenBatches[]}}
 * @throws {import('../source/byte-buffers').SnapshotError} if the bytes are not valid; then nothing is added
 */
function restoreRetired(buffer, retired, now, onUnreadable) {
  const series = new WorkerSeries(RETIRED_ID, onUnreadable);
  series.apply(buffer);
  const { sources } = series;
  const kept = sources.filter(({ definition }) => RetiredSource.keeps(definition));
  for (const source of kept) retired.restore(source, now);
  const workers = rowsOf(sources, WORKERS).map(([{ id }]) => Number(id));
  /** @type {Failure[]} */
  const failures = rowsOf(sources, FAILURES).map(([{ stage, metric }, count]) => [stage, metric, count]);
  const batches = rowsOf(sources, BATCHES).map(([{ incarnation }, taken]) => ({ incarnation, taken }));
  return {
    workers: workers.filter(id => Number.isInteger(id)),
    failures: failures.filter(([, , count]) => count >= 0),
    batches: batches.filter(({ taken }) => taken >= 0),
  };
}

/**
 * @param {import('./cluster-family').Source[]} sources
 * @param {{name: string, type: string}} metric
 * @returns {[labels: Record<string, string>, value: number][]}
 */
function rowsOf(sources, { name, type }) {
  const found = sources.find(({ definition }) => definition.name === name && definition.type === type);
  if (found === undefined) return [];
  return Array.from(found.order, row => [found.rows.labelsOf(row), found.pages[0][row]]);
}

module.exports = { encodeRetired, restoreRetired };
