'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');

const { Registry } = require('../../..');
const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { WorkerResponder } = require('../../../lib/cluster/worker/worker-responder.js');
const { WELCOME } = require('../../../lib/cluster/wire/messages.js');
const { makePlace } = require('../../fixtures/cluster-harness.js');

const SPOOL = `prom-client-cluster-${'0'.repeat(24)}`;

/** @param {GroupDirectory} directory */
function sourceIn(directory) {
  const link = {
    ...{ id: 1, isConnected: () => false, directory: () => directory.spool() },
    send: (message, onSent) => onSent?.(),
  };
  return new WorkerResponder(link, () => [new Registry()]);
}

it('what a process hands over goes to where another process has moved the directory', async t => {
  const place = makePlace(t);
  const directory = new GroupDirectory(path.join(place, 'd'));
  directory.open();
  directory.claim(1, 1);
  const first = path.join(directory.placeOf(1), SPOOL);
  fs.mkdirSync(first);
  const source = sourceIn(directory);
  source.receive({ type: WELCOME, directory: first, checkpointInterval: 0 });
  directory.claim(2, 2);
  fs.renameSync(first, path.join(directory.placeOf(2), SPOOL));
  await source.handOver(100);
  assert.deepEqual(kindsIn(directory.spool()), ['w1 .columns', 'w1 .log']);
});

/** The worker and the kind of each file. */
function kindsIn(directory) {
  return fs
    .readdirSync(directory)
    .map(name => `${name.split('-')[0]} ${path.extname(name)}`)
    .sort();
}
