'use strict';

// Presents a custom metric object as input of the text format: the result of its get() or getForPromString().

const { inspect } = require('util');
const { VALUE_LAYOUT } = require('../series/layouts');
const { labelsText } = require('./label-text');
const { toNumber } = require('./number-format');

/**
 * @typedef {object} Sample
 * @property {unknown} value
 * @property {Record<string, unknown>} [labels]
 * @property {Record<string, unknown>} [sharedLabels] labels that several samples share
 * @property {string} [metricName] if it differs from the metric's
 * @property {any} [exemplar]
 */

/**
 * @typedef {{name: string, help: string, type: string, values?: Sample[], aggregator?: string}} MetricObject
 */

/**
 * @param {MetricObject} metric
 * @param {Record<string, unknown>} defaultLabels
 * @returns {import('./text-format').Family}
 */
function sampleFamily(metric, defaultLabels) {
  const samples = wellFormed(samplesOf(metric));
  return {
    name: metric.name,
    help: metric.help,
    type: metric.type,
    layout: VALUE_LAYOUT,
    rows: () => samples.keys(),
    pageOf: row => [toNumber(samples[row].value)],
    offsetOf: () => 0,
    labels: row => labelsOf(samples[row], defaultLabels),
    labelText: row => labelsText(labelsOf(samples[row], defaultLabels)),
    sampleName: row => samples[row].metricName,
    exemplarAt: row => samples[row].exemplar,
  };
}

/**
 * @param {MetricObject} metric
 * @returns {Sample[]}
 * @throws {TypeError} if it has no list of samples
 */
function samplesOf(metric) {
  const values = metric && (metric.values || []);
  if (Array.isArray(values)) return values;
  if (values && Symbol.iterator in Object(values)) return [...values];
  throw new TypeError(`expected a metric with a list of values: ${inspect(metric)}`);
}

/**
 * In UTF-8, texts that differ in unpaired surrogates only are the same. Samples whose labels are such texts
 * become one series, with the sum of their values, as in a cluster.
 *
 * @param {Sample[]} samples
 * @returns {Sample[]} the same list if there is nothing to do
 */
function wellFormed(samples) {
  if (!hasUnpairedSurrogates(samples)) return samples;
  /** @type {Map<string, Sample>} */
  const series = new Map();
  for (const sample of samples) {
    const key = `${sample.metricName}{${labelsText(labelsOf(sample, {})).toWellFormed()}}`;
    const other = series.get(key);
    const value = other === undefined ? sample.value : toNumber(other.value) + toNumber(sample.value);
    series.set(key, { ...(other ?? sample), value });
  }
  return [...series.values()];
}

/**
 * @param {Sample[]} samples
 * @throws {TypeError} if one is missing. Not by some(), which skips them: 10 s for a length of 3e8
 */
function hasUnpairedSurrogates(samples) {
  for (const { labels, sharedLabels } of samples)
    if (!isWellFormed(labels) || !isWellFormed(sharedLabels)) return true;
  return false;
}

/** @param {Record<string, unknown> | undefined} labels */
function isWellFormed(labels) {
  for (const name in labels) {
    const value = labels[name];
    if (typeof value === 'string' && !value.isWellFormed()) return false;
  }
  return true;
}

/**
 * @param {Sample} sample
 * @param {Record<string, unknown>} defaultLabels
 */
function labelsOf({ labels = {}, sharedLabels = {} }, defaultLabels) {
  return [
    ...pairs(labels, {}, {}),
    ...pairs(defaultLabels, labels, sharedLabels),
    ...pairs(sharedLabels, labels, {}),
  ];
}

/**
 * The labels that neither of two other objects has.
 *
 * @param {Record<string, unknown>} labels
 * @param {Record<string, unknown>} others
 * @param {Record<string, unknown>} moreOthers
 * @returns {import('./label-text').LabelPair[]}
 */
function pairs(labels, others, moreOthers) {
  return Object.keys(labels ?? {})
    .filter(name => !Object.hasOwn(others ?? {}, name) && !Object.hasOwn(moreOthers, name))
    .map(name => [name, String(labels[name])]);
}

module.exports = { sampleFamily };
