'use strict';

// The public names, written out so that ES modules can import each by name.

const { Registry } = require('./lib/registry/registry');
const { Counter } = require('./lib/metric/counter');
const { Gauge } = require('./lib/metric/gauge');
const { Histogram } = require('./lib/metric/histogram');
const { Summary } = require('./lib/metric/summary');
const { linearBuckets, exponentialBuckets } = require('./lib/metric/bucket-generators');
const { isValidMetricName } = require('./lib/metric/names');
const { AggregatorRegistry } = require('./lib/cluster/aggregator-registry');
const { aggregators } = require('./lib/cluster/primary/json-aggregators');
const { Pushgateway } = require('./lib/http/pushgateway');
const collectDefaultMetrics = require('./lib/runtime/default-metrics');
const { metricsHandler } = require('./lib/http/metrics-handler');

exports.register = Registry.globalRegistry;
exports.Registry = Registry;
exports.prometheusContentType = Registry.PROMETHEUS_CONTENT_TYPE;
exports.openMetricsContentType = Registry.OPENMETRICS_CONTENT_TYPE;
exports.validateMetricName = isValidMetricName;
exports.Counter = Counter;
exports.Gauge = Gauge;
exports.Histogram = Histogram;
exports.Summary = Summary;
/** What `type` says of a metric. prom-client's types have an enum of this name, which is missing there at run time. */
exports.MetricType = Object.freeze({
  Counter: 'counter',
  Gauge: 'gauge',
  Histogram: 'histogram',
  Summary: 'summary',
});
exports.linearBuckets = linearBuckets;
exports.exponentialBuckets = exponentialBuckets;
exports.Pushgateway = Pushgateway;
exports.collectDefaultMetrics = collectDefaultMetrics;
exports.AggregatorRegistry = AggregatorRegistry;
exports.ClusterRegistry = AggregatorRegistry;
exports.aggregators = aggregators;
exports.metricsHandler = metricsHandler;

// Assigned first, and then defined by defineProperties(): the scanner by which ES modules find names sees no accessor,
// and takes back the name of one that defineProperty() makes. They get the format as it is when they are loaded.
exports.contentType = Registry.globalRegistry.contentType;
Object.defineProperties(exports, {
  /** The format of the global registry; setting it is `register.setContentType()`. */
  contentType: {
    enumerable: true,
    configurable: false,
    get: () => Registry.globalRegistry.contentType,
    set(contentType) {
      Registry.globalRegistry.setContentType(contentType);
    },
  },
});
