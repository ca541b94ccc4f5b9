'use strict';

// What programs do with metrics and registries beyond calling them: wrap them in proxies, inherit from them, add labels
// later. Each works with prom-client.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const { Registry, Counter, Gauge, Histogram, Summary, openMetricsContentType } = require('..');

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

  describe(`a ${name}`, () => {
    it('works behind a Proxy, with its children, and is shown by a registry behind one', async () => {
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

    it('works as the prototype of an object', async () => {
      const { registry, metric } = make();
      Object.create(metric)[verb]({ a: '1' }, 2);
      assert.match(await registry.metrics(), /a="1"\} 2/);
    });

    it('may have any key in its config, also the name of something inside', async () => {
      const own = { register: 'x', locate: 1, inside: 2 };
      const { registry, metric } = make(own);
      metric[verb]({ a: '1' }, 2);
      assert.match(await registry.metrics(), /a="1"\} 2/);
      assert.equal(metric.register, 'x');
    });

    it('runs a collect() that a subclass has as a method, unless the config has another', async () => {
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

    it('takes labels that the program has added to its labelNames', async () => {
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

    it('without labels takes some that were added, and keeps what it has', async () => {
      const { registry, metric } = make({ labelNames: [] });
      metric[verb](5);
      metric.labelNames.push('a', 'b');
      metric[verb]({ b: '2' }, 7);
      metric[verb](5);
      const text = await registry.metrics();
      assert.match(text, /^m\S*b="2"\S* 7$/m);
      assert.match(text, verb === 'inc' ? /^m 10$/m : verb === 'set' ? /^m 5$/m : /^m_sum 10$/m);
    });

    it('forgets its series when hashMap is emptied, and refuses another one', async () => {
      const { registry, metric } = make();
      metric[verb]({ a: '1' }, 2);
      metric.hashMap = {};
      assert.deepEqual(metric.hashMap, {});
      assert.doesNotMatch(await registry.metrics(), /a="1"/);
      metric[verb]({ a: '1' }, 3);
      assert.match(await registry.metrics(), /a="1"\} 3/);
      assert.throws(() => (metric.hashMap = { x: 1 }), TypeError);
      assert.match(await registry.metrics(), /a="1"\} 3/);
    });
  });
}

for (const [name, { Type, verb }] of Object.entries({ Counter: TYPES.Counter, Histogram: TYPES.Histogram })) {
  it(`exemplars of a ${name} behind a Proxy are kept`, async () => {
    const registry = new Registry(openMetricsContentType);
    const metric = new Type({ name: 'm', help: 'h', registers: [registry], enableExemplars: true });
    new Proxy(metric, {})[verb]({ value: 1, exemplarLabels: { traceId: 'x' } });
    assert.match(await registry.metrics(), /# \{traceId="x"\} 1/);
  });
}
