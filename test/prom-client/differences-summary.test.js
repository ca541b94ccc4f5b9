'use strict';

// prom-client defect 6: all slots of a window start as the same digest object, so early values are counted
// several times.

const { test } = require('node:test');
const assert = require('node:assert');
const { Summary } = require('../..');
const { inStubbedWorld } = require('./fixtures/property-stubbed-world');

function windowedSummary(options) {
  return new Summary({ name: 's', help: 's', percentiles: [0.5, 0.99], registers: [], ...options });
}

async function quantileOf(summary, quantile) {
  const { values } = await summary.get();
  return values.find(sample => sample.labels.quantile === quantile).value;
}

test('Summary: early values of a window have the same weight as later ones', () =>
  inStubbedWorld({}, async clock => {
    const summary = windowedSummary({ maxAgeSeconds: 600, ageBuckets: 5 });
    for (let i = 0; i < 100; i++) summary.observe(1 + i / 100);
    clock.advance(120_001);
    for (let i = 0; i < 110; i++) summary.observe(100 + i / 100);
    const median = await quantileOf(summary, 0.5); // the 105th of 210
    assert.ok(median >= 100 && median < 100.2, `${median}`);
  }));

test('Summary: quantiles of an empty window are 0, and sum and count remain', () =>
  inStubbedWorld({}, async clock => {
    const summary = windowedSummary({ maxAgeSeconds: 60, ageBuckets: 3 });
    summary.observe(7);
    clock.advance(3_600_000);
    const found = (await summary.get()).values.map(sample => sample.value);
    assert.deepStrictEqual(found, [0, 0, 7, 1]);
    summary.observe(9);
    const shown = (await summary.get()).values.map(sample => sample.value);
    assert.deepStrictEqual(shown, [9, 9, 16, 2]);
  }));

test('Summary: each label set has slots of its own', () =>
  inStubbedWorld({}, async () => {
    const summary = windowedSummary({ maxAgeSeconds: 60, ageBuckets: 3, labelNames: ['a'] });
    summary.observe({ a: '1' }, 5);
    summary.observe({ a: '2' }, 50);
    const { values } = await summary.get();
    const medians = values.filter(sample => sample.labels.quantile === 0.5).map(sample => sample.value);
    assert.deepStrictEqual(medians, [5, 50]);
  }));

// prom-client defect 9: a string is treated as a label set
test('Summary: a string as a value throws the error of prom-client', () => {
  const summary = windowedSummary();
  assert.throws(() => summary.observe('5'), {
    name: 'Error',
    message: 'Added label "0" is not included in initial labelset: []',
  });
});
