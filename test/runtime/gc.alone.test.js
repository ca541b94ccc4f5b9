'use strict';

// nodejs_gc_reclaimed_bytes_total is partly an estimate, from samples that are taken by time.

const assert = require('node:assert');
const { it } = require('node:test');
const { assertAsObserved, collections } = require('./fixtures/collecting-program');

it('the bytes of a large array that was freed are counted', async () => {
  const { metrics } = await collections({ full: 3, megabytes: 60 });
  const freed = metrics.reclaimed_bytes.major / 2 ** 20;
  assert.ok(freed > 60 && freed < 70, `${freed} MB`);
});

it('runs and pauses are exact, and bytes estimated, at hundreds of collections a second', async () => {
  const storm = await collections({ turns: 150, flags: ['--max-semi-space-size=1'] });
  assertAsObserved(storm);
  assert.ok(storm.metrics.runs.minor > 250);
  // An object with two fields, and an array of one element.
  const allocated = 150 * 50_000 * (40 + 32 + 24);
  const share = storm.final.reclaimed_bytes.minor / allocated;
  assert.ok(share > 0.85 && share < 1.15, `${share}`);
});
