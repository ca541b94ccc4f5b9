// Compiles with the types of prom-client 15.1.3 and with ours: registries, formats, the cluster, default
// metrics, the Pushgateway.

import {
  AggregatorRegistry,
  Aggregator,
  Charset,
  Collector,
  Counter,
  DefaultMetricsCollectorConfiguration,
  Gauge,
  Metric,
  MetricType,
  OpenMetricsContentType,
  OpenMetricsMIME,
  OpenMetricsVersion,
  PrometheusContentType,
  PrometheusMIME,
  PrometheusMetricsVersion,
  Pushgateway,
  Registry,
  RegistryContentType,
  collectDefaultMetrics,
  contentType,
  openMetricsContentType,
  prometheusContentType,
  register,
} from 'prom-client';

// Formats.
const charset: Charset = 'utf-8';
const prometheusMime: PrometheusMIME = 'text/plain';
const prometheusVersion: PrometheusMetricsVersion = '0.0.4';
const openMetricsMime: OpenMetricsMIME = 'application/openmetrics-text';
const openMetricsVersion: OpenMetricsVersion = '1.0.0';
const prometheusText: PrometheusContentType = `${prometheusMime}; version=${prometheusVersion}; charset=${charset}`;
const openMetricsText: OpenMetricsContentType = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const either: RegistryContentType[] = [prometheusText, openMetricsText, contentType];
const both: [PrometheusContentType, OpenMetricsContentType] = [prometheusContentType, openMetricsContentType];
// @ts-expect-error: not a format
const noFormat: RegistryContentType = 'text/plain';
const unused: unknown[] = [openMetricsMime, openMetricsVersion, either, both, noFormat];

// Registries.
const registry = new Registry();
const byDefault: Registry<PrometheusContentType> = registry;
registry.setContentType(Registry.PROMETHEUS_CONTENT_TYPE);
// @ts-expect-error: this registry writes Prometheus text
registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
const openMetrics = new Registry<OpenMetricsContentType>();
openMetrics.setContentType(openMetricsContentType);
const fromContext: Registry<OpenMetricsContentType> = new Registry();
// @ts-expect-error: another format
const otherFormat: Registry<PrometheusContentType> = openMetrics;
const format: 'text/plain; version=0.0.4; charset=utf-8' = register.contentType;

const counter = new Counter({
  name: 'c',
  help: 'help',
  labelNames: ['a'],
  registers: [registry, openMetrics],
});
new Gauge({ name: 'g', help: 'help', registers: [] });
registry.registerMetric(counter);
registry.removeSingleMetric('c');
registry.clear();
registry.resetMetrics();
registry.setDefaultLabels({ service: 'api' });
const merged: Registry = Registry.merge([registry, register]);
// @ts-expect-error: not a registry
Registry.merge(['name']);
// @ts-expect-error: names are text
registry.getSingleMetric(1);

const found: Metric<string> | undefined = registry.getSingleMetric('c');
const gaugeAgain = registry.getSingleMetric('g') as Gauge<string>;
gaugeAgain.set({ any: 1 }, 2);
const typed = registry.getSingleMetric<'a'>('c') as Counter<'a'>;
typed.inc({ a: 1 });
if (found instanceof Counter) found.inc();

async function read(): Promise<string> {
  const json = await registry.getMetricsAsJSON();
  for (const { name, help, type, aggregator, values } of json) {
    console.log(name, help, String(type), aggregator, values[0].value, values[0].labels.a);
  }
  for (const { name, collect } of registry.getMetricsAsArray()) console.log(name, collect);
  return (await registry.metrics()) + (await registry.getSingleMetricAsString('c'));
}

class ServiceRegistry extends Registry {
  constructor(readonly service: string) {
    super();
    this.setDefaultLabels({ service });
  }

  override async metrics(): Promise<string> {
    return `# ${this.service}\n${await super.metrics()}`;
  }
}
const subclass: Registry = new ServiceRegistry('api');
new Counter({ name: 'c2', help: 'help', registers: [new ServiceRegistry('api')] });

// Types of metrics and aggregators.
const aggregator: Aggregator = 'average';
const ofType: MetricType = MetricType.Gauge;
function isCounter(type: MetricType): boolean {
  return type === MetricType.Counter;
}
function describe(type: MetricType): string {
  switch (type) {
    case MetricType.Counter:
    case MetricType.Gauge:
      return 'one value';
    case MetricType.Histogram:
    case MetricType.Summary:
      return 'many values';
  }
}
const onlyHistograms: MetricType.Histogram = MetricType.Histogram;
const counters = registry.getMetricsAsArray().filter(metric => metric.type === MetricType.Counter);
const collector: Collector = () => {};

// A cluster.
const cluster = new AggregatorRegistry();
const ofFormat: AggregatorRegistry<PrometheusContentType> = new AggregatorRegistry();
const inferred: AggregatorRegistry<RegistryContentType> = cluster;
async function scrape(): Promise<void> {
  const text: string = await cluster.clusterMetrics();
  const explicitly = new AggregatorRegistry<OpenMetricsContentType>();
  explicitly.setContentType(openMetricsContentType);
  console.log(text, cluster.contentType, await explicitly.metrics());
}
AggregatorRegistry.setRegistries(registry);
AggregatorRegistry.setRegistries(openMetrics);
AggregatorRegistry.setRegistries([registry, openMetrics]);
// @ts-expect-error: not a registry
AggregatorRegistry.setRegistries('registry');
const aggregated: Registry<PrometheusContentType> = AggregatorRegistry.aggregate([[], []]);
const aggregatedOpenly = AggregatorRegistry.aggregate<OpenMetricsContentType>([]);
const alsoStatic: Registry = AggregatorRegistry.merge([registry]);

// Default metrics.
collectDefaultMetrics();
collectDefaultMetrics({});
collectDefaultMetrics({ register: registry, prefix: 'app_', labels: { service: 'api' } });
collectDefaultMetrics({ register: openMetrics, gcDurationBuckets: [0.1], eventLoopMonitoringPrecision: 5 });
collectDefaultMetrics<PrometheusContentType>({ register: registry });
const configuration: DefaultMetricsCollectorConfiguration<PrometheusContentType> = { register };
collectDefaultMetrics(configuration);
const list: string[] = collectDefaultMetrics.metricsList;
const asCollector: Collector = collectDefaultMetrics;
// @ts-expect-error: an option that went with prom-client 12
collectDefaultMetrics({ timeout: 5000 });

// The Pushgateway.
const gateway = new Pushgateway('http://127.0.0.1:9091');
const withOptions = new Pushgateway('http://127.0.0.1:9091', { timeout: 5000, headers: { a: 'b' } });
const withAll = new Pushgateway('http://127.0.0.1:9091', { requireJobName: false }, registry);
const withoutOptions = new Pushgateway('http://127.0.0.1:9091', undefined, openMetrics);
const explicit: Pushgateway<PrometheusContentType> = new Pushgateway<PrometheusContentType>('', [], registry);
declare const anyOptions: any;
const withAny: Pushgateway<PrometheusContentType> = new Pushgateway('', anyOptions);
const parameters: Pushgateway.Parameters = { jobName: 'job', groupings: { instance: 'a' } };
async function push(): Promise<void> {
  const { resp, body } = await gateway.push(parameters);
  await gateway.pushAdd({ jobName: 'job' }).then(({ resp, body }) => console.log(resp, body));
  await gateway.delete(parameters);
  // @ts-expect-error: no jobName
  await gateway.push({});
  console.log(resp as object, body as string, withOptions, withAll, withoutOptions, explicit, withAny);
}
