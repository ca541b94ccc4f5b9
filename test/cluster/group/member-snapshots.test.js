'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');

const { Registry } = require('../../..');
const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { MemberSnapshots } = require('../../../lib/cluster/group/member-snapshots.js');
const { exitSnapshotName } = require('../../../lib/spool/file-names.js');
const { WELCOME } = require('../../../lib/cluster/wire/messages.js');
const { makePlace } = require('../../fixtures/cluster-harness.js');

const SPOOL = `prom-client-cluster-${'0'.repeat(24)}`;
const link = { id: 1, isConnected: () => false, send: (message, onSent) => onSent?.() };

it('what a process hands over goes to where another process has moved the directory', async t => {
  const place = makePlace(t);
  const directory = new GroupDirectory(path.join(place, 'd'));
  directory.open();
  directory.claim(1, 1);
  const first = path.join(directory.placeOf(1), SPOOL);
  fs.mkdirSync(first);
  const snapshots = new MemberSnapshots(
    directory,
    () => link,
    () => [new Registry()],
  );
  const exitName = exitSnapshotName(1);
  snapshots.receive({ type: WELCOME, directory: first, exitName, checkpointInterval: 0 });
  directory.claim(2, 2);
  fs.renameSync(first, path.join(directory.placeOf(2), SPOOL));
  await snapshots.handOver(100);
  assert.deepEqual(fs.readdirSync(directory.spool()), [exitName]);
});

it('a process has one exit snapshot, whoever leads', t => {
  const place = makePlace(t);
  const snapshots = new MemberSnapshots(
    new GroupDirectory(path.join(place, 'd')),
    () => link,
    () => [new Registry()],
  );
  const [first, second] = [1, 1].map(exitSnapshotName);
  for (const [exitName, files] of [
    ['../elsewhere', []],
    [undefined, []],
    [first, [first]],
    [second, [first]],
  ]) {
    snapshots.receive({ type: WELCOME, directory: place, exitName, checkpointInterval: 0 });
    snapshots.writeExitSnapshot();
    assert.deepEqual(fs.readdirSync(place), files);
  }
});
