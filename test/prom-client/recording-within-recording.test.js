'use strict';

// A label value may run the program's code: its toString(). That code may record the same metric, remove
// series of it, or throw. What prom-client counts then is counted here.

const { it } = require('node:test');
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

/** A label set with the text of OUTER that calls a function when it is read. */
const labelsThat = act => ({ a: 'x', b: { toString: () => (act(), 'outer') } });

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

for (const [type, { verb }] of Object.entries(TYPES)) {
  for (const [what, nested] of Object.entries(NESTED)) {
    it(`toString() of a label of a ${type} that ${what} is called once, and counted as by prom-client`, async () => {
      for (const [call, act] of Object.entries(RECORDING)) {
        for (const isKnown of [true, false]) {
          const shown = await Promise.all(
            [promClient, ours].map(async library => {
              const made = make(library, type);
              if (isKnown) for (const labels of [INNER, OUTER]) made.record(labels, 2);
              let reads = 0;
              const labels = labelsThat(() => {
                if (++reads === 1) nested(made, verb);
              });
              act(made, labels, verb);
              return [reads, await writtenSamples(made.registry)];
            }),
          );
          assert.equal(shown[1][0], 1);
          assert.deepEqual(shown[1], shown[0], `${call} of a ${isKnown ? 'known' : 'new'} series`);
        }
      }
    });
  }

  it(`after a toString() of a label of a ${type} that throws, nothing is recorded and nothing is left`, async () => {
    const [made, expected] = [make(ours, type), make(ours, type)];
    const labels = labelsThat(() => assert.fail('unreadable'));
    assert.throws(() => made.record(labels, 100), /unreadable/);
    assert.deepEqual(await writtenSamples(made.registry), []);
    for (const { record } of [made, expected]) record(OUTER, 1);
    assert.deepEqual(await writtenSamples(made.registry), await writtenSamples(expected.registry));
  });
}
