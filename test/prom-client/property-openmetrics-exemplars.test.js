'use strict';

// OpenMetrics text and exemplars, against prom-client.

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { subject, reference } = require('./fixtures/property-implementations');
const { exemplarProgram, runExemplarProgram } = require('./fixtures/property-exemplar-programs');

for (const suffix of ['', '_total']) {
  const names = suffix ? `counters named *${suffix}` : 'counters named without _total';
  test(`property: exemplars and OpenMetrics text equal those of prom-client, with ${names}`, () =>
    fc.assert(
      fc.asyncProperty(exemplarProgram(suffix), async given => {
        const theirs = await runExemplarProgram(reference, given, { isReference: true });
        const ours = await runExemplarProgram(subject, given, { isReference: subject === reference });
        theirs.forEach((expected, index) => assert.deepStrictEqual(ours[index], expected));
      }),
      { numRuns: 60, includeErrorInReport: true },
    ));
}
