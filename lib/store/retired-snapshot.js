'use strict';

// Writes and reads the retired totals as an ordinary snapshot, in which they survive the aggregator thread.
// One more metric has a label whose value is JSON: what the totals include.

const { WorkerSeries } = require('./worker-series');
const { RetiredSource } = require('./retired-source');
const { SnapshotError, joined } = require('../source/byte-buffers');
const { Source } = require('../source/source');
const { VIEW, DEFAULT_LABELS } = require('../registry/metric-view');
const { textOf } = require('../options/thrown');
const { VALUE_LAYOUT } = require('../series/layouts');
const { SeriesTable } = require('../series/series-table');

/** Used as the worker's id. No worker has it. */
const RETIRED_ID = 2 ** 32 - 1;

/** Of a gauge, because totals never have this type. */
const INCLUDED = 'retired_includes';

/** @typedef {import('../source/failure-counts').Failure} Failure */

/**
 * What totals include.
 *
 * @typedef {object} Included
 * @property {number[]} workers ids
 * @property {Failure[]} failures of these
 * @property {[incarnation: string, taken: number][]} batches the last batch of ended rows of each process
 */

/**
 * @param {RetiredSource} retired
 * @param {Included} included
 * @returns {Buffer} the complete snapshot, in its own memory
 */
function encodeRetired(retired, included) {
  const table = new SeriesTable(['json'], 1);
  table.start({ json: JSON.stringify(included) });
  const view = { name: INCLUDED, help: '', type: 'gauge', aggregator: 'sum', layout: VALUE_LAYOUT, table };
  const metrics = [...retired.savedMetrics, { name: INCLUDED, [VIEW]: () => view }];
  const registry = { [DEFAULT_LABELS]: {}, getMetricsAsArray: () => metrics };
  const source = new Source(() => [registry], { keepsEnded: false });
  return joined(source.captureWithLog(RETIRED_ID, undefined, { isLast: true }).chunks);
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
 * @returns {Included}
 * @throws {SnapshotError} if the bytes are not valid; then nothing is added
 */
function restoreRetired(buffer, retired, now, onUnreadable) {
  const series = new WorkerSeries(RETIRED_ID, onUnreadable);
  series.apply(buffer);
  const included = includedIn(series.sources);
  for (const source of series.sources)
    if (RetiredSource.keeps(source.definition)) retired.restore(source, now);
  return included;
}

/**
 * @param {import('./cluster-family').Source[]} sources
 * @returns {Included}
 * @throws {SnapshotError} if that cannot be read
 */
function includedIn(sources) {
  const gauge = sources.find(({ definition }) => definition.name === INCLUDED && definition.type === 'gauge');
  const areTexts = (/** @type {unknown[]} */ ...values) => values.every(value => typeof value === 'string');
  const isCount = (/** @type {unknown} */ value) => Number(value) >= 0 && Number.isInteger(value);
  try {
    const { workers, failures, batches } = JSON.parse(gauge?.rows.labelsOf(0).json ?? '');
    return {
      workers: workers.filter(Number.isInteger),
      failures: failures.filter(
        (/** @type {Failure} */ [stage, metric, count]) => areTexts(stage, metric) && isCount(count),
      ),
      batches: batches.filter(
        (/** @type {[string, number]} */ [process, taken]) => areTexts(process) && isCount(taken),
      ),
    };
  } catch (error) {
    throw new SnapshotError('numbers', `what retired totals include cannot be read: ${textOf(error)}`);
  }
}

module.exports = { encodeRetired, restoreRetired };
