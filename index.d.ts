// Types of the public interface. Programs that compile with prom-client 15.1.3 compile with these, so they
// have the harmless gaps and errors of prom-client's types, too (the `any` of Pushgateway's options,
// children's timers). The types of Node.js are not needed.

// --------------------------------------------------------------------------------------------- content types

export type Charset = 'utf-8';

export type PrometheusMIME = 'text/plain';
export type PrometheusMetricsVersion = '0.0.4';
export type PrometheusContentType =
  `${PrometheusMIME}; version=${PrometheusMetricsVersion}; charset=${Charset}`;

export type OpenMetricsMIME = 'application/openmetrics-text';
export type OpenMetricsVersion = '1.0.0';
export type OpenMetricsContentType = `${OpenMetricsMIME}; version=${OpenMetricsVersion}; charset=${Charset}`;

/** Content-Type of the protobuf format, the only one with native histograms. */
export type ProtobufContentType =
  'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited';

/** The formats that a registry can write. */
export type RegistryContentType = PrometheusContentType | OpenMetricsContentType | ProtobufContentType;

/** Content-Type of the Prometheus text format, the default. */
export const prometheusContentType: PrometheusContentType;

/** Content-Type of OpenMetrics text, the text format with exemplars. */
export const openMetricsContentType: OpenMetricsContentType;

/** Current Content-Type of the global registry. */
export const contentType: RegistryContentType;

// ---------------------------------------------------------------------------------------- samples as objects

/**
 * Names of aggregators. An aggregator combines the values of several processes for one label set into one
 * value. An application that adds a function to `aggregators` can declare its name here:
 *
 *     declare module 'prom-client' {
 *       interface AggregatorNames { median: AggregatorFunction }
 *     }
 */
export interface AggregatorNames {
  /** The sum; the default. For summaries, the quantiles of all observations together. */
  sum: AggregatorFunction;
  /** The value of the worker with the lowest id. */
  first: AggregatorFunction;
  min: AggregatorFunction;
  max: AggregatorFunction;
  /** The mean over the workers that have the label set. */
  average: AggregatorFunction;
  /** The metric is left out. */
  omit: AggregatorFunction;
}

export type Aggregator = keyof AggregatorNames;

/** Combines the metrics of several processes with one name into one metric; undefined leaves it out. */
export type AggregatorFunction = (metrics: AggregatedMetric[]) => AggregatedMetric | undefined;

/** The aggregators by name. The primary of a cluster may add its own. */
export const aggregators: AggregatorNames & { [name: string]: AggregatorFunction };

/** A metric as aggregators receive it. */
export interface AggregatedMetric {
  name: string;
  help: string;
  type: MetricType;
  aggregator?: string;
  values: MetricValueWithName<string>[];
}

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** The names of the metric types. */
export const MetricType: {
  readonly Counter: 'counter';
  readonly Gauge: 'gauge';
  readonly Histogram: 'histogram';
  readonly Summary: 'summary';
};

export namespace MetricType {
  type Counter = 'counter';
  type Gauge = 'gauge';
  type Histogram = 'histogram';
  type Summary = 'summary';
}

/** Values of some or all labels. They are compared as text: 200 and '200' are the same. */
export type LabelValues<T extends string> = Partial<Record<T, string | number>>;

/** Description of a metric. */
export interface MetricObject {
  name: string;
  help: string;
  type: MetricType;
  aggregator: Aggregator;
  collect: CollectFunction<any>;
}

/** A metric with its samples. */
export interface MetricObjectWithValues<T extends MetricValue<string>> extends MetricObject {
  values: T[];
  /** Of a native histogram: its series with their buckets. */
  nativeHistograms?: NativeHistogramValue[];
}

/**
 * A series of a native histogram. Names and meanings of its fields are those of the protobuf format. A span
 * is a run of buckets: how many there are, and the index of the first one, counted from the end of the span
 * before. A delta is the difference of a bucket's count to that of the bucket before.
 */
export interface NativeHistogramValue {
  labels: LabelValues<string>;
  count: number;
  sum: number;
  schema: number;
  zeroThreshold: number;
  zeroCount: number;
  positiveSpans: { offset: number; length: number }[];
  positiveDeltas: number[];
  negativeSpans: { offset: number; length: number }[];
  negativeDeltas: number[];
  /** When the series began to count: seconds since the epoch. */
  createdTimestamp?: number;
  exemplars: Exemplar[];
}

/** A sample. */
export type MetricValue<T extends string> = {
  value: number;
  labels: LabelValues<T>;
  /** Null or undefined for a histogram bucket without an exemplar. */
  exemplar?: Exemplar | null;
};

/** A sample that may have its own name, such as a histogram's `_bucket`, `_sum` and `_count`. */
export type MetricValueWithName<T extends string> = MetricValue<T> & { metricName?: string };

/** A reference from a sample to one event that it counted, for example a trace. */
export interface Exemplar {
  labelSet: LabelValues<string>;
  /** The value that was added or observed. */
  value: number;
  /** Seconds since the epoch. */
  timestamp: number;
}

/** The `code` of errors that a program may want to distinguish. It does not change between releases. */
export type ErrorCode =
  | 'PROM_CLIENT_INVALID_NAME'
  | 'PROM_CLIENT_INVALID_LABEL'
  | 'PROM_CLIENT_INVALID_VALUE'
  | 'PROM_CLIENT_ALREADY_REGISTERED'
  | 'PROM_CLIENT_INVALID_OPTION'
  | 'PROM_CLIENT_TIMEOUT'
  | 'PROM_CLIENT_NO_AGGREGATOR';

// ------------------------------------------------------------------------------------------------ registries

/** Something that collects metrics when called. */
export type Collector = () => void;

/**
 * A set of metrics that are exposed together.
 */
export class Registry<BoundRegistryContentType extends RegistryContentType = PrometheusContentType> {
  static readonly PROMETHEUS_CONTENT_TYPE: PrometheusContentType;
  static readonly OPENMETRICS_CONTENT_TYPE: OpenMetricsContentType;
  static readonly PROMETHEUS_PROTOBUF_CONTENT_TYPE: ProtobufContentType;

  /** The default registry of metrics; the same object as `register`. */
  static globalRegistry: Registry;

  /**
   * Returns the registry with that name, which all copies of this package in the process (or thread) share:
   * bundlers create a copy for each entry, and reload it in development. Create its metrics with
   * getOrCreate().
   *
   * @param name default `default`
   */
  static shared<T extends RegistryContentType = PrometheusContentType>(name?: string): Registry<T>;

  /**
   * A new registry with the metrics of several registries, without their default labels. Endpoints serve it
   * in all formats that setFormats() has set for one of them.
   *
   * @throws {TypeError} if the list is empty
   * @throws {Error} if their content types differ, or different metrics have the same name
   */
  static merge(registers: Registry[]): Registry;

  /**
   * Aggregates metrics given as JSON, one list per process.
   *
   * @param metricsArr lists of metrics as getMetricsAsJSON() returns them
   * @param contentType of the returned registry, default Prometheus text
   * @throws {Error} if a metric names an unknown aggregator
   */
  static aggregate<T extends RegistryContentType>(metricsArr: Array<object>, contentType?: T): Registry<T>;

  /**
   * @param contentType the format that metrics() writes, default Prometheus text
   * @throws {TypeError} if the format is unknown
   */
  constructor(contentType?: BoundRegistryContentType);

  /**
   * All metrics as text, after all `collect` hooks have run. Rejected if a hook fails. With the protobuf
   * format it resolves with a Buffer, which this type cannot express: use metricsBytes() then.
   */
  metrics(): Promise<string>;

  /** The metric with this name as text. Rejected with a TypeError if there is none. */
  getSingleMetricAsString(name: string): Promise<string>;

  /**
   * All metrics as objects. Default labels are added to samples that do not have them. The objects are
   * copies.
   *
   * @param aggregator only metrics with this aggregator
   */
  getMetricsAsJSON(aggregator?: string): Promise<MetricObjectWithValues<MetricValue<string>>[]>;

  /**
   * The metrics themselves, in order of registration.
   *
   * @param aggregator only metrics with this aggregator
   */
  getMetricsAsArray(aggregator?: string): MetricObject[];

  getSingleMetric<T extends string>(name: string): Metric<T> | undefined;

  /**
   * Adds a metric. An object without a `get()` has nothing to show: it is left out, with a process warning.
   *
   * @throws {Error} if another metric has that name
   */
  registerMetric<T extends string>(metric: Metric<T>): void;

  /** Removes the metric with this name, if there is one. */
  removeSingleMetric(name: string): void;

  /** Removes all metrics, the default labels, and what setMaxIdleSeconds() has set. */
  clear(): void;

  /** Resets all metrics. */
  resetMetrics(): void;

  /**
   * Sets labels that are added to all samples that do not have them. Replaces earlier default labels. Labels
   * whose name is not valid are left out, with a process warning.
   */
  setDefaultLabels(labels: object): void;

  /** The format that metrics() writes. */
  readonly contentType: BoundRegistryContentType;

  /** @throws {Error} if the format is unknown */
  setContentType(contentType: BoundRegistryContentType): void;
}

export interface Registry<
  BoundRegistryContentType extends RegistryContentType = PrometheusContentType,
> extends Additions<RegistryMembers> {}

interface RegistryMembers {
  /**
   * The page of metrics() as bytes in UTF-8: a large page then never becomes one string. With `gzip` it is
   * compressed, off the event loop.
   */
  metricsBytes(options?: { gzip?: boolean }): Promise<Bytes>;

  /** One metric as text, without a line feed at its end. The metric may belong to another registry. */
  getMetricsAsString<T extends string>(metric: Metric<T>): Promise<string>;

  /**
   * Returns the metric with the configured name, or creates it in this registry.
   *
   * @param Type Counter, Gauge, Histogram, Summary, or a class derived from one of them
   * @param configuration of a new metric, without `registers`
   * @throws {Error} if the metric that exists has another type, other label names, or other buckets or
   *   percentiles
   */
  getOrCreate<T extends string = string>(Type: typeof Gauge, configuration: GaugeConfiguration<T>): Gauge<T>;
  getOrCreate<T extends string = string>(
    Type: typeof Counter,
    configuration: CounterConfiguration<T>,
  ): Counter<T>;
  getOrCreate<T extends string = string>(
    Type: typeof Histogram,
    configuration: HistogramConfiguration<T>,
  ): Histogram<T>;
  getOrCreate<T extends string = string>(
    Type: typeof Summary,
    configuration: SummaryConfiguration<T>,
  ): Summary<T>;
  getOrCreate<M, C>(Type: new (configuration: C) => M, configuration: C): M;

  /**
   * Sets the formats in which endpoints serve this registry; the request's Accept header chooses one of them,
   * or else the first is used. With `openmetrics` or `protobuf`, metrics that are created later may have
   * exemplars. The format of metrics() stays. Without a call, protobuf is served beside that format if there
   * are native histograms.
   *
   * @throws {TypeError} if it is not a list of formats
   */
  setFormats(formats: readonly MetricsFormat[]): void;

  /**
   * Sets the default of the option `maxIdleSeconds` for metrics that are created from now on with this
   * registry as the first of their `registers`. It does not apply to default metrics.
   *
   * @param seconds after which an unused series expires
   * @throws {RangeError} if it is not a positive finite number
   */
  setMaxIdleSeconds(seconds: number): void;
}

/** The global registry. */
export const register: Registry;

/**
 * `timeout`, `formats` and `maxIdleSeconds` apply to one object; the other options are shared by all
 * AggregatorRegistry objects of a process, and the first object sets them. An option that is not passed is
 * read from the environment: `PROM_CLIENT_CLUSTER_TIMEOUT`, `_FORMATS`, `_DIRECTORY`, `_RETIRED_MAX_AGE`,
 * `_INCLUDE_PRIMARY`, `_CHECKPOINT_INTERVAL` and `_GROUP`.
 */
export interface AggregatorRegistryOptions {
  /** Milliseconds that a scrape waits for workers, default 5000. Others are shown with their last numbers. */
  timeout?: number;
  /** The formats in which endpoints serve this registry, as setFormats(). */
  formats?: readonly MetricsFormat[];
  /** That of metrics of this registry itself, as setMaxIdleSeconds(). */
  maxIdleSeconds?: number;
  /**
   * An existing directory, in which the directory of snapshot files is created. Default os.tmpdir(), or
   * /dev/shm if that is not writable.
   */
  directory?: string;
  /** Milliseconds for which label sets of dead workers stay if no live worker has them, default one hour. */
  retiredMaxAge?: number;
  /** Aggregate in slices on this event loop instead of in a thread. Default false. */
  inPlace?: boolean;
  /**
   * Path or file: URL of the aggregator thread's main file. Needed only if this library is bundled with the
   * application, and the bundle of `prom-client-cluster/aggregator-thread` is not next to it.
   */
  thread?: string | { readonly href: string };
  /** Include the primary's own registries (see setRegistries). Default false. */
  includePrimary?: boolean;
  /**
   * Milliseconds between checkpoints of each worker, at least 100: a worker that has recorded something
   * writes its numbers to a file, so a killed worker loses no more than this time. Default: 1000, or longer,
   * so that checkpoints take at most a thousandth of the worker's event loop. 0 for none: a worker writes
   * its last numbers only when it ends in an orderly way. Given in a worker, it applies to this worker.
   */
  checkpointInterval?: number;
  /** Add the number of series of each metric to the self-metrics. Default false. */
  activeSeries?: boolean;
  /**
   * Processes without a primary of this library, such as those of PM2, share one page if they name the same
   * group: a name, or the absolute path of a directory of its own. false for none. Default: all instances of
   * an application in PM2's cluster mode, otherwise none.
   */
  group?: string | false;
}

export interface ClusterMetricsOptions {
  /** Milliseconds to wait for workers; default the registry's timeout. */
  timeout?: number;
  /** Add metrics about the scrape itself: workers by state, age of the numbers, failures. Default false. */
  selfMetrics?: boolean;
}

export interface ClusterMetricsBytesOptions extends ClusterMetricsOptions {
  /** Compress with gzip, outside this event loop. Default false. */
  gzip?: boolean;
  /** The format, default that of the registry. */
  contentType?: RegistryContentType;
  /** Names of the metrics to show, default all. */
  names?: readonly string[];
}

/** Where the cluster's metrics are aggregated. The self-metrics show failures and the workers' state. */
export interface ClusterState {
  /** Where metrics are aggregated; none before the first worker, and while an aggregator is started. */
  aggregator: 'thread' | 'in place' | 'none';
  /**
   * Why not in a thread: the option `inPlace`, the thread's file is missing (as in a bundle), no thread can
   * be started, threads ended again and again, or the thread ran out of memory and has not been started
   * again. '' in a thread.
   */
  aggregatorReason: '' | 'option' | 'missing' | 'start' | 'memory';
  /** Directory of the snapshot files; '' if none can be written. */
  directory: string;
  /** The group of this process, if it is in one. In a process that is not its leader, the rest is empty. */
  group?: {
    directory: string;
    /** Of this process in the group; 0 if it has none yet. */
    id: number;
    /** Whether this process is the leader, which aggregates. */
    isLeader: boolean;
    /** The leader, which aggregates: its pid, and its id in the group; undefined if that is not known. */
    leader: { pid: number; id: number } | undefined;
    /** Number of processes, the leader included; 0 if that is not known. */
    members: number;
    /** How often another process has become the leader. */
    leaderChanges: number;
    /** Rises by 1 with every change of the leader: 1 at first, 0 if this process knows none. */
    generation: number;
    /** Why this process is not linked to the leader; '' if it is. */
    failure: string;
  };
}

/** Buffer, if the types of Node.js are installed. */
export type Bytes = typeof globalThis extends { Buffer: { concat(list: any, totalLength?: any): infer B } }
  ? B
  : Uint8Array;

/**
 * Shows the metrics of all workers of a cluster, in its primary and in any worker. In a process that has
 * never had a worker, it shows the metrics of that process. A worker gets the page from its primary, which
 * needs an AggregatorRegistry, too.
 */
export class AggregatorRegistry<T extends RegistryContentType = RegistryContentType> extends Registry<T> {
  /** Sets the registries to aggregate; default the global registry. */
  static setRegistries(
    regs:
      | Array<
          Registry<PrometheusContentType> | Registry<OpenMetricsContentType> | Registry<ProtobufContentType>
        >
      | Registry<PrometheusContentType>
      | Registry<OpenMetricsContentType>
      | Registry<ProtobufContentType>,
  ): void;

  /**
   * @param contentType the format of clusterMetrics(), default Prometheus text
   * @throws {TypeError} if the format is unknown, or an option is not valid
   */
  constructor(contentType?: T, options?: AggregatorRegistryOptions | null);
  constructor(options: AggregatorRegistryOptions);

  /**
   * Returns the metrics of all workers as text (with the protobuf format a Buffer, like metrics()), or those
   * of this process if it has never had a worker; '' if there are none. Rejected if no worker answered in
   * time and there are no earlier numbers, if an aggregator of the application throws, or in a worker if its
   * primary does not aggregate. A metric with an unknown aggregator is left out.
   */
  clusterMetrics(options?: ClusterMetricsOptions): Promise<string>;

  /** The same as bytes, which costs the primary's event loop far less; empty if there are no metrics. */
  clusterMetricsBytes(options?: ClusterMetricsBytesOptions): Promise<Bytes>;

  /**
   * Returns where metrics are aggregated; undefined if this process is neither a primary nor in a group.
   */
  clusterState(): ClusterState | undefined;

  /** Milliseconds that clusterMetrics() waits for workers by default. */
  readonly timeout: number;

  /**
   * Removes the series of dead workers that have these labels from the cluster's metrics, in the primary.
   * Living workers remove their own with `metric.removeMatching()`.
   *
   * @param labels a value of undefined stands for series without that label; `{}` for all series
   * @param name of the metric, default all
   * @returns how many series were removed. Rejected if this process is not a primary
   */
  removeMatching(labels: LabelValues<string>, name?: string): Promise<number>;

  /**
   * Saves the numbers of a process that is about to end; await it before `process.exit()`. In a worker,
   * `collect` hooks run once more, and a last snapshot is written for the primary. In the primary, scrapes
   * under way are answered, and dead workers are added to the retired totals. The registry can still be used.
   *
   * @param timeout milliseconds after which the promise resolves in any case, default 5000
   */
  shutdown(timeout?: number): Promise<void>;

  /** Releases the cluster's aggregator. The last release stops the thread and removes the directory. */
  close(): Promise<void>;
}

/** The name of AggregatorRegistry in prom-client's successor. */
export { AggregatorRegistry as ClusterRegistry };

/**
 * Options of WorkerRegistry. `timeout`, `formats` and `maxIdleSeconds` apply to one object; the others are
 * shared by all WorkerRegistry objects of a thread, and the first object sets them.
 */
export interface WorkerRegistryOptions {
  /** Milliseconds that workerMetrics() waits for `collect` hooks, default 5000. */
  timeout?: number;
  /** The formats in which endpoints serve this registry, as setFormats(). */
  formats?: readonly MetricsFormat[];
  /** That of metrics of this registry itself, as setMaxIdleSeconds(). */
  maxIdleSeconds?: number;
  /**
   * Milliseconds for which label sets of ended threads stay if no thread has them, default one hour. In a
   * cluster or group they stay as long as the process.
   */
  retiredMaxAge?: number;
  /** Aggregate in slices on this event loop instead of in a thread. */
  inPlace?: boolean;
  /** Path or file: URL of the bundle of `prom-client-cluster/aggregator-thread`. */
  thread?: string | { readonly href: string };
  /** Add the number of series of each metric to the self-metrics. Default false. */
  activeSeries?: boolean;
}

/**
 * In the main thread, shows its own metrics added up with those of all threads of the process that have
 * created a WorkerRegistry. Numbers are read from shared memory, so they are exact even if a thread computes
 * or sleeps. Creating a WorkerRegistry in a worker thread adds that thread's metrics.
 */
export class WorkerRegistry<T extends RegistryContentType = RegistryContentType> extends Registry<T> {
  /** Sets the registries with which this thread joins; default the global registry. */
  static setRegistries(
    regs:
      | Array<
          Registry<PrometheusContentType> | Registry<OpenMetricsContentType> | Registry<ProtobufContentType>
        >
      | Registry<PrometheusContentType>
      | Registry<OpenMetricsContentType>
      | Registry<ProtobufContentType>,
  ): void;

  /** How many threads have joined, without this one; 0 in a thread that does not serve the page. */
  static workerCount(): number;

  /**
   * @param contentType the format of workerMetrics(), default Prometheus text
   * @param primary whether this thread serves the page, default in the main thread only
   * @throws {TypeError} if the format is unknown, or an option is not valid
   */
  constructor(contentType?: T, primary?: boolean, options?: WorkerRegistryOptions | null);
  constructor(contentType: T | undefined, options: WorkerRegistryOptions);
  constructor(options: WorkerRegistryOptions, primary?: boolean);

  /** The metrics of all threads, as those of metrics(); '' in a thread that does not serve the page. */
  workerMetrics(options?: ClusterMetricsOptions): Promise<string>;

  /** The same as bytes, which are written outside this thread's event loop; empty instead of ''. */
  workerMetricsBytes(options?: ClusterMetricsBytesOptions): Promise<Bytes>;

  /** The same as the static method. */
  workerCount(): number;

  /** Milliseconds that workerMetrics() waits for `collect` hooks by default. */
  readonly timeout: number;

  /**
   * Releases the threads' metrics. In a thread that serves the page, the last release stops the aggregator.
   * In a thread that has joined, the last release makes the thread leave; its counts stay on the page.
   */
  close(): Promise<void>;

  /**
   * In a thread that serves the page, waits for scrapes under way; then does the same as close(), as in
   * prom-client's successor. (AggregatorRegistry's shutdown() releases nothing.)
   *
   * @param timeout milliseconds after which the promise resolves in any case, default 5000
   */
  shutdown(timeout?: number): Promise<void>;
}

// ------------------------------------------------------------------------------------------------- endpoints

/** A format of metrics: Prometheus text, OpenMetrics text, or protobuf. */
export type MetricsFormat = 'text' | 'openmetrics' | 'protobuf';

export interface MetricsHandlerOptions {
  /**
   * For a cluster: add metrics about the scrape itself (workers by state, age of the numbers, failures).
   * Default true.
   */
  selfMetrics?: boolean;
  /**
   * The formats from which the request's Accept header chooses; the first is used if it accepts none, or all
   * equally; protobuf only if it is preferred to all others. Default: those of the registry's setFormats(),
   * or else its content type, and protobuf if there are native histograms.
   */
  formats?: readonly MetricsFormat[];
  /**
   * Called with the error if a scrape fails, or has nothing to show. Default: a process warning, at most one
   * a minute. If `collect` hooks fail in a cluster, group or thread, whose page shows the last values then,
   * also called with an error with the code PROM_CLIENT_CLUSTER_COLLECT, once in ten minutes for a metric.
   */
  onError?: (error: any) => unknown;
}

/** The parts of a request that metricsHandler() uses: Node's own, or a framework's that is built on it. */
export interface MetricsRequest {
  method?: string;
  url?: string;
  headers: { [name: string]: string | string[] | undefined };
}

/** The parts of a response that metricsHandler() uses. */
export interface MetricsResponse {
  statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  getHeader(name: string): number | string | string[] | undefined;
  setHeader(name: string, value: number | string): unknown;
  removeHeader(name: string): void;
  end(): unknown;
  end(body: Bytes): unknown;
  destroy(): unknown;
}

/**
 * Makes a request handler that answers with a registry's metrics; with an AggregatorRegistry, those of the
 * whole cluster. It works with node's http and https, express, and the raw objects of fastify and Koa.
 * `?name[]=…` selects metrics. A failure is answered with status 500, or 503 if there is nothing to show. The
 * handler rejects only if it is not called with a request and a response.
 *
 * @throws {TypeError} if the first argument is not a registry, or an option is not valid
 */
export function metricsHandler(
  registry: Registry<RegistryContentType>,
  options?: MetricsHandlerOptions,
): (request: MetricsRequest, response: MetricsResponse) => Promise<void>;

/** The parts of a fetch Request that metricsResponse() uses. */
export interface MetricsFetchRequest {
  readonly method?: string;
  readonly url: string;
  readonly headers: { get(name: string): string | null };
}

/** Response, if its type is declared: by the types of Node.js or of the DOM. */
export type MetricsFetchResponse = typeof globalThis extends {
  Response: { new (...parameters: any): infer R };
}
  ? R
  : unknown;

/**
 * The same for servers with the Request and Response of the Fetch standard: Hono, route handlers of Next.js,
 * Bun, Deno.
 *
 * Rejected with a TypeError if an argument is not valid.
 */
export function metricsResponse(
  registry: Registry<RegistryContentType>,
  request: MetricsFetchRequest,
  options?: MetricsHandlerOptions,
): Promise<MetricsFetchResponse>;

export interface MetricsServerOptions extends MetricsHandlerOptions {
  /** 0 for any free port. */
  port: number | string;
  /** Address to listen on, default 127.0.0.1, which other machines cannot reach. */
  host?: string;
  /** Path of the metrics, default /metrics. */
  path?: string;
  /** Default the global registry. */
  registry?: Registry<RegistryContentType>;
}

/** http.Server, if the types of Node.js are installed. */
// @ts-ignore: without them it is any
export type MetricsServer = import('node:http').Server;

/**
 * Starts an HTTP server that serves metrics and nothing else.
 *
 * @returns resolves when the server listens; rejected if the port cannot be used
 */
export function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer>;

// --------------------------------------------------------------------------------------------------- metrics

/** A metric of any type. */
export type Metric<T extends string = string> = Counter<T> | Gauge<T> | Histogram<T> | Summary<T>;

/** A hook that updates a metric before it is read. */
export type CollectFunction<T> = (this: T) => void | Promise<void>;

/** Options of all metrics. */
export interface MetricConfiguration<T extends string> {
  name: string;
  help: string;
  /** Default none. */
  labelNames?: T[] | readonly T[];
  /** Default the global registry; an empty list for none. */
  registers?: (
    Registry<PrometheusContentType> | Registry<OpenMetricsContentType> | Registry<ProtobufContentType>
  )[];
  /** How the values of a cluster's workers are combined, default `sum`. */
  aggregator?: Aggregator;
  /** Runs before the metric is read. */
  collect?: CollectFunction<any>;
  /**
   * Whether a counter or histogram stores exemplars, default false. With `trace`, a recording without
   * `exemplarLabels` has the `trace_id` and `span_id` of the active, sampled OpenTelemetry span: at most one
   * in 100 milliseconds for a counter's series or a bucket. Needs registries of OpenMetrics text, or whose
   * setFormats() was called before with `openmetrics`.
   */
  enableExemplars?: boolean | 'trace';
  /**
   * Maximum number of label sets, a positive integer; default unlimited. Further label sets are recorded in
   * one more series, all of whose labels have the value `overflow`. After `remove()` or `reset()`, new label
   * sets get their own series again. In a cluster, the limit applies to each worker.
   */
  maxSeries?: number;
  /**
   * Seconds after which a series expires that nobody has used: it leaves memory and the page, and starts
   * again at zero when it is used again. A positive finite number; default that of
   * `registry.setMaxIdleSeconds()` of the first of `registers`, or none. Series without labels do not expire,
   * nor does what a `collect` hook has recorded in the last scrape.
   */
  maxIdleSeconds?: number;
}

/**
 * Members that prom-client's types do not have. Optional, so that an object with prom-client's members can
 * stand in for a metric or registry in a test, and yet callable without `!`: in a mapped type the compiler
 * does not add undefined to an optional member whose type includes void, and what is a function and void can
 * be called.
 */
type Additions<Members> = { [K in keyof Partial<Members>]: Members[K] | (Members[K] & void) };

/** How many values a series has observed, and their sum. */
interface CountAndSum {
  count: number;
  sum: number;
}

interface SeriesMembers<T extends string, Value> {
  /**
   * Removes all series that have these labels, whatever their other labels are. A value of undefined stands
   * for series without that label; `{}` for all series.
   *
   * @returns how many there were
   */
  removeMatching(labels: LabelValues<T>): number;

  /** The value of a series in this process; undefined if there is no such series. Runs no `collect` hook. */
  value(labels?: LabelValues<T>): Value | undefined;
}

/** No label but these: TypeScript does not check that of the type that it infers for an argument. */
type Only<T extends string, Labels> = { [K in Exclude<keyof Labels, T>]: never };

interface TotalMembers<T extends string> {
  /**
   * For a total that is kept elsewhere, such as in a driver: adds its growth since the last call for these
   * labels. The first call adds all of it, and so does one with a total below the last one: its source has
   * started again. A label set beyond `maxSeries` adds nothing.
   *
   * @throws {TypeError} if the total is not a finite number
   * @throws {Error} if the total is negative, or a label is not one of `labelNames`
   */
  setTotal(labels: LabelValues<T>, total: number): void;
  setTotal(total: number): void;
}

interface ProgressMembers<T extends string> {
  /**
   * Adds 1 while a function runs, until its promise is settled if it returns one.
   *
   * @returns what the function returns
   */
  trackInProgress<R>(call: () => R): R;
  trackInProgress<R>(labels: LabelValues<T>, call: () => R): R;
}

interface QuantileMembers<T extends string> {
  /**
   * A quantile of a native histogram's series in this process, estimated as Prometheus 3 does. Runs no
   * `collect` hook.
   *
   * @param quantile 0 to 1
   * @returns NaN without observations; -Infinity for a quantile below 0, Infinity above 1
   * @throws {TypeError} if the histogram is not a native one
   */
  quantile(quantile: number, labels?: LabelValues<T>): number;
}

interface TimingMembers<T extends string> {
  /**
   * Observes the seconds that a function takes, until its promise is settled if it returns one, even if it
   * fails.
   *
   * @returns what the function returns
   */
  time<R>(call: () => R): R;
  time<R>(labels: LabelValues<T>, call: () => R): R;
}

/**
 * A timer with a method `[Symbol.dispose]`, for `using`, if the compiler's library knows that symbol.
 *
 * The type parameter `Stop` of startTimer() is always its default. Where a stand-in or an overriding method
 * is compared with several signatures, the compiler takes `any` for it: these may return a plain function.
 */
export type DisposableTimer<Timer> = Timer &
  (typeof globalThis extends { Symbol: { readonly dispose: infer Dispose } }
    ? Dispose extends symbol
      ? { [method in Dispose]: () => void }
      : unknown
    : unknown);

type Timer<T extends string> = (labels?: LabelValues<T>) => number;

type TimerWithExemplar<T extends string> = (
  labels?: LabelValues<T>,
  exemplarLabels?: LabelValues<T> | LabelValues<string>,
) => number;

export interface CounterConfiguration<T extends string> extends MetricConfiguration<T> {
  collect?: CollectFunction<Counter<T>>;
}

/** An increment with an exemplar, for counters with `enableExemplars`. */
export interface IncreaseDataWithExemplar<T extends string> {
  labels?: LabelValues<T>;
  /** Default 1. */
  value?: number;
  /** At most 128 characters, names and values together. */
  exemplarLabels?: LabelValues<T> | LabelValues<string>;
}

/**
 * A value that only goes up: requests served, bytes sent, errors.
 */
export class Counter<T extends string = string> {
  /**
   * @throws {TypeError} if exemplars are enabled and a registry cannot write them
   * @throws {Error} if name, help or a label name is not valid, or the name is taken
   */
  constructor(configuration: CounterConfiguration<T>);

  /**
   * How often a label set was beyond `maxSeries` and was recorded in the series labelled `overflow`. A child
   * counts once, when it binds to that series. Always present; optional in the type, because objects that
   * implement prom-client's type do not have it.
   */
  readonly overflowCount?: number;

  /**
   * How many series have expired in this process after `maxIdleSeconds`. Always
   * present; optional in the type.
   */
  readonly expiredCount?: number;

  /** How many series there are in this process. Always present; optional in the type. */
  readonly seriesCount?: number;

  /**
   * @param value default 1, not negative
   * @throws {TypeError} if the value is not a finite number
   * @throws {Error} if the value is negative, or a label is not one of `labelNames`
   */
  inc(labels: LabelValues<T>, value?: number): void;
  inc(value?: number): void;
  inc(incData: IncreaseDataWithExemplar<T>): void;

  /**
   * A child for one label set, for hot paths: its `inc` needs no look-up. Values are in the order of
   * `labelNames`.
   */
  labels(...values: string[]): Counter.Internal;
  labels(labels: LabelValues<T>): Counter.Internal;

  /** The metric with its samples, after its `collect` hook has run. */
  get(): Promise<MetricObjectWithValues<MetricValue<T>>>;

  /** Removes all series; the series of a counter without labels starts again at 0. */
  reset(): void;

  /** Removes a label set. It starts from zero when it is used again. */
  remove(...values: string[]): void;
  remove(labels: LabelValues<T>): void;
}

export interface Counter<T extends string = string>
  extends Additions<SeriesMembers<T, number>>, Additions<TotalMembers<T>>, Additions<CurryCounter<T>> {}

interface CurryCounter<T extends string> {
  /**
   * Binds some labels. The returned object takes the others, and looks up only these: for code that knows
   * some labels early, such as the method and route of a request. It stays valid after reset() and remove().
   *
   * @throws {TypeError} if the labels are not an object
   * @throws {Error} if a label is bound already, or is not one of `labelNames`
   */
  curry<Bound extends LabelValues<T>>(
    labels: Bound & Only<T, Bound>,
  ): CurriedCounter<Exclude<T, keyof Bound>>;
}

/** What `curry()` of a counter returns: its methods take the labels that are not bound. */
export interface CurriedCounter<T extends string = string>
  extends
    Pick<Counter<T>, 'inc' | 'labels' | 'remove'>,
    Pick<SeriesMembers<T, number>, 'value'>,
    TotalMembers<T>,
    CurryCounter<T> {}

export namespace Counter {
  /** A counter's child for one label set. */
  interface Internal {
    inc(value?: number): void;
  }
}

export interface GaugeConfiguration<T extends string> extends MetricConfiguration<T> {
  collect?: CollectFunction<Gauge<T>>;
}

/**
 * A value that goes up and down: queue length, memory in use, temperature.
 */
export class Gauge<T extends string = string> {
  /** @throws {Error} if name, help or a label name is not valid, or the name is taken */
  constructor(configuration: GaugeConfiguration<T>);

  /**
   * How often a label set was beyond `maxSeries` and was recorded in the series labelled `overflow`. A child
   * counts once, when it binds to that series. Always present; optional in the type, because objects that
   * implement prom-client's type do not have it.
   */
  readonly overflowCount?: number;

  /**
   * How many series have expired in this process after `maxIdleSeconds`. Always
   * present; optional in the type.
   */
  readonly expiredCount?: number;

  /** How many series there are in this process. Always present; optional in the type. */
  readonly seriesCount?: number;

  /** @param value default 1 */
  inc(labels: LabelValues<T>, value?: number): void;
  inc(value?: number): void;

  /** @param value default 1 */
  dec(labels: LabelValues<T>, value?: number): void;
  dec(value?: number): void;

  /** @param value NaN and infinities are allowed */
  set(labels: LabelValues<T>, value: number): void;
  set(value: number): void;

  /** Sets the gauge to the seconds since the epoch, with a fractional part. */
  setToCurrentTime(labels?: LabelValues<T>): void;

  /**
   * Starts a timer.
   *
   * @returns a function that sets the gauge to the seconds since the start and returns them; its labels are
   *   added to these
   */
  startTimer<Stop extends DisposableTimer<Timer<T>> = DisposableTimer<Timer<T>>>(
    labels?: LabelValues<T>,
  ): Stop;
  startTimer(labels?: LabelValues<T>): Timer<T>;

  /**
   * A child for one label set, for hot paths: it needs no look-up. Values are in the order of `labelNames`.
   */
  labels(...values: string[]): Gauge.Internal<T>;
  labels(labels: LabelValues<T>): Gauge.Internal<T>;

  /** The metric with its samples, after its `collect` hook has run. */
  get(): Promise<MetricObjectWithValues<MetricValue<T>>>;

  /** Removes all series; the series of a gauge without labels starts again at 0. */
  reset(): void;

  /** Removes a label set. It starts from zero when it is used again. */
  remove(...values: string[]): void;
  remove(labels: LabelValues<T>): void;
}

export interface Gauge<T extends string = string>
  extends Additions<SeriesMembers<T, number>>, Additions<ProgressMembers<T>>, Additions<CurryGauge<T>> {}

interface CurryGauge<T extends string> {
  /**
   * Binds some labels. The returned object takes the others, and looks up only these: for code that knows
   * some labels early, such as the method and route of a request. It stays valid after reset() and remove().
   *
   * @throws {TypeError} if the labels are not an object
   * @throws {Error} if a label is bound already, or is not one of `labelNames`
   */
  curry<Bound extends LabelValues<T>>(labels: Bound & Only<T, Bound>): CurriedGauge<Exclude<T, keyof Bound>>;
}

/** What `curry()` of a gauge returns: its methods take the labels that are not bound. */
export interface CurriedGauge<T extends string = string>
  extends
    Pick<Gauge<T>, 'inc' | 'dec' | 'set' | 'setToCurrentTime' | 'startTimer' | 'labels' | 'remove'>,
    Pick<SeriesMembers<T, number>, 'value'>,
    ProgressMembers<T>,
    CurryGauge<T> {}

export namespace Gauge {
  /** A gauge's child for one label set. */
  interface Internal<T extends string> {
    inc(value?: number): void;
    dec(value?: number): void;
    set(value: number): void;
    setToCurrentTime(): void;
    startTimer(): (labels?: LabelValues<T>) => number;
  }
}

export interface HistogramConfiguration<T extends string> extends MetricConfiguration<T> {
  /**
   * Upper bounds in the observed unit; default 5 ms to 10 s, in seconds. Those of a native histogram are for
   * readers of text; an empty list for none.
   */
  buckets?: number[];
  collect?: CollectFunction<Histogram<T>>;
  /**
   * Makes it a native histogram, whose buckets need not be chosen: each is at most this factor wider than
   * the one before. Above 1; 1.1 is usual, with which quantiles are within 5 %.
   */
  nativeHistogramBucketFactor?: number;
  /** Values of at most this size count as zero, default 2^-128. With 0 or less only 0 itself does. */
  nativeHistogramZeroThreshold?: number;
  /**
   * With more buckets that have observations, each two buckets of a series become one. Default 160, 0 for no
   * limit.
   */
  nativeHistogramMaxBucketNumber?: number;
  /** Exemplars of a series besides those of `buckets`, default 10, at most 100. */
  nativeHistogramMaxExemplars?: number;
  /** Seconds after which any of these may be replaced, default 300. Before, values of all sizes are kept. */
  nativeHistogramExemplarTTL?: number;
}

/** An observation with an exemplar, for histograms with `enableExemplars`. */
export interface ObserveDataWithExemplar<T extends string> {
  labels?: LabelValues<T>;
  value: number;
  /** At most 128 characters, names and values together. */
  exemplarLabels?: LabelValues<T> | LabelValues<string>;
}

/**
 * A distribution in buckets, for example of request durations. Buckets of several processes can be added up.
 */
export class Histogram<T extends string = string> {
  /**
   * @throws {RangeError} if an option of native histograms is not valid
   * @throws {TypeError} if exemplars are enabled and a registry cannot write them
   * @throws {Error} if name, help or a label name is not valid, a label is named `le`, or the name is taken
   */
  constructor(configuration: HistogramConfiguration<T>);

  /**
   * How often a label set was beyond `maxSeries` and was recorded in the series labelled `overflow`. A child
   * counts once, when it binds to that series. Always present; optional in the type, because objects that
   * implement prom-client's type do not have it.
   */
  readonly overflowCount?: number;

  /**
   * How many series have expired in this process after `maxIdleSeconds`. Always
   * present; optional in the type.
   */
  readonly expiredCount?: number;

  /** How many series there are in this process. Always present; optional in the type. */
  readonly seriesCount?: number;

  /**
   * @throws {TypeError} if the value is not a finite number
   * @throws {Error} if a label is not one of `labelNames`
   */
  observe(value: number): void;
  observe(labels: LabelValues<T>, value: number): void;
  observe(observeData: ObserveDataWithExemplar<T>): void;

  /**
   * Starts a timer.
   *
   * @param exemplarLabels only if exemplars are enabled
   * @returns a function that observes the seconds since the start and returns them; its labels are added to
   *   these
   */
  startTimer<Stop extends DisposableTimer<TimerWithExemplar<T>> = DisposableTimer<TimerWithExemplar<T>>>(
    labels?: LabelValues<T>,
    exemplarLabels?: LabelValues<T> | LabelValues<string>,
  ): Stop;
  startTimer(labels?: LabelValues<T>): Timer<T>;
  startTimer(
    labels?: LabelValues<T>,
    exemplarLabels?: LabelValues<T> | LabelValues<string>,
  ): TimerWithExemplar<T>;

  /** Clears the observations of a series, or creates it without observations. */
  zero(labels: LabelValues<T>): void;

  /**
   * A child for one label set, for hot paths: it needs no look-up. Values are in the order of `labelNames`.
   */
  labels(...values: string[]): Histogram.Internal<T>;
  labels(labels: LabelValues<T>): Histogram.Internal<T>;

  /** The metric with its samples, after its `collect` hook has run. Buckets are cumulative. */
  get(): Promise<MetricObjectWithValues<MetricValueWithName<T>>>;

  /** Removes all series. The series of a histogram without labels comes back with the next observation. */
  reset(): void;

  /** Removes a label set. It starts from zero when it is used again. */
  remove(...values: string[]): void;
  remove(labels: LabelValues<T>): void;
}

export interface Histogram<T extends string = string>
  extends
    Additions<SeriesMembers<T, CountAndSum>>,
    Additions<TimingMembers<T>>,
    Additions<QuantileMembers<T>>,
    Additions<CurryHistogram<T>> {}

interface CurryHistogram<T extends string> {
  /**
   * Binds some labels. The returned object takes the others, and looks up only these: for code that knows
   * some labels early, such as the method and route of a request. It stays valid after reset() and remove().
   *
   * @throws {TypeError} if the labels are not an object
   * @throws {Error} if a label is bound already, or is not one of `labelNames`
   */
  curry<Bound extends LabelValues<T>>(
    labels: Bound & Only<T, Bound>,
  ): CurriedHistogram<Exclude<T, keyof Bound>>;
}

/** What `curry()` of a histogram returns: its methods take the labels that are not bound. */
export interface CurriedHistogram<T extends string = string>
  extends
    Pick<Histogram<T>, 'observe' | 'startTimer' | 'labels' | 'remove'>,
    Pick<SeriesMembers<T, CountAndSum>, 'value'>,
    TimingMembers<T>,
    CurryHistogram<T> {}

export namespace Histogram {
  /** A histogram's child for one label set. */
  interface Internal<T extends string> {
    observe(value: number): void;
    startTimer(): (labels?: LabelValues<T>) => void;
  }

  interface Config {
    /** Upper bounds in the observed unit. */
    buckets?: number[];
  }
}

export interface SummaryConfiguration<T extends string> extends MetricConfiguration<T> {
  /** Quantiles between 0 and 1, default 0.01, 0.05, 0.5, 0.9, 0.95, 0.99 and 0.999. */
  percentiles?: number[];
  /** Seconds that an observation counts in the quantiles; only with `ageBuckets`. Default unlimited. */
  maxAgeSeconds?: number;
  /** Number of steps in which the window of `maxAgeSeconds` advances. */
  ageBuckets?: number;
  /** Remove label sets whose window is empty. Default false. */
  pruneAgedBuckets?: boolean;
  /** Observations to buffer before they are merged. More than 512 mean 512. Default 1000. */
  compressCount?: number;
  collect?: CollectFunction<Summary<T>>;
}

/**
 * Quantiles of the observed values, with sum and count.
 */
export class Summary<T extends string = string> {
  /**
   * @throws {Error} if name, help or a label name is not valid, a label is named `quantile`, or the name is
   *   taken
   */
  constructor(configuration: SummaryConfiguration<T>);

  /**
   * How often a label set was beyond `maxSeries` and was recorded in the series labelled `overflow`. A child
   * counts once, when it binds to that series. Always present; optional in the type, because objects that
   * implement prom-client's type do not have it.
   */
  readonly overflowCount?: number;

  /**
   * How many series have expired in this process after `maxIdleSeconds`. Always
   * present; optional in the type.
   */
  readonly expiredCount?: number;

  /** How many series there are in this process. Always present; optional in the type. */
  readonly seriesCount?: number;

  /**
   * @throws {TypeError} if the value is not a finite number
   * @throws {Error} if a label is not one of `labelNames`
   */
  observe(value: number): void;
  observe(labels: LabelValues<T>, value: number): void;

  /**
   * Starts a timer.
   *
   * @returns a function that observes the seconds since the start and returns them; its labels are added to
   *   these
   */
  startTimer<Stop extends DisposableTimer<Timer<T>> = DisposableTimer<Timer<T>>>(
    labels?: LabelValues<T>,
  ): Stop;
  startTimer(labels?: LabelValues<T>): Timer<T>;

  /**
   * A child for one label set, for hot paths: it needs no look-up. Values are in the order of `labelNames`.
   */
  labels(...values: string[]): Summary.Internal<T>;
  labels(labels: LabelValues<T>): Summary.Internal<T>;

  /** The metric with its samples, after its `collect` hook has run. */
  get(): Promise<MetricObjectWithValues<MetricValueWithName<T>>>;

  /** Clears the observations of all series; no series is removed. */
  reset(): void;

  /** Removes a label set. It starts from zero when it is used again. */
  remove(...values: string[]): void;
  remove(labels: LabelValues<T>): void;
}

export interface Summary<T extends string = string>
  extends Additions<SeriesMembers<T, CountAndSum>>, Additions<TimingMembers<T>>, Additions<CurrySummary<T>> {}

interface CurrySummary<T extends string> {
  /**
   * Binds some labels. The returned object takes the others, and looks up only these: for code that knows
   * some labels early, such as the method and route of a request. It stays valid after reset() and remove().
   *
   * @throws {TypeError} if the labels are not an object
   * @throws {Error} if a label is bound already, or is not one of `labelNames`
   */
  curry<Bound extends LabelValues<T>>(
    labels: Bound & Only<T, Bound>,
  ): CurriedSummary<Exclude<T, keyof Bound>>;
}

/** What `curry()` of a summary returns: its methods take the labels that are not bound. */
export interface CurriedSummary<T extends string = string>
  extends
    Pick<Summary<T>, 'observe' | 'startTimer' | 'labels' | 'remove'>,
    Pick<SeriesMembers<T, CountAndSum>, 'value'>,
    TimingMembers<T>,
    CurrySummary<T> {}

export namespace Summary {
  /** A summary's child for one label set. */
  interface Internal<T extends string> {
    observe(value: number): void;
    startTimer(): (labels?: LabelValues<T>) => number;
  }

  interface Config {
    /** Quantiles between 0 and 1. */
    percentiles?: number[];
  }
}

/**
 * Bucket bounds at equal distances.
 *
 * @throws {Error} if count is below 1
 */
export function linearBuckets(start: number, width: number, count: number): number[];

/**
 * Bucket bounds that grow by a factor.
 *
 * @param start above 0
 * @param factor above 1
 * @throws {Error} if an argument is out of range
 */
export function exponentialBuckets(start: number, factor: number, count: number): number[];

/** Whether Prometheus accepts this as the name of a metric. */
export function validateMetricName(name: string): boolean;

// ------------------------------------------------------------------------------------------- default metrics

/** A family of metrics that the option `runtime` adds to the default metrics. */
export type RuntimeMetricName =
  'gc' | 'heap' | 'memory' | 'eventLoopUtilization' | 'eventLoopDelay' | 'process' | 'cgroup';

export interface DefaultMetricsCollectorConfiguration<T extends RegistryContentType> {
  /** Default the global registry. */
  register?: Registry<T>;
  /** Prefix of all metric names. */
  prefix?: string;
  /** Bounds in seconds, default 0.001, 0.01, 0.1, 1, 2 and 5. */
  gcDurationBuckets?: number[];
  /**
   * Milliseconds between two samples of the event loop's delay; default 10, for the family `eventLoopDelay`
   * 20.
   */
  eventLoopMonitoringPrecision?: number;
  /** Labels of all samples. */
  labels?: object;
  /**
   * Whether the CPU counters have the active OpenTelemetry trace as exemplar, default false. Needs a registry
   * of OpenMetrics text, or one whose setFormats() was called before with `openmetrics`.
   */
  enableExemplars?: boolean;
  /**
   * Runtime metrics in addition to those of prom-client: true for all, or the names of families. Default
   * none.
   */
  runtime?: boolean | readonly RuntimeMetricName[];
  /** Ascending bounds of `nodejs_eventloop_delay_seconds`, in seconds. Default 0.001 to 10. */
  eventLoopDelayBuckets?: readonly number[];
}

/**
 * Registers metrics of the process and of Node.js. They are sampled when they are read.
 *
 * @returns a function that stops all sampling; the default metrics no longer change
 * @throws {TypeError} if `runtime` names an unknown family
 * @throws {Error} if a metric with one of the names is already registered
 */
export const collectDefaultMetrics: {
  // The function is also void, as in prom-client. `Stop` is that of startTimer().
  <T extends RegistryContentType, Stop extends (() => void) & void = (() => void) & void>(
    config?: DefaultMetricsCollectorConfiguration<T> | null,
  ): Stop;
  // TypeScript takes the last signature for stubs in tests: a stub need not return anything.
  <T extends RegistryContentType>(config?: DefaultMetricsCollectorConfiguration<T> | null): void;
  /** The names of the families, in order of their output. */
  metricsList: string[];
} & Additions<{
  /** The names that `runtime` takes, in order of their output. */
  runtimeMetricsList: RuntimeMetricName[];
}>;

// ----------------------------------------------------------------------------------------------- pushgateway

/**
 * Pushes metrics to a Prometheus Pushgateway, for jobs that end before they are scraped.
 */
export class Pushgateway<T extends RegistryContentType = RegistryContentType> {
  /**
   * @param url http or https, with `user:password@` for basic authentication
   * @param options those of http.request(), and `requireJobName` (default true)
   * @param registry default the global registry
   */
  constructor(url: string, registry: Registry<T>);
  constructor(url: string, options?: any, registry?: Registry<T>);

  /** Replaces the metrics of the group that have the names of pushed metrics (POST). */
  pushAdd(params: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;

  /** Replaces all metrics of the group (PUT). */
  push(params: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;

  /** Removes the group (DELETE). */
  delete(params: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;
}

export namespace Pushgateway {
  /** The group of series that a push replaces, or delete() removes. */
  interface Parameters {
    jobName: string;
    /** Further labels of the group. */
    groupings?: { [key: string]: string };
  }
}

// ---------------------------------------------------------------------------------------------- remote write

export interface RemoteWriteOptions {
  /**
   * For all series that do not have a label of that name. `instance` is required, `job` is usual; `le` and
   * `quantile` are not possible.
   */
  labels: { instance: string; [name: string]: string };
  /** Such as `Authorization`. */
  headers?: { [name: string]: string };
  /** Milliseconds for one attempt, default 30,000. */
  timeout?: number;
  /** Milliseconds between the pushes of start(), default 15,000. */
  interval?: number;
  /** How often a request is sent again if the connection fails, or on status 5xx or 429; default 5. */
  retries?: number;
  /** Version of the protocol, default 2.0 or, if the receiver does not have it, 1.0. */
  protocol?: '1.0' | '2.0';
  /**
   * Whether native histograms are sent as such, default false: a Prometheus before 3.8 without
   * `--enable-feature=native-histograms` refuses each request that has one.
   */
  nativeHistograms?: boolean;
}

/** What a push has sent. */
export interface RemoteWriteResult {
  protocol: '1.0' | '2.0';
  /** How many samples were sent, stale markers included. */
  samples: number;
  /** How many were left out: series that are not valid, there twice or not readable. */
  dropped: number;
}

/**
 * Sends metrics to a receiver of Prometheus' remote write, for processes that cannot be scraped.
 */
export class RemoteWrite<T extends RegistryContentType = RegistryContentType> {
  /**
   * @param url http or https, with `user:password@` for basic authentication
   * @param registry default the global registry. With an AggregatorRegistry or WorkerRegistry, its aggregator
   *   pushes the metrics of the cluster or of all threads
   */
  constructor(url: string | { readonly href: string }, options: RemoteWriteOptions, registry?: Registry<T>);

  /**
   * Sends all metrics once, without those that cannot be read. Rejects if the receiver does not accept them,
   * if a newer push replaces this one, and in a process that does not aggregate its cluster or group.
   */
  push(): Promise<RemoteWriteResult>;

  /**
   * Pushes at an interval in milliseconds, default that of the constructor. The timer does not keep the
   * process alive. In a group, call it in each process: the leader pushes.
   */
  start(options?: { interval?: number }): void;

  /**
   * Ends start(): pushes once more, and marks all series as ended; in a group, only a process without others
   * marks them. Resolves when that is done, or after `timeout` milliseconds, by default 5000: nothing more is
   * sent then. Rejects only if the timeout is not valid.
   */
  stop(options?: { timeout?: number }): Promise<void>;
}
