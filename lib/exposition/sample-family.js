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
  const samples = samplesOf(metric);
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
