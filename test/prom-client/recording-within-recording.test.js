'use strict';

// A label value may run the program's code: its toString(). That code may record the same metric, remove
// series of it, or throw. What prom-client counts then is counted here.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const promClient = require('prom-client');
const ours = require('../..');
const { writtenSamples } = require('../fixtures/unit-scrape');

const TYPES = {
  Counter: { verb: 'inc' },
  Gauge: { verb: 'inc' },
  Histogram: { verb: 'observe', config: { buckets: [1] } },
  Summary: { verb: 'observe', config: { percentiles: [0.5] } },
};

const OUTER = { a: 'x', b: 'outer' };
const INNER = { a: 'y', b: 'inner' };

/** Label sets with the text of OUTER that call a function once, when they are read for the nth time. */
const LABEL_SETS = { 'toString()': onRead => ({ a: 'x', b: { toString: () => onRead() ?? 'outer' } }) };

/**
 * @param {number} n
 * @param {() => void} act is called at the nth of the calls
 */
function atRead(n, act) {
  let reads = 0;
  const onRead = () => {
    if (reads++ === n) act();
  };
  return Object.assign(onRead, { hasActed: () => reads > n });
}

function make(library, type) {
  const registry = new library.Registry();
  const { verb, config } = TYPES[type];
  const labelNames = ['a', 'b'];
  const metric = new library[type]({ name: 'm', help: 'h', labelNames, registers: [registry], ...config });
  return { registry, metric, record: (labels, value) => metric[verb](labels, value) };
}

const NESTED = {
  'records another series': ({ record }) => record(INNER, 10),
  'records another series by its child': ({ metric }, verb) => metric.labels('y', 'inner')[verb](10),
  'records another series by a child from an object': ({ metric }, verb) => metric.labels(INNER)[verb](10),
  'records the same series': ({ record }) => record(OUTER, 10),
  'records many new series': ({ record }) => {
    for (let i = 0; i < 100; i++) record({ a: `new ${i}`, b: `new ${i}` }, 1);
  },
  'removes its series': ({ metric }) => metric.remove('x', 'outer'),
  'removes another series': ({ metric }) => metric.remove(INNER),
  'resets the metric': ({ metric }) => metric.reset(),
};

const RECORDING = {
  recording: ({ record }, labels) => record(labels, 100),
  'labels()': ({ metric }, labels, verb) => metric.labels(labels)[verb](100),
  'remove()': ({ metric }, labels) => metric.remove(labels),
};

for (const type of Object.keys(TYPES)) {
  const { verb } = TYPES[type];
  for (const [how, labelsWith] of Object.entries(LABEL_SETS)) {
    describe(`${how} of a label set of a ${type}`, () => {
      for (const [what, nested] of Object.entries(NESTED)) {
        for (const [call, act] of Object.entries(RECORDING)) {
          for (const isKnown of [true, false]) {
            it(`${how} ${what} in ${call} of a ${isKnown ? 'known' : 'new'} series of a ${type}`, async () => {
              const pages = await Promise.all(
                [promClient, ours].map(library => {
                  const made = make(library, type);
                  if (isKnown) {
                    made.record(INNER, 1);
                    made.record(OUTER, 2);
                  }
                  act(made, labelsWith(atRead(0, () => nested(made, verb))), verb);
                  return writtenSamples(made.registry);
                }),
              );
              assert.deepEqual(pages[1], pages[0]);
            });
          }
        }
      }

      it(`whenever ${how} of a new series of a ${type} records, both are counted once`, async () => {
        for (let n = 0; n < 6; n++) {
          const made = make(ours, type);
          const onRead = atRead(n, () => made.record(INNER, 10));
          made.record(labelsWith(onRead), 100);
          const expected = make(ours, type);
          if (onRead.hasActed()) expected.record(INNER, 10);
          expected.record(OUTER, 100);
          assert.deepEqual(await writtenSamples(made.registry), await writtenSamples(expected.registry));
        }
      });

      it(`whenever ${how} of a new series of a ${type} throws, nothing is recorded and nothing is left`, async () => {
        for (let n = 0; n < 6; n++) {
          const made = make(ours, type);
          const onRead = atRead(n, () => {
            throw new Error('unreadable');
          });
          const labels = labelsWith(onRead);
          let count = 0;
          try {
            made.record(labels, 100);
            count++;
          } catch (error) {
            assert.equal(error.message, 'unreadable');
          }
          const expected = make(ours, type);
          if (count > 0) expected.record(OUTER, 100);
          assert.deepEqual(await writtenSamples(made.registry), await writtenSamples(expected.registry));
          made.record(OUTER, 1);
          expected.record(OUTER, 1);
          assert.deepEqual(await writtenSamples(made.registry), await writtenSamples(expected.registry));
          await made.registry.getMetricsAsJSON();
        }
      });
    });
  }
}

describe('a label value that records', () => {
  it('toString() of a label value is called once for each recording, as by prom-client', () => {
    for (const library of [promClient, ours]) {
      const { record, metric } = make(library, 'Counter');
      let calls = 0;
      const toString = () => `value ${(calls++ >> 1) % 2}`;
      for (let i = 1; i <= 10; i++) {
        record({ a: 'x', b: { toString } }, 1);
        assert.equal(calls, i);
      }
      metric.labels('y', { toString }).inc();
      assert.equal(calls, 11);
    }
  });

  it('a toString() that adds a label name to the metric', async () => {
    const { registry, metric, record } = make(ours, 'Counter');
    record(OUTER, 1);
    const widen = () => {
      metric.labelNames.push('c');
      record({ a: 'x', b: 'outer', c: 'new' }, 10);
    };
    record(LABEL_SETS['toString()'](atRead(0, widen)), 100);
    assert.deepEqual(await writtenSamples(registry), [
      'm{a="x",b="outer",c="new"} 10',
      'm{a="x",b="outer"} 101',
    ]);
  });

  it('exemplars belong to the series whose label set was given', async () => {
    for (const [type, verb] of [
      ['Counter', 'inc'],
      ['Histogram', 'observe'],
    ]) {
      const registry = new ours.Registry(ours.openMetricsContentType);
      const metric = new ours[type]({
        name: 'm',
        help: 'h',
        labelNames: ['a', 'b'],
        registers: [registry],
        enableExemplars: true,
      });
      const record = (labels, exemplarLabels) => metric[verb]({ labels, value: 1, exemplarLabels });
      record(INNER, { trace: 'first' });
      const nested = atRead(0, () => record(INNER, { trace: 'inner' }));
      record(LABEL_SETS['toString()'](nested), { trace: 'outer' });
      const text = await registry.metrics();
      const traces = [...text.matchAll(/b="(\w+)"\} \d+ # \{trace="(\w+)"\}/g)].map(([, b, trace]) => [
        b,
        trace,
      ]);
      assert.deepEqual(
        traces,
        [
          ['inner', 'inner'],
          ['outer', 'outer'],
        ],
        text,
      );
    }
  });

  it('label values that record, beyond a series limit, are counted once each', () => {
    const metric = new ours.Counter({ name: 'm', help: 'h', labelNames: ['a'], registers: [], maxSeries: 3 });
    let recorded = 0;
    const record = depth => {
      recorded++;
      const toString = () => {
        if (depth > 0) record(depth - 1);
        return `${depth}`;
      };
      metric.inc({ a: { toString } });
    };
    for (let depth = 0; depth < 10; depth++) record(depth);
    const values = [...Array(10).keys(), 'overflow'].map(a => metric.value({ a }));
    const shown = values.reduce((sum, value) => sum + (value ?? 0), 0);
    assert.equal(shown, recorded);
    assert.ok(metric.value({ a: 'overflow' }) > 0);
  });
});
