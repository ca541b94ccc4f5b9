'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');

const { Group } = require('../../../lib/cluster/group/group.js');

describe('a process of a group', { skip: process.platform === 'win32' }, () => {
  it('that fails between its claim and the end of its election aggregates nonetheless', async t => {
    const place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-'));
    t.after(() => fs.rmSync(place, { recursive: true, force: true }));
    const { readdirSync } = fs;
    const failing = t.mock.method(fs, 'readdirSync', (directory, ...rest) => {
      const names = readdirSync(directory, ...rest);
      if (!names.includes('g1')) return names;
      failing.mock.restore();
      throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
    });
    const group = new Group(path.join(place, 'd'), {}, () => []);
    group.join();
    // Its timers keep no process alive.
    const deadline = performance.now() + 60_000;
    while (!group.state().group.isAggregator && performance.now() < deadline)
      await new Promise(resolve => setTimeout(resolve, 10));
    assert.deepEqual(
      { failed: failing.mock.callCount() > 0, isAggregator: group.state().group.isAggregator },
      { failed: true, isAggregator: true },
    );
  });
});
