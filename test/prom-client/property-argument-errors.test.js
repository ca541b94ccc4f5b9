'use strict';

// Every combination of call form, label set and value on every recording method: what is refused, in which
// words, and what is there afterwards. Not random, since there are only some thousand.

const { test } = require('node:test');
const assert = require('node:assert');
const { inspect } = require('node:util');
const { subject, reference } = require('./fixtures/property-implementations');
const { inStubbedWorld } = require('./fixtures/property-stubbed-world');
const {
  areUncheckedValues,
  areUncheckedZeroLabels,
  isMistakenLabelSet,
  comparableError,
} = require('./fixtures/property-known-defects');

const VALUES = {
  ...{
    none: [],
    undefined: [undefined],
    null: [null],
    zero: [0],
    fraction: [0.5],
    negative: [-1],
    NaN: [NaN],
  },
  ...{ Infinity: [Infinity], '-Infinity': [-Infinity], "'5'": ['5'], "'x'": ['x'], "''": [''], true: [true] },
  ...{ false: [false], bigint: [5n], symbol: [Symbol('v')], object: [{}], array: [[]], function: [() => 1] },
  ...{ Number: [new Number(5)], 'two values': [1, 2] },
};

const withUnknown = Object.create({ inherited: 'x' });
const LABELS = {
  complete: { a: '1', b: '2' },
  some: { b: '2' },
  empty: {},
  unknown: { a: '1', zz: '1' },
  'unknown and undefined': { zz: undefined },
  'inherited unknown': withUnknown,
  null: null,
  symbol: { a: Symbol('s') },
  'no string possible': { a: Object.create(null) },
  'without prototype': Object.assign(Object.create(null), { a: '1' }),
  array: ['x'],
};

const POSITIONS = {
  complete: ['1', '2'],
  'too few': ['1'],
  'too many': ['1', '2', '3'],
  none: [],
  numbers: [1, 0],
  empty: ['', ''],
  'null second': ['1', null],
  'symbol second': ['1', Symbol('s')],
  'array first': [['x'], '2'],
  'null first': [null, '2'],
};

const METHODS = [
  ['Counter', 'inc'],
  ['Gauge', 'set'],
  ['Gauge', 'inc'],
  ['Gauge', 'dec'],
  ['Histogram', 'observe'],
  ['Summary', 'observe'],
];

const CONFIGURATION = { Histogram: { buckets: [1] }, Summary: { percentiles: [] } };

/** Result or error of a call on a new metric, and the page after it. */
async function outcomeOf(client, type, labelNames, call) {
  const registry = new client.Registry();
  const config = { name: 'm', help: 'm', labelNames, registers: [registry], ...CONFIGURATION[type] };
  const metric = new client[type](config);
  try {
    call(metric);
    return `accepted, ${await registry.metrics()}`;
  } catch (error) {
    return `${inspect(comparableError(error))}, ${await registry.metrics()}`;
  }
}

/** Makes a list of calls on both libraries and throws if any result differs. */
async function assertSame(type, labelNames, calls) {
  const differences = [];
  for (const [description, call] of calls) {
    const ours = await outcomeOf(subject, type, labelNames, call);
    const theirs = await outcomeOf(reference, type, labelNames, call);
    if (ours !== theirs) differences.push({ description, ours, theirs });
  }
  assert.deepStrictEqual(differences, []);
}

/** Label sets and positions to call labels() or remove() with. */
function labelArguments() {
  const sets = Object.entries(LABELS).map(([name, labels]) => [name, [labels]]);
  const positions = Object.entries(POSITIONS).map(([name, values]) => [`by position, ${name}`, values]);
  return [...sets, ...positions].filter(([, given]) => !isMistakenLabelSet(given[0]));
}

/**
 * Labels of which no string can be made are tried with good values only: which of two faults is named is no
 * promise.
 */
function isDoublyWrong(labels, value) {
  const unprintable = given =>
    typeof given === 'symbol' || (given && typeof given === 'object' && !given.toString);
  return value !== 0.5 && Object.values(labels ?? {}).some(unprintable);
}

function* recordingCalls(type, method) {
  for (const [valueName, values] of Object.entries(VALUES)) {
    if (!areUncheckedValues(type, method, values)) {
      yield [`${method}(value ${valueName})`, metric => metric[method](...values)];
    }
    for (const [name, labels] of Object.entries(LABELS)) {
      if (areUncheckedValues(type, method, values, labels) || isDoublyWrong(labels, values[0])) continue;
      yield [`${method}(labels ${name}, value ${valueName})`, metric => metric[method](labels, ...values)];
    }
    for (const [name, given] of labelArguments()) {
      const isSet = typeof given[0] === 'object';
      if (areUncheckedValues(type, method, values, {}) || isDoublyWrong(isSet ? given[0] : given, values[0]))
        continue;
      yield [
        `labels(${name}).${method}(value ${valueName})`,
        metric => metric.labels(...given)[method](...values),
      ];
    }
  }
}

for (const [type, method] of METHODS) {
  for (const labelNames of [[], ['a', 'b']]) {
    const on = `${type}.${method} of a metric ${labelNames.length > 0 ? 'with' : 'without'} labels`;
    test(`property: ${on} accepts and refuses the same arguments as prom-client`, () =>
      assertSame(type, labelNames, recordingCalls(type, method)));
  }
}

function* labelCalls() {
  for (const [name, given] of labelArguments()) {
    yield [`labels(${name})`, metric => void metric.labels(...given)];
    yield [`remove(${name})`, metric => metric.remove(...given)];
  }
}

for (const type of ['Counter', 'Gauge', 'Histogram', 'Summary']) {
  for (const labelNames of [[], ['a', 'b']]) {
    const on = `${type} ${labelNames.length > 0 ? 'with' : 'without'} labels`;
    test(`property: labels() and remove() of a ${on} accept and refuse the same arguments as prom-client`, () =>
      assertSame(type, labelNames, labelCalls()));
  }
}

test('property: Histogram.zero accepts and refuses the same arguments as prom-client', () => {
  const names = ['a', 'b'];
  const checked = Object.entries(LABELS).filter(([, labels]) => !areUncheckedZeroLabels(labels, names));
  return assertSame(
    'Histogram',
    names,
    checked.map(([name, labels]) => [`zero(${name})`, metric => metric.zero(labels)]),
  );
});

function* timerCalls() {
  for (const [name, labels] of Object.entries(LABELS)) {
    yield [`startTimer(${name})`, metric => void metric.startTimer(labels)];
    yield [`startTimer(${name})()`, metric => metric.startTimer(labels)()];
    yield [`startTimer()(${name})`, metric => metric.startTimer()(labels)];
  }
}

for (const type of ['Gauge', 'Histogram', 'Summary']) {
  test(`property: timers of a ${type} accept and refuse the same labels as prom-client's`, () =>
    inStubbedWorld({}, () => assertSame(type, ['a', 'b'], timerCalls())));
}
