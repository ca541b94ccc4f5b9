'use strict';

// AggregatorRegistry.aggregate().

const { Registry } = require('../registry/registry');
const { FAMILY } = require('../registry/metric-view');
const { aggregators } = require('./primary/json-aggregators');
const { invalidOption } = require('../options/coded-error');

/**
 * Aggregates metrics given as JSON, one list per process.
 *
 * @param {any[][]} lists of metrics as getMetricsAsJSON() returns them. A Map or a Set of lists will do, as
 *   with prom-client
 * @param {string} [contentType] of the returned registry, default Prometheus text
 * @returns {Registry} its metrics are plain objects with a get()
 * @throws {TypeError} if there is no list
 * @throws {Error} if a metric names an unknown aggregator, or the content type is unknown
 */
function aggregateJson(lists, contentType = Registry.PROMETHEUS_CONTENT_TYPE) {
  /** @type {Map<string, any[]>} */
  const byName = new Map();
  const add = (/** @type {any} */ metric) => {
    const same = byName.get(metric.name);
    if (same === undefined) byName.set(metric.name, [metric]);
    else same.push(metric);
  };
  if (typeof lists?.forEach !== 'function')
    throw invalidOption('aggregate() expected a list of lists of metrics');
  lists.forEach(list => list.forEach(add));
  const registry = new Registry();
  registry.setContentType(contentType);
  for (const metrics of byName.values()) {
    const name = metrics[0].aggregator ?? 'sum';
    const aggregator = Object.hasOwn(aggregators, name) ? aggregators[name] : undefined;
    if (typeof aggregator !== 'function')
      throw invalidOption(`'${name}' is not a defined aggregator.`, Error);
    const metric = aggregator(metrics);
    if (!metric) continue;
    const native = metric.nativeHistograms && { [FAMILY]: nativeFamily };
    registry.registerMetric(/** @type {any} */ ({ get: () => metric, ...metric, ...native }));
  }
  return registry;
}

/**
 * @param {any} json of a native histogram
 * @returns {import('../exposition/text-format').Family | undefined} undefined if it is not valid
 */
function nativeFamily(json) {
  // Most programs have none, or do not aggregate in this process.
  const { ClusterStore } = require('../store/cluster-store');
  return new ClusterStore().familyOf(json)[0];
}

module.exports = { aggregateJson };
