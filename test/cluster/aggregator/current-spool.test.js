'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');
const { CurrentSpool } = require('../../../lib/cluster/aggregator/current-spool');
const { makePlace } = require('../../fixtures/cluster-harness');

for (const [events, occur] of [
  ['is lost and reopened', spool => [spool.lose('test'), spool.reopen()]],
  ['is lost twice', spool => [spool.lose('test'), spool.lose('test')]],
  ['is gone and reopened twice', spool => [spool.reopen(), spool.reopen()]],
]) {
  it(`a directory that ${events} in one turn of the loop is replaced once, and nothing is left at the end`, async t => {
    const directory = makePlace(t);
    let current = '';
    let reopened = 0;
    const spool = new CurrentSpool(
      { directory, fallbacks: [], lock: false, onDirectory: created => (current = created) },
      () => reopened++,
    );
    await spool.open();
    fs.rmSync(current, { recursive: true });
    await Promise.all(occur(spool));
    assert.equal(reopened, 1);
    assert.equal(spool.spool?.directory, current);
    assert.equal(fs.readdirSync(directory).length, 1);
    await spool.close(true);
    assert.deepEqual(fs.readdirSync(directory), []);
  });
}

it('a directory that is closed for the next thread stays if it is found lost later', async t => {
  const directory = makePlace(t);
  let current = '';
  const onDirectory = created => (current = created);
  const spool = new CurrentSpool({ directory, fallbacks: [], lock: false, onDirectory }, () => {});
  await spool.open();
  await spool.close(false);
  await spool.lose('test');
  assert.deepEqual(fs.readdirSync(directory), [path.basename(current)]);
});
