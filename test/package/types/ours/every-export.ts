// Uses the exported names that neither additions.ts nor the snippets use (test/package/types.test.js checks
// that none is missing), each in the way that it is meant for.

import {
  AggregatedMetric,
  AggregatorFunction,
  AggregatorNames,
  AggregatorRegistry,
  AggregatorRegistryOptions,
  Bytes,
  ClusterMetricsBytesOptions,
  ClusterMetricsOptions,
  ClusterState,
  CollectFunction,
  Counter,
  CurriedCounter,
  CurriedGauge,
  CurriedHistogram,
  CurriedSummary,
  DefaultMetricsCollectorConfiguration,
  DisposableTimer,
  ErrorCode,
  Gauge,
  Histogram,
  IncreaseDataWithExemplar,
  MetricsFetchRequest,
  MetricsFetchResponse,
  MetricsFormat,
  MetricsHandlerOptions,
  MetricsRequest,
  MetricsResponse,
  MetricsServer,
  MetricsServerOptions,
  NativeHistogramValue,
  ObserveDataWithExemplar,
  OpenMetricsContentType,
  ProtobufContentType,
  Pushgateway,
  Registry,
  RemoteWrite,
  RemoteWriteOptions,
  RemoteWriteResult,
  RuntimeMetricName,
  Summary,
  WorkerRegistry,
  WorkerRegistryOptions,
  aggregators,
  collectDefaultMetrics,
  metricsHandler,
  metricsResponse,
  openMetricsContentType,
  prometheusContentType,
  startMetricsServer,
} from 'prom-client';

type Route = 'method' | 'path';

const protobuf: ProtobufContentType = Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE;
new Registry(protobuf).setContentType(protobuf);

// Metrics.
const increase: IncreaseDataWithExemplar<Route> = {
  labels: { path: '/' },
  exemplarLabels: { trace_id: 'x' },
};
const observation: ObserveDataWithExemplar<Route> = { ...increase, value: 1 };
function use(
  counter: Counter<Route>,
  gauge: Gauge<Route>,
  histogram: Histogram<Route>,
  summary: Summary<Route>,
): void {
  counter.inc(increase);
  histogram.observe(observation);
  const timer: DisposableTimer<() => number> = summary.startTimer(observation.labels);
  timer();
  const refresh: CollectFunction<Gauge<Route>> = function () {
    this.set({ path: '/' }, 1);
  };
  refresh.call(gauge);
  const curried: [CurriedCounter, CurriedGauge<'path'>, CurriedHistogram<'path'>, CurriedSummary<'path'>] = [
    new Counter({ name: 'c', help: 'help' }).curry({ any: 1 }),
    gauge.curry({ method: 'GET' }),
    histogram.curry({ method: 'GET' }),
    summary.curry({ method: 'GET' }),
  ];
  curried[1].set(
    { path: '/' },
    curried[2].time({ path: '/' }, () => 1),
  );
  histogram.get().then(({ nativeHistograms }) => {
    const series: NativeHistogramValue[] | undefined = nativeHistograms;
    console.log(series, curried[0].inc({ any: 1 }), curried[3].curry({ path: 1 }).observe(1));
  });
}
const code: ErrorCode = 'PROM_CLIENT_TIMEOUT';
console.log(use, code);

// A cluster.
const median: AggregatorFunction = metrics => {
  const [first]: AggregatedMetric[] = metrics;
  return first;
};
aggregators.median = median;
const names: keyof AggregatorNames = 'average';
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
const threadOptions: WorkerRegistryOptions = { timeout: 1000, inPlace: true, thread: 'file' };
const threads = new WorkerRegistry(prometheusContentType, true, threadOptions);
const threadPage: Promise<string> = threads.workerMetrics({ selfMetrics: true });
const threadBytes: Promise<Bytes> = threads.workerMetricsBytes({ gzip: true });
const threadCount: number = threads.workerCount() + WorkerRegistry.workerCount();
const scrape: ClusterMetricsOptions = { selfMetrics: true, timeout: 1000 };
const text: Promise<string> = cluster.clusterMetrics(scrape);
const scrapeOfBytes: ClusterMetricsBytesOptions = { ...scrape, gzip: true };
const bytes: Promise<Bytes> = cluster.clusterMetricsBytes(scrapeOfBytes);
const state: ClusterState | undefined = cluster.clusterState();
const ended: Promise<void> = cluster.shutdown(1000);

// Endpoints.
const formats: readonly MetricsFormat[] = ['text', 'openmetrics'];
const handlerOptions: MetricsHandlerOptions = { selfMetrics: false, formats, onError: console.error };
const handle: (request: MetricsRequest, response: MetricsResponse) => Promise<void> = metricsHandler(
  cluster,
  handlerOptions,
);
const fetched: MetricsFetchRequest = new Request('http://localhost/metrics');
const answered: Promise<MetricsFetchResponse> = metricsResponse(cluster, fetched, handlerOptions);
const registry = new Registry(openMetricsContentType);
const listening: MetricsServerOptions = { port: 9464, host: '::1', path: '/', registry, ...handlerOptions };
const server: Promise<MetricsServer> = startMetricsServer(listening);

// Default metrics, and pushes.
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
