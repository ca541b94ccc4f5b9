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

test('any sequence of operations shows what prom-client shows, byte for byte', () =>
  assertSameAsPromClient(program, 150));

test('series that are removed, reset and made again show what prom-client shows', () =>
  assertSameAsPromClient(churn, 80));

test('thousands of series that come and go show what prom-client shows', () =>
  assertSameAsPromClient(manySeries, 4));
