// Types of the public interface. Programs that compile with prom-client 15.1.3 compile with these, so what prom-client
// leaves open or gets wrong in a harmless way (the `any` of Pushgateway's options, children's timers) is left as it is.
// Nothing here needs the types of Node.js.

// ---------------------------------------------------------------------------------------------------- content types

export type Charset = 'utf-8';

export type PrometheusMIME = 'text/plain';
export type PrometheusMetricsVersion = '0.0.4';
export type PrometheusContentType =
  `${PrometheusMIME}; version=${PrometheusMetricsVersion}; charset=${Charset}`;

export type OpenMetricsMIME = 'application/openmetrics-text';
export type OpenMetricsVersion = '1.0.0';
export type OpenMetricsContentType = `${OpenMetricsMIME}; version=${OpenMetricsVersion}; charset=${Charset}`;

/** The formats that a registry can write. */
export type RegistryContentType = PrometheusContentType | OpenMetricsContentType;

/** Content-Type of the Prometheus text format, the default. */
export const prometheusContentType: PrometheusContentType;

/** Content-Type of OpenMetrics text, the format that has exemplars. */
export const openMetricsContentType: OpenMetricsContentType;

/** Content-Type of the global registry, as it is now. */
export const contentType: RegistryContentType;

// ------------------------------------------------------------------------------------------------- samples as objects

/**
 * Names of aggregators: how the values that several processes have for one label set become one. A program that adds
 * a function of its own to `aggregators` can name it here:
 *
 *     declare module 'prom-client' {
 *       interface AggregatorNames { median: AggregatorFunction }
 *     }
 */
export interface AggregatorNames {
  /** The sum, the default. Of summaries: the quantiles of all observations together. */
  sum: AggregatorFunction;
  /** The value of the worker with the lowest id. */
  first: AggregatorFunction;
  min: AggregatorFunction;
  max: AggregatorFunction;
  /** The mean of the workers that have the label set. */
  average: AggregatorFunction;
  /** None: the metric is left out. */
  omit: AggregatorFunction;
}

export type Aggregator = keyof AggregatorNames;

/** Makes one metric of the metrics that several processes have of one name; undefined leaves it out. */
export type AggregatorFunction = (metrics: AggregatedMetric[]) => AggregatedMetric | undefined;

/** The aggregators by name. In a cluster's primary a program may add its own. */
export const aggregators: AggregatorNames & { [name: string]: AggregatorFunction };

/** A metric as aggregators see it. */
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

/** Values of some or all labels. Values are text: 200 and '200' are the same. */
export type LabelValues<T extends string> = Partial<Record<T, string | number>>;

/** What a metric tells about itself. */
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
}

/** A sample. */
export type MetricValue<T extends string> = {
  value: number;
  labels: LabelValues<T>;
  /** Null or undefined for a bucket of a histogram that has none. */
  exemplar?: Exemplar | null;
};

/** A sample that may have a name of its own: a histogram's `_bucket`, `_sum` and `_count`, for example. */
export type MetricValueWithName<T extends string> = MetricValue<T> & { metricName?: string };

/** A pointer from a sample to one event behind it, a trace for example. */
export interface Exemplar {
  labelSet: LabelValues<string>;
  /** What was counted or observed. */
  value: number;
  /** Seconds since the epoch. */
  timestamp: number;
}

// ---------------------------------------------------------------------------------------------------------- registries

/** Something that collects metrics when called. */
export type Collector = () => void;

/**
 * A set of metrics that are exposed together.
 */
export class Registry<BoundRegistryContentType extends RegistryContentType = PrometheusContentType> {
  static readonly PROMETHEUS_CONTENT_TYPE: PrometheusContentType;
  static readonly OPENMETRICS_CONTENT_TYPE: OpenMetricsContentType;

  /** The registry that metrics are in unless told otherwise, `register` by another name. */
  static globalRegistry: Registry;

  /**
   * A new registry with the metrics of several. Default labels of these are left behind.
   *
   * @throws {TypeError} where the list is empty
   * @throws {Error} where they differ in content type, or have different metrics of one name
   */
  static merge(registers: Registry[]): Registry;

  /**
   * @param contentType the format that metrics() writes, default Prometheus text
   * @throws {TypeError} where the format is not known
   */
  constructor(contentType?: BoundRegistryContentType);

  /** Everything as text, after all `collect` hooks have run. Rejected where one of them fails. */
  metrics(): Promise<string>;

  /** One metric as text, without a line feed at its end. It need not be in this registry. */
  getMetricsAsString<T extends string>(metric: Metric<T>): Promise<string>;

  /** The text of the metric with this name. Rejected with a TypeError where there is none. */
  getSingleMetricAsString(name: string): Promise<string>;

  /**
   * Everything as objects, with default labels where a sample does not have them. These objects are copies.
   *
   * @param aggregator only metrics of that aggregator
   */
  getMetricsAsJSON(aggregator?: string): Promise<MetricObjectWithValues<MetricValue<string>>[]>;

  /**
   * The metrics themselves, in order of registration.
   *
   * @param aggregator only metrics of that aggregator
   */
  getMetricsAsArray(aggregator?: string): MetricObject[];

  getSingleMetric<T extends string>(name: string): Metric<T> | undefined;

  /** @throws {Error} where another metric has that name */
  registerMetric<T extends string>(metric: Metric<T>): void;

  /** Drops the metric of that name, if there is one. */
  removeSingleMetric(name: string): void;

  /** Drops all metrics and the default labels. */
  clear(): void;

  /** Resets each metric. */
  resetMetrics(): void;

  /** Labels for every sample that does not have them. Replaces those set before. */
  setDefaultLabels(labels: object): void;

  /** The format that metrics() writes. */
  readonly contentType: BoundRegistryContentType;

  /** @throws {Error} where the format is not known */
  setContentType(contentType: BoundRegistryContentType): void;
}

/** The global registry. */
export const register: Registry;

/** The options of the first AggregatorRegistry of a process count for all, except `timeout`. */
export interface AggregatorRegistryOptions {
  /** Milliseconds that a scrape waits for workers, default 5000. Later ones are shown with their last numbers. */
  timeout?: number;
  /**
   * An existing directory, in which the directory of snapshot files is made. Default os.tmpdir(), and /dev/shm where that
   * cannot be written.
   */
  directory?: string;
  /** Milliseconds that a dead worker's label sets stay which no live worker exposes, default one hour. */
  retiredMaxAge?: number;
  /** Aggregate on this event loop, in slices, instead of in a thread. Default false. */
  inPlace?: boolean;
  /** Add the primary's own registries (see setRegistries) to the workers'. Default false. */
  includePrimary?: boolean;
  /**
   * Milliseconds after which a worker that has recorded something writes it down, at least 100: one that is killed
   * loses no more than that. Default 0: a worker writes at its orderly end only.
   */
  checkpointInterval?: number;
}

export interface ClusterMetricsOptions {
  /** Milliseconds to wait for workers, default that of the registry. */
  timeout?: number;
  /** Add metrics of the scrape itself: workers by state, age of the numbers, failures. Default false. */
  selfMetrics?: boolean;
}

export interface ClusterMetricsBytesOptions extends ClusterMetricsOptions {
  /** Compress with gzip, off this event loop. Default false. */
  gzip?: boolean;
}

export interface ClusterMetricsBody {
  /** A Buffer, where the types of Node.js are there. */
  bytes: Bytes;
  /** Whether there is nothing but ASCII in the text. */
  ascii: boolean;
}

/** How the cluster's metrics are collected. */
export interface ClusterState {
  /** Workers that are connected, or were and are not among the retired totals yet. */
  workers: number;
  /** Workers that have not answered in time and are shown with their last numbers. */
  silent: number;
  /** Workers whose last answer was an error. */
  failing: number;
  /** Dead workers whose numbers are not among the retired totals yet. */
  retiring: number;
  /** Dead workers whose numbers are. */
  retired: number;
  /** Aggregator threads that ended or hung, and were replaced. */
  lostThreads: number;
  /** Where snapshot files are; '' where none can be written. */
  directory: string;
  /** How many answers could not be used, or came over IPC, by reason. */
  refused: { [reason: string]: number };
  /** What failed in workers: `collect` hooks, by metric, and writes; and `max-series`, what metrics had no room for. */
  failures: { stage: string; metric: string; count: number }[];
  /** How often a worker's metric was left out because others have its name for another type. */
  conflicts: number;
  /** When the oldest numbers of the last scrape were taken, in milliseconds since the epoch. */
  oldestCapture: number | undefined;
  /** Size of all workers' last snapshots together. */
  snapshotBytes: number;
}

/** Buffer, where the types of Node.js are there. */
export type Bytes = typeof globalThis extends { Buffer: { concat(list: any, totalLength?: any): infer B } }
  ? B
  : Uint8Array;

/**
 * The metrics of all workers of a cluster, in its primary. In a worker it is a registry like any other: workers answer
 * from the moment that the library is loaded.
 */
export class AggregatorRegistry<T extends RegistryContentType = RegistryContentType> extends Registry<T> {
  /**
   * Aggregates metrics that are there as JSON, one list for each process.
   *
   * @param metricsArr lists of metrics as getMetricsAsJSON() returns them
   * @param contentType of the registry that is returned, default Prometheus text
   * @throws {Error} where a metric names an unknown aggregator
   */
  static aggregate<T extends RegistryContentType>(metricsArr: Array<object>, contentType?: T): Registry<T>;

  /** Names the registries that a worker answers with; default the global one. */
  static setRegistries(
    regs:
      | Array<Registry<PrometheusContentType> | Registry<OpenMetricsContentType>>
      | Registry<PrometheusContentType>
      | Registry<OpenMetricsContentType>,
  ): void;

  /**
   * @param contentType the format of clusterMetrics(), default Prometheus text
   * @throws {TypeError} where the format is not known, or an option is not what it should be
   */
  constructor(contentType?: T, options?: AggregatorRegistryOptions);

  /**
   * The metrics of all workers as text; '' where there are no workers. Rejected only where nobody answered in time and
   * nothing is known, or a metric names an unknown aggregator.
   */
  clusterMetrics(options?: ClusterMetricsOptions): Promise<string>;

  /**
   * The same as bytes, which costs the primary's event loop far less. Undefined where there are no workers.
   */
  clusterMetricsBytes(options?: ClusterMetricsBytesOptions): Promise<ClusterMetricsBody | undefined>;

  /** How the last scrape went. Undefined where this process is no primary. */
  clusterState(): ClusterState | undefined;

  /** Milliseconds that clusterMetrics() waits for workers. */
  readonly timeout: number;

  /**
   * Makes the end of a process orderly; to be awaited before `process.exit()`. A worker's `collect` hooks run once more
   * and its numbers are left to the primary. In the primary, scrapes that are under way are answered, and what dead
   * workers have left is added to the totals. The registry can still be used.
   *
   * @param timeout milliseconds after which the promise is resolved anyway, default 5000
   */
  shutdown(timeout?: number): Promise<void>;

  /** Lets go of the cluster. The last AggregatorRegistry that does ends the thread and removes the directory. */
  close(): Promise<void>;
}

/** AggregatorRegistry by the name that it has in prom-client's successor. */
export { AggregatorRegistry as ClusterRegistry };

/** What metricsHandler() needs of a request: Node's own, or that of a framework built on it. */
export interface MetricsRequest {
  method?: string;
  headers: { [name: string]: string | string[] | undefined };
}

/** What metricsHandler() needs of a response. */
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

export interface MetricsHandlerOptions {
  /** Add to a cluster's page metrics of the scrape itself: workers by state, age of the numbers, failures. Default true. */
  selfMetrics?: boolean;
}

/**
 * Answers with a registry's metrics: for node's http and https, express, and the raw objects of fastify. Of an
 * AggregatorRegistry, those of the whole cluster. Never rejects; a failure is answered with status 500.
 *
 * @throws {TypeError} where it is no registry
 */
export function metricsHandler(
  registry: Registry<RegistryContentType>,
  options?: MetricsHandlerOptions,
): (request: MetricsRequest, response: MetricsResponse) => Promise<void>;

// ------------------------------------------------------------------------------------------------------------- metrics

/** Any of the four. */
export type Metric<T extends string = string> = Counter<T> | Gauge<T> | Histogram<T> | Summary<T>;

/** A hook that brings a metric up to date whenever it is read. */
export type CollectFunction<T> = (this: T) => void | Promise<void>;

/** What all metrics are made with. */
export interface MetricConfiguration<T extends string> {
  name: string;
  help: string;
  /** Default none. */
  labelNames?: T[] | readonly T[];
  /** Default the global registry; an empty list for none. */
  registers?: (Registry<PrometheusContentType> | Registry<OpenMetricsContentType>)[];
  /** How the workers' values of a cluster become one, default `sum`. */
  aggregator?: Aggregator;
  /** Runs before the metric is read. */
  collect?: CollectFunction<any>;
  /** Whether counters and histograms remember exemplars. Needs OpenMetrics registries. Default false. */
  enableExemplars?: boolean;
  /**
   * How many label sets are told apart, a positive integer; default as many as come. What comes after is recorded in one
   * more series, all of whose labels have the value `overflow`. Where `remove()` or `reset()` have made room, label sets
   * get series of their own again. In a cluster the limit is each worker's own.
   */
  maxSeries?: number;
}

export interface CounterConfiguration<T extends string> extends MetricConfiguration<T> {
  collect?: CollectFunction<Counter<T>>;
}

/** An increment with an exemplar, for counters with `enableExemplars`. */
export interface IncreaseDataWithExemplar<T extends string> {
  labels?: LabelValues<T>;
  /** Default 1. */
  value?: number;
  /** Together at most 128 characters of names and values. */
  exemplarLabels?: LabelValues<T> | LabelValues<string>;
}

/**
 * A value that only goes up: requests served, bytes sent, errors.
 */
export class Counter<T extends string = string> {
  /**
   * @throws {TypeError} where a registry cannot write the exemplars that are asked for
   * @throws {Error} where name, help or a label name is not valid, or the name is taken
   */
  constructor(configuration: CounterConfiguration<T>);

  /**
   * How often a label set found no room under `maxSeries` and was recorded in the series labelled `overflow`. A child
   * counts when it binds to that series, not with each call. Always there; optional here, so that objects which were
   * written to fit prom-client's type still do.
   */
  readonly overflowCount?: number;

  /**
   * @param value default 1, not negative
   * @throws {TypeError} where the value is not a finite number
   * @throws {Error} where it is negative, or a label is not one of `labelNames`
   */
  inc(labels: LabelValues<T>, value?: number): void;
  inc(value?: number): void;
  inc(incData: IncreaseDataWithExemplar<T>): void;

  /** A child for one label set, for hot paths: its `inc` looks nothing up. All values in the order of `labelNames`. */
  labels(...values: string[]): Counter.Internal;
  labels(labels: LabelValues<T>): Counter.Internal;

  /** The metric with its samples, after its `collect` hook has run. */
  get(): Promise<MetricObjectWithValues<MetricValue<T>>>;

  /** Drops all series; the one of a counter without labels starts again at 0. */
  reset(): void;

  /** Forgets a label set. It starts from zero when it is used again. */
  remove(...values: string[]): void;
  remove(labels: LabelValues<T>): void;
}

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
  /** @throws {Error} where name, help or a label name is not valid, or the name is taken */
  constructor(configuration: GaugeConfiguration<T>);

  /**
   * How often a label set found no room under `maxSeries` and was recorded in the series labelled `overflow`. A child
   * counts when it binds to that series, not with each call. Always there; optional here, so that objects which were
   * written to fit prom-client's type still do.
   */
  readonly overflowCount?: number;

  /** @param value default 1 */
  inc(labels: LabelValues<T>, value?: number): void;
  inc(value?: number): void;

  /** @param value default 1 */
  dec(labels: LabelValues<T>, value?: number): void;
  dec(value?: number): void;

  /** @param value NaN and infinities are allowed */
  set(labels: LabelValues<T>, value: number): void;
  set(value: number): void;

  /** Sets the gauge to the seconds since the epoch, with fraction. */
  setToCurrentTime(labels?: LabelValues<T>): void;

  /**
   * Starts a timer.
   *
   * @returns sets the gauge to the seconds since the start, and returns them; labels given there are added to these
   */
  startTimer(labels?: LabelValues<T>): (labels?: LabelValues<T>) => number;

  /** A child for one label set, for hot paths: it looks nothing up. All values in the order of `labelNames`. */
  labels(...values: string[]): Gauge.Internal<T>;
  labels(labels: LabelValues<T>): Gauge.Internal<T>;

  /** The metric with its samples, after its `collect` hook has run. */
  get(): Promise<MetricObjectWithValues<MetricValue<T>>>;

  /** Drops all series; the one of a gauge without labels starts again at 0. */
  reset(): void;

  /** Forgets a label set. It starts from zero when it is used again. */
  remove(...values: string[]): void;
  remove(labels: LabelValues<T>): void;
}

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
  /** Upper bounds in the unit that is observed; default 5 ms to 10 s, in seconds. */
  buckets?: number[];
  collect?: CollectFunction<Histogram<T>>;
}

/** An observation with an exemplar, for histograms with `enableExemplars`. */
export interface ObserveDataWithExemplar<T extends string> {
  labels?: LabelValues<T>;
  value: number;
  /** Together at most 128 characters of names and values. */
  exemplarLabels?: LabelValues<T> | LabelValues<string>;
}

/**
 * A distribution in buckets: request durations, payload sizes. Buckets of several processes can be added up.
 */
export class Histogram<T extends string = string> {
  /**
   * @throws {TypeError} where a registry cannot write the exemplars that are asked for
   * @throws {Error} where name, help or a label name is not valid or `le`, or the name is taken
   */
  constructor(configuration: HistogramConfiguration<T>);

  /**
   * How often a label set found no room under `maxSeries` and was recorded in the series labelled `overflow`. A child
   * counts when it binds to that series, not with each call. Always there; optional here, so that objects which were
   * written to fit prom-client's type still do.
   */
  readonly overflowCount?: number;

  /**
   * @throws {TypeError} where the value is not a finite number
   * @throws {Error} where a label is not one of `labelNames`
   */
  observe(value: number): void;
  observe(labels: LabelValues<T>, value: number): void;
  observe(observeData: ObserveDataWithExemplar<T>): void;

  /**
   * Starts a timer.
   *
   * @param exemplarLabels where exemplars are enabled
   * @returns observes the seconds since the start, and returns them; labels given there are added to these
   */
  startTimer(labels?: LabelValues<T>): (labels?: LabelValues<T>) => number;
  startTimer(
    labels?: LabelValues<T>,
    exemplarLabels?: LabelValues<T> | LabelValues<string>,
  ): (labels?: LabelValues<T>, exemplarLabels?: LabelValues<T> | LabelValues<string>) => number;

  /** Sets a series to no observations, creating it if need be. */
  zero(labels: LabelValues<T>): void;

  /** A child for one label set, for hot paths: it looks nothing up. All values in the order of `labelNames`. */
  labels(...values: string[]): Histogram.Internal<T>;
  labels(labels: LabelValues<T>): Histogram.Internal<T>;

  /** The metric with its samples, after its `collect` hook has run. Buckets are cumulative. */
  get(): Promise<MetricObjectWithValues<MetricValueWithName<T>>>;

  /** Drops all series; the one of a histogram without labels starts again with no observations. */
  reset(): void;

  /** Forgets a label set. It starts from zero when it is used again. */
  remove(...values: string[]): void;
  remove(labels: LabelValues<T>): void;
}

export namespace Histogram {
  /** A histogram's child for one label set. */
  interface Internal<T extends string> {
    observe(value: number): void;
    startTimer(): (labels?: LabelValues<T>) => void;
  }

  interface Config {
    /** Upper bounds in the unit that is observed. */
    buckets?: number[];
  }
}

export interface SummaryConfiguration<T extends string> extends MetricConfiguration<T> {
  /** Quantiles between 0 and 1, default 0.01, 0.05, 0.5, 0.9, 0.95, 0.99 and 0.999. */
  percentiles?: number[];
  /** Seconds that an observation counts for the quantiles; only with `ageBuckets`. Default for ever. */
  maxAgeSeconds?: number;
  /** Steps in which the window of `maxAgeSeconds` moves on. */
  ageBuckets?: number;
  /** Drop label sets whose window is empty. Default false. */
  pruneAgedBuckets?: boolean;
  /** Observations between two compressions of a digest, default 1000. */
  compressCount?: number;
  collect?: CollectFunction<Summary<T>>;
}

/**
 * Quantiles of what was observed, with sum and count.
 */
export class Summary<T extends string = string> {
  /** @throws {Error} where name, help or a label name is not valid or `quantile`, or the name is taken */
  constructor(configuration: SummaryConfiguration<T>);

  /**
   * How often a label set found no room under `maxSeries` and was recorded in the series labelled `overflow`. A child
   * counts when it binds to that series, not with each call. Always there; optional here, so that objects which were
   * written to fit prom-client's type still do.
   */
  readonly overflowCount?: number;

  /**
   * @throws {TypeError} where the value is not a finite number
   * @throws {Error} where a label is not one of `labelNames`
   */
  observe(value: number): void;
  observe(labels: LabelValues<T>, value: number): void;

  /**
   * Starts a timer.
   *
   * @returns observes the seconds since the start, and returns them; labels given there are added to these
   */
  startTimer(labels?: LabelValues<T>): (labels?: LabelValues<T>) => number;

  /** A child for one label set, for hot paths: it looks nothing up. All values in the order of `labelNames`. */
  labels(...values: string[]): Summary.Internal<T>;
  labels(labels: LabelValues<T>): Summary.Internal<T>;

  /** The metric with its samples, after its `collect` hook has run. */
  get(): Promise<MetricObjectWithValues<MetricValueWithName<T>>>;

  /** Sets all series to no observations; none is dropped. */
  reset(): void;

  /** Forgets a label set. It starts from zero when it is used again. */
  remove(...values: string[]): void;
  remove(labels: LabelValues<T>): void;
}

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
 * Bounds at equal distances.
 *
 * @throws {Error} where count is below 1
 */
export function linearBuckets(start: number, width: number, count: number): number[];

/**
 * Bounds that grow by a factor.
 *
 * @param start above 0
 * @param factor above 1
 * @throws {Error} where an argument is out of range
 */
export function exponentialBuckets(start: number, factor: number, count: number): number[];

/** Whether Prometheus accepts this as the name of a metric. */
export function validateMetricName(name: string): boolean;

// ------------------------------------------------------------------------------------------------------ default metrics

/** A family of metrics that `runtime` adds to the default metrics. */
export type RuntimeMetricName =
  'gc' | 'heap' | 'memory' | 'eventLoopUtilization' | 'eventLoopDelay' | 'process' | 'cgroup';

export interface DefaultMetricsCollectorConfiguration<T extends RegistryContentType> {
  /** Default the global registry. */
  register?: Registry<T>;
  /** In front of every metric's name. */
  prefix?: string;
  /** Bounds in seconds, default 0.001, 0.01, 0.1, 1, 2 and 5. */
  gcDurationBuckets?: number[];
  /** Milliseconds between two samples of the event loop's delay, default 10; of the family `eventLoopDelay` 20. */
  eventLoopMonitoringPrecision?: number;
  /** Added to every sample. */
  labels?: object;
  /** Whether the CPU counters point to the active OpenTelemetry trace. Needs an OpenMetrics registry. Default false. */
  enableExemplars?: boolean;
  /** Metrics of the runtime beside those of prom-client: true for all, or the names of families. Default none. */
  runtime?: boolean | readonly RuntimeMetricName[];
  /** Bounds in seconds that rise, of `nodejs_eventloop_delay_seconds`. Default 0.001 to 10. */
  eventLoopDelayBuckets?: readonly number[];
}

/**
 * Registers metrics of the process and of Node.js. They are sampled when they are read.
 *
 * @returns stops: from then on nothing runs, and no default metric changes
 * @throws {TypeError} where `runtime` names a family that there is not, or `eventLoopDelayBuckets` do not rise
 * @throws {Error} where a metric of one of the names is registered
 */
export const collectDefaultMetrics: {
  <T extends RegistryContentType>(config?: DefaultMetricsCollectorConfiguration<T> | null): () => void;
  // The last signature is what a test's stub has to look like: one that returns nothing will do.
  <T extends RegistryContentType>(config?: DefaultMetricsCollectorConfiguration<T> | null): void;
  /** The names of the families, in order of their output. */
  metricsList: string[];
  /** The names that `runtime` takes, in order of their output. */
  runtimeMetricsList: RuntimeMetricName[];
};

// --------------------------------------------------------------------------------------------------------- pushgateway

/**
 * Pushes metrics to a Prometheus Pushgateway, for jobs that do not live long enough to be scraped.
 */
export class Pushgateway<T extends RegistryContentType = RegistryContentType> {
  /**
   * @param url http or https, with `user:password@` for basic authentication
   * @param options what http.request() takes, and `requireJobName` (default true)
   * @param registry default the global registry
   */
  constructor(url: string, registry: Registry<T>);
  constructor(url: string, options?: any, registry?: Registry<T>);

  /** Replaces those metrics of the group that have the name of a pushed one (POST). */
  pushAdd(params: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;

  /** Replaces all metrics of the group (PUT). */
  push(params: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;

  /** Removes the group (DELETE). */
  delete(params: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;
}

export namespace Pushgateway {
  /** The group of series that a push replaces or a delete removes. */
  interface Parameters {
    jobName: string;
    /** Further labels of the group. */
    groupings?: { [key: string]: string };
  }
}
