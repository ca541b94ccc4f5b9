'use strict';

// How registries and the snapshot writer read a metric. These are registered symbols, because a registry may
// hold metrics of another copy of this package, and versioned, because that copy may be another release.

const { kindOfType } = require('../series/layouts');

const VIEW = Symbol.for('prom-client-cluster.metric-view.v1');

/** Property of a registry: its default labels. */
const DEFAULT_LABELS = Symbol.for('prom-client-cluster.default-labels.v1');

/**
 * Property of a registry: a function that writes its page in one or more formats, see Registry. Undefined if
 * a subclass or a spy replaces the rendering.
 */
const PAGES = Symbol.for('prom-client-cluster.pages.v1');

/** Property of a registry: its State, see registry.js. */
const REGISTRY_STATE = Symbol.for('prom-client-cluster.registry-state.v1');

/** Optional method of a metric: called by a registry that drops the metric. */
const REMOVED = Symbol.for('prom-client-cluster.removed.v1');

/**
 * Optional property of a registry: a function that is called after a metric was added, with that metric, and
 * after anything else of it has changed.
 */
const OBSERVER = Symbol.for('prom-client-cluster.observer.v1');

/** Optional property of a default metric: what it measures, see Measured. */
const MEASURED = Symbol.for('prom-client-cluster.measured.v1');

/**
 * Optional method of a custom metric object, which is then a native histogram: its JSON as a family, if it is
 * valid.
 */
const FAMILY = Symbol.for('prom-client-cluster.family.v1');

/** @typedef {import('../exposition/live-family').MetricView} MetricView */

/**
 * What a default metric measures. All copies of this package in a thread measure the same.
 *
 * @typedef {object} Measured
 * @property {boolean} ofProcess whether all threads of the process would measure the same
 * @property {Record<string, unknown>} labels of every sample
 * @property {boolean} isStopped whether its values are not updated any more
 */

/**
 * The view of a metric; undefined for a custom metric object and for a metric whose get() was replaced. These
 * are read through get().
 *
 * @param {any} metric
 * @returns {MetricView | undefined}
 */
function viewOf(metric) {
  return typeof metric[VIEW] === 'function' ? metric[VIEW]() : undefined;
}

/**
 * @param {any} registry
 * @returns {boolean} whether one of its metrics is a native histogram
 */
function hasNativeHistograms(registry) {
  return registry
    .getMetricsAsArray()
    .some(
      (/** @type {any} */ metric) =>
        kindOfType(metric.type).isCumulative &&
        (metric[FAMILY] !== undefined || viewOf(metric)?.buckets !== undefined),
    );
}

module.exports = {
  VIEW,
  DEFAULT_LABELS,
  PAGES,
  REGISTRY_STATE,
  REMOVED,
  OBSERVER,
  MEASURED,
  FAMILY,
  viewOf,
  hasNativeHistograms,
};
