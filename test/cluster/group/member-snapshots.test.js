'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');

const { Registry } = require('../../..');
const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { newKey } = require('../../../lib/cluster/group/group-names.js');
const { MemberSnapshots } = require('../../../lib/cluster/group/member-snapshots.js');
const { exitSnapshotName } = require('../../../lib/spool/file-names.js');
const { WELCOME } = require('../../../lib/cluster/wire/messages.js');
const { makePlace } = require('../../fixtures/cluster-harness.js');

const SPOOL = 'prom-client-cluster-abc';

it('what a process hands over goes to where another process has moved the directory', async t => {
  const place = makePlace(t);
  const directory = new GroupDirectory(path.join(place, 'd'));
  directory.open();
  directory.claim(1, newKey());
  const first = path.join(directory.generation(1).place, SPOOL);
  fs.mkdirSync(first);
  const snapshots = new MemberSnapshots(
    directory,
    () => [new Registry()],
    () => undefined,
  );
  snapshots.identify(1);
  const exitName = exitSnapshotName(1);
  snapshots.receive({ type: WELCOME, directory: first, exitName, checkpointInterval: 0 });
  directory.claim(2, newKey());
  fs.renameSync(first, path.join(directory.generation(2).place, SPOOL));
  await snapshots.handOver(100);
  assert.deepEqual(fs.readdirSync(directory.spool()), [exitName]);
});

it('a process has one exit snapshot, whoever aggregates, and one of another name for another id', t => {
  const place = makePlace(t);
  const snapshots = new MemberSnapshots(
    new GroupDirectory(path.join(place, 'd')),
    () => [new Registry()],
    () => undefined,
  );
  const [first, second, other] = [1, 1, 2].map(exitSnapshotName);
  for (const [id, exitName, files] of [
    [1, '../elsewhere', []],
    [1, undefined, []],
    [1, first, [first]],
    [1, second, [first]],
    [2, other, [first, other]],
  ]) {
    snapshots.identify(id);
    snapshots.receive({ type: WELCOME, directory: place, exitName, checkpointInterval: 0 });
    snapshots.writeExitSnapshot();
    assert.deepEqual(fs.readdirSync(place), files);
  }
});

it(
  'a process that gets another id holds no descriptor in reserve for the one before',
  { skip: !fs.existsSync('/proc/self/fd') },
  t => {
    const place = makePlace(t);
    const snapshots = new MemberSnapshots(
      new GroupDirectory(path.join(place, 'd')),
      () => [new Registry()],
      () => undefined,
    );
    const openAs = id => {
      snapshots.identify(id);
      snapshots.receive({
        type: WELCOME,
        directory: place,
        exitName: exitSnapshotName(id),
        checkpointInterval: 0,
      });
      return fs.readdirSync('/proc/self/fd').length;
    };
    const before = openAs(1);
    for (let id = 2; id <= 5; id++) assert.equal(openAs(id), before);
  },
);
