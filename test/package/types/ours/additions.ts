// What these types have beyond prom-client's.

import {
  Aggregator,
  AggregatorRegistry,
  ClusterRegistry,
  Counter,
  CurriedCounter,
  Exemplar,
  Gauge,
  Histogram,
  MetricObject,
  MetricType,
  OpenMetricsContentType,
  PrometheusContentType,
  Pushgateway,
  Registry,
  RegistryContentType,
  RuntimeMetricName,
  Summary,
  WorkerRegistry,
  aggregators,
  collectDefaultMetrics,
  metricsHandler,
  metricsResponse,
  openMetricsContentType,
  prometheusContentType,
  register,
  startMetricsServer,
} from 'prom-client';
import fastifyMetrics = require('prom-client/fastify');
import { assertMetrics, lint, samples, MetricsSource, Problem, Sample } from 'prom-client/testing';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import express = require('express');
import { fastify } from 'fastify';

/** Compiles where two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function assert<_T extends true>(): void {}

// A registry has the format that it is made with.
const openMetrics = new Registry(openMetricsContentType);
assert<Same<typeof openMetrics, Registry<OpenMetricsContentType>>>();
assert<Same<typeof openMetrics.contentType, OpenMetricsContentType>>();
const prometheus = new Registry();
assert<Same<typeof prometheus, Registry<PrometheusContentType>>>();
const byStatic = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
assert<Same<typeof byStatic, Registry<OpenMetricsContentType>>>();
assert<Same<typeof Registry.globalRegistry, Registry<PrometheusContentType>>>();
const shared = Registry.shared();
assert<Same<typeof shared, Registry>>();
const sharedOpenMetrics: Registry<OpenMetricsContentType> = Registry.shared('open-metrics');
new Pushgateway('http://127.0.0.1:9091', sharedOpenMetrics);
// @ts-expect-error: not a format
new Registry('text/plain');
register.setFormats(['text', 'openmetrics']);
// @ts-expect-error: not a list of formats
register.setFormats(['json']);
// @ts-expect-error: another format
const other: Registry<PrometheusContentType> = new Registry(openMetricsContentType);

const counter = new Counter({ name: 'c', help: 'help', labelNames: ['status'], registers: [openMetrics] });
const text: Promise<string> = openMetrics.getMetricsAsString(counter);
// @ts-expect-error: a metric, not a name
openMetrics.getMetricsAsString('c');
const sums: MetricObject[] = openMetrics.getMetricsAsArray('sum');
openMetrics.getMetricsAsJSON('sum').then(([{ values }]) => values);

// Labels of exemplars are others than those of the metric.
counter.inc({ labels: { status: 200 }, exemplarLabels: { trace_id: 'x' } });
// @ts-expect-error: no such label
counter.inc({ labels: { trace_id: 'x' }, exemplarLabels: { status: 200 } });
const histogram = new Histogram({ name: 'h', help: 'help', labelNames: ['status'] });
histogram.observe({ value: 1, labels: { status: 200 }, exemplarLabels: { trace_id: 'x' } });
histogram.startTimer({ status: 200 }, { trace_id: 'x' })({}, { span_id: 'y' });
counter.get().then(({ values }) => {
  const exemplar: Exemplar | null | undefined = values[0].exemplar;
  console.log(exemplar?.labelSet.trace_id, exemplar?.value.toFixed(), exemplar?.timestamp.toFixed());
});

// A limit on label sets.
const limited = [Counter, Gauge, Histogram, Summary].map(
  Type => new Type({ name: 'l', help: 'help', labelNames: ['status'], maxSeries: 100 }),
);
const overflows: (number | undefined)[] = limited.map(({ overflowCount }) => overflowCount);
new Counter({ name: 'l', help: 'help', maxSeries: Infinity });
// @ts-expect-error: not a number
new Counter({ name: 'l', help: 'help', maxSeries: '100' });
// @ts-expect-error: it cannot be set
counter.overflowCount = 0;

// Native histograms.
const native = new Histogram({
  name: 'nh',
  help: 'help',
  labelNames: ['status'],
  buckets: [],
  nativeHistogramBucketFactor: 1.1,
  nativeHistogramZeroThreshold: 1e-6,
  nativeHistogramMaxBucketNumber: 100,
  nativeHistogramMaxExemplars: 5,
  nativeHistogramExemplarTTL: 60,
});
const p99: number = native.quantile(0.99, { status: 200 }) + native.quantile(0.99);
// @ts-expect-error: no such label
native.quantile(0.99, { path: '/' });
// @ts-expect-error: not a number
new Histogram({ name: 'nh', help: 'help', nativeHistogramBucketFactor: '1.1' });
native.get().then(({ nativeHistograms }) => {
  const [series] = nativeHistograms ?? [];
  const lengths: number[] = series.positiveSpans.map(({ offset, length }) => offset + length);
  console.log(p99, lengths, series.zeroCount.toFixed(), series.exemplars[0].labelSet);
});

// Series that are read and removed.
const single: number | undefined = counter.value({ status: 200 });
const both: { count: number; sum: number } | undefined = histogram.value();
const removed: number = histogram.removeMatching({ status: 500 });
// @ts-expect-error: no such label
counter.removeMatching({ path: '/' });

// Labels that are bound early, and totals that are kept elsewhere.
const requests = new Counter({ name: 'r', help: 'help', labelNames: ['method', 'route', 'status'] as const });
const users: CurriedCounter<'status'> = requests.curry({ method: 'GET' }).curry({ route: '/users' });
users.inc({ status: 200 });
users.inc({ labels: { status: 200 }, value: 2, exemplarLabels: { trace_id: 'x' } });
users.labels('200').inc();
users.remove({ status: 200 });
const ofStatus: number | undefined = users.value({ status: 200 });
users.curry({ status: 200 }).inc();
users.setTotal({ status: 200 }, 5);
new Counter({ name: 's', help: 'help', enableExemplars: 'trace' }).setTotal(3);
// @ts-expect-error: bound already
users.inc({ method: 'PUT' });
// @ts-expect-error: bound already
users.curry({ method: 'PUT' });
// @ts-expect-error: no such label
requests.curry({ method: 'GET', path: '/' });
// @ts-expect-error: a total is needed
requests.setTotal({ status: 200 });
// @ts-expect-error: no such kind
new Counter({ name: 't', help: 'help', enableExemplars: 'span' });
new Gauge({ name: 'q', help: 'help', labelNames: ['queue', 'kind'] })
  .curry({ queue: 'mail' })
  .trackInProgress({ kind: 'html' }, () => 1);
const duration: number = new Histogram({ name: 'd', help: 'help', labelNames: ['a', 'b'] })
  .curry({ a: 1 })
  .startTimer({ b: 2 })();
new Summary({ name: 'e', help: 'help' }).curry({ any: 1 }).observe({ other: 2 }, duration + (ofStatus ?? 0));

// Stand-ins need not have them, and yet they are called like any other method.
class Fields {
  constructor(
    readonly counter: Counter<'status'>,
    readonly gauge: Gauge<'status'>,
    readonly histogram: Histogram<'status'>,
    readonly summary: Summary<'status'>,
    readonly registry: Registry,
  ) {}

  async use(): Promise<number> {
    const { counter, gauge, histogram, summary, registry } = this;
    const timed: number = histogram.time({ status: 200 }, () => 1) + summary.time(() => 2);
    const tracked: number = await gauge.trackInProgress({ status: 200 }, async () => 3);
    const values: (number | undefined)[] = [counter.value({ status: 200 }), gauge.value()];
    const distributions: ({ count: number; sum: number } | undefined)[] = [
      histogram.value(),
      summary.value({ status: 200 }),
    ];
    const optionally: number | undefined = counter.value?.({ status: 200 });
    registry.setFormats(['openmetrics']);
    registry.getOrCreate(Counter, { name: 'c', help: 'help', labelNames: ['status'] }).inc({ status: 200 });
    // @ts-expect-error: no such label
    counter.value({ path: '/' });
    // @ts-expect-error: a function is needed
    histogram.time({ status: 200 });
    // @ts-expect-error: the function's type
    const text: string = histogram.time(() => 1);
    // @ts-expect-error: not a list of formats
    registry.setFormats('openmetrics');
    console.log(values, distributions, optionally);
    return timed + tracked + histogram.removeMatching({});
  }
}

// Functions that are measured keep their types.
const gauge = new Gauge({ name: 'g', help: 'help', labelNames: ['queue'] });
const summary = new Summary({ name: 's', help: 'help', labelNames: ['queue'] });
const answer: number = histogram.time({ status: 200 }, () => 42);
const later: Promise<string> = summary.time(async () => 'done');
const tracked: Promise<string> = gauge.trackInProgress({ queue: 'mail' }, async () => 'done');
// @ts-expect-error: no function
histogram.time({ status: 200 });
// @ts-expect-error: no such label
gauge.trackInProgress({ status: 200 }, () => 1);
{
  using total = histogram.startTimer({ status: 200 });
  using exemplary = histogram.startTimer({ status: 200 }, { trace_id: 'x' });
  using inQueue = gauge.startTimer();
  using inSummary = summary.startTimer();
  const seconds: number = total({ status: 200 }) + inQueue() + inSummary();
  exemplary({}, { span_id: 'y' });
  console.log(seconds);
}

// Metrics that may exist.
const existing = prometheus.getOrCreate(Counter, { name: 'k', help: 'help', labelNames: ['status'] });
existing.inc({ status: 200 });
const existingValue: number | undefined = existing.value({ status: 200 });
// @ts-expect-error: no such label
existing.inc({ path: '/' });
prometheus.getOrCreate(Gauge, { name: 'kg', help: 'help' }).set(1);
prometheus.getOrCreate(Histogram, { name: 'kh', help: 'help', buckets: [1] }).zero({});
prometheus.getOrCreate(Summary, { name: 'ks', help: 'help', percentiles: [0.5] }).observe(1);
class Requests extends Counter<'status'> {
  served(): void {
    this.inc({ status: 200 });
  }
}
prometheus.getOrCreate(Requests, { name: 'r', help: 'help', labelNames: ['status'] }).served();

// A type of metric is its name.
const gaugeType: MetricType = 'gauge';
assert<Same<MetricType, 'counter' | 'gauge' | 'histogram' | 'summary'>>();
function isDistribution({ type }: MetricObject): boolean {
  return type === 'summary' || type === MetricType.Histogram;
}
// @ts-expect-error: no such type
const noType: MetricType = 'untyped';

// Aggregators of one's own.
assert<Same<Aggregator, 'sum' | 'first' | 'min' | 'max' | 'average' | 'omit'>>();
aggregators.median = metrics => {
  const [{ name, help, type, values }] = metrics;
  const sorted = metrics.flatMap(metric => metric.values.map(({ value }) => value)).sort((a, b) => a - b);
  return { name, help, type, values: [{ value: sorted[sorted.length >> 1], labels: values[0].labels }] };
};
openMetrics.getMetricsAsJSON().then(json => aggregators.sum(json)?.values[0].metricName);

// The cluster.
const cluster = new AggregatorRegistry(openMetricsContentType, { timeout: 1000 });
assert<Same<typeof cluster, AggregatorRegistry<OpenMetricsContentType>>>();
const anyFormat: AggregatorRegistry = new AggregatorRegistry();
assert<Same<typeof anyFormat, AggregatorRegistry<RegistryContentType>>>();
const alias: AggregatorRegistry<PrometheusContentType> = new ClusterRegistry(prometheusContentType);
new AggregatorRegistry(undefined, { directory: '/tmp', retiredMaxAge: 0, inPlace: true });
new AggregatorRegistry({ timeout: 100, formats: ['text', 'openmetrics'] });
new WorkerRegistry(undefined, true, { formats: ['openmetrics'] });
new WorkerRegistry({ timeout: 100 });
new WorkerRegistry({ timeout: 100 }, true);
const threads = new WorkerRegistry(openMetricsContentType, { timeout: 100 });
assert<Same<typeof threads, WorkerRegistry<OpenMetricsContentType>>>();
// @ts-expect-error: not an option
new WorkerRegistry({ timout: 100 });
new AggregatorRegistry(undefined, null);
cluster.removeMatching({ tenant: 'a' }, 'requests_total').then(count => count.toFixed());
new AggregatorRegistry(undefined, { thread: new URL('file:///thread.js') });
new AggregatorRegistry(undefined, { thread: '/thread.js' });
// @ts-expect-error: not an option
new AggregatorRegistry({ timout: 100 });
// @ts-expect-error: not an option
new AggregatorRegistry(prometheusContentType, { dir: '/tmp' });
async function scrape(): Promise<void> {
  // A Buffer, since the types of Node.js are there.
  const buffer: Buffer = await cluster.clusterMetricsBytes({ gzip: true, timeout: 100 });
  const latin1: string = buffer.toString('latin1');
  await cluster.clusterMetricsBytes();
  const milliseconds: number = cluster.timeout;
  const directory: string | undefined = cluster.clusterState()?.directory;
  await cluster.close();
  console.log(latin1, buffer, milliseconds, directory);
}
const aggregated = AggregatorRegistry.aggregate([], openMetricsContentType);
assert<Same<typeof aggregated, Registry<OpenMetricsContentType>>>();

// The handler, wherever requests come from.
const handle = metricsHandler(prometheus);
http.createServer(handle);
http.createServer(metricsHandler(cluster)).listen(0);
https.createServer({}, metricsHandler(openMetrics));
http2.createServer(handle);
express().get('/metrics', handle);
const application = fastify();
application.get('/metrics', (request, reply) => {
  reply.hijack();
  return handle(request.raw, reply.raw);
});
application.register(fastifyMetrics, { registry: cluster, path: '/m', formats: ['openmetrics'] });
application.register(fastifyMetrics);
// @ts-expect-error: not a registry
metricsHandler(counter);
// @ts-expect-error: not a format
metricsHandler(cluster, { formats: ['json'] });
async function respond(request: Request): Promise<Response> {
  return metricsResponse(register, request, { formats: ['text', 'openmetrics'], onError: console.error });
}
// @ts-expect-error: not a Request
metricsResponse(register, new http.IncomingMessage(undefined as any));
async function listen(): Promise<http.Server> {
  const server = await startMetricsServer({ port: Number(process.env.PORT), registry: cluster });
  server.unref();
  return server;
}
// @ts-expect-error: a port is needed
startMetricsServer({});
const compressedPage: Promise<Buffer> = register.metricsBytes({ gzip: true });

// Default metrics can be stopped.
const stop: () => void = collectDefaultMetrics({ register: openMetrics, enableExemplars: true });
stop();
collectDefaultMetrics(null)();
const stopLater = collectDefaultMetrics<PrometheusContentType>();
process.once('exit', () => stopLater());
process.once('exit', collectDefaultMetrics());
const perhaps: (() => void) | undefined = collectDefaultMetrics();
// @ts-expect-error: a function
const notText: string = collectDefaultMetrics();
collectDefaultMetrics({ runtime: true, eventLoopDelayBuckets: [0.01, 0.1] });
collectDefaultMetrics({ runtime: ['gc', 'eventLoopDelay'] as const });
const families: RuntimeMetricName[] = collectDefaultMetrics.runtimeMetricsList;
collectDefaultMetrics({ runtime: families });
for (const family of collectDefaultMetrics.runtimeMetricsList) console.log(family.length);
const lengths: number[] = collectDefaultMetrics.runtimeMetricsList.map(({ length }) => length);
// @ts-expect-error there is no such family
collectDefaultMetrics({ runtime: ['activeResources'] });

// For tests.
const page = '# HELP a help';
const source: MetricsSource = page;
async function test(): Promise<string[]> {
  const all: Sample[] = await samples(prometheus);
  await assertMetrics(openMetrics, page, ['a', 'b']);
  await assertMetrics(cluster, page, 'a');
  const problems: Problem[] = await lint(source);
  return [...all.map(({ labels }) => labels.status), ...problems.map(({ text }) => text)];
}

// A Pushgateway takes its registry without options.
const gateway = new Pushgateway('http://127.0.0.1:9091', openMetrics);
assert<Same<typeof gateway, Pushgateway<OpenMetricsContentType>>>();
