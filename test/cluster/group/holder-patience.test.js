'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { HolderPatience } = require('../../../lib/cluster/group/holder-patience.js');

describe('the patience with a holder that does not answer', () => {
  it('doubles with each hand-over beyond four in a minute, and is short again later', () => {
    const patience = new HolderPatience();
    const waits = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((generation, i) =>
      patience.milliseconds(generation, 1000 * i),
    );
    assert.deepEqual(waits, [2000, 2000, 2000, 2000, 2000, 4000, 8000, 16_000, 32_000, 32_000]);
    assert.equal(patience.milliseconds(12, 9000), 32_000, 'another attempt is no hand-over');
    // A minute after the seventh hand-over, the last two count.
    assert.equal(patience.milliseconds(12, 67_000), 2000);
    assert.equal(patience.milliseconds(13, 200_000), 2000);
  });

  it('counts the hand-overs that this process has not seen', () => {
    const patience = new HolderPatience();
    assert.equal(patience.milliseconds(1, 0), 2000);
    assert.equal(patience.milliseconds(7, 100), 8000);
  });
});
