'use strict';

// Faults of a real system: a disk of its own that is full, has no inodes left, or is read-only, and a worker
// without descriptors. Not here but in test/cluster/processes, because they are cheap there: another user
// (directory.test.js), a stopped process (lifecycle.test.js), a primary without descriptors (faults.test.js);
// a clock that jumps is in test/store/retired-totals.test.js.

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');

const { startCluster, until } = require('../fixtures/cluster-harness');
const { mountDisk, noDiskReason } = require('../fixtures/own-disk');

const worker = {
  start: ({ client, state, process }) => {
    const counter = new client.Counter({ name: 'done_total', help: 'h' });
    state.record = () => counter.inc();
    state.exit = () => process.exit(0);
  },
};
const record = ({ state }) => state.record();
const total = async cluster => (await cluster.scrape()).get('done_total');

/** Runs until there is no space. */
function untilFull(run) {
  for (let i = 0; ; i++) {
    try {
      run(i);
    } catch (error) {
      assert.equal(error.code, 'ENOSPC');
      return;
    }
  }
}

const DISKS = {
  'is full': {
    breakIt(place) {
      const file = fs.openSync(path.join(place, 'filler'), 'w');
      untilFull(() => fs.writeSync(file, Buffer.alloc(4096)));
      fs.closeSync(file);
    },
    mend: place => fs.rmSync(path.join(place, 'filler')),
  },
  'has no inodes left': {
    breakIt(place) {
      fs.mkdirSync(path.join(place, 'files'));
      untilFull(number => fs.writeFileSync(path.join(place, 'files', String(number)), ''));
    },
    mend: place => fs.rmSync(path.join(place, 'files'), { recursive: true }),
  },
  'is read-only': {
    breakIt: place => execFileSync('mount', ['-o', 'remount,ro', place]),
    mend: place => execFileSync('mount', ['-o', 'remount,rw', place]),
  },
};

describe('a disk of its own', { skip: noDiskReason() }, () => {
  for (const [what, { breakIt, mend }] of Object.entries(DISKS)) {
    it(`a disk of its own that ${what} costs no count of a worker that lives, ends or is killed, and is used again afterwards`, async t => {
      const place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'cluster-disk-'));
      mountDisk(place);
      t.after(() => {
        execFileSync('umount', ['--lazy', place]);
        fs.rmdirSync(place);
      });
      const cluster = await startCluster(t, { place, workers: 4, worker });
      await cluster.inWorkers([1, 2, 3, 4], record);
      assert.equal(await total(cluster), 4);

      breakIt(place);
      await cluster.inWorkers([1, 2, 3, 4], record);
      assert.equal(await total(cluster), 8, 'the snapshots come over IPC');
      await cluster.killWorker(3);
      assert.equal(await total(cluster), 8, 'a killed worker keeps what was scraped');
      await cluster.endWorker(4, ({ state }) => (state.record(), state.exit()));
      const shown = await total(cluster);
      const refusedExits = ({ refused }) => Object.keys(refused).filter(reason => reason.startsWith('exit-'));
      const counted = refusedExits(await cluster.internals());
      assert.deepEqual({ shown, counted }, { shown: 9, counted: [] });

      mend(place);
      await cluster.inWorkers([1, 2], record);
      assert.equal(await total(cluster), shown + 2);
      const id = await cluster.fork();
      await cluster.inWorker(id, record);
      assert.equal(await total(cluster), shown + 3);
      await cluster.endWorker(2, ({ state }) => (state.record(), state.exit()));
      assert.equal(await total(cluster), shown + 4, 'files are written again');
      await until(() => cluster.keptFiles(2).length === 0, 'nothing is left of it');
      // What the disk did not remove does not count again.
      await cluster.run(({ threads }) => threads.at(-1).terminate());
      assert.equal(await total(cluster), shown + 4);
      const found = [3, 4].map(dead => cluster.keptFiles(dead));
      assert.deepEqual(found, [[], []]);
      await cluster.end();
    });
  }
});

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0;

describe('a worker without descriptors', { skip: !hasPrlimit && 'needs prlimit' }, () => {
  it('a worker without descriptors sends its snapshots over IPC, and writes files again when it has descriptors', async t => {
    const cluster = await startCluster(t, { workers: 1, worker });
    await cluster.inWorker(1, record);
    assert.equal(await total(cluster), 1);
    await cluster.inWorker(1, ({ require, state, process }) => {
      const fs = require('node:fs');
      require('node:child_process').execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=64:64']);
      state.files = [];
      try {
        for (;;) state.files.push(fs.openSync('/dev/null'));
      } catch (error) {
        if (error.code !== 'EMFILE') throw error;
      }
      state.record();
    });
    assert.equal(await total(cluster), 2);
    const overIpc = await cluster.run(({ answers }) => answers.at(-1).message.reason);
    assert.equal(overIpc, 'EMFILE');
    await cluster.inWorker(1, ({ require, state }) => {
      const fs = require('node:fs');
      for (const file of state.files) fs.closeSync(file);
      state.record();
    });
    assert.equal(await total(cluster), 3);
    assert.equal(await cluster.run(({ answers }) => answers.at(-1).message.reason), undefined);
    await cluster.end();
  });
});
