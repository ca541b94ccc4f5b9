'use strict';

const { test } = require('node:test');
const fc = require('../fixtures/seeded-fast-check');
const { subject, reference } = require('./fixtures/property-implementations');
const { program, churn, manySeries } = require('./fixtures/property-programs');
const { runProgram, assertSameOutcomes } = require('./fixtures/property-interpreter');

async function assertSameAsPromClient(programs, numRuns) {
  await fc.assert(
    fc.asyncProperty(programs, async given => {
      const theirs = await runProgram(reference, given, { isReference: true });
      const ours = await runProgram(subject, given, { isReference: subject === reference });
      assertSameOutcomes(ours, theirs, given.operations);
    }),
    { numRuns },
  );
}

test('property: any sequence of operations gives the page of prom-client, byte for byte', () =>
  assertSameAsPromClient(program, 150));

test('property: removing, resetting and recreating series gives the page of prom-client', () =>
  assertSameAsPromClient(churn, 80));

test('property: thousands of series that come and go give the page of prom-client', () =>
  assertSameAsPromClient(manySeries, 4));
