'use strict';

// Children: what labels() returns.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const promClient = require('prom-client');
const ours = require('../..');

for (const [name, library] of Object.entries({ 'prom-client': promClient, ours })) {
  const make = type => new library[type]({ name: 'm', help: 'h', labelNames: ['a', 'b'], registers: [] });
  const valueOf = async metric => (await metric.get()).values.map(({ labels, value }) => [labels, value]);

  describe(`labels() of ${name}`, () => {
    it(`labels() of ${name} returns methods that work when detached, spread and replaced`, async () => {
      const counter = make('Counter');
      const child = counter.labels('x', 'y');
      const { inc } = child;
      inc();
      ({ ...child }).inc(2);
      [3].forEach(value => inc(value));
      child.inc = () => {};
      child.inc();
      assert.deepEqual(await valueOf(counter), [[{ a: 'x', b: 'y' }, 6]]);
    });

    it(`labels() of ${name} finds an existing series by values, by an object in any order, and after it was removed`, async () => {
      const gauge = make('Gauge');
      gauge.set({ a: 'x', b: '1' }, 1);
      gauge.labels('x', 1).inc();
      gauge.labels({ b: '1', a: 'x' }).inc();
      const child = gauge.labels({ a: 'x', b: '1' });
      assert.deepEqual(await valueOf(gauge), [[{ a: 'x', b: '1' }, 3]]);
      gauge.remove('x', '1');
      child.inc(5);
      assert.deepEqual(await valueOf(gauge), [[{ a: 'x', b: '1' }, 5]]);
    });

    // prom-client's child follows the object.
    it(
      `labels() of ${name} keeps its labels if the program changes the object`,
      { skip: library === promClient },
      async () => {
        const counter = make('Counter');
        const labels = { a: 'x', b: 'y' };
        const child = counter.labels(labels);
        labels.a = 'other';
        child.inc();
        assert.deepEqual(await valueOf(counter), [[{ a: 'x', b: 'y' }, 1]]);
      },
    );
  });
}

const RECORD = { Counter: 'inc', Gauge: 'inc', Histogram: 'observe', Summary: 'observe' };

describe('a child of values by position', () => {
  for (const [type, record] of Object.entries(RECORD)) {
    it(`a child of values by position of a ${type} records into one series at each use, created or not, removed or not`, async () => {
      const run = async library => {
        const metric = new library[type]({ name: 'm', help: 'm', labelNames: ['a', 'b'], registers: [] });
        const early = metric.labels('x', 'y');
        metric[record]({ a: 'x', b: 'y' }, 1);
        const late = metric.labels('x', 'y');
        const other = metric.labels('x', 'other');
        for (let i = 0; i < 3; i++) for (const child of [early, late, other]) child[record](2);
        metric.remove('x', 'y');
        late[record](3);
        early[record](4);
        metric.labels('x', 'y')[record](5);
        assert.throws(() => metric.labels('x', 'y')[record]('1'), /is not a valid number/);
        const { values } = await metric.get();
        return values.map(({ labels, value, metricName }) => [labels, value, metricName]);
      };
      assert.deepEqual(await run(ours), await run(promClient));
    });
  }
});
