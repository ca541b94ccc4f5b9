'use strict';

// Presents a custom metric object as input of the text format: the result of its get() or getForPromString().

const { labelPair, joinLabels } = require('./label-text');
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
  const samples = metric.values ?? [];
  return {
    name: metric.name,
    help: metric.help,
    type: metric.type,
    layout: { kind: 'samples' },
    rows: () => samples.keys(),
    pageOf: row => [toNumber(samples[row].value)],
    offsetOf: () => 0,
    labelText: row => labelsOf(samples[row], defaultLabels),
    sampleName: row => samples[row].metricName,
    exemplarAt: row => samples[row].exemplar,
  };
}

/**
 * @param {Sample} sample
 * @param {Record<string, unknown>} defaultLabels
 */
function labelsOf({ labels = {}, sharedLabels = {} }, defaultLabels) {
  let text = pairs(labels, {}, {});
  text = joinLabels(text, pairs(defaultLabels, labels, sharedLabels));
  return joinLabels(text, pairs(sharedLabels, labels, {}));
}

/**
 * The labels that neither of two other objects has, as text.
 *
 * @param {Record<string, unknown>} labels
 * @param {Record<string, unknown>} others
 * @param {Record<string, unknown>} moreOthers
 */
function pairs(labels, others, moreOthers) {
  return Object.keys(labels ?? {})
    .filter(name => !Object.hasOwn(others ?? {}, name) && !Object.hasOwn(moreOthers, name))
    .map(name => labelPair(name, labels[name]))
    .join();
}

module.exports = { sampleFamily };
