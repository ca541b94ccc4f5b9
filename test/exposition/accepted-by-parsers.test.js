'use strict';

// Whoever reads a page understands it: OpenMetrics is read by the strict parser of PyPI's prometheus-client,
// Prometheus text by promtool and the other parser of that package. They read what was recorded.
// test/prom-client compares the pages of random programs with those of prom-client.

const assert = require('node:assert');
const { after, before, describe, it } = require('node:test');
const client = require('../..');
const { ExpositionReader, missingReader } = require('../fixtures/exposition-reader');
const { missingPrograms, promtoolCheckMetrics } = require('../fixtures/prometheus-server');
const fc = require('../fixtures/seeded-fast-check');

const FORMATS = { text: client.prometheusContentType, openmetrics: client.openMetricsContentType };

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && (missingPrograms(['promtool']) ?? missingReader());

const text = fc.string({
  unit: fc.constantFrom('"', '\\', '\n', 'ü', '😀', ' ', ',', '=', '{', '}', '#', 'n'),
});
const texts = fc.uniqueArray(text, { minLength: 2, maxLength: 5 });
const numbers = fc.array(fc.double(), { minLength: 5, maxLength: 5 });

/** A registry with metrics of all types, which have these texts as label values and in their help texts. */
function filled(contentType, values, gauged) {
  const registry = new client.Registry(contentType);
  registry.setDefaultLabels({ zone: values[0] });
  const enableExemplars = contentType === client.openMetricsContentType;
  // The parsers drop spaces at the ends of a help text.
  const common = { help: `a${values[1]}z`, labelNames: ['a', 'b'], registers: [registry] };
  const counter = new client.Counter({ name: 'counted_total', ...common, enableExemplars });
  const gauge = new client.Gauge({ name: 'gauged', ...common });
  const histogram = new client.Histogram({ name: 'sized', buckets: [0.5, 2], ...common, enableExemplars });
  const summary = new client.Summary({ name: 'took', percentiles: [0.5, 0.9], ...common });
  values.forEach((a, i) => {
    counter.inc({ a }, i / 3);
    gauge.set({ b: a }, gauged[i]);
    for (const metric of [histogram, summary]) metric.observe({ a, b: 'b' }, i);
    if (!enableExemplars) return;
    // The strict parser takes a quote in an exemplar for the end of the value, escaped or not.
    const exemplarLabels = { trace: a.replaceAll('"', "'") };
    counter.inc({ labels: { a }, value: 1, exemplarLabels });
    histogram.observe({ labels: { a, b: 'b' }, value: i, exemplarLabels });
  });
  return registry;
}

/** A family of getMetricsAsJSON() as the parsers read it. */
function expectedFamily({ name, help, type, values }) {
  const withTexts = labels =>
    Object.fromEntries(Object.entries(labels).map(([label, value]) => [label, String(value)]));
  return {
    name: name.replace(/_total$/, ''),
    help,
    type,
    samples: values.map(({ metricName = name, labels, value, exemplar }) => ({
      name: metricName,
      labels: withTexts(labels),
      value: value === 0 ? 0 : value,
      timestamp: null,
      exemplar: exemplar
        ? { labels: withTexts(exemplar.labelSet), value: exemplar.value, timestamp: exemplar.timestamp }
        : null,
    })),
  };
}

describe('the page of all types, with any text', { skip }, () => {
  /** @type {ExpositionReader} */
  let reader;

  before(() => {
    assert.strictEqual(missingPrograms(['promtool']) ?? missingReader(), undefined);
    reader = new ExpositionReader();
  });
  after(() => reader?.stop());

  for (const [format, contentType] of Object.entries(FORMATS)) {
    it(`the page of all types, with any text, is valid ${format}, and has what was recorded`, () =>
      fc.assert(
        fc.asyncProperty(texts, numbers, async (values, gauged) => {
          const registry = filled(contentType, values, gauged);
          const [page, json] = [await registry.metrics(), await registry.getMetricsAsJSON()];
          assert.deepStrictEqual(await reader.read(page, format), json.map(expectedFamily));
          const aggregated = client.AggregatorRegistry.aggregate([json, json], contentType);
          const read = await reader.read(await aggregated.metrics(), format);
          assert.deepStrictEqual(
            read.map(({ samples }) => samples.length),
            json.map(family => family.values.length),
          );
          if (format === 'text')
            assert.deepStrictEqual(await promtoolCheckMetrics(page), { exitCode: 0, output: '' });
        }),
        { numRuns: 80 },
      ));
  }
});
