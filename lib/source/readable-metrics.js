'use strict';

// Lists the metrics of a registry that can be read. A property of a metric may be anything, such as a getter
// that throws: then only that metric is left out.

const { VIEW } = require('../registry/metric-view');

/**
 * The metrics of a registry, without those whose name, help or hook cannot be read.
 *
 * @param {any} registry
 * @param {(error: unknown) => void} [onUnreadable]
 * @returns {any[]}
 */
function readableMetrics(registry, onUnreadable = () => {}) {
  return registry.getMetricsAsArray().filter((/** @type {any} */ metric) => isReadable(metric, onUnreadable));
}

/**
 * @param {any} metric
 * @param {(error: unknown) => void} onUnreadable
 * @returns {boolean} whether its name, help and hook can be read
 */
function isReadable(metric, onUnreadable) {
  try {
    check(metric);
    return true;
  } catch (error) {
    onUnreadable(error);
    return false;
  }
}

/** @param {any} metric */
function check(metric) {
  void metric.collect;
  const { name, help, aggregator } = metric;
  // A custom metric object has its name, help and aggregator in what its get() returns.
  if (typeof metric[VIEW] !== 'function') return;
  for (const text of [name, help, aggregator]) if (typeof text !== 'string') String(text);
}

module.exports = { readableMetrics, isReadable };
