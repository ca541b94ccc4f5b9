'use strict';

// How a metric shows its insides to the registry and to the snapshot writer. A registered symbol, because a registry
// may hold metrics of another copy of this package; versioned, because that copy may be another release.

const VIEW = Symbol.for('prom-client-cluster.metric-view.v1');

/** The default labels of a registry, by the same token. */
const DEFAULT_LABELS = Symbol.for('prom-client-cluster.default-labels.v1');

/** A registry's page as bytes. */
const METRICS_BYTES = Symbol.for('prom-client-cluster.metrics-bytes.v1');

/** Where a metric has this method, a registry that drops the metric calls it. */
const REMOVED = Symbol.for('prom-client-cluster.removed.v1');

/** @typedef {import('../exposition/live-family').MetricView} MetricView */

/**
 * The inside of a metric, or undefined for somebody's own metric object and for a metric whose get() was replaced:
 * these are read through get().
 *
 * @param {any} metric
 * @returns {MetricView | undefined}
 */
function viewOf(metric) {
  return typeof metric[VIEW] === 'function' ? metric[VIEW]() : undefined;
}

module.exports = { VIEW, DEFAULT_LABELS, METRICS_BYTES, REMOVED, viewOf };
