'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const stock = require('prom-client');
const ours = require('../..');
const { samplesOf, seriesKey } = require('../fixtures/unit-scrape');
const { METRIC_CLASSES } = require('../fixtures/metric-types');

const { Registry, Counter, Gauge, Histogram, Summary } = ours;

/** A custom metric object. */
function duck(name, values = [{ value: 1, labels: {} }], rest = {}) {
  return { name, get: () => ({ name, help: 'duck', type: 'gauge', values }), ...rest };
}

/** Performs the same operations with this package and with prom-client, and compares the results. */
async function assertSame(scenario) {
  assert.deepStrictEqual(await scenario(ours), await scenario(stock));
}

test('Registry: supports two content types and names an unsupported one in its error', () => {
  assert.strictEqual(new Registry().contentType, Registry.PROMETHEUS_CONTENT_TYPE);
  const registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
  assert.strictEqual(registry.contentType, Registry.OPENMETRICS_CONTENT_TYPE);
  registry.setContentType(Registry.PROMETHEUS_CONTENT_TYPE);
  assert.strictEqual(registry.contentType, Registry.PROMETHEUS_CONTENT_TYPE);
  assert.throws(() => new Registry('text/html'), new TypeError('Content type text/html is unsupported'));
  assert.throws(
    () => registry.setContentType('text/html'),
    new Error('Content type text/html is unsupported'),
  );
  assert.strictEqual(registry.contentType, Registry.PROMETHEUS_CONTENT_TYPE);
});

test('setContentType() applies to the next metrics()', async () => {
  const registry = new Registry();
  new Counter({ name: 'c_total', help: 'c', registers: [registry] });
  assert.strictEqual(await registry.metrics(), '# HELP c_total c\n# TYPE c_total counter\nc_total 0\n');
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  assert.strictEqual(await registry.metrics(), '# HELP c c\n# TYPE c counter\nc_total 0\n# EOF\n');
  registry.setContentType(Registry.PROMETHEUS_CONTENT_TYPE);
  assert.strictEqual(await registry.metrics(), '# HELP c_total c\n# TYPE c_total counter\nc_total 0\n');
  assert.strictEqual(registry.getSingleMetric('c_total').name, 'c_total');
});

test('Registry: metrics are in order of registration; a name can be registered once', () => {
  const registry = new Registry();
  const [a, b] = ['b', 'a'].map(name => new Gauge({ name, help: 'x', registers: [registry] }));
  registry.registerMetric(a);
  assert.deepStrictEqual(registry.getMetricsAsArray(), [a, b]);
  assert.strictEqual(registry.getSingleMetric('a'), b);
  assert.strictEqual(registry.getSingleMetric('c'), undefined);
  const taken = new Error('A metric with the name a has already been registered.');
  assert.throws(() => registry.registerMetric(duck('a')), taken);
  assert.throws(
    () => new Counter({ name: 'a', help: 'x', registers: [registry] }),
    error =>
      error.message === taken.message &&
      String(error) === `${taken} To use the one that exists, call registry.getOrCreate()`,
  );
  assert.strictEqual(registry.getSingleMetric('a'), b);
  registry.removeSingleMetric('b');
  registry.removeSingleMetric('unknown');
  registry.registerMetric(a);
  assert.deepStrictEqual(registry.getMetricsAsArray(), [b, a]);
});

test('Registry: metrics may have names of Object.prototype', async () => {
  const registry = new Registry();
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.strictEqual(registry.getSingleMetric(name), undefined);
    const counter = new Counter({ name, help: 'x', registers: [registry] });
    assert.strictEqual(registry.getSingleMetric(name), counter);
  }
  assert.strictEqual(samplesOf(await registry.metrics()).size, 4);
});

test('Registry: a default label may be called __proto__, in JSON too', async () => {
  const registry = new Registry();
  const labels = Object.fromEntries([['__proto__', 'x']]);
  registry.setDefaultLabels(labels);
  new Gauge({ name: 'g', help: 'x', registers: [registry] });
  assert.match(await registry.metrics(), /^g\{__proto__="x"\} 0$/m);
  const [{ values }] = await registry.getMetricsAsJSON();
  assert.deepStrictEqual(Object.entries(values[0].labels), Object.entries(labels));
});

test('a metric rejected by one of its registries is registered in none', () => {
  const [free, taken] = [new Registry(), new Registry()];
  taken.registerMetric(duck('m'));
  assert.throws(() => new Gauge({ name: 'm', help: 'x', registers: [free, taken] }));
  assert.deepStrictEqual(free.getMetricsAsArray(), []);
});

test('clear() removes metrics and default labels; names can be registered again', async () => {
  const registry = new Registry();
  registry.setDefaultLabels({ env: 'p' });
  new Gauge({ name: 'g', help: 'x', registers: [registry] });
  registry.clear();
  assert.strictEqual(await registry.metrics(), '\n');
  new Gauge({ name: 'g', help: 'x', registers: [registry] });
  assert.deepStrictEqual([...samplesOf(await registry.metrics()).keys()], [seriesKey('g')]);
});

test('resetMetrics() resets each metric as its type does', async () => {
  await assertSame(async ({ Registry, Counter, Gauge, Histogram, Summary }) => {
    const registry = new Registry();
    const registers = [registry];
    for (const labelNames of [[], ['a']]) {
      const labels = labelNames.length === 0 ? {} : { a: 'x' };
      const suffix = labelNames.length;
      new Counter({ name: `c${suffix}`, help: 'x', labelNames, registers }).inc(labels, 5);
      new Gauge({ name: `g${suffix}`, help: 'x', labelNames, registers }).set(labels, 5);
      if (suffix === 1)
        new Histogram({ name: 'h', help: 'x', labelNames, buckets: [1], registers }).observe(labels, 5);
      new Summary({ name: `s${suffix}`, help: 'x', labelNames, percentiles: [0.5], registers }).observe(
        labels,
        5,
      );
    }
    registry.resetMetrics();
    return [await registry.metrics(), await registry.getMetricsAsJSON()];
  });
});

test('text and JSON of all types, with default labels, equal those of prom-client', async () => {
  await assertSame(async ({ Registry, Counter, Gauge, Histogram, Summary }) => {
    const registry = new Registry();
    registry.setDefaultLabels({ env: 'p"', a: 'default', le: 'x' });
    const common = { help: 'back\\slash\nnext', labelNames: ['a', 'b'], registers: [registry] };
    const metrics = [
      new Counter({ name: 'c', ...common }),
      new Gauge({ name: 'g', ...common }),
      new Histogram({ name: 'h', buckets: [1, 2], ...common }),
      new Summary({ name: 's', percentiles: [0.5], ...common }),
    ];
    for (const labels of [{ a: 'x' }, { b: 1 }, {}, { b: 'é\n', a: '\\' }]) {
      for (const metric of metrics) (metric.inc ?? metric.observe).call(metric, labels, 1.5);
    }
    const texts = [await registry.metrics()];
    for (const { name } of metrics) texts.push(await registry.getSingleMetricAsString(name));
    for (const metric of metrics) texts.push(await registry.getMetricsAsString(metric));
    return texts;
  });
});

test('a label of a series overrides a default label, even if it is empty or zero', async () => {
  const registry = new Registry();
  const gauge = new Gauge({ name: 'g', help: 'x', labelNames: ['a', 'b'], registers: [registry] });
  gauge.set({ a: '', b: 0 }, 1);
  gauge.set({}, 2);
  registry.setDefaultLabels({ a: 'default', b: 'default' });
  const expected = [seriesKey('g', { a: '', b: 0 }), seriesKey('g', { a: 'default', b: 'default' })];
  assert.deepStrictEqual([...samplesOf(await registry.metrics()).keys()], expected);
  const [{ values }] = await registry.getMetricsAsJSON();
  assert.deepStrictEqual(
    values.map(({ labels }) => seriesKey('g', labels)),
    expected,
  );
});

test('default labels do not become part of the series', async () => {
  const registry = new Registry();
  const counter = new Counter({ name: 'c', help: 'x', labelNames: ['a'], registers: [registry] });
  counter.inc({ a: 'x' });
  registry.setDefaultLabels({ env: 'p' });
  const [before] = await registry.getMetricsAsJSON();
  assert.deepStrictEqual(before.values[0].labels, { a: 'x', env: 'p' });
  registry.setDefaultLabels({ zone: 'z' });
  assert.deepStrictEqual(
    [...samplesOf(await registry.metrics()).keys()],
    [seriesKey('c', { a: 'x', zone: 'z' })],
  );
  for (const nothing of [null, undefined, {}]) {
    registry.setDefaultLabels(nothing);
    assert.deepStrictEqual([...samplesOf(await registry.metrics()).keys()], [seriesKey('c', { a: 'x' })]);
    assert.deepStrictEqual((await registry.getMetricsAsJSON())[0].values[0].labels, { a: 'x' });
  }
});

test('getMetricsAsJSON() returns copies', async () => {
  const registry = new Registry();
  const counter = new Counter({ name: 'c', help: 'x', labelNames: ['a'], registers: [registry] });
  counter.inc({ a: 'x' });
  const [json] = await registry.getMetricsAsJSON();
  json.values[0].labels.a = 'changed';
  json.values[0].value = 77;
  json.values.push({ value: 1, labels: {} });
  assert.deepStrictEqual([...samplesOf(await registry.metrics())], [[seriesKey('c', { a: 'x' }), 1]]);
});

test('label objects of the caller are copied', async () => {
  const registry = new Registry();
  const gauge = new Gauge({ name: 'g', help: 'x', labelNames: ['a'], registers: [registry] });
  const labels = { a: 'x' };
  gauge.set(labels, 1);
  const child = gauge.labels(labels);
  labels.a = 'y';
  child.inc();
  assert.deepStrictEqual([...samplesOf(await registry.metrics())], [[seriesKey('g', { a: 'x' }), 2]]);
});

test('collect hooks start together, are all awaited, and have the metric as this', async () => {
  const registry = new Registry();
  const log = [];
  const release = [];
  for (const name of ['a', 'b', 'c']) {
    new Gauge({
      name,
      help: 'x',
      registers: [registry],
      async collect() {
        log.push(this.name);
        await new Promise(resolve => release.push(resolve));
        this.set(log.length);
      },
    });
  }
  const text = registry.metrics();
  assert.deepStrictEqual(log, ['a', 'b', 'c']);
  for (const resolve of release) resolve();
  assert.deepStrictEqual([...samplesOf(await text).values()], [3, 3, 3]);
});

test('a failing collect hook rejects the scrape with its error', async () => {
  for (const collect of [
    () => {
      throw new Error('reason');
    },
    async () => Promise.reject(new Error('reason')),
  ]) {
    const registry = new Registry();
    new Gauge({ name: 'good', help: 'x', registers: [registry] });
    new Gauge({ name: 'bad', help: 'x', registers: [registry], collect });
    for (const scrape of ['metrics', 'getMetricsAsJSON']) {
      await assert.rejects(registry[scrape](), new Error('reason'));
    }
    await assert.rejects(registry.getSingleMetricAsString('bad'), new Error('reason'));
    assert.match(await registry.getSingleMetricAsString('good'), /good 0/);
  }
});

test('a collect hook whose promise cannot be used leaves no rejection of another hook unhandled', async t => {
  const unhandled = t.mock.fn();
  process.prependListener('unhandledRejection', unhandled);
  t.after(() => process.removeListener('unhandledRejection', unhandled));
  const registry = new Registry();
  const fail = text => {
    throw new Error(text);
  };
  const hooks = [async () => fail('another'), () => ({ get then() { return fail('then'); } })]; // prettier-ignore
  hooks.forEach((collect, i) => new Gauge({ name: `g${i}`, help: 'x', registers: [registry], collect }));
  await assert.rejects(registry.metrics(), /then|another/);
  await new Promise(resolve => setImmediate(resolve));
  assert.strictEqual(unhandled.mock.callCount(), 0);
});

test('a collect hook may be set later, may update other metrics, and runs once per scrape', async () => {
  const registry = new Registry();
  const [leader, follower] = ['leader', 'follower'].map(
    name => new Gauge({ name, help: 'x', registers: [registry] }),
  );
  let runs = 0;
  leader.collect = () => follower.set(++runs);
  assert.strictEqual(samplesOf(await registry.metrics()).get(seriesKey('follower')), 1);
  await registry.getMetricsAsJSON();
  await registry.getSingleMetricAsString('leader');
  assert.strictEqual(runs, 3);
  await registry.getSingleMetricAsString('follower');
  assert.strictEqual(runs, 3);
});

test('custom metric objects are rendered, sync or async, by getForPromString() if they have it', async () => {
  const registry = new Registry();
  registry.setDefaultLabels({ env: 'p' });
  registry.registerMetric(duck('sync'));
  registry.registerMetric({
    name: 'async',
    get: async () => duck('async', [{ value: NaN, labels: { env: 'own' } }]).get(),
  });
  registry.registerMetric(
    duck('text', [], { getForPromString: async () => duck('text', [{ value: 3, labels: {} }]).get() }),
  );
  assert.deepStrictEqual(
    samplesOf(await registry.metrics()),
    new Map([
      [seriesKey('sync', { env: 'p' }), 1],
      [seriesKey('async', { env: 'own' }), NaN],
      [seriesKey('text', { env: 'p' }), 3],
    ]),
  );
  const json = await registry.getMetricsAsJSON();
  assert.deepStrictEqual(
    json.map(({ name, values }) => [name, values.length]),
    [
      ['sync', 1],
      ['async', 1],
      ['text', 0],
    ],
  );
  assert.throws(() => registry.resetMetrics(), TypeError);
});

test('custom metric objects: label values that differ in unpaired surrogates only are one series', async () => {
  const registry = new Registry();
  registry.setDefaultLabels({ env: '\udfff' });
  const values = ['x\ud800', 'x\udfff', 'x\ufffd', 'y'].map(a => ({ value: 1, labels: { a } }));
  registry.registerMetric(duck('m', values));
  assert.deepStrictEqual(
    samplesOf(String(Buffer.from(await registry.metrics()))),
    new Map([
      [seriesKey('m', { a: 'x\ufffd', env: '\ufffd' }), 3],
      [seriesKey('m', { a: 'y', env: '\ufffd' }), 1],
    ]),
  );
});

test('a custom metric object may have a set of samples, or none', () =>
  assertSame(async ({ Registry: Client }) => {
    const registry = new Client();
    registry.registerMetric(duck('set', new Set([{ value: 1, labels: { a: 'x' } }])));
    registry.registerMetric(duck('none', NaN));
    return registry.metrics();
  }));

test('a custom metric object may have no name of its own', () =>
  assertSame(async ({ Registry }) => {
    const registry = new Registry();
    const { get } = duck('m');
    registry.registerMetric({ get });
    const messageOf = run => {
      try {
        return run();
      } catch ({ message }) {
        return message;
      }
    };
    return [
      await registry.metrics(),
      await registry.getMetricsAsJSON(),
      registry.getMetricsAsArray(),
      registry.getSingleMetric('m'),
      messageOf(() => registry.registerMetric({ get })),
      await Registry.merge([registry]).metrics(),
    ].map(result => JSON.stringify(result));
  }));

test('a metric with a replaced get() is rendered from it', async () => {
  class Doubled extends Gauge {
    async get() {
      const json = await super.get();
      return { ...json, values: json.values.map(sample => ({ ...sample, value: sample.value * 2 })) };
    }
  }
  const registry = new Registry();
  new Doubled({ name: 'subclass', help: 'x', registers: [registry] }).set(2);
  const replaced = new Counter({ name: 'replaced', help: 'x', registers: [registry] });
  replaced.get = async () => duck('replaced', [{ value: 9, labels: {} }]).get();
  assert.deepStrictEqual([...samplesOf(await registry.metrics()).values()], [4, 9]);
});

for (const Type of METRIC_CLASSES) {
  test(`a ${Type.name} is rendered from the get() that a program puts in place of its class's`, async t => {
    const registry = new Registry();
    new Type({ name: 'm', help: 'x', registers: [registry] });
    t.mock.method(Type.prototype, 'get', duck('m', [{ value: 9, labels: {} }]).get);
    const page = '# HELP m duck\n# TYPE m gauge\nm 9\n';
    assert.strictEqual(await registry.metrics(), page);
    assert.strictEqual(String(await registry.metricsBytes()), page);
  });
}

for (const name of ['metrics', 'getMetricsAsString']) {
  test(`metrics() and metricsBytes() call the ${name}() that a program puts in place of the class's`, async t => {
    const registry = new Registry();
    new Gauge({ name: 'm', help: 'x', registers: [registry] });
    t.mock.method(Registry.prototype, name, async () => 'm 9\n');
    assert.match(await registry.metrics(), /^m 9\n/);
    assert.match(String(await registry.metricsBytes()), /^m 9\n/);
  });
}

test('getSingleMetricAsString() has no trailing line feed; an unknown name is a TypeError', async () => {
  const registry = new Registry();
  const gauge = new Gauge({ name: 'g', help: 'x', registers: [registry] });
  assert.strictEqual(await registry.getSingleMetricAsString('g'), '# HELP g x\n# TYPE g gauge\ng 0');
  await assert.rejects(registry.getSingleMetricAsString('unknown'), TypeError);
  registry.clear();
  assert.strictEqual(await registry.getMetricsAsString(gauge), '# HELP g x\n# TYPE g gauge\ng 0');
});

test('metrics can be filtered by aggregator, which defaults to sum', async () => {
  const registry = new Registry();
  const registers = [registry];
  const sum = new Gauge({ name: 'a', help: 'x', registers });
  const max = new Histogram({ name: 'b', help: 'x', aggregator: 'max', registers });
  const other = duck('c');
  registry.registerMetric(other);
  assert.deepStrictEqual(registry.getMetricsAsArray('sum'), [sum, other]);
  assert.deepStrictEqual(registry.getMetricsAsArray('max'), [max]);
  assert.deepStrictEqual(registry.getMetricsAsArray('min'), []);
  assert.deepStrictEqual(
    (await registry.getMetricsAsJSON('max')).map(({ name }) => name),
    ['b'],
  );
});

test('merge() combines the metrics of several registries, without their default labels', async () => {
  const [a, b] = [new Registry(), new Registry()];
  a.setDefaultLabels({ env: 'p' });
  const shared = new Gauge({ name: 'shared', help: 'x', registers: [a, b] });
  new Counter({ name: 'only_a', help: 'x', registers: [a] });
  new Summary({ name: 'only_b', help: 'x', percentiles: [], registers: [b] });
  const merged = Registry.merge([a, b]);
  assert.ok(merged instanceof Registry);
  assert.deepStrictEqual(
    merged.getMetricsAsArray().map(({ name }) => name),
    ['shared', 'only_a', 'only_b'],
  );
  shared.set(5);
  assert.strictEqual(samplesOf(await merged.metrics()).get(seriesKey('shared')), 5);
  new Gauge({ name: 'later', help: 'x', registers: [a] });
  assert.strictEqual(merged.getSingleMetric('later'), undefined);
});

test('merge() rejects different content types and duplicate names', () => {
  const [a, b] = [new Registry(), new Registry()];
  for (const registry of [a, b]) new Gauge({ name: 'g', help: 'x', registers: [registry] });
  assert.throws(
    () => Registry.merge([a, b]),
    new Error('A metric with the name g has already been registered.'),
  );
  const openMetrics = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
  assert.throws(
    () => Registry.merge([new Registry(), openMetrics]),
    new Error('Registers can only be merged if they have the same content type'),
  );
  assert.throws(() => Registry.merge([]), TypeError);
  assert.strictEqual(Registry.merge([openMetrics]).contentType, Registry.OPENMETRICS_CONTENT_TYPE);
});

test('a metric in several registries has the default labels of each', async () => {
  const registries = [new Registry(), new Registry()];
  registries.forEach((registry, i) => registry.setDefaultLabels({ registry: i }));
  const counter = new Counter({ name: 'c', help: 'x', labelNames: ['a'], registers: registries });
  counter.inc({ a: 'x' }, 3);
  for (const [i, registry] of registries.entries()) {
    assert.deepStrictEqual(
      [...samplesOf(await registry.metrics())],
      [[seriesKey('c', { a: 'x', registry: i }), 3]],
    );
  }
});

test('metrics are registered in the global registry by default', () => {
  assert.strictEqual(ours.register, Registry.globalRegistry);
  const gauge = new Gauge({ name: 'registry_test_gauge', help: 'x' });
  try {
    assert.strictEqual(ours.register.getSingleMetric('registry_test_gauge'), gauge);
    const nowhere = new Gauge({ name: 'registry_test_gauge', help: 'x', registers: [] });
    assert.notStrictEqual(ours.register.getSingleMetric('registry_test_gauge'), nowhere);
  } finally {
    ours.register.removeSingleMetric('registry_test_gauge');
  }
});
