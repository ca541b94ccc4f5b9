'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { Aggregator } = require('../../lib/aggregator/aggregator');
const { columnsName } = require('../../lib/spool/file-names');

const RENEWAL_MILLISECONDS = 10_000;

/** An aggregator with a locked directory in a place of its own, and the directories that it has announced. */
async function openAggregator(t) {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), 'lost-directory-'));
  t.after(() => fs.rmSync(place, { recursive: true, force: true }));
  const directories = [];
  const aggregator = new Aggregator({
    directory: place,
    lock: true,
    onDirectory: directory => directories.push(directory),
    onRetired: () => {},
  });
  await aggregator.open();
  return { aggregator, place, directories };
}

/** Lets the lock notice what has happened to the directory. */
async function renewLock(t) {
  t.mock.timers.tick(RENEWAL_MILLISECONDS + 1);
  // The replacement takes some microtasks, and no input or output that has to be awaited.
  await new Promise(resolve => setImmediate(resolve));
}

test('a directory whose lock was removed is locked again and continued, and removed at the end', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const { aggregator, place, directories } = await openAggregator(t);
  const lock = path.join(directories[0], 'lock');
  const left = columnsName(1, 1);
  fs.writeFileSync(path.join(directories[0], left), 'numbers');
  for (let times = 0; times < 3; times++) {
    fs.rmdirSync(lock);
    await renewLock(t);
    assert.ok(fs.existsSync(lock), 'it is locked again');
  }
  assert.deepEqual([...new Set(directories)], [directories[0]]);
  assert.ok(fs.readdirSync(directories[0]).includes(left));
  assert.deepEqual(fs.readdirSync(place), [path.basename(directories[0])]);
  await aggregator.close();
  assert.deepEqual(fs.readdirSync(place), []);
});
