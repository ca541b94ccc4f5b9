'use strict';

// Programs wrap metrics and registries in proxies, inherit from them, and add labels
// later. All of this works with prom-client.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const http = require('node:http');
const { once } = require('node:events');
const {
  Registry,
  Counter,
  Gauge,
  Histogram,
  Summary,
  Pushgateway,
  AggregatorRegistry,
  openMetricsContentType,
} = require('../..');
const { METRIC_CLASSES } = require('../fixtures/metric-types');

const TYPES = {
  Counter: { Type: Counter, verb: 'inc' },
  Gauge: { Type: Gauge, verb: 'set' },
  Histogram: { Type: Histogram, verb: 'observe', config: { buckets: [1] } },
  Summary: { Type: Summary, verb: 'observe', config: { percentiles: [0.5] } },
};

for (const [name, { Type, verb, config }] of Object.entries(TYPES)) {
  const make = (more = {}) => {
    const registry = new Registry();
    const metric = new Type({
      name: 'm',
      help: 'h',
      labelNames: ['a'],
      registers: [registry],
      ...config,
      ...more,
    });
    return { registry, metric };
  };

  describe(`unusual use: a ${name}`, () => {
    it(`a ${name} works behind a Proxy, with its children and with a registry behind a Proxy`, async () => {
      const { registry, metric } = make();
      const proxy = new Proxy(metric, {});
      proxy[verb]({ a: '1' }, 2);
      proxy.labels('2')[verb](3);
      const text = await new Proxy(registry, {}).metrics();
      assert.match(text, /\{.*a="1"\} 2/);
      assert.match(text, /\{.*a="2"\} 3/);
      proxy.remove('1');
      proxy.reset();
      assert.equal(new Proxy(registry, {}).getSingleMetric('m'), metric);
    });

    it(`a ${name} works as the prototype of an object`, async () => {
      const { registry, metric } = make();
      Object.create(metric)[verb]({ a: '1' }, 2);
      assert.match(await registry.metrics(), /a="1"\} 2/);
    });

    it(`a ${name} may have any key in its config, also the name of internal state`, async () => {
      const own = { register: 'x', locate: 1, inside: 2 };
      const { registry, metric } = make(own);
      metric[verb]({ a: '1' }, 2);
      assert.match(await registry.metrics(), /a="1"\} 2/);
      assert.equal(metric.register, 'x');
    });

    it(`a ${name} runs a subclass's collect() method, unless the config has a collect`, async () => {
      class Collected extends Type {
        collect() {
          this.reset();
          this[verb]({ a: 'method' }, 2);
        }
      }
      const registry = new Registry();
      const base = { help: 'h', labelNames: ['a'], registers: [registry], ...config };
      new Collected({ ...base, name: 'without' });
      new Collected({ ...base, name: 'nothing', collect: undefined });
      new Collected({
        ...base,
        name: 'with',
        collect() {
          this.reset();
          this[verb]({ a: 'config' }, 2);
        },
      });
      const text = await registry.metrics();
      assert.match(text, /^without[{_]\S*a="method"/m);
      assert.match(text, /^nothing[{_]\S*a="method"/m);
      assert.match(text, /^with[{_]\S*a="config"/m);
      assert.doesNotMatch(text, /^with[{_]\S*a="method"/m);
    });

    it(`a ${name} accepts labels that the program has added to its labelNames`, async () => {
      const { registry, metric } = make();
      metric[verb]({ a: '1' }, 1);
      const child = metric.labels('1');
      child[verb](1);
      metric.labelNames.push('b');
      metric[verb]({ a: '1', b: '2' }, 7);
      metric.labels('1', '3')[verb](8);
      metric.labels({ b: '4' })[verb](9);
      child[verb](1);
      const series = await registry.getMetricsAsJSON();
      const sets = new Set(series[0].values.map(({ labels: { a, b } }) => `${a} ${b}`));
      assert.deepEqual([...sets], ['1 undefined', '1 2', '1 3', 'undefined 4']);
      assert.match(await registry.metrics(), /a="1",b="2"\} 7/);
      assert.throws(() => metric[verb]({ c: '1' }, 1), /Added label "c" is not included/);
    });

    it(`a ${name} without labels accepts added ones, and its series remains`, async () => {
      const { registry, metric } = make({ labelNames: [] });
      metric[verb](5);
      metric.labelNames.push('a', 'b');
      metric[verb]({ b: '2' }, 7);
      metric[verb](5);
      const text = await registry.metrics();
      assert.match(text, /^m\S*b="2"\S* 7$/m);
      assert.match(text, verb === 'inc' ? /^m 10$/m : verb === 'set' ? /^m 5$/m : /^m_sum 10$/m);
    });

    it(`a ${name} drops its series when an empty object is assigned to hashMap, and for other objects, too`, async () => {
      const { registry, metric } = make();
      metric[verb]({ a: '1' }, 2);
      metric.hashMap = {};
      assert.deepEqual(metric.hashMap, {});
      assert.doesNotMatch(await registry.metrics(), /a="1"/);
      metric[verb]({ a: '1' }, 3);
      assert.match(await registry.metrics(), /a="1"\} 3/);
      metric.hashMap = { x: 1 };
      assert.deepEqual(metric.hashMap, {});
      assert.doesNotMatch(await registry.metrics(), /a="1"/);
    });
  });
}

for (const [name, { Type, verb }] of Object.entries({ Counter: TYPES.Counter, Histogram: TYPES.Histogram })) {
  it(`unusual use: a ${name} behind a Proxy stores exemplars`, async () => {
    const registry = new Registry(openMetricsContentType);
    const metric = new Type({ name: 'm', help: 'h', registers: [registry], enableExemplars: true });
    new Proxy(metric, {})[verb]({ value: 1, exemplarLabels: { traceId: 'x' } });
    assert.match(await registry.metrics(), /# \{traceId="x"\} 1/);
  });
}

describe('unusual use: metrics are read synchronously', () => {
  const make = () => {
    const registry = new Registry();
    const counter = new Counter({ name: 'a', help: 'h', registers: [registry] });
    counter.inc(5);
    return { registry, counter };
  };

  const readers = {
    'metrics()': ({ registry }) => registry.metrics(),
    'getMetricsAsString()': ({ registry, counter }) => registry.getMetricsAsString(counter),
    'getSingleMetricAsString()': ({ registry }) => registry.getSingleMetricAsString('a'),
    'getMetricsAsJSON()': ({ registry }) => registry.getMetricsAsJSON(),
    'get()': ({ counter }) => counter.get(),
  };
  for (const [name, read] of Object.entries(readers)) {
    it(`a program may reset its metrics as soon as it has called ${name}`, async () => {
      const world = make();
      const before = await read(world);
      const promise = read(world);
      world.registry.resetMetrics();
      assert.deepEqual(await promise, before);
      assert.notDeepEqual(await read(world), before);
    });
  }

  it('metrics are read synchronously even if another metric waits for its hook', async () => {
    const { registry, counter } = make();
    let finish;
    const gauge = new Gauge({
      name: 'slow',
      help: 'h',
      registers: [registry],
      collect: () => new Promise(resolve => (finish = resolve)),
    });
    const promise = registry.metrics();
    registry.resetMetrics();
    gauge.set(3);
    finish();
    assert.match(await promise, /^a 5$[^]*^slow 3$/m);
    assert.equal((await counter.get()).values[0].value, 0);
  });

  it('a program may reset its metrics as soon as it has called pushAdd()', async t => {
    const { registry } = make();
    const server = http.createServer(async (request, response) => {
      server.emit('pushed', Buffer.concat(await request.toArray()).toString());
      response.end();
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const pushed = once(server, 'pushed');
    const answered = new Pushgateway(`http://127.0.0.1:${server.address().port}`, registry).pushAdd({
      jobName: 'j',
    });
    registry.resetMetrics();
    await answered;
    assert.match((await pushed)[0], /^a 5$/m);
  });

  it('metrics of each type are read synchronously by get()', async () => {
    for (const { Type, verb, config } of Object.values(TYPES)) {
      const metric = new Type({ name: 'm', help: 'h', registers: [], ...config });
      metric[verb](1);
      const promise = metric.get();
      metric[verb](1000);
      assert.ok(!JSON.stringify(await promise).includes('1000'));
    }
  });

  const SELF_SCRAPES = {
    'metrics()': registry => registry.metrics(),
    'getSingleMetricAsString()': registry => registry.getSingleMetricAsString('a'),
    'metrics() with a spy': registry => {
      const { getMetricsAsString } = Registry.prototype;
      registry.getMetricsAsString = metric => getMetricsAsString.call(registry, metric);
      return registry.metrics();
    },
  };

  for (const [name, scrape] of Object.entries(SELF_SCRAPES)) {
    it(`a hook that scrapes its own registry by ${name} fails it, without unhandled rejections`, async () => {
      const registry = new Registry();
      const registers = [registry];
      const collect = () => scrape(registry).then(() => {});
      new Gauge({ name: 'a', help: 'h', registers, collect });
      for (let i = 0; i < 20; i++) new Gauge({ name: `b${i}`, help: 'h', registers });
      await assert.rejects(registry.metrics(), /may scrape its own registry/);
      await assert.rejects(registry.metricsBytes(), /may scrape its own registry/);
      await new Promise(resolve => setImmediate(resolve)); // when Node would report it, and fail this test
    });
  }

  it('a hook may scrape its own registry a few times', async () => {
    const registry = new Registry();
    let scrapes = 0;
    const collect = async () => {
      if (++scrapes < 20) await registry.metrics();
    };
    new Gauge({ name: 'a', help: 'h', registers: [registry], collect }).set(1);
    assert.match(await registry.metrics(), /^a 1$/m);
    assert.equal(scrapes, 20);
  });
});

describe('unusual use: a Registry', () => {
  it('a Registry has its metrics by name in _metrics, and they can be deleted there', () => {
    const registry = new Registry();
    assert.deepEqual(registry._metrics, {});
    assert.equal(registry._metrics.a, undefined);
    const gauge = new Gauge({ name: 'a', help: 'h', registers: [registry] });
    assert.equal(registry._metrics.a, gauge);
    assert.deepEqual(Object.keys(registry._metrics), ['a']);
    assert.ok(!Object.keys(registry).includes('_metrics'));
    registry._metrics.b = gauge;
    assert.equal(registry.getSingleMetric('b'), gauge);
    delete registry._metrics.a;
    delete registry._metrics.b;
    assert.equal(registry.getSingleMetric('a'), undefined);
    assert.deepEqual(registry.getMetricsAsArray(), []);
  });

  it('a Registry drops all metrics when an empty object is assigned to _metrics, and has those of another object', async () => {
    for (const client of [{ Registry, Gauge }, require('prom-client')]) {
      const registry = new client.Registry();
      registry.setDefaultLabels({ app: 'x' });
      const gauge = new client.Gauge({ name: 'a', help: 'h', registers: [registry] });
      registry._metrics = {};
      assert.deepEqual(registry.getMetricsAsArray(), []);
      assert.equal(registry.getSingleMetric('a'), undefined);
      new client.Gauge({ name: 'a', help: 'h', registers: [registry] });
      registry._metrics = { a: gauge };
      assert.equal(registry.getSingleMetric('a'), gauge);
      assert.match(await registry.metrics(), /^a\{app="x"\} 0$/m);
    }
  });

  it('a Registry has its default labels in _defaultLabels, and they can be replaced there, as in prom-client', async () => {
    for (const client of [{ Registry, Gauge }, require('prom-client')]) {
      class Assigning extends client.Registry {
        setDefaultLabels(labels) {
          this._defaultLabels = { ...labels };
        }
      }
      const assigning = new Assigning();
      assigning.setDefaultLabels({ app: 'x' });
      assert.deepEqual(assigning._defaultLabels, { app: 'x' });
      const registry = new client.Registry();
      new client.Gauge({ name: 'a', help: 'h', registers: [registry] });
      assert.deepEqual(registry._defaultLabels, {});
      registry.setDefaultLabels({ app: 'x' });
      assert.deepEqual(registry._defaultLabels, { app: 'x' });
      registry._defaultLabels = { app: 'y' };
      assert.match(await registry.metrics(), /^a\{app="y"\} 0$/m);
    }
  });

  const make = registry => new Gauge({ name: 'a', help: 'h', registers: [registry] });

  it('a Registry of a subclass may ignore a duplicate metric, or replace the first one', () => {
    class Ignoring extends Registry {
      registerMetric(metric) {
        if (!this.getSingleMetric(metric.name)) super.registerMetric(metric);
      }
    }
    const ignoring = new Ignoring();
    const first = make(ignoring);
    make(ignoring);
    assert.equal(ignoring.getSingleMetric('a'), first);
    class Replacing extends Registry {
      registerMetric(metric) {
        this.removeSingleMetric(metric.name);
        super.registerMetric(metric);
      }
    }
    const replacing = new Replacing();
    make(replacing);
    const second = make(replacing);
    assert.equal(replacing.getSingleMetric('a'), second);
  });

  it('a Registry may be a mock that returns a metric for every name', () => {
    const registered = [];
    const mock = { registerMetric: metric => registered.push(metric), getSingleMetric: () => null };
    const made = [make(mock), make(mock)];
    assert.deepEqual(registered, made);
  });

  it('a Registry of a subclass may override the text of single metrics', async () => {
    class Shouting extends Registry {
      async getMetricsAsString(metric) {
        return (await super.getMetricsAsString(metric)).toUpperCase();
      }
    }
    const registry = new Shouting();
    make(registry);
    assert.equal(await registry.metrics(), '# HELP A H\n# TYPE A GAUGE\nA 0\n');
  });
});

describe('unusual use: properties of the program', () => {
  const objects = {
    ...Object.fromEntries(
      METRIC_CLASSES.map(Type => [Type.name, new Type({ name: 'm', help: 'h', registers: [] })]),
    ),
    ...{ Registry: new Registry(), AggregatorRegistry: new AggregatorRegistry() },
    Pushgateway: new Pushgateway('http://127.0.0.1:1'),
  };
  for (const [type, object] of Object.entries(objects)) {
    it(`a ${type} may have properties of any name that prom-client's has no accessor of`, () => {
      const names = new Set(['anything']);
      for (let each = object; each !== Object.prototype; each = Object.getPrototypeOf(each))
        for (const name of Object.getOwnPropertyNames(each)) names.add(name);
      names.delete('contentType');
      for (const name of ['constructor', '_metrics', '_defaultLabels', 'hashMap']) names.delete(name);
      const ours = Object.create(object);
      for (const name of names) {
        ours[name] = name;
        assert.equal(ours[name], name);
      }
    });
  }
});

describe('unusual use: an enumerable property on Object.prototype', () => {
  const extended = run => {
    Object.prototype.extension = 1;
    try {
      return run();
    } finally {
      delete Object.prototype.extension;
    }
  };
  const without = labels => Object.assign(Object.create(null), labels);

  it('is not a label of a label set without a prototype', () => {
    const metric = new Counter({ name: 'a', help: 'h', labelNames: ['kind', 'status'], registers: [] });
    const sets = ['text', { toString: () => 'object' }].map(kind => without({ kind, status: 200 }));
    extended(() => [...sets, ...sets].forEach(labels => metric.inc(labels)));
    const values = sets.map(labels => metric.value(labels));
    assert.deepEqual(values, [2, 2]);
  });

  it('is not a label of the overflow series', () => {
    const metric = new Counter({ name: 'a', help: 'h', labelNames: ['x'], maxSeries: 1, registers: [] });
    extended(() => ['1', '2', '3'].forEach(x => metric.inc(without({ x }))));
    assert.deepEqual([metric.value({ x: '1' }), metric.value({ x: 'overflow' })], [1, 2]);
  });

  it('is not a label of a recording without labels', async () => {
    const registry = new Registry();
    const registers = [registry];
    extended(() => {
      new Counter({ name: 'a', help: 'h', registers }).inc();
      const gauge = new Gauge({ name: 'b', help: 'h', registers });
      gauge.inc(3);
      gauge.dec();
      new Histogram({ name: 'c', help: 'h', buckets: [1], registers }).observe(1);
      new Summary({ name: 'd', help: 'h', percentiles: [], registers }).observe(2);
      for (const Type of METRIC_CLASSES) {
        const options = { name: `new_${Type.name}`, help: 'h', buckets: [], percentiles: [], registers };
        const metric = new Type(options);
        assert.deepEqual(metric.value(), [Counter, Gauge].includes(Type) ? 0 : { count: 0, sum: 0 });
        metric.reset();
      }
    });
    const lines = (await registry.metrics()).split('\n');
    const expected = ['a 1', 'b 2', 'c_bucket{le="1"} 1', 'd_sum 2', 'new_Counter 0', 'new_Summary_count 0'];
    const shown = expected.filter(line => !lines.includes(line));
    assert.deepEqual(shown, []);
  });
});

describe('unusual use: a custom metric object', () => {
  const registryWith = values => {
    const registry = new Registry();
    registry.registerMetric({ name: 'own', get: () => ({ name: 'own', help: 'h', type: 'gauge', values }) });
    return registry;
  };

  it('whose list of samples is longer than what is in it is refused at the first one that is missing', async () => {
    let read = 0;
    const values = new Proxy([{ value: 1, labels: {} }], {
      get: (list, key) => {
        if (key === 'length') return 1e6;
        read++;
        return list[key];
      },
      has: (list, key) => {
        read++;
        return key in list;
      },
    });
    await assert.rejects(registryWith(values).metrics(), TypeError);
    assert.ok(read < 100, `${read} reads`);
  });
});

describe('unusual use: a child calls a replaced method', () => {
  const spied = (metric, name) => {
    const calls = [];
    metric[name] = (...args) => calls.push(args);
    return calls;
  };

  it('a child calls a replaced method: inc of a counter, of one object or of all', () => {
    const counter = new Counter({ name: 'a', help: 'h', labelNames: ['x'], registers: [] });
    const child = counter.labels('1');
    child.inc();
    const calls = spied(counter, 'inc');
    child.inc();
    counter.labels({ x: '2' }).inc(4);
    assert.deepEqual(calls, [[{ x: '1' }], [{ x: '2' }, 4]]);
    assert.equal(counter.hashMap['x:1,'].value, 1);
    delete counter.inc;
    const { inc } = Counter.prototype;
    const all = spied(Counter.prototype, 'inc');
    child.inc(7);
    Counter.prototype.inc = inc;
    assert.deepEqual(all, [[{ x: '1' }, 7]]);
  });

  it('a child calls a replaced method: inc, dec and set of a gauge', () => {
    const gauge = new Gauge({ name: 'a', help: 'h', labelNames: ['x'], registers: [] });
    const child = gauge.labels('1');
    const calls = ['inc', 'dec', 'set'].map(name => spied(gauge, name));
    child.inc(2);
    child.dec(3);
    child.set(4);
    const expected = [2, 3, 4].map(value => [[{ x: '1' }, value]]);
    assert.deepEqual(calls, expected);
    child.setToCurrentTime();
    gauge.setToCurrentTime({ x: '2' });
    const shown = calls[2].map(([labels]) => labels.x);
    assert.deepEqual(shown, ['1', '1', '2']);
  });

  it('a child calls a replaced method: that of a subclass', () => {
    const calls = [];
    class Doubling extends Counter {
      inc(labels, value = 1) {
        calls.push([labels, value]);
        super.inc(labels, value * 2);
      }
    }
    const counter = new Doubling({ name: 'a', help: 'h', labelNames: ['x'], registers: [] });
    counter.labels('1').inc();
    counter.inc({ x: '1' }, 3);
    assert.deepEqual(calls, [
      [{ x: '1' }, 1],
      [{ x: '1' }, 3],
    ]);
    assert.equal(counter.value({ x: '1' }), 8);
  });
});
