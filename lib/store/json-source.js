'use strict';

// Converts a metric in prom-client's JSON (from a worker with prom-client, or a custom metric object) to rows
// and columns. The JSON may contain anything. If something cannot be read, or would make the page unreadable,
// reading throws here, where only this metric is lost.

const { kindOfType, VALUE_LAYOUT } = require('../series/layouts');
const { RowStarts, UNKNOWN } = require('../series/row-starts');
const { toNumber } = require('../exposition/number-format');
const { isValidMetricName } = require('../registry/names');
const { RowsByLabels, placedExemplar, isObject, isList } = require('./json-labels');
const { NAME_LABEL } = require('./row-map');

/** Loaded on first use: programs without native histograms do not need these files. */
const natives = () => ({ ...require('../series/native-json'), ...require('../series/merged-buckets') });

// A page has all quantiles of a family for each row, so more would multiply the rows of other workers.
const MAX_QUANTILES = 100;

// A table of rows and bounds (or quantiles) has at most this many times as many cells as there are samples.
const MAX_SPARSENESS = 4;
const SMALL_TABLE_CELLS = 4096;

/** @typedef {import('../source/log-decoder').Definition} Definition */
/** @typedef {import('./family-quantiles').SourceDigest} SourceDigest */
/** @typedef {import('../series/merged-buckets').Buckets} Buckets */

/**
 * The samples of one row of a histogram or summary.
 *
 * @typedef {object} RowSamples
 * @property {Map<number, number>} marked values by bound or quantile
 * @property {Map<number, unknown>} exemplars by bound
 * @property {number} [sum]
 * @property {number} [count]
 */

/** @type {RowSamples} */
const NO_SAMPLES = { marked: new Map(), exemplars: new Map() };

/** @type {Record<string, 'sum' | 'count' | undefined>} by suffix, of samples that have no mark */
const UNMARKED = { _sum: 'sum', _count: 'count' };

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
 * @returns {JsonRows}
 * @throws {Error} if it is not a metric, or a part of it cannot be converted to text or a number
 */
function readJsonMetric(metric) {
  if (!isMetricName(metric?.name)) throw new TypeError('not a metric with a valid name');
  const samples = metric.values ?? [];
  // Unlike some() and every(), findIndex() also visits the holes of a sparse list.
  if (!isList(samples) || samples.findIndex(sample => !isSample(sample)) !== -1)
    throw new TypeError('values are not samples');
  const kind = kindOfType(metric.type);
  const reader = READERS[kind.name];
  const isRegular = reader !== undefined && samples.every(sample => fits(sample, metric.name, kind));
  return (isRegular && reader(metric, samples)) || readValues(metric, samples);
}

/** @param {any} sample */
function isSample(sample) {
  return isObject(sample) && (!sample.metricName || isMetricName(sample.metricName));
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
 * @param {string} marker the label with the marks
 * @returns {{rows: RowsByLabels, byRow: RowSamples[]}}
 */
function samplesByRow({ name }, samples, marker) {
  const rows = new RowsByLabels();
  /** @type {RowSamples[]} */
  const byRow = [];
  for (const { metricName = name, labels, value, exemplar } of samples) {
    const unmarked = UNMARKED[metricName.slice(name.length)];
    const row = rows.rowOf(labels, unmarked === undefined ? marker : undefined);
    const own = (byRow[row] ??= { marked: new Map(), exemplars: new Map() });
    if (unmarked === undefined) {
      own.marked.set(markOf(labels[marker]), toNumber(value));
      own.exemplars.set(markOf(labels[marker]), exemplar);
    } else {
      own[unmarked] = toNumber(value);
    }
  }
  return { rows, byRow };
}

/**
 * @param {any} metric
 * @param {any[]} samples
 * @returns {JsonRows | undefined} undefined if it is too sparse for a table
 */
function readHistogram(metric, samples) {
  const { rows, byRow } = samplesByRow(metric, samples, 'le');
  /** @type {NativeRow[] | undefined} */
  let native;
  try {
    native = readNative(metric.nativeHistograms, rows);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // The key may be another library's: what has been read of it has left rows.
    return readHistogram({ ...metric, nativeHistograms: undefined }, samples);
  }
  const bounds = boundsOf(byRow);
  if (isTooSparse(rows.count, bounds.length, samples)) return undefined;
  const columnOf = new Map(bounds.map((bound, column) => [bound, column]));
  const width = bounds.length + 2;
  const columns = new Float64Array(rows.count * width);
  /** @type {import('../source/exemplars').PlacedExemplar[]} */
  const exemplars = [];
  for (let row = 0; row < rows.count; row++) {
    const own = byRow[row] ?? NO_SAMPLES;
    const { count, sum, exemplars: others } = native?.[row] ?? {};
    setColumns(columns.subarray(row * width), bounds, { ...own, count: own.count ?? count }, sum);
    for (const [bound, exemplar] of own.exemplars)
      exemplars.push(...placedExemplar(row, columnOf.get(bound) ?? bounds.length, exemplar));
    if (isList(others))
      others.forEach((exemplar, i) => exemplars.push(...placedExemplar(row, width + i, exemplar)));
  }
  const definition = definitionOf(metric, { kind: native ? 'native' : 'histogram', marks: bounds });
  const read = (/** @type {number} */ row) => native?.[row]?.buckets;
  const buckets = native && { read, changesOf: () => undefined };
  const startIn = (/** @type {unknown} */ _, /** @type {number} */ row) => native?.[row]?.start ?? UNKNOWN;
  const starts = native && new RowStarts(Int32Array.from({ length: rows.count }, startIn));
  return { definition, rows, columns, starts, extras: { exemplars: readerOf(exemplars), buckets } };
}

/**
 * @typedef {{buckets: Buckets, count: number, sum: unknown, exemplars: unknown, start: any}} NativeRow
 */

/**
 * @param {any} histograms those of a native histogram, see NativeJson
 * @param {RowsByLabels} rows
 * @returns {NativeRow[] | undefined} by row
 * @throws {TypeError} if they are not valid
 */
function readNative(histograms, rows) {
  if (!isList(histograms)) return undefined;
  const { bucketsIn, countOf } = natives();
  /** @type {NativeRow[]} */
  const byRow = [];
  for (const json of histograms) {
    const buckets = bucketsIn(json);
    const { labels, sum, exemplars, createdTimestamp: start } = json;
    byRow[rows.rowOf(labels)] = { buckets, count: countOf(buckets), sum, exemplars, start };
  }
  return byRow;
}

/**
 * The bounds of a histogram's buckets in the order in which they were cumulated: as given if all series have
 * the same bounds, otherwise ascending.
 *
 * @param {RowSamples[]} byRow
 * @returns {number[]}
 */
function boundsOf(byRow) {
  const lists = byRow.map(({ marked }) => [...marked.keys()].filter(bound => bound !== Infinity));
  const bounds = [...new Set(lists.flat())];
  const isRegular = lists.every(({ length }) => length === 0 || length === bounds.length);
  return isRegular ? bounds : bounds.sort((a, b) => a - b);
}

/**
 * Sets the numbers of a row: the count of each bucket instead of cumulated counts. A bucket that the row
 * lacks gets 0.
 *
 * @param {Float64Array} columns from the first one of the row on
 * @param {number[]} bounds
 * @param {RowSamples} row the +Inf bucket may be missing
 * @param {unknown} otherSum if the row has none
 */
function setColumns(columns, bounds, { marked, count, sum }, otherSum) {
  let before = 0;
  [...bounds, Infinity].forEach((bound, column) => {
    const otherwise = bound === Infinity ? (count ?? before) : before;
    const cumulated = numberOr(marked.get(bound), otherwise);
    columns[column] = cumulated - before;
    before = cumulated;
  });
  columns[bounds.length + 1] = numberOr(sum, numberOr(toNumber(otherSum), 0));
}

/**
 * @param {number | undefined} number
 * @param {number} otherwise if it is missing, or NaN
 */
function numberOr(number, otherwise) {
  return number === undefined || Number.isNaN(number) ? otherwise : number;
}

/**
 * @param {any} metric
 * @param {any[]} samples
 * @returns {JsonRows | undefined} undefined if it is too sparse for a table
 */
function readSummary(metric, samples) {
  const { rows, byRow } = samplesByRow(metric, samples, 'quantile');
  const marks = [...new Set(byRow.flatMap(({ marked }) => [...marked.keys()]))];
  if (marks.length > MAX_QUANTILES || isTooSparse(rows.count, marks.length, samples)) return undefined;
  const definition = definitionOf(metric, { kind: 'summary', marks });
  const columns = Float64Array.from(byRow.flatMap(({ sum = 0, count = 0 }) => [sum, count]));
  return { definition, rows, columns, extras: { digestOf: row => ({ quantiles: byRow[row].marked }) } };
}

/**
 * @param {any} metric
 * @param {any[]} samples
 * @returns {JsonRows}
 */
function readValues(metric, samples) {
  const rows = new RowsByLabels();
  /** @type {number[]} */
  const columns = [];
  /** @type {import('../source/exemplars').PlacedExemplar[]} */
  const exemplars = [];
  for (const { metricName, labels, sharedLabels, value, exemplar } of samples) {
    const renamed = metricName && metricName !== metric.name ? { [NAME_LABEL]: metricName } : undefined;
    const row = rows.rowOf({ ...labels, ...sharedLabels, ...renamed });
    columns[row] = toNumber(value);
    exemplars.push(...placedExemplar(row, 0, exemplar));
  }
  const definition = definitionOf(metric, VALUE_LAYOUT);
  return {
    definition,
    rows,
    columns: Float64Array.from(columns),
    extras: { exemplars: readerOf(exemplars) },
  };
}

/**
 * @param {import('../source/exemplars').PlacedExemplar[]} exemplars
 * @returns {import('../source/extras').RowExtras['exemplars']}
 */
function readerOf(exemplars) {
  return exemplars.length === 0 ? undefined : () => exemplars;
}

/**
 * By kind: reads metrics whose samples are those of the kind.
 *
 * @type {Record<string, typeof readHistogram | undefined>}
 */
const READERS = { histogram: readHistogram, summary: readSummary };

module.exports = { readJsonMetric };
