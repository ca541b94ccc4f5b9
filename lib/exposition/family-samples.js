'use strict';

// Reads a family's samples one by one, for protocols that are not text (lib/remote-write). Names, labels and
// values are those that text-format.js writes.

const { baseName } = require('./text-format');
const { labelPair, joinLabels } = require('./label-text');

/** @typedef {import('./text-format').Family} Family */
/** @typedef {import('./text-format').Exemplar} Exemplar */

/**
 * @callback OnSample
 * @param {string} name
 * @param {string} labels as text, as between the braces of a line
 * @param {number} value
 * @param {Exemplar | undefined | null} [exemplar]
 * @returns {void}
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
 * @param {Family} family
 * @param {boolean} openMetrics whether names are those of OpenMetrics
 * @param {OnSample} onSample
 * @returns {(row: number) => void} calls onSample for each sample of a row
 */
function sampleReader(family, openMetrics, onSample) {
  const { layout } = family;
  const name = String(family.name);
  switch (layout.kind) {
    case 'histogram':
      return histogramReader(family, name, layout.bounds, onSample);
    case 'summary':
      return summaryReader(family, name, layout.quantiles, onSample);
    default:
      return valueReader(family, name, openMetrics && family.type === 'counter', onSample);
  }
}

/**
 * @param {Family} family
 * @param {string} familyName
 * @param {boolean} isCounter whether each name has to end with `_total`
 * @param {OnSample} onSample
 */
function valueReader(family, familyName, isCounter, onSample) {
  return (/** @type {number} */ row) => {
    const own = family.sampleName?.(row) || familyName;
    const name = isCounter ? `${baseName(own)}_total` : own;
    const value = family.pageOf(row)[family.offsetOf(row)];
    onSample(name, family.labelText(row, false), value, family.exemplarAt?.(row, 0));
  };
}

/**
 * @param {Family} family
 * @param {string} name
 * @param {readonly number[]} bounds
 * @param {OnSample} onSample
 */
function histogramReader(family, name, bounds, onSample) {
  const markers = [...bounds.map(String), '+Inf'].map(bound => labelPair('le', bound));
  const sumColumn = markers.length;
  return (/** @type {number} */ row) => {
    const page = family.pageOf(row);
    const offset = family.offsetOf(row);
    const marked = family.labelText(row, true);
    let count = 0;
    for (let column = 0; column < sumColumn; column++) {
      count += page[offset + column];
      const exemplar = family.exemplarAt?.(row, column);
      onSample(`${name}_bucket`, joinLabels(markers[column], marked), count, exemplar);
    }
    const labels = family.labelText(row, false);
    onSample(`${name}_sum`, labels, page[offset + sumColumn]);
    onSample(`${name}_count`, labels, count);
  };
}

/**
 * @param {Family} family
 * @param {string} name
 * @param {readonly number[]} quantiles
 * @param {OnSample} onSample
 */
function summaryReader(family, name, quantiles, onSample) {
  const markers = quantiles.map(quantile => labelPair('quantile', quantile));
  const quantileValues = /** @type {(row: number) => ArrayLike<number>} */ (family.quantileValues);
  return (/** @type {number} */ row) => {
    const page = family.pageOf(row);
    const offset = family.offsetOf(row);
    const marked = family.labelText(row, true);
    const values = quantileValues(row);
    for (let i = 0; i < markers.length; i++) onSample(name, joinLabels(markers[i], marked), values[i]);
    const labels = family.labelText(row, false);
    onSample(`${name}_sum`, labels, page[offset]);
    onSample(`${name}_count`, labels, page[offset + 1]);
  };
}

module.exports = { familyName, sampleReader };
