'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { Counter, Histogram, Registry, prometheusContentType, openMetricsContentType } = require('../..');
const { inStubbedWorld } = require('./fixtures/property-stubbed-world');

const openMetricsRegistry = () => new Registry(openMetricsContentType);

async function samplesOf(registry) {
  return (await registry.metrics()).split('\n').filter(line => line !== '' && !line.startsWith('#'));
}

// prom-client defect 4: metrics() strips `_total` from the metric's name for good
test('OpenMetrics text of a counter does not change its name', async () => {
  const registry = openMetricsRegistry();
  const counter = new Counter({ name: 'hits_total', help: 'Hits', registers: [registry] });
  counter.inc(2);
  const page = '# HELP hits Hits\n# TYPE hits counter\nhits_total 2\n# EOF\n';
  assert.strictEqual(await registry.metrics(), page);
  assert.strictEqual(await registry.metrics(), page);
  assert.strictEqual(counter.name, 'hits_total');
  assert.strictEqual((await registry.getMetricsAsJSON())[0].name, 'hits_total');
  assert.strictEqual(registry.getSingleMetric('hits_total'), counter);

  registry.setContentType(prometheusContentType);
  assert.strictEqual(
    await registry.metrics(),
    '# HELP hits_total Hits\n# TYPE hits_total counter\nhits_total 2\n',
  );
});

// prom-client defect 4: the ending is doubled as long as metrics() has not been called
test('OpenMetrics text of a single counter has one _total, before and after metrics()', async () => {
  for (const name of ['hits', 'hits_total']) {
    const registry = openMetricsRegistry();
    const counter = new Counter({ name, help: 'Hits', registers: [registry] });
    const expected = '# HELP hits Hits\n# TYPE hits counter\nhits_total 0';
    assert.strictEqual(await registry.getSingleMetricAsString(name), expected);
    assert.strictEqual(await registry.getMetricsAsString(counter), expected);
    await registry.metrics();
    assert.strictEqual(await registry.getSingleMetricAsString(name), expected);
  }
});

// prom-client defect 5: with exemplars on, only the form {labels, value, exemplarLabels} is read
test('a counter with exemplars accepts every form of inc()', async () => {
  const registry = openMetricsRegistry();
  const options = { help: 'c', labelNames: ['a'], registers: [registry], enableExemplars: true };
  const counter = new Counter({ name: 'c', ...options });
  counter.inc(5);
  counter.inc();
  counter.inc({ a: '1' }, 5);
  counter.inc({ a: '1' });
  counter.labels('1').inc(5);
  counter.labels({ a: '1' }).inc();
  counter.inc({ labels: { a: '1' }, value: 100 });
  counter.inc({ labels: { a: '2' } });
  assert.deepStrictEqual(await samplesOf(registry), ['c_total 6', 'c_total{a="1"} 112', 'c_total{a="2"} 1']);
});

test('a histogram with exemplars accepts every form of observe()', async () => {
  const registry = openMetricsRegistry();
  const options = { help: 'h', labelNames: ['a'], registers: [registry], enableExemplars: true };
  const histogram = new Histogram({ name: 'h', buckets: [], ...options });
  histogram.observe(1);
  histogram.observe({ a: '1' }, 2);
  histogram.labels('1').observe(3);
  histogram.observe({ labels: { a: '1' }, value: 4 });
  assert.deepStrictEqual(await samplesOf(registry), [
    'h_bucket{le="+Inf"} 1',
    'h_sum 1',
    'h_count 1',
    'h_bucket{le="+Inf",a="1"} 3',
    'h_sum{a="1"} 9',
    'h_count{a="1"} 3',
  ]);
});

test('timers of a histogram with exemplars work on children, too', () =>
  inStubbedWorld({}, async clock => {
    const registry = openMetricsRegistry();
    const options = { help: 'h', labelNames: ['a'], registers: [registry], enableExemplars: true };
    const histogram = new Histogram({ name: 'h', buckets: [], ...options });
    const end = histogram.labels('1').startTimer();
    clock.advance(250);
    assert.strictEqual(end(), 0.25);
    assert.deepStrictEqual(await samplesOf(registry), [
      'h_bucket{le="+Inf",a="1"} 1',
      'h_sum{a="1"} 0.25',
      'h_count{a="1"} 1',
    ]);
  }));

// prom-client defect 5: the sample is counted before the exemplar is checked, and an invalid exemplar is
// stored
test('an exemplar that is too long is refused before the sample is counted', async () => {
  const registry = openMetricsRegistry();
  const options = { help: 'x', labelNames: ['a'], registers: [registry], enableExemplars: true };
  const counter = new Counter({ name: 'c', ...options });
  const histogram = new Histogram({ name: 'h', buckets: [1], ...options });
  const refused = { name: 'RangeError', message: 'Label set size must be smaller than 128 UTF-8 chars' };
  const tooLong = { labels: { a: '1' }, value: 1, exemplarLabels: { id: 'x'.repeat(127) } };
  assert.throws(() => counter.inc(tooLong), refused);
  assert.throws(() => histogram.observe(tooLong), refused);
  assert.deepStrictEqual(await samplesOf(registry), []);

  const longest = { id: 'x'.repeat(126) };
  counter.inc({ ...tooLong, exemplarLabels: longest });
  assert.throws(() => counter.inc(tooLong), refused);
  assert.match(await registry.metrics(), /^c_total\{a="1"\} 1 # \{id="x{126}"\} 1 [\d.]+$/m);
});

// prom-client defect 5: the length is counted in UTF-16 units
test('the length of an exemplar is counted in characters', async () => {
  const registry = openMetricsRegistry();
  const counter = new Counter({ name: 'c', help: 'c', registers: [registry], enableExemplars: true });
  counter.inc({ value: 1, exemplarLabels: { id: '😀'.repeat(126) } });
  assert.match(await registry.metrics(), /😀"\} 1/);
  assert.throws(() => counter.inc({ value: 1, exemplarLabels: { id: '😀'.repeat(127) } }), RangeError);
});
