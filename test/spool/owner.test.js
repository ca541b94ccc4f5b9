'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { it } = require('node:test');
const { isKnownToLive, ownerRecord } = require('../../lib/spool/owner');

it('without /proc a process with the id of the owner counts as the owner: it may only have slept', t => {
  const missing = file => {
    throw Object.assign(new Error(`ENOENT: no such file, open '${file}'`), { code: 'ENOENT' });
  };
  t.mock.method(fs, 'readFileSync', missing);
  t.mock.method(fs, 'readlinkSync', missing);
  const owner = JSON.parse(ownerRecord(0).toString());
  assert.equal(owner.bootId, undefined);
  assert.equal(isKnownToLive(owner), true);
  assert.equal(isKnownToLive({ ...owner, pid: 2 ** 30 }), undefined, 'no process has this id');
  assert.equal(isKnownToLive({ ...owner, bootId: 'of another machine' }), undefined);
});
