'use strict';

// What can be read of a registry. Properties of a metric, and default labels, may be anything, a getter that
// throws, for example. That costs the metric or the label, and nothing else.

const { VIEW, DEFAULT_LABELS } = require('../../registry/metric-view');
const { checkLabelNamesAreValid } = require('../../registry/names');

/**
 * The metrics of a registry, without those whose name, help or hook cannot be read.
 *
 * @param {any} registry
 * @param {(error: unknown) => void} [onUnreadable]
 * @returns {any[]}
 */
function readableMetrics(registry, onUnreadable = () => {}) {
  return registry.getMetricsAsArray().filter((/** @type {any} */ metric) => {
    try {
      check(metric);
      return true;
    } catch (error) {
      onUnreadable(error);
      return false;
    }
  });
}

/** @param {any} metric */
function check(metric) {
  void metric.collect;
  const { name, help, aggregator } = metric;
  // A custom metric object has its name, help and aggregator in what its get() returns.
  if (typeof metric[VIEW] !== 'function') return;
  for (const text of [name, help, aggregator]) if (typeof text !== 'string') String(text);
}

/**
 * The default labels of a registry, without those that have no text or no valid name: a program may have
 * changed the object that it passed to setDefaultLabels().
 *
 * @param {any} registry
 * @param {(error: unknown) => void} [onUnreadable]
 * @returns {Record<string, string>}
 */
function readableDefaults(registry, onUnreadable = () => {}) {
  const labels = registry[DEFAULT_LABELS] ?? {};
  /** @type {[name: string, text: string][]} */
  const readable = [];
  for (const name of Object.keys(labels)) {
    try {
      checkLabelNamesAreValid([name]);
      readable.push([name, String(labels[name])]);
    } catch (error) {
      onUnreadable(error);
    }
  }
  return Object.fromEntries(readable);
}

module.exports = { readableMetrics, readableDefaults };
