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

    it(`labels() of ${name} returns another object each time: a replaced method stays with its own`, async () => {
      for (const args of [['x', 1], [{ a: 'x', b: 1 }]]) {
        const counter = make('Counter');
        counter.labels(...args).inc();
        const first = counter.labels(...args);
        const second = counter.labels(...args);
        first.inc = () => {};
        first.inc();
        second.inc();
        counter.labels(...args).inc();
        assert.deepEqual(await valueOf(counter), [[{ a: 'x', b: 1 }, 3]]);
      }
    });
  });
}

describe('labels() of an object that has a metric as its prototype', () => {
  it('calls the methods of that object, and the metric its own', async () => {
    const counter = new ours.Counter({ name: 'm', help: 'm', labelNames: ['a'], registers: [] });
    const seen = [];
    const derived = Object.create(counter, { inc: { value: labels => seen.push(labels) } });
    for (let i = 0; i < 2; i++) for (const metric of [counter, derived]) metric.labels('x').inc();
    assert.deepEqual(seen, [{ a: 'x' }, { a: 'x' }]);
    assert.equal(counter.value({ a: 'x' }), 2);
  });
});

describe('labels() of a label set beyond maxSeries', () => {
  it('counts each recording, though the label set once had a series', () => {
    const counter = new ours.Counter({
      name: 'm',
      help: 'm',
      labelNames: ['a'],
      maxSeries: 1,
      registers: [],
    });
    counter.labels('x').inc();
    counter.labels('x').inc();
    counter.remove('x');
    counter.labels('y').inc();
    for (let i = 0; i < 3; i++) counter.labels('x').inc();
    assert.equal(counter.overflowCount, 3);
  });
});

describe('labels() of more label names than a number has bits', () => {
  it('finds the series, with texts and numbers as they were given', async () => {
    const labelNames = Array.from({ length: 40 }, (_, i) => `l${i}`);
    const counter = new ours.Counter({ name: 'm', help: 'm', labelNames, registers: [] });
    const values = labelNames.map((_, i) => (i < 33 ? String(i) : i));
    counter.labels(...values).inc();
    const child = counter.labels(...values);
    counter.remove(...values);
    child.inc(2);
    const [{ labels, value }] = (await counter.get()).values;
    assert.deepEqual([Object.values(labels), value], [values, 2]);
  });
});
