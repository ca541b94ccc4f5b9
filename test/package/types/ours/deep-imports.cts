// The files of prom-client that programs reach into, with and without extension: each is what the root has.

import client = require('prom-client');
import index = require('prom-client/index');
import indexFile = require('prom-client/index.js');
import Registry = require('prom-client/lib/registry');
import RegistryFile = require('prom-client/lib/registry.js');
import Counter = require('prom-client/lib/counter');
import CounterFile = require('prom-client/lib/counter.js');
import Gauge = require('prom-client/lib/gauge');
import GaugeFile = require('prom-client/lib/gauge.js');
import Histogram = require('prom-client/lib/histogram');
import HistogramFile = require('prom-client/lib/histogram.js');
import Summary = require('prom-client/lib/summary');
import SummaryFile = require('prom-client/lib/summary.js');
import AggregatorRegistry = require('prom-client/lib/cluster');
import AggregatorRegistryFile = require('prom-client/lib/cluster.js');
import Pushgateway = require('prom-client/lib/pushgateway');
import PushgatewayFile = require('prom-client/lib/pushgateway.js');
import collectDefaultMetrics = require('prom-client/lib/defaultMetrics');
import collectDefaultMetricsFile = require('prom-client/lib/defaultMetrics.js');
import bucketGenerators = require('prom-client/lib/bucketGenerators');
import bucketGeneratorsFile = require('prom-client/lib/bucketGenerators.js');
import metricAggregators = require('prom-client/lib/metricAggregators');
import metricAggregatorsFile = require('prom-client/lib/metricAggregators.js');
import validation = require('prom-client/lib/validation');
import validationFile = require('prom-client/lib/validation.js');
import util = require('prom-client/lib/util');
import utilFile = require('prom-client/lib/util.js');
import gc = require('prom-client/lib/metrics/gc');
import heapSizeAndUsed = require('prom-client/lib/metrics/heapSizeAndUsed.js');

const roots: (typeof client)[] = [index, indexFile];
const registries: (typeof client.Registry)[] = [Registry, RegistryFile];
const counters: (typeof client.Counter)[] = [Counter, CounterFile];
const gauges: (typeof client.Gauge)[] = [Gauge, GaugeFile];
const histograms: (typeof client.Histogram)[] = [Histogram, HistogramFile];
const summaries: (typeof client.Summary)[] = [Summary, SummaryFile];
const aggregatorRegistries: (typeof client.AggregatorRegistry)[] = [
  AggregatorRegistry,
  AggregatorRegistryFile,
];
const gateways: (typeof client.Pushgateway)[] = [Pushgateway, PushgatewayFile];
const collectors: (typeof client.collectDefaultMetrics)[] = [
  collectDefaultMetrics,
  collectDefaultMetricsFile,
];

const registry: Registry = Registry.globalRegistry;
const counter: Counter<'a'> = new Counter({
  name: 'c',
  help: 'help',
  labelNames: ['a'],
  registers: [registry],
});
const child: Counter.Internal = counter.labels('x');
const buckets: number[] = bucketGenerators
  .linearBuckets(1, 1, 1)
  .concat(bucketGeneratorsFile.exponentialBuckets(1, 2, 3));
const median = metricAggregators.AggregatorFactory(samples => samples[samples.length >> 1].value);
metricAggregatorsFile.aggregators.median = median;
const valid: boolean = validation.validateMetricName('n') && validationFile.validateLabelName(['a']);
validation.validateLabel(['a'], { a: 1 });
const key: string = util.hashObject({ a: 1 }) + utilFile.hashObject({ a: 1 }, ['a']);
gc(registry, { prefix: 'a_', gcDurationBuckets: [1] });
heapSizeAndUsed();
const metricNames: string[] = [...gc.metricNames, ...heapSizeAndUsed.metricNames];
