// The files of prom-client that programs reach into: each is what the root has.
// test/package/packaging.test.js has every name, with and without extension.

import client = require('prom-client');
import index = require('prom-client/index');
import indexFile = require('prom-client/index.js');
import Registry = require('prom-client/lib/registry');
import RegistryFile = require('prom-client/lib/registry.js');
import Counter = require('prom-client/lib/counter');
import Gauge = require('prom-client/lib/gauge');
import Histogram = require('prom-client/lib/histogram');
import Summary = require('prom-client/lib/summary');
import AggregatorRegistry = require('prom-client/lib/cluster');
import Pushgateway = require('prom-client/lib/pushgateway');
import collectDefaultMetrics = require('prom-client/lib/defaultMetrics');
import bucketGenerators = require('prom-client/lib/bucketGenerators');
import metricAggregators = require('prom-client/lib/metricAggregators');
import validation = require('prom-client/lib/validation');
import util = require('prom-client/lib/util');
import gc = require('prom-client/lib/metrics/gc');
import heapSizeAndUsed = require('prom-client/lib/metrics/heapSizeAndUsed.js');

const roots: (typeof client)[] = [index, indexFile];
const registries: (typeof client.Registry)[] = [Registry, RegistryFile];
const counters: typeof client.Counter = Counter;
const gauges: typeof client.Gauge = Gauge;
const histograms: typeof client.Histogram = Histogram;
const summaries: typeof client.Summary = Summary;
const aggregatorRegistries: typeof client.AggregatorRegistry = AggregatorRegistry;
const gateways: typeof client.Pushgateway = Pushgateway;
const collectors: typeof client.collectDefaultMetrics = collectDefaultMetrics;

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
  .concat(bucketGenerators.exponentialBuckets(1, 2, 3));
const median = metricAggregators.AggregatorFactory(samples => samples[samples.length >> 1].value);
metricAggregators.aggregators.median = median;
const valid: boolean = validation.validateMetricName('n') && validation.validateLabelName(['a']);
validation.validateLabel(['a'], { a: 1 });
const key: string = util.hashObject({ a: 1 }) + util.hashObject({ a: 1 }, ['a']);
gc(registry, { prefix: 'a_', gcDurationBuckets: [1] });
heapSizeAndUsed();
const metricNames: string[] = [...gc.metricNames, ...heapSizeAndUsed.metricNames];
