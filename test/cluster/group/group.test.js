'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
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

  it('that cannot create its directory reports that, and scrapes fail at their timeout, also without one', async t => {
    const delays = [];
    const { setTimeout } = globalThis;
    t.mock.method(globalThis, 'setTimeout', (callback, delay) => {
      delays.push(delay);
      return setTimeout(callback, delay > 1000 ? 10 : 0);
    });
    // The group's own timers keep no process alive.
    const alive = setInterval(() => {}, 10_000);
    t.after(() => clearInterval(alive));
    const warned = once(process, 'warning');
    const group = new Group(path.join(os.tmpdir(), 'missing', 'group'), {}, () => []);
    group.join();
    await assert.rejects(
      group.collect({}, Infinity),
      /^Error: The group's metrics cannot be collected: ENOENT/,
    );
    assert.equal(Math.max(...delays), 2 ** 31 - 1);
    const [{ message }] = await warned;
    assert.match(message, /^This process takes no part in its group: ENOENT: .*missing/);
  });
});
