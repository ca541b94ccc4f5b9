'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { Counter, Gauge, Histogram, Summary, Registry } = require('../..');
const { METRIC_CLASSES } = require('../fixtures/metric-types');

/** A page's sample lines. */
async function samplesOf(registry) {
  return (await registry.metrics()).split('\n').filter(line => line !== '' && !line.startsWith('#'));
}

function gaugeWith(labelNames) {
  const registry = new Registry();
  return { registry, gauge: new Gauge({ name: 'g', help: 'g', labelNames, registers: [registry] }) };
}

// prom-client defect 3: the key of a series is its `name:value,` pieces, concatenated
test('label sets whose values contain separators are distinct', async () => {
  const { registry, gauge } = gaugeWith(['a', 'b']);
  gauge.set({ a: '1,b:2' }, 1);
  gauge.set({ a: '1', b: '2' }, 2);
  gauge.set({ a: '1,b:2,' }, 3);
  gauge.labels('1', '2,').set(4);
  assert.deepStrictEqual(await samplesOf(registry), [
    'g{a="1,b:2"} 1',
    'g{a="1",b="2"} 2',
    'g{a="1,b:2,"} 3',
    'g{a="1",b="2,"} 4',
  ]);
  gauge.remove({ a: '1,b:2' });
  assert.strictEqual((await samplesOf(registry)).length, 3);
});

// prom-client defect 3: names on Object.prototype count as registered
for (const name of ['constructor', 'toString', 'hasOwnProperty', 'valueOf', '__proto__']) {
  test(`a metric may be called ${name}`, async () => {
    const registry = new Registry();
    assert.strictEqual(registry.getSingleMetric(name), undefined);
    const counter = new Counter({ name, help: 'x', registers: [registry] });
    counter.inc(3);
    assert.strictEqual(registry.getSingleMetric(name), counter);
    assert.deepStrictEqual(await samplesOf(registry), [`${name} 3`]);
    assert.strictEqual(
      await registry.getSingleMetricAsString(name),
      `# HELP ${name} x\n# TYPE ${name} counter\n${name} 3`,
    );
    assert.throws(() => new Counter({ name, help: 'x', registers: [registry] }), {
      message: new RegExp(`^A metric with the name ${name} has already been registered\\.`),
    });
    registry.removeSingleMetric(name);
    assert.strictEqual(await registry.metrics(), '\n');
  });
}

// prom-client defect 3: a missing label of such a name is read from Object.prototype, a given one may be lost
for (const name of ['constructor', 'toString', 'valueOf', '__proto__']) {
  test(`a label may be called ${name}, and may be missing`, async () => {
    const { registry, gauge } = gaugeWith(['a', name]);
    gauge.inc();
    gauge.set(4);
    gauge.set({ a: '1' }, 5);
    gauge.set({ ['a']: '1', [name]: 'x' }, 6);
    gauge.labels('2', 'y').set(7);
    assert.deepStrictEqual(await samplesOf(registry), [
      'g 4',
      'g{a="1"} 5',
      `g{a="1",${name}="x"} 6`,
      `g{a="2",${name}="y"} 7`,
    ]);
  });
}

test('label values may be names on Object.prototype', async () => {
  const { registry, gauge } = gaugeWith(['a']);
  const values = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
  values.forEach((value, index) => gauge.set({ a: value }, index));
  assert.deepStrictEqual(
    await samplesOf(registry),
    values.map((value, index) => `g{a="${value}"} ${index}`),
  );
});

// prom-client defect 3: only strings are escaped
test('label values that are objects are escaped like strings', async () => {
  const { registry, gauge } = gaugeWith(['a']);
  gauge.set({ a: { toString: () => 'one "two"\nthree \\' } }, 1);
  gauge.set({ a: ['"', 2] }, 2);
  assert.deepStrictEqual(await samplesOf(registry), [
    String.raw`g{a="one \"two\"\nthree \\"} 1`,
    String.raw`g{a="\",2"} 2`,
  ]);
});

// prom-client defect 3: remove(null) throws, and a child of null treats null as a value
test('null as a label set means no labels, in every method', async () => {
  const { registry, gauge } = gaugeWith(['a']);
  gauge.labels(null).set(3);
  assert.deepStrictEqual(await samplesOf(registry), ['g 3']);
  gauge.remove(null);
  assert.deepStrictEqual(await samplesOf(registry), []);
});

// prom-client defect 2: the caller's object is stored and read again at each scrape
test("changing a label object after the call does not change the series' labels", async () => {
  const registry = new Registry();
  const common = { help: 'x', labelNames: ['a'], registers: [registry] };
  const counter = new Counter({ name: 'c', ...common });
  const gauge = new Gauge({ name: 'g', ...common });
  const histogram = new Histogram({ name: 'h', buckets: [], ...common });
  const summary = new Summary({ name: 's', percentiles: [], ...common });
  const labels = { a: 'before' };
  counter.inc(labels);
  gauge.set(labels, 1);
  histogram.observe(labels, 1);
  summary.observe(labels, 1);
  const child = gauge.labels(labels);

  labels.a = 'after';
  child.inc();

  assert.deepStrictEqual(await samplesOf(registry), [
    'c{a="before"} 1',
    'g{a="before"} 2',
    'h_bucket{le="+Inf",a="before"} 1',
    'h_sum{a="before"} 1',
    'h_count{a="before"} 1',
    's_sum{a="before"} 1',
    's_count{a="before"} 1',
  ]);
});

// prom-client defect 2: set() and zero() store the object of the last call
test('a series has the label order of its first use until it is removed', async () => {
  const registry = new Registry();
  const common = { help: 'x', labelNames: ['a', 'b'], registers: [registry] };
  const gauge = new Gauge({ name: 'g', ...common });
  const histogram = new Histogram({ name: 'h', buckets: [], ...common });
  gauge.set({ b: '2', a: '1' }, 1);
  gauge.set({ a: '1', b: '2' }, 2);
  gauge.labels('1', '2').set(3);
  histogram.observe({ b: '2', a: '1' }, 1);
  histogram.zero({ a: '1', b: '2' });
  assert.deepStrictEqual(await samplesOf(registry), [
    'g{b="2",a="1"} 3',
    'h_bucket{le="+Inf",b="2",a="1"} 0',
    'h_sum{b="2",a="1"} 0',
    'h_count{b="2",a="1"} 0',
  ]);
  gauge.remove({ a: '1', b: '2' });
  gauge.set({ a: '1', b: '2' }, 4);
  assert.strictEqual((await samplesOf(registry))[0], 'g{a="1",b="2"} 4');
});

test('a series has a label that is undefined if its first use had it, until it is removed', async () => {
  const { registry, gauge } = gaugeWith(['a', 'b']);
  gauge.set({ a: undefined, b: '2' }, 1);
  gauge.set({ b: '2' }, 2);
  assert.deepStrictEqual(await samplesOf(registry), ['g{a="undefined",b="2"} 2']);
  gauge.remove({ b: '2' });
  gauge.set({ b: '2' }, 3);
  gauge.set({ b: '2', a: undefined }, 4);
  assert.deepStrictEqual(await samplesOf(registry), ['g{b="2"} 4']);
});

test('value(), removeMatching() and maxSeries take a label that is undefined for one that is missing', async () => {
  const registry = new Registry();
  const options = { name: 'c', help: 'c', labelNames: ['a', 'b'], maxSeries: 1, registers: [registry] };
  const counter = new Counter(options);
  counter.inc({ a: undefined, b: 'x' }, 2);
  counter.inc({ b: 'x' });
  counter.labels(undefined, 'x').inc();
  assert.strictEqual(counter.overflowCount, 0);
  assert.deepStrictEqual([counter.value({ b: 'x' }), counter.value({ b: 'x', a: undefined })], [4, 4]);
  assert.deepStrictEqual(await samplesOf(registry), ['c{a="undefined",b="x"} 4']);
  assert.strictEqual(counter.removeMatching({ a: 'undefined' }), 0);
  assert.strictEqual(counter.removeMatching({ a: undefined }), 1);
});

// prom-client defect 8: explicit undefined and null crash
test('undefined or null as labelNames means no labels', async () => {
  for (const labelNames of [undefined, null]) {
    for (const Metric of METRIC_CLASSES) {
      const metric = new Metric({ name: 'm', help: 'm', labelNames, registers: [] });
      assert.deepStrictEqual([...metric.labelNames], []);
      assert.notStrictEqual((await metric.get()).values.length, 0, 'starts with its one series');
    }
  }
});

test('labels removed from labelNames later are still accepted', async () => {
  const { registry, gauge } = gaugeWith(['a']);
  gauge.set({ a: '1' }, 1);
  gauge.labelNames = [];
  gauge.inc({ a: '1' });
  assert.deepStrictEqual(await samplesOf(registry), ['g{a="1"} 2']);
});

test('observe() of a summary takes a function for no labels', async () => {
  const registry = new Registry();
  const options = { help: 's', labelNames: ['a'], percentiles: [], registers: [registry] };
  new Summary({ name: 's', ...options }).observe(
    Object.assign(() => {}, { a: '1' }),
    2,
  );
  assert.deepStrictEqual(await samplesOf(registry), ['s_sum 2', 's_count 1']);
});
