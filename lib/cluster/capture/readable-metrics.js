'use strict';

const { viewOf } = require('../../registry/metric-view');

/**
 * The metrics of a registry, without those whose name, help or hook cannot be read: the properties of a
 * metric may be anything, a getter that throws, for example. That costs the metric and nothing else.
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
  void metric.name;
  const view = viewOf(metric);
  if (view === undefined) return;
  for (const text of [view.name, view.help, view.aggregator]) if (typeof text !== 'string') String(text);
}

module.exports = { readableMetrics };
