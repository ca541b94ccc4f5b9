'use strict';

// The public names, written out so that ES modules can import each by name.

const { Registry } = require('./lib/registry/registry');
const { Counter } = require('./lib/metric/counter');
const { Gauge } = require('./lib/metric/gauge');
const { Histogram } = require('./lib/metric/histogram');
const { Summary } = require('./lib/metric/summary');
const { linearBuckets, exponentialBuckets } = require('./lib/metric/bucket-generators');
const { isValidMetricName } = require('./lib/registry/names');
const { AggregatorRegistry } = require('./lib/cluster/aggregator-registry');
const { WorkerRegistry } = require('./lib/threads/worker-registry');
const { aggregators } = require('./lib/cluster/primary/json-aggregators');
const { Pushgateway } = require('./lib/http/pushgateway');
const { RemoteWrite } = require('./lib/push/remote-write');
const collectDefaultMetrics = require('./lib/runtime/default-metrics');
const { metricsHandler } = require('./lib/http/metrics-handler');
const { metricsResponse } = require('./lib/http/metrics-response');
const { startMetricsServer } = require('./lib/http/metrics-server');

exports.register = Registry.globalRegistry;
exports.Registry = Registry;
exports.prometheusContentType = Registry.PROMETHEUS_CONTENT_TYPE;
exports.openMetricsContentType = Registry.OPENMETRICS_CONTENT_TYPE;
exports.validateMetricName = isValidMetricName;
exports.Counter = Counter;
exports.Gauge = Gauge;
exports.Histogram = Histogram;
exports.Summary = Summary;
/** The values of a metric's `type`. prom-client declares an enum of this name in its types only. */
exports.MetricType = Object.freeze({
  Counter: 'counter',
  Gauge: 'gauge',
  Histogram: 'histogram',
  Summary: 'summary',
});
exports.linearBuckets = linearBuckets;
exports.exponentialBuckets = exponentialBuckets;
exports.Pushgateway = Pushgateway;
exports.RemoteWrite = RemoteWrite;
exports.collectDefaultMetrics = collectDefaultMetrics;
exports.AggregatorRegistry = AggregatorRegistry;
exports.ClusterRegistry = AggregatorRegistry;
exports.WorkerRegistry = WorkerRegistry;
exports.aggregators = aggregators;
exports.metricsHandler = metricsHandler;
exports.metricsResponse = metricsResponse;
exports.startMetricsServer = startMetricsServer;

// Assigned first, then redefined by defineProperties(): the scanner that finds the names for ES modules does
// not see an accessor, and drops a name that defineProperty() redefines. ES modules get the value at the time
// they are loaded.
exports.contentType = Registry.globalRegistry.contentType;
Object.defineProperties(exports, {
  /** The format of the global registry. Assigning to it calls `register.setContentType()`. */
  contentType: {
    enumerable: true,
    configurable: false,
    get: () => Registry.globalRegistry.contentType,
    set(contentType) {
      Registry.globalRegistry.setContentType(contentType);
    },
  },
});
