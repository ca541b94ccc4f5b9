'use strict';

// How registries and the snapshot writer read a metric. These are registered symbols, because a registry may
// hold metrics of another copy of this package, and versioned, because that copy may be another release.

const VIEW = Symbol.for('prom-client-cluster.metric-view.v1');

/** Property of a registry: its default labels. */
const DEFAULT_LABELS = Symbol.for('prom-client-cluster.default-labels.v1');

/** Method of a registry: its page as bytes. */
const METRICS_BYTES = Symbol.for('prom-client-cluster.metrics-bytes.v1');

/** Optional method of a metric: called by a registry that drops the metric. */
const REMOVED = Symbol.for('prom-client-cluster.removed.v1');

/** @typedef {import('../exposition/live-family').MetricView} MetricView */

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

module.exports = { VIEW, DEFAULT_LABELS, METRICS_BYTES, REMOVED, viewOf };
