'use strict';

// Shows that the property tests can fail: they must distinguish prom-client with one injected fault from
// prom-client.

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('fast-check');
const { reference } = require('../prom-client/fixtures/property-implementations');
const { program, churn } = require('../prom-client/fixtures/property-programs');
const { runProgram, assertSameOutcomes } = require('../prom-client/fixtures/property-interpreter');

/** prom-client whose metrics of one type have a method replaced. `replace` gets the method and the metric. */
function withMethod(type, method, replace) {
  class Faulty extends reference[type] {
    constructor(config) {
      super(config);
      this[method] = replace(this[method].bind(this), this);
    }
  }
  return { ...reference, [type]: Faulty };
}

/** prom-client whose registries have a method replaced. */
function withRegistryMethod(method, replace) {
  class Faulty extends reference.Registry {
    constructor(contentType) {
      super(contentType);
      this[method] = replace(this[method].bind(this), this);
    }
  }
  return { ...reference, Registry: Faulty };
}

const isNumber = value => typeof value === 'number';

const FAULTS = {
  'fractional increments are rounded': withMethod(
    'Counter',
    'inc',
    inc =>
      (...args) =>
        inc(...args.map(argument => (isNumber(argument) ? Math.round(argument) : argument))),
  ),
  'a removed series stays': withMethod('Counter', 'remove', () => () => undefined),
  'reset keeps the label sets': withMethod('Gauge', 'reset', (reset, gauge) => () => {
    if (!gauge.hashMap || gauge.labelNames.length === 0) return reset();
    for (const series of Object.values(gauge.hashMap)) series.value = 0;
  }),
  'the last bound is exclusive': withMethod(
    'Histogram',
    'observe',
    (observe, histogram) => (labels, value) =>
      observe(labels, value === histogram.upperBounds.at(-1) ? value + 1e-9 : value),
  ),
  'a negative observation is ignored': withMethod(
    'Summary',
    'observe',
    observe => (labels, value) => (value < 0 ? undefined : observe(labels, value)),
  ),
  'timers count milliseconds': withMethod('Histogram', 'startTimer', startTimer => (...args) => {
    const end = startTimer(...args);
    return (...labels) => end(...labels) * 1000;
  }),
  'quotes are not escaped': withRegistryMethod(
    'metrics',
    metrics => async () => (await metrics()).replaceAll('\\"', '"'),
  ),
  'default labels add up': withRegistryMethod('setDefaultLabels', setDefaultLabels => {
    const all = {};
    return labels => setDefaultLabels(Object.assign(all, labels));
  }),
  'collect is not awaited': withRegistryMethod('metrics', (metrics, registry) => () => {
    for (const metric of registry.getMetricsAsArray()) {
      const { collect } = metric;
      if (!collect || collect.isWrapped) continue;
      metric.collect = function () {
        collect.call(this)?.catch?.(() => undefined);
      };
      metric.collect.isWrapped = true;
    }
    return metrics();
  }),
};

/**
 * Whether some program distinguishes a client from prom-client. The seed is fixed: every run gives the same
 * result.
 */
async function isFound(client, numRuns = 500) {
  const property = fc.asyncProperty(fc.oneof(program, churn), async given => {
    const theirs = await runProgram(reference, given, { isReference: true });
    assertSameOutcomes(await runProgram(client, given, { isReference: true }), theirs, given.operations);
  });
  return (await fc.check(property, { numRuns, seed: 20_200, endOnFailure: true })).failed;
}

test('property tests do not distinguish prom-client from a wrapped copy of itself', async () => {
  const same = method => method;
  for (const client of [withMethod('Counter', 'inc', same), withRegistryMethod('metrics', same)])
    assert.strictEqual(await isFound(client, 5), false);
});

for (const [fault, client] of Object.entries(FAULTS)) {
  test(`property tests detect a library in which ${fault}`, async () => {
    assert.strictEqual(await isFound(client), true);
  });
}
