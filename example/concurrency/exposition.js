'use strict';

const TYPE = /^# TYPE (\S+) (\S+)$/;
const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([A-Za-z_]\w*)="([^"]*)"/g;

/** @typedef {{labels: Record<string, string>, value: number}} Sample */

/**
 * Reads a page in the Prometheus text format, as this example writes it: without quotes in label values and
 * without time stamps.
 *
 * @param {string} text
 * @returns {Map<string, Sample[]>} samples by name, an empty list for a metric that has none yet
 */
function readExposition(text) {
  const samples = new Map();
  for (const line of text.split('\n')) {
    const [, family, type] = TYPE.exec(line) ?? [];
    if (family !== undefined) for (const name of sampleNames(family, type)) samples.set(name, []);
    const [, name, labelText = '', value] = SAMPLE.exec(line) ?? [];
    if (name !== undefined) samples.get(name).push({ labels: readLabels(labelText), value: Number(value) });
  }
  return samples;
}

function sampleNames(family, type) {
  if (type === 'histogram') return [`${family}_bucket`, `${family}_sum`, `${family}_count`];
  return type === 'summary' ? [family, `${family}_sum`, `${family}_count`] : [family];
}

function readLabels(text) {
  return Object.fromEntries(Array.from(text.matchAll(LABEL), ([, name, value]) => [name, value]));
}

module.exports = { readExposition };
