'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');
const { CurrentSpool } = require('../../lib/aggregator/current-spool');
const { makePlace } = require('../fixtures/cluster-harness');

it('a directory that is lost twice in one turn of the loop is replaced once, and nothing is left at the end', async t => {
  const directory = makePlace(t);
  let current = '';
  let reopened = 0;
  const spool = new CurrentSpool(
    { directory, fallbacks: [], lock: false, onDirectory: created => (current = created) },
    () => reopened++,
  );
  await spool.open();
  fs.rmSync(current, { recursive: true });
  await Promise.all([spool.lose('test'), spool.lose('test')]);
  assert.equal(reopened, 1);
  assert.equal(spool.spool?.directory, current);
  assert.equal(fs.readdirSync(directory).length, 1);
  await spool.close(true);
  assert.deepEqual(fs.readdirSync(directory), []);
});

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
