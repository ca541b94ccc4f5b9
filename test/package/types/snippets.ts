// Programs of one module each, which compile with the types of prom-client 15.1.3. Each is compiled on its
// own, with the options of several configurations.

// ## metrics with and without labels
import { Counter, Gauge, Histogram, Summary } from 'prom-client';
new Counter({ name: 'c', help: 'h' }).inc();
new Gauge({ name: 'g', help: 'h', labelNames: ['a', 'b'] }).set({ a: 1, b: 'x' }, 2);
new Histogram({ name: 'h', help: 'h', buckets: [1, 2], labelNames: ['a'] as const }).observe({ a: 'x' }, 1);
new Summary<'a'>({ name: 's', help: 'h', percentiles: [0.5] }).labels('x').observe(1);

// ## a metric in a variable of its type
import { Counter, Gauge, Histogram, Summary } from 'prom-client';
const counter: Counter = new Counter({ name: 'c', help: 'h' });
const gauge: Gauge<'a'> = new Gauge({ name: 'g', help: 'h', labelNames: ['a'] });
const histogram: Histogram<'a' | 'b'> = new Histogram({ name: 'h', help: 'h', labelNames: ['a', 'b'] });
const summary: Summary<string> = new Summary({ name: 's', help: 'h', labelNames: ['a'] });
[counter, gauge, histogram, summary].forEach(metric => metric.reset());

// ## a metric with labels where one with any labels is wanted, and the other way round
import { Counter, Histogram, Metric } from 'prom-client';
declare const narrow: Counter<'a'>;
const wide: Counter<string> = narrow;
const back: Counter<'a'> = wide;
const metrics: Metric<string>[] = [narrow, back, new Histogram({ name: 'h', help: 'h', labelNames: ['b'] })];

// ## labels from an enum
import { Counter } from 'prom-client';
enum Label {
  Method = 'method',
  Code = 'code',
}
const counter = new Counter({ name: 'c', help: 'h', labelNames: Object.values(Label) });
counter.inc({ [Label.Method]: 'GET', [Label.Code]: 200 });

// ## a configuration that is built in steps
import { Histogram, HistogramConfiguration } from 'prom-client';
const configuration: HistogramConfiguration<'route'> = { name: 'h', help: 'h', labelNames: ['route'] };
configuration.buckets = [0.1, 1];
configuration.collect = function () {
  this.observe({ route: '/' }, 1);
};
const histogram = new Histogram(configuration);
new Histogram({ ...configuration, name: 'h2' }).zero({ route: '/' });
histogram.zero({ route: '/' });

// ## an asynchronous collect hook
import { Gauge } from 'prom-client';
new Gauge({
  name: 'g',
  help: 'h',
  async collect() {
    this.set(await Promise.resolve(1));
  },
});

// ## children
import { Counter, Gauge, Histogram, Summary } from 'prom-client';
declare const metrics: { c: Counter<'a'>; g: Gauge<'a'>; h: Histogram<'a'>; s: Summary<'a'> };
const c: Counter.Internal = metrics.c.labels('x');
const g: Gauge.Internal<'a'> = metrics.g.labels({ a: 1 });
const h: Histogram.Internal<'a'> = metrics.h.labels('x');
const s: Summary.Internal<'a'> = metrics.s.labels({ a: 'x' });
const end = h.startTimer();
end({ a: 'y' });
const seconds: number = s.startTimer()() + g.startTimer()({ a: 'z' });
c.inc();

// ## exemplars
import { Counter, Histogram } from 'prom-client';
const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a', 'trace'], enableExemplars: true });
counter.inc({ value: 1, labels: { a: 'x' }, exemplarLabels: { trace: 'y' } });
const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['a', 'trace'], enableExemplars: true });
histogram.observe({ value: 1, labels: { a: 'x' }, exemplarLabels: { trace: 'y' } });
histogram.startTimer({ a: 'x' }, { trace: 'y' })({}, { trace: 'z' });

// ## timers in variables
import { Gauge, Histogram, Summary } from 'prom-client';
declare const histogram: Histogram<'route'>;
declare const gauge: Gauge<'route'>;
declare const summary: Summary<'route'>;
let end: (labels?: { route?: string }) => number = histogram.startTimer();
end = gauge.startTimer({ route: '/' });
let stop: ReturnType<typeof histogram.startTimer>;
stop = histogram.startTimer({ route: '/' });
const ends: (() => void)[] = [end, stop, summary.startTimer()];
let later: (() => number) | undefined;
later = summary.startTimer();
later();

// ## a timer of its own type
import { Histogram } from 'prom-client';
type End = (labels?: Partial<Record<'route', string | number>>) => number;
const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['route'] });
class Request {
  end: End = histogram.startTimer();
}
new Request().end({ route: '/' });

// ## the values of a metric
import { Counter, Histogram, MetricObjectWithValues, MetricValue, MetricValueWithName } from 'prom-client';
export async function read(counter: Counter<'a'>, histogram: Histogram<'a'>): Promise<number> {
  const one: MetricObjectWithValues<MetricValue<'a'>> = await counter.get();
  const many: MetricObjectWithValues<MetricValueWithName<'a'>> = await histogram.get();
  const count = many.values.filter(({ metricName }) => metricName === 'h_count')[0];
  return one.values[0]!.value + (count ? count.value : 0);
}

// ## a subclass that overrides startTimer() as a method
import { Gauge, Histogram, LabelValues, Summary } from 'prom-client';
class Slow extends Histogram<'route'> {
  override startTimer(labels?: LabelValues<'route'>): (labels?: LabelValues<'route'>) => number {
    const end = super.startTimer(labels);
    return more => end(more) * 2;
  }
}
class SlowGauge<T extends string> extends Gauge<T> {
  override startTimer(labels?: LabelValues<T>): (labels?: LabelValues<T>) => number {
    return super.startTimer(labels);
  }
}
class SlowSummary extends Summary {
  override startTimer() {
    return () => 1;
  }
}
const asHistogram: Histogram<'route'> = new Slow({ name: 'h', help: 'h', labelNames: ['route'] });

// ## a subclass that overrides startTimer() as a property
import { Histogram, LabelValues } from 'prom-client';
class Slow extends Histogram<'route'> {
  override startTimer = (_labels?: LabelValues<'route'>) => () => 1;
}
const end: () => number = new Slow({ name: 'h', help: 'h' }).startTimer();

// ## a subclass that overrides other methods
import { Counter, LabelValues } from 'prom-client';
class Logged extends Counter<'a'> {
  override inc(...given: any[]): void {
    super.inc(...(given as [LabelValues<'a'>, number]));
  }
  override reset() {
    super.reset();
  }
  override labels(...values: any[]): Counter.Internal {
    return super.labels(...values);
  }
}
new Logged({ name: 'c', help: 'h', labelNames: ['a'] }).inc({ a: 'x' });

// ## a subclass with members of its own
import { Gauge, GaugeConfiguration } from 'prom-client';
class Peak<T extends string> extends Gauge<T> {
  private highest = 0;
  constructor(
    configuration: GaugeConfiguration<T>,
    readonly unit = 'bytes',
  ) {
    super(configuration);
  }
  peak(value: number): void {
    this.highest = Math.max(this.highest, value);
    this.set(this.highest);
  }
}
const peak = new Peak({ name: 'g', help: 'h', labelNames: ['a'] });
peak.peak(1);
peak.set({ a: peak.unit }, 1);

// ## a subclass without a constructor, of a metric of any labels
import { Counter } from 'prom-client';
class Requests extends Counter {
  served(): void {
    this.inc({ code: 200 });
  }
}
const requests: Counter<string> = new Requests({ name: 'c', help: 'h', labelNames: ['code'] });

// ## an abstract subclass, and a static factory
import { Summary, SummaryConfiguration } from 'prom-client';
abstract class Sized<T extends string> extends Summary<T> {
  abstract sizeOf(thing: unknown): number;
  add(thing: unknown): void {
    this.observe(this.sizeOf(thing));
  }
}
class Texts extends Sized<'a'> {
  static create(configuration: SummaryConfiguration<'a'>): Texts {
    return new this(configuration);
  }
  sizeOf(thing: unknown): number {
    return String(thing).length;
  }
}
Texts.create({ name: 's', help: 'h' }).add('x');

// ## a subclass of Registry
import { Registry } from 'prom-client';
class Prefixed extends Registry {
  override async metrics(): Promise<string> {
    return '# prefixed\n' + (await super.metrics());
  }
  override clear(): void {}
}
const registry: Registry = new Prefixed();

// ## a subclass of AggregatorRegistry
import { AggregatorRegistry, PrometheusContentType } from 'prom-client';
class Cluster extends AggregatorRegistry<PrometheusContentType> {
  override clusterMetrics(): Promise<string> {
    return super.clusterMetrics();
  }
}
new Cluster().clusterMetrics();

// ## a subclass of Pushgateway
import { Pushgateway, RegistryContentType } from 'prom-client';
class Gateway<T extends RegistryContentType> extends Pushgateway<T> {
  override push(params: Pushgateway.Parameters) {
    return super.push({ ...params, groupings: { instance: 'a' } });
  }
}
new Gateway('http://127.0.0.1').push({ jobName: 'a' });

// ## a mixin
import { Counter } from 'prom-client';
type Constructor<M> = new (...args: any[]) => M;
function named<C extends Constructor<Counter<string>>>(Base: C) {
  return class extends Base {
    title = 'a counter';
  };
}
const Named = named(Counter);
const text: string = new Named({ name: 'c', help: 'h' }).title;

// ## casts to a metric with internal members
import { Counter, Gauge, Histogram, Metric } from 'prom-client';
const gauge = new Gauge({ name: 'g', help: 'h', labelNames: ['a'] });
(gauge as Gauge<string> & { collect(): void }).collect();
const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['a'] });
const bounds: number[] = (histogram as Histogram<string> & { upperBounds: number[] }).upperBounds;
declare const metric: Metric<string>;
const { name } = metric as Counter<string> & { name: string };
const named = (metric as unknown as { name: string }).name;

// ## casts from and to a part of a metric
import { Counter, Histogram } from 'prom-client';
const counter = new Counter({ name: 'c', help: 'h' });
const part = counter as { inc(value?: number): void };
const whole = part as Counter<string>;
const mock = { observe: (_value: number) => {} } as Histogram<string>;
const partial = counter as Partial<Counter<string>>;
if (partial.inc) partial.inc(1);
whole.inc();
mock.observe(1);

// ## casts of what getSingleMetric() returns
import { Counter, Gauge, Histogram, register } from 'prom-client';
(register.getSingleMetric('c') as Counter<'a'>).inc({ a: 'x' });
const gauge = register.getSingleMetric<'a'>('g') as Gauge<'a'> | undefined;
if (gauge) gauge.set({ a: 'x' }, 1);
const histogram = <Histogram<string>>register.getSingleMetric('h');
const known = register.getSingleMetric('c');
if (known instanceof Counter) known.inc();
histogram.observe(1);

// ## casts of metrics as JSON
import { MetricObjectWithValues, MetricValue, MetricValueWithName, register } from 'prom-client';
export async function names(): Promise<string[]> {
  const metrics = await register.getMetricsAsJSON();
  const named = metrics as MetricObjectWithValues<MetricValueWithName<string>>[];
  const one = metrics[0] as MetricObjectWithValues<MetricValue<'a'>>;
  const internals = (register as any)._metrics as { [name: string]: unknown };
  return [...named.map(({ name }) => name), one.help, ...Object.keys(internals)];
}

// ## stand-ins with the members of prom-client
import { Counter, Gauge, Histogram, Summary } from 'prom-client';
declare const values: any;
const counter: Counter<'a'> = {
  inc: () => {},
  get: async () => values,
  labels: () => ({ inc: () => {} }),
  reset: () => {},
  remove: () => {},
};
const timed = { startTimer: () => () => 1, labels: () => values, get: async () => values };
const removed = { reset() {}, remove() {} };
const gauge: Gauge<'a'> = {
  ...timed,
  ...removed,
  inc() {},
  dec() {},
  set() {},
  setToCurrentTime() {},
};
const histogram: Histogram<'a'> = { ...timed, ...removed, observe() {}, zero() {} };
const summary: Summary<'a'> = { ...timed, ...removed, observe() {} };

// ## classes that implement a metric
import { Counter, Histogram, LabelValues } from 'prom-client';
class NoCounter<T extends string> implements Counter<T> {
  inc(): void {}
  async get(): Promise<any> {}
  labels(): Counter.Internal {
    return this;
  }
  reset(): void {}
  remove(): void {}
}
class NoHistogram<T extends string> implements Histogram<T> {
  observe(): void {}
  startTimer(_labels?: LabelValues<T>): (labels?: LabelValues<T>) => number {
    return () => 0;
  }
  zero(): void {}
  async get(): Promise<any> {}
  labels(): any {}
  reset(): void {}
  remove(): void {}
}
const counters: Counter<'a'>[] = [new NoCounter(), new Counter({ name: 'c', help: 'h', labelNames: ['a'] })];
const histogram: Histogram<'a'> = new NoHistogram<'a'>();

// ## a class that implements Registry
import { Metric, MetricObject, PrometheusContentType, Registry } from 'prom-client';
class NoRegistry implements Registry {
  contentType: PrometheusContentType = 'text/plain; version=0.0.4; charset=utf-8';
  async metrics(): Promise<string> {
    return '';
  }
  clear(): void {}
  resetMetrics(): void {}
  registerMetric(_metric: Metric<any>): void {}
  async getMetricsAsJSON(): Promise<any> {
    return [];
  }
  getMetricsAsArray(): MetricObject[] {
    return [];
  }
  removeSingleMetric(): void {}
  getSingleMetric(): undefined {
    return undefined;
  }
  setDefaultLabels(): void {}
  async getSingleMetricAsString(): Promise<string> {
    return '';
  }
  setContentType(): void {}
}
const registries: Registry[] = [new NoRegistry(), new Registry()];

// ## stand-ins for parts of a metric
import { Counter, Gauge, Histogram } from 'prom-client';
type Countable = Pick<Counter<'a'>, 'inc' | 'labels'>;
const countable: Countable = { inc() {}, labels: () => ({ inc() {} }) };
const real: Countable = new Counter({ name: 'c', help: 'h', labelNames: ['a'] });
const timer: Pick<Histogram<'a'>, 'startTimer'> = { startTimer: () => () => 1 };
const realTimer: Pick<Gauge<'a'>, 'startTimer'> = new Gauge({ name: 'g', help: 'h', labelNames: ['a'] });
interface Metrics {
  counter: Omit<Counter<'a'>, 'get'>;
}
const metrics: Metrics = { counter: { inc() {}, labels: () => ({ inc() {} }), reset() {}, remove() {} } };

// ## mocks of functions, as Jest's types make them
import { Counter, Histogram } from 'prom-client';
interface MockInstance<R, Args extends any[]> {
  mockReturnValue(value: R): this;
  mockImplementation(implementation?: (...args: Args) => R): this;
}
type FunctionKeys<T> = { [K in keyof T]: T[K] extends (...args: any[]) => any ? K : never }[keyof T] & string;
declare function spyOn<T extends object, M extends FunctionKeys<T>>(
  object: T,
  method: M,
): T[M] extends (...args: infer Args) => infer R ? MockInstance<R, Args> : never;
declare const histogram: Histogram<'a'>;
spyOn(histogram, 'startTimer').mockReturnValue(() => 1);
spyOn(histogram, 'observe').mockImplementation(() => {});
spyOn(new Counter({ name: 'c', help: 'h' }), 'inc').mockImplementation(() => undefined);

// ## a mock of a whole metric, as Jest's types make it
import { Counter } from 'prom-client';
type Mocked<T> = {
  [K in keyof T]: T[K] extends (...args: infer Args) => infer R
    ? ((...args: Args) => R) & { calls: Args[] }
    : T[K];
} & T;
declare const mocked: Mocked<Counter<string>>;
const calls: unknown[] = mocked.inc.calls;
const counter: Counter<string> = mocked;
const stub: { [K in keyof Counter<string>]?: unknown } = { inc: () => 1 };

// ## a mock in place of a constructor
import { Counter, Gauge } from 'prom-client';
declare const counter: Counter<string>;
declare const gauge: Gauge<string>;
const construct: (...args: ConstructorParameters<typeof Counter>) => InstanceType<typeof Counter> = () =>
  counter;
function replace<C extends new (...args: any[]) => any>(
  _constructor: C,
  _implementation: (...args: ConstructorParameters<C>) => InstanceType<C>,
): void {}
replace(Gauge, () => gauge);
replace(Counter, construct);

// ## stand-ins for collectDefaultMetrics()
import { collectDefaultMetrics } from 'prom-client';
const noMetrics: typeof collectDefaultMetrics = Object.assign(() => {}, { metricsList: ['a'] });
const parameters: Parameters<typeof collectDefaultMetrics> = [{ prefix: 'a_' }];
const result: ReturnType<typeof collectDefaultMetrics> = undefined;
function start(collect: typeof collectDefaultMetrics = collectDefaultMetrics): void {
  collect({ prefix: 'a_' });
}
start(noMetrics);

// ## collectDefaultMetrics() returns nothing
import { collectDefaultMetrics, register } from 'prom-client';
const nothing: void = collectDefaultMetrics();
const start = (): void => collectDefaultMetrics({ register });
const later = async (): Promise<void> => collectDefaultMetrics({ prefix: 'a_' });
const hooks: { onModuleInit(): void } = { onModuleInit: () => collectDefaultMetrics({ labels: { a: 1 } }) };

// ## the options of collectDefaultMetrics()
import { collectDefaultMetrics, DefaultMetricsCollectorConfiguration, Registry } from 'prom-client';
import { OpenMetricsContentType, RegistryContentType } from 'prom-client';
const options: DefaultMetricsCollectorConfiguration<RegistryContentType> = { prefix: 'a_' };
options.gcDurationBuckets = [1, 2];
options.register = new Registry<RegistryContentType>();
collectDefaultMetrics(options);
collectDefaultMetrics<OpenMetricsContentType>({ eventLoopMonitoringPrecision: 5 });
const names: string[] = collectDefaultMetrics.metricsList.filter(name => name !== 'gc');

// ## registries and their content types
import { OpenMetricsContentType, openMetricsContentType, PrometheusContentType, Registry } from 'prom-client';
import { contentType, prometheusContentType, register, RegistryContentType } from 'prom-client';
const prometheus = new Registry<PrometheusContentType>();
const open = new Registry<OpenMetricsContentType>();
open.setContentType(openMetricsContentType);
prometheus.setContentType(Registry.PROMETHEUS_CONTENT_TYPE);
const types: RegistryContentType[] = [contentType, prometheusContentType, open.contentType];
const merged: Registry = Registry.merge([prometheus, register]);
merged.setDefaultLabels({ app: 'a' });

// ## a registry as a parameter of any content type
import { Registry, RegistryContentType, register } from 'prom-client';
export async function page<T extends RegistryContentType>(registry: Registry<T>): Promise<[T, string]> {
  return [registry.contentType, await registry.metrics()];
}
page(register);
page(new Registry<RegistryContentType>());

// ## a factory of metrics by their types
import { Counter, CounterConfiguration, Gauge, GaugeConfiguration, Metric } from 'prom-client';
interface Types<T extends string> {
  counter: [Counter<T>, CounterConfiguration<T>];
  gauge: [Gauge<T>, GaugeConfiguration<T>];
}
class Factory {
  private readonly known = new Map<string, Metric<any>>();
  counter<T extends string>(configuration: CounterConfiguration<T>): Counter<T> {
    return this.get(configuration.name, () => new Counter<T>(configuration));
  }
  gauge<T extends string>(configuration: Types<T>['gauge'][1]): Types<T>['gauge'][0] {
    return this.get(configuration.name, () => new Gauge(configuration));
  }
  private get<M extends Metric<any>>(name: string, create: () => M): M {
    const metric = (this.known.get(name) as M | undefined) || create();
    this.known.set(name, metric);
    return metric;
  }
}
new Factory().counter({ name: 'c', help: 'h', labelNames: ['a'] }).inc({ a: 1 });

// ## a constructor as a parameter
import { Counter, Gauge, MetricConfiguration, Summary } from 'prom-client';
function create<M, C extends MetricConfiguration<string>>(
  Type: new (configuration: C) => M,
  configuration: C,
): M {
  return new Type(configuration);
}
create(Counter, { name: 'c', help: 'h' }).inc();
create(Gauge, { name: 'g', help: 'h' }).set(1);
const classes = { Counter, Gauge, Summary };
new classes.Summary({ name: 's', help: 'h' }).observe(1);
const All = [Counter, Gauge, Summary];
All.map(Type => new Type({ name: 'x', help: 'h' }).reset());

// ## a decorator of functions
import { Histogram } from 'prom-client';
export function timed<A extends unknown[], R>(
  histogram: Histogram<'result'>,
  action: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  return (...args) => {
    const end = histogram.startTimer();
    return action(...args).then(
      result => (end({ result: 'ok' }), result),
      error => {
        end({ result: 'error' });
        throw error;
      },
    );
  };
}

// ## exported metrics
import { Counter, Gauge, Histogram, Summary } from 'prom-client';
export const requests = new Counter({ name: 'c', help: 'h', labelNames: ['code'] });
export const queue = new Gauge({ name: 'g', help: 'h' });
export const seconds = new Histogram({ name: 'h', help: 'h', labelNames: ['route'] });
export const sizes = new Summary({ name: 's', help: 'h' });
export const end = seconds.startTimer();
export const child = seconds.labels('/');
export default { requests, queue, timers: { start: () => sizes.startTimer(), end } };

// ## an exported class with metrics
import { collectDefaultMetrics, Counter, Registry } from 'prom-client';
export class Metrics {
  readonly registry = new Registry();
  readonly errors = new Counter({ name: 'c', help: 'h', registers: [this.registry] });
  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }
  get page() {
    return this.registry.metrics();
  }
  start() {
    return collectDefaultMetrics({ register: this.registry });
  }
}

// ## the module as a namespace
import * as client from 'prom-client';
const registry: client.Registry = client.register;
const counter: client.Counter<'a'> = new client.Counter({ name: 'c', help: 'h', labelNames: ['a'] });
export const library: typeof client = client;
export function create(name: string): client.Metric<string> {
  return new client.Gauge({ name, help: name, registers: [registry] });
}

// ## the module as its default export
import client from 'prom-client';
const counter = new client.Counter({ name: 'c', help: 'h' });
client.collectDefaultMetrics();
client.register.registerMetric(counter);

// ## the module as a CommonJS module
import client = require('prom-client');
const counter: client.Counter<string> = new client.Counter({ name: 'c', help: 'h' });
const configuration: client.CounterConfiguration<'a'> = { name: 'c', help: 'h' };
counter.inc();

// ## the module as it is loaded later
export async function load(): Promise<import('prom-client').Counter<'a'>> {
  const { Counter } = await import('prom-client');
  return new Counter({ name: 'c', help: 'h', labelNames: ['a'] });
}
export type Client = typeof import('prom-client');

// ## exports of the module that are exported again
export { Counter, Gauge, register } from 'prom-client';
export * from 'prom-client';
import { Counter as PromCounter } from 'prom-client';
export class Counter2 extends PromCounter<string> {}

// ## an added member of a metric
import { Counter, Registry } from 'prom-client';
declare module 'prom-client' {
  interface Counter<T extends string> {
    double?(labels?: LabelValues<T>): void;
  }
  interface Registry {
    title?: string;
  }
}
export function use(counter: Counter<'a'>, registry: Registry): string | undefined {
  if (counter.double) counter.double({ a: 'x' });
  return registry.title;
}

// ## the aggregator of a cluster
import { Aggregator, AggregatorRegistry, Gauge, PrometheusContentType, Registry } from 'prom-client';
const cluster = new AggregatorRegistry();
const aggregators: Aggregator[] = ['sum', 'omit', 'first', 'min', 'max', 'average'];
for (const aggregator of aggregators) new Gauge({ name: aggregator, help: 'h', aggregator });
AggregatorRegistry.setRegistries([new Registry()]);
export const aggregated: Registry<PrometheusContentType> = AggregatorRegistry.aggregate([[{}]]);
export const send = (respond: (page: string) => void): void => {
  cluster.clusterMetrics().then(respond);
};

// ## an injected metric
import { Counter, CounterConfiguration, Gauge, Histogram, Summary } from 'prom-client';
type Type = typeof Counter | typeof Gauge | typeof Histogram | typeof Summary;
interface Provider<M> {
  provide: string;
  useFactory(): M;
}
export function counterProvider<T extends string>(options: CounterConfiguration<T>): Provider<Counter<T>> {
  return { provide: options.name, useFactory: () => new Counter(options) };
}
export class Service {
  constructor(
    private readonly requests: Counter<string>,
    protected readonly seconds?: Histogram<'route'>,
  ) {}
  serve(): void {
    this.requests.inc();
    if (this.seconds) this.seconds.observe({ route: '/' }, 1);
  }
}
new Service(new Counter({ name: 'c', help: 'h', labelNames: ['a'] })).serve();
export const isType = (type: unknown): type is Type => type === Counter || type === Gauge;

// ## types of labels that are computed
import { Counter, LabelValues } from 'prom-client';
type LabelsOf<M> = M extends Counter<infer T> ? T : never;
const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a', 'b'] });
const label: LabelsOf<typeof counter> = 'a';
export function inc<T extends string>(target: Counter<T>, labels: LabelValues<T>): void {
  target.inc(labels);
  target.labels(labels).inc(1);
  target.remove(labels);
}
inc(counter, { [label]: 1, b: 'x' });

// ## methods of a metric as functions
import { Counter, Gauge, Histogram } from 'prom-client';
declare const metrics: { c: Counter<'a'>; g: Gauge<'a'>; h: Histogram<'a'> };
const inc: (value?: number) => void = metrics.c.inc.bind(metrics.c);
const set: Gauge<'a'>['set'] = metrics.g.set.bind(metrics.g);
const observe: (value: number) => void = value => metrics.h.observe(value);
const start: Histogram<'a'>['startTimer'] = () => () => 1;
const parameters: Parameters<Counter<'a'>['inc']> = [{ value: 1 }];
set({ a: 1 }, 2);

// ## undefined labels and values
import { Counter, Gauge } from 'prom-client';
declare const maybe: { a?: string };
const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a'] });
counter.inc(maybe);
counter.inc({ ...maybe }, 1);
new Gauge({ name: 'g', help: 'h', labelNames: ['a', 'b'] }).set({ ...maybe, b: 1 }, 1);

// ## what these types refuse
import { AggregatorRegistry, Counter, Gauge, Histogram, Summary } from 'prom-client';
import {
  collectDefaultMetrics,
  OpenMetricsContentType,
  PrometheusContentType,
  Pushgateway,
} from 'prom-client';
import { Registry, RegistryContentType } from 'prom-client';
const counter = new Counter({ name: 'c', help: 'h', labelNames: ['method', 'code'] });
const fromReadonly = new Counter({ name: 'c', help: 'h', labelNames: ['method', 'code'] as const });
const gauge = new Gauge({ name: 'g', help: 'h', labelNames: ['queue'] });
const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['route'] });
const registry = new Registry();
function refused(): void {
  // @ts-expect-error: no such label
  counter.inc({ path: '/' });
  // @ts-expect-error: a label's value is text or a number
  counter.inc({ method: true });
  // @ts-expect-error: an increment is a number
  counter.inc('1');
  // @ts-expect-error: no such label
  counter.labels({ path: '/' });
  // @ts-expect-error: no such label
  counter.remove({ path: '/' });
  // @ts-expect-error: a counter cannot be set
  counter.set(1);
  // @ts-expect-error: no such label
  fromReadonly.inc({ path: '/' });
  // @ts-expect-error: help is mandatory
  new Counter({ name: 'c' });
  // @ts-expect-error: name is mandatory
  new Counter({ help: 'help' });
  // @ts-expect-error: no such aggregator
  new Counter({ name: 'c', help: 'h', aggregator: 'median' });
  // @ts-expect-error: arguments of prom-client 11
  new Counter('name', 'help');
  // @ts-expect-error: a value is needed
  gauge.set({ queue: 'in' });
  // @ts-expect-error: a value is a number
  gauge.set('1');
  // @ts-expect-error: no such label
  gauge.startTimer({ path: '/' });
  // @ts-expect-error: no such label
  histogram.observe({ path: '/' }, 1);
  // @ts-expect-error: a value is needed
  histogram.observe();
  // @ts-expect-error: bounds are numbers
  new Histogram({ name: 'h', help: 'h', buckets: ['1'] });
  // @ts-expect-error: not an option
  new Summary({ name: 's', help: 'h', percentile: [0.5] });
  // @ts-expect-error: not a format
  const noFormat: RegistryContentType = 'text/plain';
  // @ts-expect-error: this registry writes Prometheus text
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  // @ts-expect-error: another format
  const other: Registry<PrometheusContentType> = new Registry<OpenMetricsContentType>();
  // @ts-expect-error: not a registry
  Registry.merge(['name']);
  // @ts-expect-error: names are text
  registry.getSingleMetric(1);
  // @ts-expect-error: not a registry
  AggregatorRegistry.setRegistries('registry');
  // @ts-expect-error: an option that went with prom-client 12
  collectDefaultMetrics({ timeout: 5000 });
  // @ts-expect-error: no jobName
  new Pushgateway('http://127.0.0.1:9091').push({});
}

// ## formats, types of metrics, and what they are named by
import { Charset, Collector, MetricType, OpenMetricsMIME, OpenMetricsVersion, Registry } from 'prom-client';
import { collectDefaultMetrics, PrometheusContentType, PrometheusMIME } from 'prom-client';
import { exponentialBuckets, linearBuckets, PrometheusMetricsVersion, register } from 'prom-client';
import { validateMetricName } from 'prom-client';
declare const charset: Charset;
declare const mime: PrometheusMIME;
declare const version: PrometheusMetricsVersion;
const text: PrometheusContentType = `${mime}; version=${version}; charset=${charset}`;
const openMetrics: [OpenMetricsMIME, OpenMetricsVersion] = ['application/openmetrics-text', '1.0.0'];
const format: 'text/plain; version=0.0.4; charset=utf-8' = register.contentType;
export function describe(type: MetricType): string {
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
const counters = new Registry().getMetricsAsArray().filter(({ type }) => type === MetricType.Counter);
const collector: Collector = collectDefaultMetrics;
const buckets: number[] = linearBuckets(0, 1, 10).concat(exponentialBuckets(1, 2, 5));
const isValid: boolean = validateMetricName('a');

// ## arguments of a Pushgateway
import { OpenMetricsContentType, PrometheusContentType, Pushgateway, Registry } from 'prom-client';
declare const openMetrics: Registry<OpenMetricsContentType>;
declare const anyOptions: any;
new Pushgateway('http://127.0.0.1:9091', { requireJobName: false, headers: { a: 'b' } }, new Registry());
new Pushgateway('http://127.0.0.1:9091', undefined, openMetrics);
const explicit = new Pushgateway<PrometheusContentType>('', [], new Registry());
const withAny: Pushgateway<PrometheusContentType> = new Pushgateway('', anyOptions);
export async function push(): Promise<unknown> {
  const { resp, body } = await explicit.push({ jobName: 'job', groupings: { instance: 'a' } });
  await explicit.pushAdd({ jobName: 'a' }).catch((error: Error) => error.message);
  await explicit.delete({ jobName: 'a' });
  return [resp as object, body as string, withAny];
}

// ## a wrapper of metrics whose labels are a parameter
import { Counter, Gauge, Histogram, HistogramConfiguration, LabelValues } from 'prom-client';
class Timed<Label extends string> {
  readonly #durations: Histogram<Label>;
  readonly #inFlight: Gauge<Label>;
  constructor(name: string, labelNames: Label[], options: Partial<HistogramConfiguration<Label>> = {}) {
    this.#durations = new Histogram({ name, help: name, labelNames, ...options });
    this.#inFlight = new Gauge({ name: `${name}_in_flight`, help: name, labelNames });
  }
  async run<R>(labels: LabelValues<Label>, action: () => Promise<R>): Promise<R> {
    const end = this.#durations.startTimer(labels);
    this.#inFlight.inc(labels);
    try {
      return await action();
    } finally {
      this.#inFlight.dec(labels);
      end();
    }
  }
  count(counter: Counter<Label>, labels: LabelValues<Label>): void {
    counter.inc(labels, 2);
    counter.inc({ labels, exemplarLabels: labels });
    counter.labels(labels).inc();
  }
}
new Timed('jobs', ['queue']).run({ queue: 'in' }, async () => 1);
