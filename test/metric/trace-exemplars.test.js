'use strict';

// enableExemplars: 'trace'.

const assert = require('node:assert/strict');
const { describe, it, before, after } = require('node:test');
const { context, INVALID_SPAN_CONTEXT } = require('@opentelemetry/api');
const { Counter, Histogram, Registry } = require('../..');
const { Contexts, inSpan } = require('../fixtures/traces');

const SPAN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
const OTHER = { ...SPAN, spanId: 'c7ad6b7169203331' };
const LABELS = { a: '1' };

class NativeHistogram extends Histogram {
  constructor(options) {
    super({ ...options, nativeHistogramBucketFactor: 2 });
  }
}

/** Each way to record 0.3, given a metric of label `a`. */
const WAYS = {
  'inc()': [Counter, metric => metric.inc(LABELS, 0.3)],
  'inc({ labels, value })': [Counter, metric => metric.inc({ labels: LABELS, value: 0.3 })],
  'a child of a counter': [Counter, metric => (metric.child ??= metric.labels('1')).inc(0.3)],
  'curry() of a counter': [Counter, metric => (metric.curried ??= metric.curry(LABELS)).inc(0.3)],
  'setTotal()': [Counter, metric => metric.setTotal(LABELS, (metric.total = (metric.total ?? 0) + 0.3))],
  'observe()': [Histogram, metric => metric.observe(LABELS, 0.3)],
  'a child of a histogram': [Histogram, metric => (metric.child ??= metric.labels(LABELS)).observe(0.3)],
  'curry() of a histogram': [Histogram, metric => metric.curry({}).observe(LABELS, 0.3)],
  'a child of a native histogram': [
    NativeHistogram,
    metric => (metric.child ??= metric.labels('1')).observe(0.3),
  ],
  'a timer': [Histogram, metric => metric.startTimer(LABELS)()],
  "a child's timer": [Histogram, metric => metric.labels('1').startTimer()()],
  'time()': [Histogram, metric => metric.time(LABELS, () => {})],
};

describe("enableExemplars: 'trace'", () => {
  before(() => void context.setGlobalContextManager(new Contexts()));
  after(() => context.disable());

  const made = Type => {
    const registers = [new Registry(Registry.OPENMETRICS_CONTENT_TYPE)];
    return new Type({
      name: 'm',
      help: 'h',
      labelNames: ['a'],
      registers,
      enableExemplars: 'trace',
      buckets: [1, 9],
    });
  };

  /** @returns {Promise<object[]>} */
  const exemplarsOf = async metric =>
    (await metric.get()).values.map(({ exemplar }) => exemplar).filter(Boolean);
  const labelSetsOf = async metric => (await exemplarsOf(metric)).map(({ labelSet }) => labelSet);

  for (const [way, [Type, record]] of Object.entries(WAYS)) {
    it(`enableExemplars: 'trace': ${way} has the active, sampled span, at most each 100 ms`, async t => {
      t.mock.timers.enable({ apis: ['Date'], now: 1000 });
      const metric = made(Type);
      const expected = ({ traceId, spanId }) => [{ trace_id: traceId, span_id: spanId }];
      record(metric);
      for (const span of [INVALID_SPAN_CONTEXT, { ...SPAN, traceFlags: 0 }])
        inSpan(span, () => record(metric));
      assert.deepEqual(await labelSetsOf(metric), []);
      inSpan(SPAN, () => record(metric));
      assert.deepEqual(await labelSetsOf(metric), expected(SPAN));
      t.mock.timers.tick(99);
      inSpan(OTHER, () => record(metric));
      record(metric);
      assert.deepEqual(await labelSetsOf(metric), expected(SPAN));
      t.mock.timers.tick(1);
      inSpan(OTHER, () => record(metric));
      record(metric);
      const [{ labelSet, timestamp, value }] = await exemplarsOf(metric);
      assert.deepEqual([labelSet, timestamp], [expected(OTHER)[0], 1.1]);
      if (Type === Counter) assert.ok(Math.abs(value - 0.3) < 1e-9);
      else assert.ok(value < 1);
      const count = metric.value(LABELS);
      assert.ok(Type === Counter ? Math.abs(count - 2.4) < 1e-9 : count.count === 8);
      // A clock that goes back.
      t.mock.timers.setTime(500);
      inSpan(SPAN, () => record(metric));
      assert.deepEqual(await labelSetsOf(metric), expected(SPAN));
    });
  }

  it("enableExemplars: 'trace' has exemplars for each bucket, and those of a call come first", async () => {
    const metric = made(Histogram);
    inSpan(SPAN, () => {
      for (const value of [0.5, 5, 50]) metric.observe(LABELS, value);
      metric.observe({ labels: LABELS, value: 0.7, exemplarLabels: { order: 'x' } });
      metric.startTimer(LABELS, { order: 'y' })();
      metric.observe(LABELS, 0.2);
    });
    const exemplars = await exemplarsOf(metric);
    const shown = exemplars.map(({ labelSet }) => labelSet.order ?? labelSet.span_id);
    assert.deepEqual(shown, ['y', SPAN.spanId, SPAN.spanId]);
  });

  it("enableExemplars: 'trace' counts on and warns once if the OpenTelemetry API throws", async t => {
    const warnings = t.mock.method(process, 'emitWarning', () => {});
    const metrics = Object.values(WAYS).map(([Type, record]) => [made(Type), record]);
    const broken = [() => assert.fail('broken'), () => ({ getValue: () => ({ spanContext: () => null }) })];
    for (const active of broken) {
      context.disable();
      context.setGlobalContextManager(Object.assign(new Contexts(), { active }));
      for (const [metric, record] of metrics) record(metric);
    }
    context.disable();
    context.setGlobalContextManager(new Contexts());
    for (const [metric] of metrics) {
      const value = metric.value(LABELS);
      assert.ok(value.count === 2 || Math.abs(value - 0.6) < 1e-9, `${value}`);
      assert.deepEqual(await exemplarsOf(metric), []);
    }
    assert.deepEqual(
      warnings.mock.calls.map(({ arguments: [text] }) => text),
      ['Exemplars lack the active trace, because the OpenTelemetry API failed: broken'],
    );
  });

  it("enableExemplars: true has no trace, and 'trace' is refused where exemplars are", async () => {
    const registers = [new Registry(Registry.OPENMETRICS_CONTENT_TYPE)];
    const counter = new Counter({ name: 'm', help: 'h', registers, enableExemplars: true });
    inSpan(SPAN, () => (counter.inc(), counter.labels().inc()));
    assert.deepEqual(await exemplarsOf(counter), []);
    assert.throws(
      () => new Counter({ name: 'n', help: 'h', registers: [new Registry()], enableExemplars: 'trace' }),
      /^TypeError: Exemplars are supported only on OpenMetrics registries/,
    );
  });
});
