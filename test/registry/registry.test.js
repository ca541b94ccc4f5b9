'use strict';

const path = require('node:path');
const { test } = require('node:test');
const assert = require('node:assert');
const stock = require('prom-client');
const ours = require('../..');
const { samplesOf, seriesKey } = require('../fixtures/unit-scrape');
const { METRIC_CLASSES } = require('../fixtures/metric-types');

const { Registry, Counter, Gauge, Histogram } = ours;

/** A custom metric object. */
function duck(name, values = [{ value: 1, labels: {} }], rest = {}) {
  return { name, get: () => ({ name, help: 'duck', type: 'gauge', values }), ...rest };
}

/** Performs the same operations with this package and with prom-client, and compares the results. */
async function assertSame(scenario) {
  assert.deepStrictEqual(await scenario(ours), await scenario(stock));
}

test('Registry: a default label may be called __proto__, in JSON too', async () => {
  const registry = new Registry();
  const labels = Object.fromEntries([['__proto__', 'x']]);
  registry.setDefaultLabels(labels);
  new Gauge({ name: 'g', help: 'x', registers: [registry] });
  assert.match(await registry.metrics(), /^g\{__proto__="x"\} 0$/m);
  const [{ values }] = await registry.getMetricsAsJSON();
  assert.deepStrictEqual(Object.entries(values[0].labels), Object.entries(labels));
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

test('a failing collect hook rejects what has its metric with its error, and nothing else', async () => {
  const fail = () => {
    throw new Error('reason');
  };
  for (const collect of [fail, async () => fail()]) {
    const registry = new Registry();
    new Gauge({ name: 'good', help: 'x', registers: [registry] });
    new Gauge({ name: 'bad', help: 'x', registers: [registry], collect });
    await assert.rejects(registry.metrics(), new Error('reason'));
    await assert.rejects(registry.getMetricsAsJSON(), new Error('reason'));
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

test('a custom metric object is rendered by getForPromString() if it has it, and by get() in JSON', async () => {
  const registry = new Registry();
  const getForPromString = async () => duck('text', [{ value: 3, labels: {} }]).get();
  registry.registerMetric(duck('text', [], { getForPromString }));
  assert.deepStrictEqual(samplesOf(await registry.metrics()), new Map([[seriesKey('text'), 3]]));
  assert.deepStrictEqual((await registry.getMetricsAsJSON())[0].values, []);
  assert.throws(() => registry.resetMetrics(), TypeError);
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
  const names = (await registry.getMetricsAsJSON('max')).map(({ name }) => name);
  assert.deepStrictEqual(names, ['b']);
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

test('Registry.shared() is one registry for all copies of the package in a process, with the metrics of all', async () => {
  const root = path.join(__dirname, '../..');
  const copies = ['a', 'b'].map(() => {
    for (const file of Object.keys(require.cache))
      if (file.startsWith(root) && !file.includes('node_modules')) delete require.cache[file];
    return require('../..');
  });
  assert.notStrictEqual(copies[0].Registry, copies[1].Registry);
  const registry = ours.Registry.shared('test');
  for (const { Registry: Copied, Counter: Type } of copies) {
    assert.strictEqual(Copied.shared('test'), registry);
    const counter = Copied.shared('test').getOrCreate(Type, { name: 'c', help: 'c', labelNames: ['a'] });
    counter.inc({ a: 1 });
    counter.curry({ a: 1 }).inc();
  }
  assert.match(await registry.metrics(), /^c\{a="1"\} 4$/m);
  assert.strictEqual(ours.Registry.shared(), copies[0].Registry.shared('default'));
  assert.notStrictEqual(ours.Registry.shared(), registry);
});
