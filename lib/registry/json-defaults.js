'use strict';

// Default labels of metrics as JSON.

/**
 * @param {any} json of a metric, with a list of values
 * @param {Record<string, unknown>} defaultLabels
 * @returns {any} a copy
 */
function withDefaultLabels(json, defaultLabels) {
  const copy = { ...json, values: withDefaults(json.values, defaultLabels) };
  const { nativeHistograms } = json;
  // A custom metric object may have anything there.
  return !Array.isArray(nativeHistograms) || nativeHistograms.includes(null)
    ? copy
    : { ...copy, nativeHistograms: withDefaults(nativeHistograms, defaultLabels) };
}

/**
 * Copies samples and adds the default labels that each does not have, or has as undefined: in JSON text, no
 * label is.
 *
 * @param {Iterable<any>} values
 * @param {Record<string, unknown>} defaultLabels
 */
function withDefaults(values, defaultLabels) {
  const names = Object.keys(defaultLabels);
  const copies = [];
  for (const sample of values) {
    const own = sample.labels ?? {};
    // Not by assignment: a label may be called __proto__.
    const labels = { ...own, ...defaultLabels };
    for (const name of names)
      if (Object.hasOwn(own, name) && own[name] !== undefined) labels[name] = own[name];
    copies.push({ ...sample, labels });
  }
  return copies;
}

module.exports = { withDefaultLabels };
