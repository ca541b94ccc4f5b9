// Compiles with the types of prom-client 15.1.3 and with ours: the four metrics, and what their labels are
// inferred as.

import {
  Counter,
  CounterConfiguration,
  Gauge,
  GaugeConfiguration,
  Histogram,
  HistogramConfiguration,
  IncreaseDataWithExemplar,
  Metric,
  ObserveDataWithExemplar,
  Summary,
  SummaryConfiguration,
  exponentialBuckets,
  linearBuckets,
  validateMetricName,
} from 'prom-client';

// Without label names any label goes.
const open = new Counter({ name: 'open', help: 'help' });
open.inc();
open.inc(5);
open.inc({ anything: 'goes', code: 200 });
open.inc({ anything: 'goes' }, 2);
open.labels('a', 'b').inc();
open.labels({ what: 'ever' }).inc(3);
open.remove('a', 'b');
open.remove({ what: 'ever' });
open.reset();
const asDefault: Counter = open;
const asString: Counter<string> = open;

// With label names only these do.
const counter = new Counter({ name: 'c', help: 'help', labelNames: ['method', 'code'] });
counter.inc({ method: 'GET', code: 200 });
counter.inc({ method: 'GET' }, 10);
counter.labels({ code: '200' }).inc();
counter.inc({ labels: { method: 'GET' }, value: 1, exemplarLabels: { code: 'x' } });
const exactly: Counter<'method' | 'code'> = counter;
const increase: IncreaseDataWithExemplar<'method'> = { value: 1, labels: { method: 'GET' } };
new Counter<'method'>({ name: 'c2', help: 'help', enableExemplars: true }).inc(increase);
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
// @ts-expect-error: help is mandatory
new Counter({ name: 'c3' });
// @ts-expect-error: name is mandatory
new Counter({ help: 'help' });
// @ts-expect-error: no such aggregator
new Counter({ name: 'c4', help: 'help', aggregator: 'median' });
// @ts-expect-error: a counter cannot be set
counter.set(1);
// @ts-expect-error: arguments of prom-client 11
new Counter('name', 'help');

const readonlyNames = ['method', 'code'] as const;
const fromReadonly = new Counter({ name: 'c5', help: 'help', labelNames: readonlyNames });
fromReadonly.inc({ method: 'GET' });
// @ts-expect-error: no such label
fromReadonly.inc({ path: '/' });

const names: string[] = ['a'];
new Counter({ name: 'c6', help: 'help', labelNames: names }).inc({ whatever: 1 });
new Counter({ name: 'c7', help: 'help', labelNames: [] }).inc();
new Counter<string>({ name: 'c8', help: 'help', labelNames: ['x'] }).inc({ y: 1 });

// Configurations that are separate from their metric.
const counterConfiguration: CounterConfiguration<'a'> = {
  name: 'n',
  help: 'help',
  labelNames: ['a'],
  aggregator: 'sum',
  registers: [],
  enableExemplars: false,
  collect() {
    this.inc({ a: 1 });
    // @ts-expect-error: no such label
    this.inc({ b: 1 });
  },
};
new Counter(counterConfiguration).inc({ a: '1' });
const gaugeConfiguration: GaugeConfiguration<string> = {
  name: 'n',
  help: 'help',
  async collect() {
    this.set(await Promise.resolve(1));
  },
};
const histogramConfiguration: HistogramConfiguration<'route'> = {
  name: 'n',
  help: 'help',
  labelNames: ['route'],
  buckets: [0.1, 1, 10],
};
histogramConfiguration.buckets?.push(100);
const summaryConfiguration: SummaryConfiguration<'route'> = {
  name: 'n',
  help: 'help',
  labelNames: ['route'],
  percentiles: [0.5, 0.99],
  maxAgeSeconds: 600,
  ageBuckets: 5,
  pruneAgedBuckets: true,
  compressCount: 1000,
};

const gauge = new Gauge({
  name: 'g',
  help: 'help',
  labelNames: ['queue'],
  collect() {
    this.set({ queue: 'in' }, 1);
  },
});
gauge.set(1);
gauge.set({ queue: 'in' }, 1);
gauge.inc();
gauge.inc(2);
gauge.inc({ queue: 'in' });
gauge.inc({ queue: 'in' }, 2);
gauge.dec();
gauge.dec(2);
gauge.dec({ queue: 'in' });
gauge.dec({ queue: 'in' }, 2);
gauge.setToCurrentTime();
gauge.setToCurrentTime({ queue: 'in' });
const gaugeSeconds: number = gauge.startTimer()();
const moreGaugeSeconds: number = gauge.startTimer({ queue: 'in' })({ queue: 'out' });
gauge.labels('in').set(1);
gauge.labels({ queue: 'in' }).dec(1);
gauge.labels('in').setToCurrentTime();
const childSeconds: number = gauge.labels('in').startTimer()({ queue: 'out' });
gauge.remove('in');
gauge.reset();
// @ts-expect-error: a value is needed
gauge.set({ queue: 'in' });
// @ts-expect-error: a value is a number
gauge.set('1');
// @ts-expect-error: no such label
gauge.startTimer({ path: '/' });
new Gauge(gaugeConfiguration).set({ any: 'label' }, 1);

const histogram = new Histogram({
  name: 'h',
  help: 'help',
  labelNames: ['route'],
  buckets: linearBuckets(0, 10, 5).concat(exponentialBuckets(100, 2, 5)),
});
histogram.observe(1);
histogram.observe({ route: '/' }, 1);
histogram.observe({ labels: { route: '/' }, value: 1, exemplarLabels: { route: 'x' } });
const observation: ObserveDataWithExemplar<'route'> = { value: 1, labels: { route: '/' } };
histogram.observe(observation);
histogram.zero({ route: '/' });
const histogramSeconds: number = histogram.startTimer({ route: '/' })({ route: '/a' });
const exemplarSeconds: number = histogram.startTimer({ route: '/' }, { route: 'x' })({}, { route: 'y' });
histogram.labels('/').observe(1);
const endHistogramTimer: (labels?: { route?: string }) => void = histogram
  .labels({ route: '/' })
  .startTimer();
histogram.remove({ route: '/' });
histogram.reset();
// @ts-expect-error: no such label
histogram.observe({ path: '/' }, 1);
// @ts-expect-error: a value is needed
histogram.observe();
// @ts-expect-error: bounds are numbers
new Histogram({ name: 'h2', help: 'help', buckets: ['1'] });
new Histogram(histogramConfiguration).observe({ route: '/' }, 2);

const summary = new Summary({ name: 's', help: 'help', labelNames: ['route'], percentiles: [0.5] });
summary.observe(1);
summary.observe({ route: '/' }, 1);
const summarySeconds: number = summary.startTimer({ route: '/' })({ route: '/a' });
summary.labels('/').observe(1);
const summaryChildSeconds: number = summary.labels({ route: '/' }).startTimer()({ route: '/a' });
summary.remove('/');
summary.reset();
// @ts-expect-error: no such label
summary.observe({ path: '/' }, 1);
// @ts-expect-error: not an option
new Summary({ name: 's2', help: 'help', percentile: [0.5] });
new Summary(summaryConfiguration).observe({ route: '/' }, 2);

// Namespaces.
const counterChild: Counter.Internal = counter.labels('GET', '200');
const gaugeChild: Gauge.Internal<'queue'> = gauge.labels('in');
const histogramChild: Histogram.Internal<'route'> = histogram.labels('/');
const histogramOptions: Histogram.Config = { buckets: [1, 2] };
const summaryChild: Summary.Internal<'route'> = summary.labels('/');
const summaryOptions: Summary.Config = { percentiles: [0.5] };

// Any of the four.
const all: Metric[] = [open, new Gauge({ name: 'g2', help: 'help' })];
const some: Metric<'route'>[] = [histogram, summary];
for (const metric of some) metric.reset();
for (const metric of all) {
  if (metric instanceof Counter) metric.inc();
  else if (metric instanceof Gauge) metric.set(1);
  else metric.observe(1);
}

// An object that was written to stand for a metric, as tests do.
const standIn: Counter = {
  inc: () => {},
  labels: () => ({ inc: () => {} }),
  get: () => open.get(),
  reset: () => {},
  remove: () => {},
};
standIn.inc();

const valid: boolean = validateMetricName('name');

async function read(): Promise<void> {
  const { name, help, type, aggregator, values } = await counter.get();
  const [{ value, labels }] = values;
  const sum: number = value + 1;
  const method: string | number | undefined = labels.method;
  // @ts-expect-error: no such label
  labels.path;
  const aggregatedBy: 'omit' | 'sum' | 'first' | 'min' | 'max' | 'average' = aggregator;
  const histogramValues = (await histogram.get()).values;
  const metricName: string | undefined = histogramValues[0].metricName;
  const quantiles = (await summary.get()).values.filter(sample => sample.metricName === undefined);
  const gauges: number[] = (await gauge.get()).values.map(sample => sample.value);
  console.log(name, help, String(type), sum, method, aggregatedBy, metricName, quantiles, gauges);
}
