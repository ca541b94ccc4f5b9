'use strict';

// Reads a family's samples one by one, for protocols that are not text (lib/remote-write). Names, labels and
// values are those that text-format.js writes.

const { baseName } = require('./text-format');
const { labelPair } = require('./label-text');

/** @typedef {import('./text-format').Family} Family */
/** @typedef {import('./text-format').Exemplar} Exemplar */
/** @typedef {import('./label-text').Label} Label */

/**
 * @template N
 * @typedef {object} SampleSink
 * @property {(name: string, marker?: Label) => N} nameOf called once for each metric name of a family, for
 *   buckets and quantiles with their `le` or `quantile`
 * @property {(name: N, labels: string, value: number, exemplar?: Exemplar | null) => void} onSample `labels`
 *   as text, without the marker
 */

/**
 * @param {Family} family
 * @param {boolean} openMetrics whether names are those of OpenMetrics
 * @returns {string} the name of the family's metadata
 */
function familyName({ name, type }, openMetrics) {
  return openMetrics && type === 'counter' ? baseName(String(name)) : String(name);
}

/**
 * @template N
 * @param {Family} family
 * @param {boolean} openMetrics whether names are those of OpenMetrics
 * @param {SampleSink<N>} sink
 * @returns {(row: number) => void} calls onSample for each sample of a row
 */
function sampleReader(family, openMetrics, sink) {
  const { layout } = family;
  const name = String(family.name);
  switch (layout.kind) {
    case 'histogram':
      return histogramReader(family, name, layout.bounds, sink);
    case 'summary':
      return summaryReader(family, name, layout.quantiles, sink);
    default:
      return valueReader(family, name, openMetrics && family.type === 'counter', sink);
  }
}

/**
 * @template N
 * @param {Family} family
 * @param {string} familyName
 * @param {boolean} isCounter whether each name has to end with `_total`
 * @param {SampleSink<N>} sink
 */
function valueReader(family, familyName, isCounter, { nameOf, onSample }) {
  /** @type {Map<string, N>} by the name as the family has it */
  const names = new Map();
  return (/** @type {number} */ row) => {
    const own = family.sampleName?.(row) || familyName;
    let name = names.get(own);
    if (name === undefined) {
      name = nameOf(isCounter ? `${baseName(own)}_total` : own);
      names.set(own, name);
    }
    const value = family.pageOf(row)[family.offsetOf(row)];
    onSample(name, family.labelText(row, false), value, family.exemplarAt?.(row, 0));
  };
}

/**
 * @template N
 * @param {Family} family
 * @param {string} name
 * @param {readonly number[]} bounds
 * @param {SampleSink<N>} sink
 */
function histogramReader(family, name, bounds, { nameOf, onSample }) {
  const buckets = [...bounds.map(String), '+Inf'].map(bound =>
    nameOf(`${name}_bucket`, markerOf('le', bound)),
  );
  const sumColumn = buckets.length;
  const sumName = nameOf(`${name}_sum`);
  const countName = nameOf(`${name}_count`);
  return (/** @type {number} */ row) => {
    const page = family.pageOf(row);
    const offset = family.offsetOf(row);
    const marked = family.labelText(row, true);
    let count = 0;
    for (let column = 0; column < sumColumn; column++) {
      count += page[offset + column];
      onSample(buckets[column], marked, count, family.exemplarAt?.(row, column));
    }
    const labels = family.labelText(row, false);
    onSample(sumName, labels, page[offset + sumColumn]);
    onSample(countName, labels, count);
  };
}

/**
 * @template N
 * @param {Family} family
 * @param {string} name
 * @param {readonly number[]} quantiles
 * @param {SampleSink<N>} sink
 */
function summaryReader(family, name, quantiles, { nameOf, onSample }) {
  const names = quantiles.map(quantile => nameOf(name, markerOf('quantile', quantile)));
  const sumName = nameOf(`${name}_sum`);
  const countName = nameOf(`${name}_count`);
  const quantileValues = /** @type {(row: number) => ArrayLike<number>} */ (family.quantileValues);
  return (/** @type {number} */ row) => {
    const page = family.pageOf(row);
    const offset = family.offsetOf(row);
    const marked = family.labelText(row, true);
    const values = quantileValues(row);
    for (let i = 0; i < names.length; i++) onSample(names[i], marked, values[i]);
    const labels = family.labelText(row, false);
    onSample(sumName, labels, page[offset]);
    onSample(countName, labels, page[offset + 1]);
  };
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {Label}
 */
function markerOf(name, value) {
  return { name, value: String(value), pair: labelPair(name, value) };
}

module.exports = { familyName, sampleReader };
