'use strict';

// Behaviour that programs rely on and that is easy to "improve" by accident: each case runs on both clients,
// and both must give the same.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const { inspect } = require('node:util');
const ours = require('../..');
const promClient = require('prom-client');

/**
 * @param {(client: any) => Promise<any>} run
 * @returns {Promise<any>} the result of both, which is the same
 */
async function resultOfBoth(run) {
  const expected = await run(promClient);
  assert.deepEqual(await run(ours), expected);
  return expected;
}

/** Everything that a registry with one metric shows. */
async function shownBy(registry, metric) {
  return {
    text: await registry.metrics(),
    single: await registry.getSingleMetricAsString(metric.name),
    json: await registry.getMetricsAsJSON(),
    values: (await metric.get()).values,
    hashMap: metric.hashMap,
  };
}

describe('the name of a custom metric object', () => {
  for (const name of ['line\nbreak', 'back\\slash', '"quoted"', 'test_"_\\_\n_metric']) {
    it(`${JSON.stringify(name)} is escaped as HELP is, on each page and in aggregate()`, () =>
      resultOfBoth(async client => {
        const values = [
          { value: 1, labels: {} },
          { value: 2, labels: { a: 'b' }, metricName: 'other\\name' },
        ];
        const family = { name, help: `of ${name}`, type: 'counter', values, aggregator: 'sum' };
        const pages = [client.prometheusContentType, client.openMetricsContentType].map(contentType => {
          const registry = new client.Registry(contentType);
          registry.registerMetric({ name, get: async () => family });
          return registry.metrics();
        });
        const single = { ...family, values: values.slice(0, 1) };
        pages.push(client.AggregatorRegistry.aggregate([[single], [single]]).metrics());
        return Promise.all(pages);
      }));
  }
});

describe('the timer of a child', () => {
  for (const type of ['Gauge', 'Histogram', 'Summary']) {
    it(`ignores what a ${type} passes to startTimer(), and takes the labels of its end`, async () => {
      const labels = await resultOfBoth(async client => {
        const metric = new client[type]({ name: 'm', help: 'h', labelNames: ['a', 'b'], registers: [] });
        metric.labels('1', '2').startTimer({ b: '3' })();
        metric.labels('4', '5').startTimer({ unknown: '6' }, { trace: '7' })({ b: '8' });
        const seen = (await metric.get()).values.map(value => value.labels);
        return [...new Set(seen.map(({ a, b }) => `${a} ${b}`))];
      });
      assert.deepEqual(labels, ['1 2', '4 8']);
    });
  }
});

describe('a method that a test replaces', () => {
  for (const [type, method] of [
    ['Counter', 'inc'],
    ['Gauge', 'inc'],
    ['Gauge', 'dec'],
    ['Gauge', 'set'],
  ]) {
    it(`what ${method}() of a ${type} returns is what that of a child returns`, async () => {
      const returned = await resultOfBoth(async client => {
        const metric = new client[type]({ name: 'm', help: 'h', labelNames: ['a'], registers: [] });
        metric[method] = async () => 'a promise, which may be rejected';
        return [await metric.labels('1')[method](), await metric.labels('1')[method](3)];
      });
      assert.deepEqual(returned[1], 'a promise, which may be rejected');
    });
  }
});

describe('an object with nothing but the prototype of a class, as createStubInstance() of sinon makes', () => {
  const stubOf = (Class, methods) => Object.assign(Object.create(Class.prototype), methods);

  for (const name of ['Registry', 'AggregatorRegistry', 'Counter', 'Gauge', 'Histogram', 'Summary']) {
    it(`can be read: ${name}`, async () => {
      await resultOfBoth(async client =>
        ['contentType', '_metrics', '_defaultLabels', 'hashMap', 'name', 'buckets'].map(
          property => typeof stubOf(client[name])[property],
        ),
      );
      const stub = stubOf(ours[name]);
      for (let object = stub; object !== null; object = Object.getPrototypeOf(object)) {
        for (const property of Reflect.ownKeys(object)) if (property !== '__proto__') void stub[property];
      }
    });
  }

  for (const name of ['Registry', 'AggregatorRegistry']) {
    it(`can be a registry in tests: ${name}`, async () => {
      const seen = await resultOfBoth(async client => {
        const names = [];
        const registry = stubOf(client[name], {
          registerMetric: metric => void names.push(metric.name),
          getMetricsAsArray: () => [],
          getSingleMetric: () => undefined,
          metrics: async () => 'page',
        });
        const options = { name: 'c', help: 'h', registers: [registry] };
        new client.Counter(options).inc();
        new client.Histogram({ ...options, name: 'h', enableExemplars: true }).observe({ value: 1 });
        client.collectDefaultMetrics({ register: registry });
        client.AggregatorRegistry.setRegistries(registry);
        client.AggregatorRegistry.setRegistries(client.register);
        const merged = client.Registry.merge([registry]);
        return [names.slice(0, 3), merged.contentType, await registry.metrics(), registry.contentType];
      });
      assert.deepEqual(seen.slice(2), ['page', undefined]);
    });
  }
});

describe('buckets of a Histogram that a program assigns later', () => {
  for (const buckets of [undefined, [], [1], [1, 2, 3, 4]]) {
    it(`change nothing: ${JSON.stringify(buckets)}`, () =>
      resultOfBoth(async client => {
        const registry = new client.Registry();
        const options = { name: 'h', help: 'h', labelNames: ['a'], buckets: [1, 2], registers: [registry] };
        const histogram = new client.Histogram(options);
        histogram.observe({ a: '1' }, 1.5);
        histogram.observe({ a: '2' }, 5);
        histogram.buckets = buckets;
        histogram.observe({ a: '1' }, 0.5);
        return shownBy(registry, histogram);
      }));
  }

  it('change nothing: a field of a subclass', () =>
    resultOfBoth(async client => {
      class Derived extends client.Histogram {
        buckets;
      }
      const registry = new client.Registry();
      const histogram = new Derived({ name: 'h', help: 'h', buckets: [1, 2], registers: [registry] });
      histogram.observe(1.5);
      return shownBy(registry, histogram);
    }));
});

describe('a Registry without its constructor', () => {
  it('can be used after clear()', async () => {
    await resultOfBoth(async client => {
      const registry = Object.create(client.Registry.prototype);
      registry.clear();
      registry.setDefaultLabels({ host: 'one' });
      registry.setContentType(client.openMetricsContentType);
      new client.Gauge({ name: 'g', help: 'h', registers: [registry] }).set(1);
      return [registry.contentType, await registry.metrics(), await registry.getMetricsAsJSON()];
    });
  });

  it('can have default labels and a content type', () =>
    resultOfBoth(async client => {
      const registry = Object.create(client.Registry.prototype);
      registry.setContentType(client.openMetricsContentType);
      registry.setDefaultLabels({ host: 'one' });
      const other = Object.create(client.Registry.prototype);
      other._defaultLabels = { host: 'two' };
      return [registry.contentType, registry._defaultLabels, other._defaultLabels];
    }));
});

describe('observe() that a test replaces', () => {
  it('gets what a timer with exemplars records, as in prom-client', async () => {
    const calls = await resultOfBoth(async client => {
      const registers = [new client.Registry(client.openMetricsContentType)];
      const options = { name: 'h', help: 'h', labelNames: ['a'], enableExemplars: true, registers };
      const histogram = new client.Histogram(options);
      const seen = [];
      histogram.observe = record => seen.push({ ...record, value: typeof record.value });
      histogram.startTimer({ a: '1' }, { trace: '2' })({}, { span: '3' });
      histogram.startTimer()();
      return seen;
    });
    assert.equal(calls.length, 2);
  });
});

it('label sets of a name that labelNames has twice are the same series', async () => {
  await resultOfBoth(async client => {
    const registry = new client.Registry();
    const labelNames = ['method', 'status', 'method'];
    const counter = new client.Counter({ name: 'c', help: 'h', labelNames, registers: [registry] });
    for (const method of ['GET', 'PUT', 'POST', 'GET']) {
      counter.inc({ status: '200', method });
      counter.inc({ method, status: '500' });
    }
    counter.remove({ method: 'PUT', status: '500' });
    return registry.metrics();
  });
});

it('an invalid name has the message of prom-client, whole, and what people read says which', async () => {
  const attempts = {
    'a-b': (client, registers) => new client.Counter({ name: 'a-b', help: 'h', registers }),
    'c-d': (client, registers) => new client.Gauge({ name: 'g', help: 'h', labelNames: ['c-d'], registers }),
    '5process_cpu_user_seconds_total': (client, [register]) =>
      client.collectDefaultMetrics({ prefix: '5', register }),
  };
  for (const [name, attempt] of Object.entries(attempts)) {
    const errors = [];
    await resultOfBoth(async client => {
      assert.throws(
        () => attempt(client, [new client.Registry()]),
        error => errors.push(error) > 0,
      );
      const { name: kind, message, constructor } = errors.at(-1);
      return { kind, message, constructor, keys: Object.keys(errors.at(-1)) };
    });
    for (const text of [String(errors[1]), errors[1].stack, inspect(errors[1])])
      assert.ok(text.startsWith(`${errors[0]}: '${name}'. Use letters`), text);
  }
});

describe('a label that is undefined', () => {
  const LABELLED = { help: 'h', labelNames: ['a', 'b'] };

  it('is a label of its series, and has no default label of its name in text, but in JSON', () =>
    resultOfBoth(async client => {
      const registry = new client.Registry();
      const counter = new client.Counter({ name: 'm', ...LABELLED, registers: [registry] });
      registry.setDefaultLabels({ a: 'default', env: undefined, zone: null });
      counter.inc({ a: undefined, b: 'x' });
      const series = Object.entries(counter.hashMap).map(([key, { labels }]) => [key, { ...labels }]);
      return [series, await registry.metrics(), await registry.getMetricsAsJSON()];
    }));

  it('with exemplars', () =>
    resultOfBoth(async client => {
      const registry = new client.Registry(client.openMetricsContentType);
      const options = { ...LABELLED, registers: [registry], enableExemplars: true };
      const labels = { b: 'x', a: undefined };
      new client.Counter({ name: 'c', ...options }).inc({ labels, exemplarLabels: { trace: undefined } });
      new client.Histogram({ name: 'h', ...options }).observe({ labels, value: 1, exemplarLabels: labels });
      return (await registry.metrics()).replaceAll(/ [\d.]+$/gm, ' time');
    }));

  it('of a custom metric object, and in aggregate()', () =>
    resultOfBoth(async client => {
      const registry = new client.Registry();
      const values = [{ value: 1, labels: { a: undefined, b: 'x' } }];
      registry.registerMetric({
        name: 'm',
        get: () => ({ name: 'm', help: 'h', type: 'gauge', values, aggregator: 'sum' }),
      });
      const json = await registry.getMetricsAsJSON();
      const aggregated = client.AggregatorRegistry.aggregate([json, JSON.parse(JSON.stringify(json))]);
      return [await registry.metrics(), await aggregated.metrics(), await aggregated.getMetricsAsJSON()];
    }));

  it('is refused if it is not one of the names', () =>
    resultOfBoth(async client => {
      const gauge = new client.Gauge({ name: 'm', ...LABELLED, registers: [] });
      assert.throws(() => gauge.set({ c: undefined }, 1), /^Error: Added label "c" is not included/);
      return gauge.get();
    }));
});

describe('aggregate() of lists that are not in an array', () => {
  const listOf = value => [
    { name: 'm', help: 'h', type: 'gauge', values: [{ value, labels: {} }], aggregator: 'sum' },
  ];
  const [one, two] = [listOf(1), listOf(2)];
  for (const lists of [
    new Map([
      ['1', one],
      ['2', two],
    ]),
    new Set([one, two]),
    [new Set(one), new Map([['m', two[0]]])],
  ])
    it(inspect(lists, { depth: 0 }), async () => {
      const page = await resultOfBoth(client => client.AggregatorRegistry.aggregate(lists).metrics());
      assert.match(page, /^m 3$/m);
    });
});
