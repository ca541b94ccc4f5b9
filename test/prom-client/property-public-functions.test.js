'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { subject, reference } = require('./fixtures/property-implementations');
const { isInheritedName, comparableError } = require('./fixtures/property-known-defects');
const { text, number } = require('./fixtures/property-programs');

/** Result or error of a call, as something that can be compared. */
function outcomeOf(call) {
  try {
    return { result: call() };
  } catch (error) {
    return comparableError(error);
  }
}

function assertSame(call) {
  assert.deepStrictEqual(
    outcomeOf(() => call(subject)),
    outcomeOf(() => call(reference)),
  );
}

const anything = fc.constantFrom(undefined, null, 0, 1, 5, '', 'x', true, false, NaN, {}, [], () => 1);

const name = fc.oneof(
  fc.constantFrom('ok', 'a:b', '_x', 'A1', '1a', 'a-b', 'a b', 'é', 'ok\n', '', ':', 'a.b', '__x'),
  text.filter(given => !isInheritedName(given)),
);

const labelNames = fc.oneof(
  fc.constantFrom(
    ['a'],
    ['a', 'b'],
    [],
    ['1a'],
    ['a', 'b-c'],
    [''],
    ['a:b'],
    ['__x'],
    [5],
    ['ok\n'],
    Object.freeze(['a']),
  ),
  fc.array(name, { maxLength: 3 }),
);

const configuration = fc.record(
  {
    name: fc.oneof(
      { weight: 4, arbitrary: name },
      { weight: 1, arbitrary: fc.constantFrom(undefined, null, 0, 5, {}) },
    ),
    help: fc.constantFrom('help', 'help', 'help', '', undefined, null, 0),
    labelNames,
    registers: fc.constantFrom(undefined, null, [], false, 0, ''),
    aggregator: fc.constantFrom('sum', 'first', 'nothing known', 5), // undefined: prom-client defect 8
    collect: fc.oneof(
      anything,
      fc.constant(function collect() {}),
    ),
    enableExemplars: fc.constant(false),
    own: anything,
  },
  { requiredKeys: [] },
);

const PROPERTIES = ['name', 'help', 'type', 'labelNames', 'aggregator', 'enableExemplars', 'own'];

for (const type of ['Counter', 'Gauge', 'Histogram', 'Summary']) {
  test(`property: new ${type}() accepts and refuses the same configurations as prom-client, with the same errors`, () => {
    const given = fc.oneof({ weight: 8, arbitrary: configuration }, { weight: 1, arbitrary: anything });
    fc.assert(
      fc.property(given, config => {
        assertSame(client => {
          client.register.clear();
          const metric = new client[type](config);
          const registered = client.register.getMetricsAsArray().length;
          return [
            registered,
            metric.registers.length,
            typeof metric.collect === 'function',
            ...PROPERTIES.map(property => metric[property]),
          ];
        });
      }),
      { numRuns: 200 },
    );
    for (const client of [subject, reference]) client.register.clear();
  });
}

test('validateMetricName agrees with prom-client', () => {
  fc.assert(fc.property(name, given => assertSame(client => client.validateMetricName(given))));
});

const generatorArgument = fc.oneof(
  fc.integer({ min: -2, max: 12 }),
  number,
  fc.constantFrom(0.1, 2, 10, NaN),
);
const bucketCount = fc.oneof(fc.integer({ min: -1, max: 30 }), fc.constantFrom(0.5, 1.5, NaN));

for (const generator of ['linearBuckets', 'exponentialBuckets']) {
  test(`${generator} gives prom-client's bounds and errors`, () => {
    fc.assert(
      fc.property(generatorArgument, generatorArgument, bucketCount, (start, step, count) =>
        assertSame(client => client[generator](start, step, count)),
      ),
      { numRuns: 200 },
    );
  });
}
