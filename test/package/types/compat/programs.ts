// Compiles with the types of prom-client 15.1.3 and with ours: wrappers, factories, stand-ins and other
// things that applications and libraries make of these types.

import {
  Counter,
  CounterConfiguration,
  Gauge,
  Histogram,
  HistogramConfiguration,
  LabelValues,
  Metric,
  MetricConfiguration,
  MetricObject,
  MetricObjectWithValues,
  MetricValue,
  MetricValueWithName,
  CollectFunction,
  Pushgateway,
  Registry,
  RegistryContentType,
  Summary,
  collectDefaultMetrics,
  register,
} from 'prom-client';

// A factory that makes each metric once.
function counterOf<T extends string>(configuration: CounterConfiguration<T>): Counter<T> {
  const known = register.getSingleMetric<T>(configuration.name);
  if (known instanceof Counter) return known;
  return new Counter<T>({ ...configuration, registers: [register] });
}
counterOf({ name: 'a', help: 'help', labelNames: ['x'] }).inc({ x: 1 });
// @ts-expect-error: no such label
counterOf({ name: 'a', help: 'help', labelNames: ['x'] }).inc({ y: 1 });

// A wrapper with its labels as a parameter.
class Timed<Label extends string> {
  readonly #durations: Histogram<Label>;
  readonly #inFlight: Gauge<Label>;

  constructor(
    name: string,
    labelNames: readonly Label[],
    options: Partial<HistogramConfiguration<Label>> = {},
  ) {
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

  remove(labels: LabelValues<Label>): void {
    this.#durations.remove(labels);
  }

  count(counter: Counter<Label>, labels: LabelValues<Label>): void {
    counter.inc(labels, 2);
    counter.inc({ labels, exemplarLabels: labels });
    counter.labels(labels).inc();
  }
}
new Timed('jobs', ['queue']).run({ queue: 'in' }, async () => 1);

// Subclasses.
class RequestCounter extends Counter<'method'> {
  constructor() {
    super({ name: 'requests', help: 'Requests', labelNames: ['method'] });
  }

  override get(): Promise<MetricObjectWithValues<MetricValue<'method'>>> {
    return super.get();
  }
}
const asCounter: Counter<'method'> = new RequestCounter();

class Measured extends Histogram<'route'> {
  override labels(...values: any[]): Histogram.Internal<'route'> {
    return super.labels(...values);
  }

  override observe(...given: any[]): void {
    super.observe.apply(this, given as any);
  }
}
const asHistogram: Histogram<'route'> = new Measured({ name: 'm', help: 'help', labelNames: ['route'] });

// Stand-ins for tests have nothing but the methods.
const counter: Counter = {
  inc: () => {},
  get: async () => ({
    name: 'c',
    help: 'help',
    type: undefined as any,
    aggregator: 'sum',
    collect: () => {},
    values: [{ value: 1, labels: {} }],
  }),
  labels: () => ({ inc: () => {} }),
  reset: () => {},
  remove: () => {},
};
const gauge: Gauge = {
  inc: () => {},
  dec: () => {},
  set: () => {},
  setToCurrentTime: () => {},
  startTimer: () => () => 1,
  get: counter.get,
  labels: () => gaugeChild,
  reset: () => {},
  remove: () => {},
};
const histogram: Histogram = {
  observe: () => {},
  startTimer: () => () => 1,
  zero: () => {},
  get: counter.get,
  labels: () => child,
  reset: () => {},
  remove: () => {},
};
const summary: Summary = {
  observe: () => {},
  startTimer: () => () => 1,
  get: counter.get,
  labels: () => summaryChild,
  reset: () => {},
  remove: () => {},
};
const child: Histogram.Internal<string> = { observe: () => {}, startTimer: () => () => {} };
const summaryChild: Summary.Internal<string> = { observe: () => {}, startTimer: () => () => 1 };
const gaugeChild: Gauge.Internal<string> = {
  inc: () => {},
  dec: () => {},
  set: () => {},
  setToCurrentTime: () => {},
  startTimer: () => () => 1,
};
const gateway: Pushgateway<RegistryContentType> = {
  push: async () => ({}),
  pushAdd: async () => ({ resp: 1, body: '' }),
  delete: async () => ({}),
};

// Hooks that are written apart.
const hook: CollectFunction<Gauge<'a'>> = function () {
  this.set({ a: 'x' }, 1);
};
new Gauge({ name: 'hooked', help: 'help', labelNames: ['a'], collect: hook });
new Gauge({
  name: 'arrow',
  help: 'help',
  collect: async () => {
    await Promise.resolve();
  },
});

// The types that go through signatures.
const configuration: MetricConfiguration<'a'> = { name: 'n', help: 'help', labelNames: ['a'] as const };
const object: Omit<MetricObject, 'type'> = { name: 'n', help: 'h', aggregator: 'first', collect: () => {} };
const sample: MetricValueWithName<'a'> = { value: 1, labels: { a: 1 }, metricName: 'n_sum' };
const plain: MetricValue<'a'> = sample;
type Json = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number];
function total(metric: Json): number {
  return metric.values.reduce((sum, { value }) => sum + value, 0);
}
type CounterOptions = ConstructorParameters<typeof Counter>[0];
type DefaultMetricsOptions = Parameters<typeof collectDefaultMetrics>[0];
type GatewayArguments = ConstructorParameters<typeof Pushgateway>;
const counterOptions: CounterOptions = { name: 'n', help: 'help' };
const defaultMetricsOptions: DefaultMetricsOptions = { prefix: 'p_' };
const gatewayArguments: GatewayArguments = ['http://127.0.0.1:9091', { timeout: 1 }];

// A table of constructors.
const constructors = { counter: Counter, gauge: Gauge, histogram: Histogram, summary: Summary };
function make(kind: keyof typeof constructors, name: string): Metric {
  return new constructors[kind]({ name, help: name });
}

// Injection by class, as the containers of frameworks do.
type Constructor<T> = new (...args: any[]) => T;
function provide<T>(constructor: Constructor<T>): T {
  return new constructor({ name: 'n', help: 'help' });
}
const provided: Gauge<string> = provide<Gauge<string>>(Gauge);

// Labels decided elsewhere.
const labels: Record<string, string> = { a: 'b' };
new Counter({ name: 'n', help: 'help', labelNames: Object.keys(labels) }).inc(labels);
new Counter({ name: 'n', help: 'help' }).inc(labels, 2);
enum Label {
  Method = 'method',
  Code = 'code',
}
new Counter({ name: 'n', help: 'help', labelNames: Object.values(Label) }).inc({ [Label.Method]: 'GET' });
