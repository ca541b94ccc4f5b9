'use strict';

// OpenMetrics text and exemplars, against prom-client. Left out, since this package does it otherwise on purpose:
// - plain call forms on metrics with exemplars, and label sets above 128 characters (prom-client defect 5);
// - names that end in `_total`, save in the text of a whole registry: prom-client strips the ending from the metric for
//   good and doubles it in the text of a single metric (prom-client defect 4).

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('fast-check');
const { subject, reference } = require('./fixtures/property-implementations');
const { inStubbedWorld } = require('./fixtures/property-stubbed-world');
const { labelValue, helpText } = require('./fixtures/property-programs');
const { copyOfFamily, readJsonWithoutWriteBack } = require('./fixtures/property-known-defects');

const METRICS = {
  counter: { type: 'Counter', labelNames: ['a', 'b'], enableExemplars: true },
  total: { type: 'Counter', labelNames: [], enableExemplars: true },
  histogram: { type: 'Histogram', labelNames: ['a', 'b'], enableExemplars: true, buckets: [0.5, 1, 5] },
  plain: { type: 'Histogram', labelNames: [], enableExemplars: true, buckets: [1] },
  gauge: { type: 'Gauge', labelNames: ['a'] },
  summary: { type: 'Summary', labelNames: ['a'], percentiles: [0.5] },
  uncounted: { type: 'Counter', labelNames: ['a'] },
};

const labels = fc.dictionary(fc.constantFrom('a', 'b'), labelValue, { maxKeys: 2, noNullPrototype: true });
const anyLabels = fc.oneof(
  { weight: 12, arbitrary: labels },
  { weight: 1, arbitrary: fc.constant({ unknown: 'x' }) },
);

const exemplarLabels = fc.dictionary(fc.constantFrom('traceId', 'spanId', 'x'), labelValue, {
  maxKeys: 3,
  noNullPrototype: true,
});
const optionalExemplar = fc.option(exemplarLabels, { nil: undefined, freq: 3 }).filter(
  given =>
    Object.entries(given ?? {})
      .flat()
      .join('').length <= 128,
);

const value = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(0, 0.1, 0.5, 0.7, 1, 3, 7) },
  { weight: 1, arbitrary: fc.constantFrom(-1, 'x', undefined, null, Infinity) },
);

const key = fc.constantFrom(...Object.keys(METRICS));
const operation = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      op: fc.constant('record'),
      key: fc.constantFrom('counter', 'total', 'histogram', 'plain'),
      given: fc.record(
        { labels: anyLabels, value, exemplarLabels: optionalExemplar },
        { requiredKeys: ['value'] },
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant('child'), labels, value: fc.constantFrom(0.1, 2, 9) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('timer'),
      labels,
      more: labels,
      first: optionalExemplar,
      last: optionalExemplar,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constantFrom('set', 'summarise', 'count'),
      labels: anyLabels,
      value: fc.constantFrom(1, 2.5, NaN),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('advance'), milliseconds: fc.constantFrom(1, 1500, 60_000) }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('reset'), key }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant('remove'), key: fc.constantFrom('counter', 'histogram'), labels }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('zero'), labels }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('defaults'),
      labels: fc.dictionary(fc.constantFrom('a', 'env', 'le'), labelValue, {
        maxKeys: 2,
        noNullPrototype: true,
      }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('text') }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('json') }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('single'), key }) },
);

function createMetrics(client, registry, { help, suffix }) {
  const metrics = {};
  for (const [name, { type, ...config }] of Object.entries(METRICS)) {
    const ending = type === 'Counter' ? suffix : '';
    metrics[name] = new client[type]({ name: name + ending, help, registers: [registry], ...config });
  }
  return metrics;
}

/** Runs one operation and returns what can be seen of it. */
function perform(world, step) {
  const { metrics, registry, clock } = world;
  switch (step.op) {
    case 'record':
      return METRICS[step.key].type === 'Counter'
        ? metrics[step.key].inc(step.given)
        : metrics[step.key].observe(step.given);
    case 'child':
      return metrics.histogram.labels(step.labels).observe(step.value);
    case 'timer': {
      const end = metrics.histogram.startTimer(step.labels, step.first);
      clock.advance(700);
      return end(step.more, step.last);
    }
    case 'set':
      return metrics.gauge.set(step.labels, step.value);
    case 'summarise':
      return metrics.summary.observe(step.labels, Number.isNaN(step.value) ? 1 : step.value);
    case 'count':
      return void metrics.uncounted.inc(step.labels, Number.isNaN(step.value) ? 1 : step.value);
    case 'advance':
      return clock.advance(step.milliseconds);
    case 'reset':
      return metrics[step.key].reset();
    case 'remove':
      return metrics[step.key].remove(step.labels);
    case 'zero':
      return metrics.histogram.zero(step.labels);
    case 'defaults':
      world.defaultLabels = step.labels;
      return registry.setDefaultLabels(step.labels);
    case 'text':
      return registry.metrics();
    default:
      return performReading(world, step);
  }
}

async function performReading({ metrics, registry, isReference, defaultLabels, suffix }, step) {
  if (suffix) return registry.metrics();
  if (step.op === 'single') return registry.getSingleMetricAsString(metrics[step.key].name);
  if (isReference) return readJsonWithoutWriteBack(registry, defaultLabels);
  return (await registry.getMetricsAsJSON()).map(copyOfFamily);
}

async function outcomeOf(world, step) {
  try {
    return await perform(world, step);
  } catch (error) {
    return `${error.constructor.name}: ${error.message}`;
  }
}

function run(client, { help, suffix, steps }, isReference) {
  return inStubbedWorld({}, async clock => {
    const registry = new client.Registry(client.openMetricsContentType);
    const metrics = createMetrics(client, registry, { help, suffix });
    const world = { metrics, registry, clock, isReference, suffix, defaultLabels: {} };
    const outcomes = [];
    for (const step of [...steps, { op: 'text' }, { op: 'json' }])
      outcomes.push(await outcomeOf(world, step));
    return outcomes;
  });
}

for (const suffix of ['', '_total']) {
  const names = suffix ? `counters named *${suffix}` : 'counters named without _total';
  test(`exemplars and OpenMetrics text are those of prom-client, with ${names}`, async () => {
    const program = fc.record({
      help: helpText,
      suffix: fc.constant(suffix),
      steps: fc.array(operation, { maxLength: 40, size: 'max' }),
    });
    await fc.assert(
      fc.asyncProperty(program, async given => {
        const theirs = await run(reference, given, true);
        const ours = await run(subject, given, subject === reference);
        theirs.forEach((expected, index) => assert.deepStrictEqual(ours[index], expected));
      }),
      { numRuns: 250, includeErrorInReport: true },
    );
  });
}
