'use strict';

// Converts a metric in prom-client's JSON (from a worker with prom-client, or a custom metric object) to rows
// and columns.

const { toNumber } = require('../../exposition/number-format');
const { NAME_LABEL } = require('./row-map');

/** A number that the JSON of a row does not contain. */
const MISSING = NaN;

/** @typedef {import('../wire/snapshot-decoder').Definition} Definition */
/** @typedef {import('./cluster-family').SourceDigest} SourceDigest */

/**
 * @typedef {object} JsonRows
 * @property {Definition} definition
 * @property {{names: string[], values: string[]}[]} labels by row
 * @property {Float64Array} columns
 * @property {((row: number) => SourceDigest) | undefined} digestOf
 * @property {(() => import('../wire/exemplars').PlacedExemplar[]) | undefined} exemplars
 */

/**
 * @param {any} metric
 * @returns {JsonRows | undefined} undefined if it is not a metric
 */
function readJsonMetric(metric) {
  if (typeof metric !== 'object' || metric === null || typeof metric.name !== 'string') return undefined;
  const samples = Array.isArray(metric.values) ? metric.values.filter(isSample) : [];
  const marker = metric.type === 'histogram' ? 'le' : metric.type === 'summary' ? 'quantile' : undefined;
  const isRegular =
    marker !== undefined && samples.every((/** @type {any} */ sample) => fits(sample, metric.name, marker));
  if (isRegular) return marker === 'le' ? readHistogram(metric, samples) : readSummary(metric, samples);
  return readValues(metric, samples);
}

/** @param {any} sample */
function isSample(sample) {
  return typeof sample === 'object' && sample !== null;
}

/**
 * Whether a sample has the name and label of a histogram's or summary's sample.
 *
 * @param {any} sample
 * @param {string} name
 * @param {string} marker
 */
function fits(sample, name, marker) {
  const { metricName = name, labels = {} } = sample;
  if (metricName === `${name}_sum` || metricName === `${name}_count`) return true;
  const marked = Object.hasOwn(labels ?? {}, marker) && !Number.isNaN(markOf(labels[marker]));
  return marked && metricName === (marker === 'le' ? `${name}_bucket` : name);
}

/** @param {unknown} value of `le` or `quantile` */
function markOf(value) {
  return value === '+Inf' ? Infinity : Number(value);
}

/**
 * @param {any} metric
 * @param {Definition['layout']} layout
 * @param {number[]} boundsOrQuantiles
 * @returns {Definition}
 */
function definitionOf({ name, help, type, aggregator }, layout, boundsOrQuantiles) {
  const rule = typeof aggregator === 'string' ? aggregator : 'sum';
  return {
    name,
    help: String(help),
    type: String(type),
    aggregator: rule,
    layout,
    boundsOrQuantiles,
    windowed: true,
    labelNames: [],
  };
}

/** Numbers label sets in the order in which they first appear. */
class RowsByLabels {
  /** @type {Map<string, number>} */
  #rows = new Map();
  /** @type {JsonRows['labels']} */
  labels = [];

  /**
   * @param {Record<string, unknown>} labels
   * @param {string} [except]
   */
  rowOf(labels, except) {
    const names = Object.keys(labels ?? {}).filter(name => name !== except && labels[name] !== undefined);
    const values = names.map(name => String(labels[name]));
    const key = JSON.stringify(names.map((name, i) => [name, values[i]]).sort());
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = this.labels.push({ names, values }) - 1;
      this.#rows.set(key, row);
    }
    return row;
  }
}

/** Collects the complete exemplars of a metric in JSON. */
class PlacedExemplars {
  /** @type {import('../wire/exemplars').PlacedExemplar[]} */
  #list = [];

  /**
   * @param {number} row
   * @param {number} column
   * @param {any} exemplar
   */
  add(row, column, exemplar) {
    if (typeof exemplar !== 'object' || exemplar === null || exemplar.labelSet === null) return;
    const isWhole = typeof exemplar.labelSet === 'object' && typeof exemplar.value === 'number';
    if (isWhole && typeof exemplar.timestamp === 'number') this.#list.push({ row, column, exemplar });
  }

  get reader() {
    const list = this.#list;
    return list.length === 0 ? undefined : () => list;
  }
}

/**
 * @param {any} metric
 * @param {any[]} samples
 * @returns {JsonRows}
 */
function readHistogram(metric, samples) {
  const buckets = samples.filter(({ metricName }) => metricName === `${metric.name}_bucket`);
  const bounds = boundsOf(buckets);
  /** @type {number[]} by row: the value of `_count` */
  const counts = [];
  const width = bounds.length + 2;
  const rows = new RowsByLabels();
  /** @type {number[]} */
  const columns = [];
  const exemplars = new PlacedExemplars();
  for (const { metricName, labels, value, exemplar } of samples) {
    const row = rows.rowOf(labels, metricName === `${metric.name}_bucket` ? 'le' : undefined);
    while (columns.length < rows.labels.length * width) columns.push(MISSING);
    if (metricName === `${metric.name}_sum`) {
      columns[row * width + width - 1] = toNumber(value);
    } else if (metricName === `${metric.name}_count`) {
      counts[row] = toNumber(value);
    } else if (metricName === `${metric.name}_bucket`) {
      const bound = markOf(labels.le);
      const column = bound === Infinity ? bounds.length : bounds.indexOf(bound);
      columns[row * width + column] = toNumber(value);
      exemplars.add(row, column, exemplar);
    }
  }
  for (let row = 0; row < rows.labels.length; row++) {
    undoCumulation(columns, row * width, bounds.length, counts[row]);
  }
  const definition = definitionOf(metric, 'histogram', bounds);
  return {
    definition,
    labels: rows.labels,
    columns: Float64Array.from(columns),
    digestOf: undefined,
    exemplars: exemplars.reader,
  };
}

/**
 * The bounds of a histogram's buckets in the order in which they were cumulated: as given if all series have
 * the same bounds, else ascending.
 *
 * @param {any[]} buckets
 * @returns {number[]}
 */
function boundsOf(buckets) {
  const rows = new RowsByLabels();
  /** @type {number[]} by row */
  const counts = [];
  const bounds = new Set();
  for (const { labels } of buckets) {
    const bound = markOf(labels.le);
    if (bound === Infinity) continue;
    bounds.add(bound);
    const row = rows.rowOf(labels, 'le');
    counts[row] = (counts[row] ?? 0) + 1;
  }
  const isRegular = counts.every(count => count >= bounds.size);
  return isRegular ? [...bounds] : [...bounds].sort((a, b) => a - b);
}

/**
 * Replaces the cumulated counts of a row by the count of each bucket. A bucket that the row lacks gets 0.
 *
 * @param {number[]} columns
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
 * @returns {JsonRows}
 */
function readSummary(metric, samples) {
  const rows = new RowsByLabels();
  /** @type {number[]} */
  const columns = [];
  /** @type {Map<number, number>[]} */
  const quantiles = [];
  for (const { metricName = metric.name, labels, value } of samples) {
    const row = rows.rowOf(labels, metricName === metric.name ? 'quantile' : undefined);
    while (columns.length < rows.labels.length * 2) columns.push(0);
    const ofRow = (quantiles[row] ??= new Map());
    if (metricName === `${metric.name}_sum`) columns[row * 2] = toNumber(value);
    else if (metricName === `${metric.name}_count`) columns[row * 2 + 1] = toNumber(value);
    else ofRow.set(markOf(labels.quantile), toNumber(value));
  }
  const boundsOrQuantiles = [...new Set(quantiles.flatMap(ofRow => [...ofRow.keys()]))];
  const definition = definitionOf(metric, 'summary', boundsOrQuantiles);
  return {
    definition,
    labels: rows.labels,
    columns: Float64Array.from(columns),
    digestOf: row => ({ quantiles: quantiles[row] }),
    exemplars: undefined,
  };
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
  const exemplars = new PlacedExemplars();
  for (const { metricName, labels, sharedLabels, value, exemplar } of samples) {
    const renamed = metricName && metricName !== metric.name ? { [NAME_LABEL]: metricName } : undefined;
    const row = rows.rowOf({ ...labels, ...sharedLabels, ...renamed });
    columns[row] = toNumber(value);
    exemplars.add(row, 0, exemplar);
  }
  const definition = definitionOf(metric, 'value', []);
  return {
    definition,
    labels: rows.labels,
    columns: Float64Array.from(columns),
    digestOf: undefined,
    exemplars: exemplars.reader,
  };
}

module.exports = { readJsonMetric };
