'use strict';

// Converts a metric in prom-client's JSON (from a worker with prom-client, or a custom metric object) to rows
// and columns. The JSON may contain anything. If something cannot be read, or would make the page unreadable,
// reading throws here, where only this metric is lost.

const { kindOfType, VALUE_LAYOUT } = require('../series/layouts');
const { RowStarts, UNKNOWN } = require('../series/row-starts');
const { toNumber } = require('../exposition/number-format');
const { isValidMetricName } = require('../registry/names');
const { ReadBudget, RowsByLabels, PlacedExemplars, isObject, isIndexed } = require('./json-labels');
const { NAME_LABEL } = require('./row-map');

/** Loaded on first use: programs without native histograms do not need these files. */
const natives = () => ({ ...require('../series/native-json'), ...require('../series/merged-buckets') });

/** Stands for a number that is missing in the JSON of a row. */
const MISSING = NaN;

// A page has all quantiles of a family for each row, so more would multiply the rows of other workers.
const MAX_QUANTILES = 100;

// A table of rows and bounds (or quantiles) has at most this many times as many cells as there are samples.
const MAX_SPARSENESS = 4;
const SMALL_TABLE_CELLS = 4096;

/** @typedef {import('../source/log-decoder').Definition} Definition */
/** @typedef {import('./cluster-family').SourceDigest} SourceDigest */
/** @typedef {import('../series/merged-buckets').Buckets} Buckets */

/**
 * @typedef {object} JsonRows
 * @property {Definition} definition
 * @property {RowsByLabels} rows
 * @property {Float64Array} columns
 * @property {import('../series/row-starts').Starts} [starts]
 * @property {import('../source/extras').RowExtras} extras
 */

/**
 * @param {any} metric
 * @param {ReadBudget} [budget] of the answer that it is part of
 * @returns {JsonRows}
 * @throws {Error} if it is not a metric, or a part of it cannot be converted to text or a number
 */
function readJsonMetric(metric, budget = new ReadBudget()) {
  if (!isMetricName(metric?.name)) throw new TypeError('not a metric with a valid name');
  const samples = metric.values ?? [];
  if (!Array.isArray(samples)) throw new TypeError('values are not samples');
  budget.spend(samples.length);
  // Unlike some() and every(), this also visits the holes of a sparse list.
  if (samples.findIndex(sample => !isSample(sample)) !== -1) throw new TypeError('values are not samples');
  const kind = kindOfType(metric.type);
  const reader = READERS[kind.name];
  const isRegular = reader !== undefined && samples.every(sample => fits(sample, metric.name, kind));
  return (isRegular && reader(metric, samples, budget)) || readValues(metric, samples, budget);
}

/** @param {any} sample */
function isSample(sample) {
  if (!isObject(sample) || (sample.metricName && !isMetricName(sample.metricName))) return false;
  return !isIndexed(sample.labels) && !isIndexed(sample.sharedLabels);
}

/** @param {unknown} name */
function isMetricName(name) {
  return typeof name === 'string' && isValidMetricName(name);
}

/**
 * Whether a sample has the name and label of a histogram's or summary's sample.
 *
 * @param {any} sample
 * @param {string} name
 * @param {import('../series/layouts').Kind} kind
 */
function fits(sample, name, { marker = '', samples }) {
  const { metricName = name, labels = {} } = sample;
  const sameName = samples([0]).find(({ suffix }) => metricName === name + suffix);
  if (sameName?.mark === undefined) return sameName !== undefined;
  return Object.hasOwn(labels ?? {}, marker) && !Number.isNaN(markOf(labels[marker]));
}

/** @param {unknown} value of `le` or `quantile` */
function markOf(value) {
  return value === '+Inf' ? Infinity : Number(value);
}

/**
 * @param {any} metric
 * @param {Definition['layout']} layout
 * @returns {Definition}
 */
function definitionOf({ name, help, type, aggregator }, layout) {
  const rule = typeof aggregator === 'string' ? aggregator : 'sum';
  if (!/^\w+$/.test(type)) throw new TypeError('not a valid type');
  return {
    name,
    help: String(help),
    type: String(type),
    aggregator: rule,
    layout,
    windowed: true,
    maxIdleSeconds: 0,
    labelNames: [],
  };
}

/**
 * Whether rows have so many different bounds (or quantiles) that a table of all rows and bounds would be much
 * larger than the samples.
 *
 * @param {number} rows
 * @param {number} marks
 * @param {any[]} samples
 */
function isTooSparse(rows, marks, samples) {
  return rows * marks > Math.max(samples.length * MAX_SPARSENESS, SMALL_TABLE_CELLS);
}

/**
 * @param {any} metric
 * @param {any[]} samples
 * @param {ReadBudget} budget
 * @returns {JsonRows | undefined} undefined if it is too sparse for a table
 */
function readHistogram(metric, samples, budget) {
  const bucketName = `${metric.name}_bucket`;
  const rows = new RowsByLabels(budget);
  const rowOf = samples.map(({ metricName, labels }) =>
    rows.rowOf(labels, metricName === bucketName ? 'le' : undefined),
  );
  const { nativeHistograms, ...classic } = metric;
  /** @type {NativeRow[] | undefined} */
  let native;
  try {
    native = readNative(nativeHistograms, rows, budget);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // Another library may use the same key. Starts again, because reading it has already added rows.
    return readHistogram(classic, samples, budget);
  }
  const bounds = boundsOf(samples, bucketName, rowOf);
  if (isTooSparse(rows.count, bounds.length, samples)) return undefined;
  const columnOf = new Map(bounds.map((bound, column) => [bound, column]));
  /** @type {number[]} by row: the value of `_count` */
  const counts = native?.map(({ count }) => count) ?? [];
  const width = bounds.length + 2;
  const columns = new Float64Array(rows.count * width).fill(MISSING);
  const exemplars = new PlacedExemplars();
  samples.forEach(({ metricName, labels, value, exemplar }, i) => {
    const row = rowOf[i];
    if (metricName === `${metric.name}_sum`) {
      columns[row * width + width - 1] = toNumber(value);
    } else if (metricName === `${metric.name}_count`) {
      counts[row] = toNumber(value);
    } else {
      const column = columnOf.get(markOf(labels.le)) ?? bounds.length;
      columns[row * width + column] = toNumber(value);
      exemplars.add(row, column, exemplar);
    }
  });
  native?.forEach(({ sum, exemplars: own }, row) => {
    if (Number.isNaN(columns[row * width + width - 1])) columns[row * width + width - 1] = toNumber(sum);
    if (Array.isArray(own)) own.forEach((exemplar, i) => exemplars.add(row, width + i, exemplar));
  });
  for (let row = 0; row < rows.count; row++) {
    undoCumulation(columns, row * width, bounds.length, counts[row]);
  }
  const definition = definitionOf(metric, { kind: native ? 'native' : 'histogram', marks: bounds });
  const read = (/** @type {number} */ row) => native?.[row]?.buckets;
  const buckets = native && { read, changesOf: () => undefined };
  const startIn = (/** @type {unknown} */ _, /** @type {number} */ row) => native?.[row]?.start ?? UNKNOWN;
  const starts = native && new RowStarts(Int32Array.from({ length: rows.count }, startIn));
  return { definition, rows, columns, starts, extras: { exemplars: exemplars.reader, buckets } };
}

/**
 * @typedef {{buckets: Buckets, count: number, sum: unknown, exemplars: unknown, start: any}} NativeRow
 */

/**
 * @param {any} histograms those of a native histogram, see NativeJson
 * @param {RowsByLabels} rows
 * @param {ReadBudget} budget
 * @returns {NativeRow[] | undefined} by row
 * @throws {TypeError} if they are not valid
 */
function readNative(histograms, rows, budget) {
  if (!Array.isArray(histograms)) return undefined;
  const { bucketsIn, countOf } = natives();
  budget.spend(histograms.length);
  /** @type {NativeRow[]} */
  const byRow = [];
  for (const json of histograms) {
    if (!isObject(json) || isIndexed(json.labels)) throw new TypeError('not a native histogram');
    const { positiveSpans, positiveDeltas, negativeSpans, negativeDeltas } = json;
    for (const list of [positiveSpans, positiveDeltas, negativeSpans, negativeDeltas, json.exemplars])
      budget.spend(list?.length ?? 0);
    const buckets = bucketsIn(json);
    const { sum, exemplars, createdTimestamp: start } = json;
    byRow[rows.rowOf(json.labels)] = { buckets, count: countOf(buckets), sum, exemplars, start };
  }
  return byRow;
}

/**
 * The bounds of a histogram's buckets in the order in which they were cumulated: as given if all series have
 * the same bounds, otherwise ascending.
 *
 * @param {any[]} samples
 * @param {string} bucketName
 * @param {number[]} rowOf by sample
 * @returns {number[]}
 */
function boundsOf(samples, bucketName, rowOf) {
  /** @type {number[]} by row */
  const counts = [];
  const bounds = new Set();
  samples.forEach(({ metricName, labels }, i) => {
    const bound = metricName === bucketName ? markOf(labels.le) : Infinity;
    if (bound === Infinity) return;
    bounds.add(bound);
    counts[rowOf[i]] = (counts[rowOf[i]] ?? 0) + 1;
  });
  const isRegular = counts.every(count => count >= bounds.size);
  return isRegular ? [...bounds] : [...bounds].sort((a, b) => a - b);
}

/**
 * Replaces the cumulated counts of a row by the count of each bucket. A bucket that the row lacks gets 0.
 *
 * @param {Float64Array} columns
 * @param {number} start of the row
 * @param {number} boundCount
 * @param {number | undefined} total the value of `_count`, for a row without a +Inf bucket
 */
function undoCumulation(columns, start, boundCount, total) {
  let before = 0;
  for (let i = 0; i <= boundCount; i++) {
    const at = start + i;
    if (Number.isNaN(columns[at])) columns[at] = i === boundCount ? (total ?? before) : before;
    const cumulated = columns[at];
    columns[at] -= before;
    before = cumulated;
  }
  if (Number.isNaN(columns[start + boundCount + 1])) columns[start + boundCount + 1] = 0;
}

/**
 * @param {any} metric
 * @param {any[]} samples
 * @param {ReadBudget} budget
 * @returns {JsonRows | undefined} undefined if it is too sparse for a table
 */
function readSummary(metric, samples, budget) {
  const rows = new RowsByLabels(budget);
  /** @type {number[]} */
  const columns = [];
  /** @type {Map<number, number>[]} */
  const quantiles = [];
  for (const { metricName = metric.name, labels, value } of samples) {
    const row = rows.rowOf(labels, metricName === metric.name ? 'quantile' : undefined);
    while (columns.length < rows.count * 2) columns.push(0);
    const ofRow = (quantiles[row] ??= new Map());
    if (metricName === `${metric.name}_sum`) columns[row * 2] = toNumber(value);
    else if (metricName === `${metric.name}_count`) columns[row * 2 + 1] = toNumber(value);
    else ofRow.set(markOf(labels.quantile), toNumber(value));
  }
  const marks = [...new Set(quantiles.flatMap(ofRow => [...ofRow.keys()]))];
  const isTooWide = marks.length > MAX_QUANTILES;
  if (isTooWide || isTooSparse(quantiles.length, marks.length, samples)) return undefined;
  const definition = definitionOf(metric, { kind: 'summary', marks });
  return {
    definition,
    rows,
    columns: Float64Array.from(columns),
    extras: { digestOf: row => ({ quantiles: quantiles[row] }) },
  };
}

/**
 * @param {any} metric
 * @param {any[]} samples
 * @param {ReadBudget} budget
 * @returns {JsonRows}
 */
function readValues(metric, samples, budget) {
  const rows = new RowsByLabels(budget);
  /** @type {number[]} */
  const columns = [];
  const exemplars = new PlacedExemplars();
  for (const { metricName, labels, sharedLabels, value, exemplar } of samples) {
    const renamed = metricName && metricName !== metric.name ? { [NAME_LABEL]: metricName } : undefined;
    const row = rows.rowOf({ ...labels, ...sharedLabels, ...renamed });
    columns[row] = toNumber(value);
    exemplars.add(row, 0, exemplar);
  }
  const definition = definitionOf(metric, VALUE_LAYOUT);
  return {
    definition,
    rows,
    columns: Float64Array.from(columns),
    extras: { exemplars: exemplars.reader },
  };
}

/**
 * By kind: the function that reads metrics whose samples fit the kind.
 *
 * @type {Record<string, typeof readHistogram | undefined>}
 */
const READERS = { histogram: readHistogram, summary: readSummary };

module.exports = { readJsonMetric };
