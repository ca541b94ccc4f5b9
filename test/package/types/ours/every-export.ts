// Uses every name that the types export (test/package/types.test.js checks that none is missing here), each
// in the way that it is meant for.

import {
  AggregatedMetric,
  Aggregator,
  AggregatorFunction,
  AggregatorNames,
  AggregatorRegistry,
  AggregatorRegistryOptions,
  Bytes,
  Charset,
  ClusterMetricsBytesOptions,
  ClusterMetricsOptions,
  ClusterRegistry,
  ClusterState,
  CollectFunction,
  Collector,
  Counter,
  CounterConfiguration,
  CurriedCounter,
  CurriedGauge,
  CurriedHistogram,
  CurriedSummary,
  DefaultMetricsCollectorConfiguration,
  DisposableTimer,
  ErrorCode,
  Exemplar,
  Gauge,
  GaugeConfiguration,
  Histogram,
  HistogramConfiguration,
  IncreaseDataWithExemplar,
  LabelValues,
  Metric,
  MetricConfiguration,
  MetricObject,
  MetricObjectWithValues,
  MetricType,
  MetricValue,
  MetricValueWithName,
  NativeHistogramValue,
  MetricsFetchRequest,
  MetricsFetchResponse,
  MetricsFormat,
  MetricsHandlerOptions,
  MetricsRequest,
  MetricsResponse,
  MetricsServer,
  MetricsServerOptions,
  ObserveDataWithExemplar,
  OpenMetricsContentType,
  OpenMetricsMIME,
  OpenMetricsVersion,
  PrometheusContentType,
  PrometheusMIME,
  PrometheusMetricsVersion,
  ProtobufContentType,
  Pushgateway,
  Registry,
  RegistryContentType,
  RemoteWrite,
  RemoteWriteOptions,
  RemoteWriteResult,
  RuntimeMetricName,
  Summary,
  SummaryConfiguration,
  WorkerRegistry,
  WorkerRegistryOptions,
  aggregators,
  collectDefaultMetrics,
  contentType,
  exponentialBuckets,
  linearBuckets,
  metricsHandler,
  metricsResponse,
  openMetricsContentType,
  prometheusContentType,
  register,
  startMetricsServer,
  validateMetricName,
} from 'prom-client';

type Route = 'method' | 'path';

// Formats.
const charset: Charset = 'utf-8';
const prometheusMime: PrometheusMIME = 'text/plain';
const prometheusVersion: PrometheusMetricsVersion = '0.0.4';
const openMetricsMime: OpenMetricsMIME = 'application/openmetrics-text';
const openMetricsVersion: OpenMetricsVersion = '1.0.0';
const prometheusText: PrometheusContentType = `${prometheusMime}; version=${prometheusVersion}; charset=${charset}`;
const openMetricsText: OpenMetricsContentType = `${openMetricsMime}; version=${openMetricsVersion}; charset=${charset}`;
const protobuf: ProtobufContentType = Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE;
new Registry(protobuf).setContentType(protobuf);
const formats: RegistryContentType[] = [
  prometheusText,
  openMetricsText,
  contentType,
  prometheusContentType,
  openMetricsContentType,
];

// Metrics.
const configuration: MetricConfiguration<Route> = {
  name: 'n',
  help: 'help',
  labelNames: ['method', 'path'],
  aggregator: 'sum',
};
const counterConfiguration: CounterConfiguration<Route> = { ...configuration, enableExemplars: true };
const gaugeConfiguration: GaugeConfiguration<Route> = { ...configuration };
const histogramConfiguration: HistogramConfiguration<Route> = {
  ...configuration,
  buckets: [...linearBuckets(1, 1, 3), ...exponentialBuckets(4, 2, 3)],
};
const summaryConfiguration: SummaryConfiguration<Route> = { ...configuration, percentiles: [0.5] };
const labels: LabelValues<Route> = { method: 'GET' };
const increase: IncreaseDataWithExemplar<Route> = { labels, exemplarLabels: { trace_id: 'x' } };
const observation: ObserveDataWithExemplar<Route> = { labels, value: 1, exemplarLabels: { trace_id: 'x' } };
const counter: Counter<Route> = new Counter(counterConfiguration);
counter.inc(increase);
const gauge: Gauge<Route> = new Gauge(gaugeConfiguration);
gauge.set(labels, 1);
const histogram: Histogram<Route> = new Histogram(histogramConfiguration);
histogram.observe(observation);
const summary: Summary<Route> = new Summary(summaryConfiguration);
const timer: DisposableTimer<() => number> = summary.startTimer(labels);
timer();
summary.observe(labels, 1);
const all: Metric<Route>[] = [counter, gauge, histogram, summary];
interface Curried {
  counter: CurriedCounter;
  gauge: CurriedGauge<'a'>;
  histogram: CurriedHistogram<'a'>;
  summary: CurriedSummary<'a'>;
}
function useCurried({ counter, gauge, histogram, summary }: Curried): void {
  counter.inc({ any: 1 });
  gauge.set(
    { a: 1 },
    histogram.time({ a: 1 }, () => 1),
  );
  summary.curry({ a: 1 }).observe(1);
}
console.log(useCurried);

const code: ErrorCode = 'PROM_CLIENT_TIMEOUT';
console.log(code);

const refresh: CollectFunction<Gauge<Route>> = function () {
  this.set({ path: '/' }, 1);
};
new Gauge({ name: 'refreshed', help: 'help', labelNames: ['method', 'path'], collect: refresh });
const collector: Collector = () => refresh.call(gauge);

// Registries.
const registry = new Registry(openMetricsContentType);
if (validateMetricName('n')) registry.registerMetric(counter);
async function read(): Promise<MetricObject[]> {
  const json: MetricObjectWithValues<MetricValue<string>>[] = await register.getMetricsAsJSON();
  const samples: MetricValueWithName<Route>[] = (await histogram.get()).values;
  const series: NativeHistogramValue[] | undefined = (await histogram.get()).nativeHistograms;
  const exemplars: (Exemplar | null | undefined)[] = samples.map(({ exemplar }) => exemplar);
  const types: MetricType[] = json.map(({ type }) => type);
  console.log(exemplars, series, types, formats, all, collector);
  return register.getMetricsAsArray();
}

// A cluster.
const median: AggregatorFunction = metrics => {
  const [first]: AggregatedMetric[] = metrics;
  return first;
};
aggregators.median = median;
const name: Aggregator = 'average';
const builtIn: AggregatorFunction = aggregators[name];
const names: keyof AggregatorNames = name;
const options: AggregatorRegistryOptions = {
  timeout: 1000,
  directory: '/tmp',
  retiredMaxAge: 1000,
  inPlace: true,
  includePrimary: true,
  checkpointInterval: 1000,
  activeSeries: true,
};
const cluster = new AggregatorRegistry(prometheusContentType, options);
const byItsOtherName: ClusterRegistry<PrometheusContentType> = new ClusterRegistry(prometheusContentType);
const threadOptions: WorkerRegistryOptions = {
  timeout: 1000,
  inPlace: true,
  thread: 'file',
};
const threads = new WorkerRegistry(prometheusContentType, true, threadOptions);
const threadPage: Promise<string> = threads.workerMetrics({ selfMetrics: true });
const threadBytes: Promise<Bytes> = threads.workerMetricsBytes({ gzip: true });
const threadCount: number = threads.workerCount() + WorkerRegistry.workerCount();
const scrape: ClusterMetricsOptions = { selfMetrics: true, timeout: 1000 };
const text: Promise<string> = cluster.clusterMetrics(scrape);
const scrapeOfBytes: ClusterMetricsBytesOptions = { ...scrape, gzip: true };
const bytes: Promise<Bytes> = cluster.clusterMetricsBytes(scrapeOfBytes);
const state: ClusterState | undefined = cluster.clusterState();
const textFormats: readonly MetricsFormat[] = ['text', 'openmetrics'];
const shownWith: MetricsHandlerOptions = {
  selfMetrics: false,
  formats: textFormats,
  onError: error => console.error(error.message),
};
const handle: (request: MetricsRequest, response: MetricsResponse) => Promise<void> = metricsHandler(
  cluster,
  shownWith,
);
const fetched: MetricsFetchRequest = new Request('http://localhost/metrics');
const answered: Promise<MetricsFetchResponse> = metricsResponse(cluster, fetched, shownWith);
const listening: MetricsServerOptions = { port: 9464, host: '::1', path: '/', registry, ...shownWith };
const server: Promise<MetricsServer> = startMetricsServer(listening);
const ended: Promise<void> = cluster.shutdown(1000);

// Default metrics and the Pushgateway.
const runtime: readonly RuntimeMetricName[] = collectDefaultMetrics.runtimeMetricsList;
const defaultMetrics: DefaultMetricsCollectorConfiguration<OpenMetricsContentType> = {
  register: registry,
  runtime,
};
const stop: () => void = collectDefaultMetrics(defaultMetrics);
const remoteOptions: RemoteWriteOptions = {
  labels: { instance: 'box-1', job: 'shop' },
  headers: { Authorization: 'Bearer token' },
  timeout: 1000,
  retries: 2,
  protocol: '2.0',
};
const remoteWrite = new RemoteWrite('http://127.0.0.1:9090/api/v1/write', remoteOptions, registry);
remoteWrite.start({ interval: 5000 });
const remoteResult: Promise<RemoteWriteResult> = remoteWrite.push();
const remoteEnd: Promise<void> = remoteWrite.stop();
const gateway = new Pushgateway('http://127.0.0.1:9091', registry);
