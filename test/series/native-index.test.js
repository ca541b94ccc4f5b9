'use strict';

// Native histograms against client_golang and Prometheus: ../fixtures/native-histograms/main.go.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const judge = require('../fixtures/native-reference');

describe('buckets of native histograms', () => {
  it('a page is taken for a reset by the fixture as by Prometheus', () => {
    for (const { pages, resets } of judge.reference.resets) {
      const buckets = pages.map(judge.fromText);
      const found = buckets.slice(1).map((page, i) => Number(judge.detectsReset(buckets[i], page)));
      assert.equal(found.join(''), resets, pages.join('\n'));
    }
  });
});
