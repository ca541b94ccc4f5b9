'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');

const { Leader } = require('../../../lib/cluster/group/leader.js');
const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { newId } = require('../../../lib/cluster/group/group-names.js');

const SPOOL = `prom-client-cluster-${'0'.repeat(24)}`;
const DEAD = 7;

describe('a process that takes over from one that is dead', { skip: process.platform === 'win32' }, () => {
  let place;
  let directory;
  let leader;

  beforeEach(() => {
    place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-leader-'));
    directory = new GroupDirectory(path.join(place, 'd'));
    directory.open();
    directory.claim(1, DEAD);
    fs.mkdirSync(path.join(directory.placeOf(1), SPOOL));
    fs.writeFileSync(path.join(directory.placeOf(1), SPOOL, `w${DEAD}-r0-${'0'.repeat(24)}.columns`), '');
    // The directory is not a young one.
    fs.writeFileSync(directory.socketOf(DEAD), '');
  });
  afterEach(() => {
    leader?.close();
    leader = undefined;
    fs.rmSync(place, { recursive: true, force: true });
  });

  async function elect(isContinuing, generation = 2) {
    leader = await Leader.elect({
      directory,
      generation,
      id: newId(),
      isContinuing,
      options: () => ({ inPlace: true }),
      onRequest: () => {},
      onDeposed: () => {},
    });
  }

  for (const [what, name] of [
    ['list the files of the dead process', 'g1'],
    ['list the ids of dead processes', SPOOL],
  ]) {
    it(`does not aggregate without the totals and the ids if it cannot ${what}, and continues with them later`, async t => {
      const totals = path.join(directory.placeOf(1), SPOOL, 'retired.snap');
      fs.writeFileSync(totals, 'totals');
      const { readdirSync } = fs;
      const failing = t.mock.method(fs, 'readdirSync', (file, ...rest) => {
        if (path.basename(file) !== name) return readdirSync(file, ...rest);
        throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      });
      await assert.rejects(elect(true), { code: 'EMFILE' });
      failing.mock.restore();
      const next = (directory.generations()[0] ?? 0) + 1;
      await elect(true, next);
      const spool = path.join(directory.placeOf(next), SPOOL);
      assert.equal(fs.readFileSync(path.join(spool, 'retired.snap'), 'utf8'), 'totals');
      assert.deepEqual(directory.generations(), [next]);
    });
  }

  for (const hasMet of [true, false]) {
    it(`${hasMet ? 'continues if it has' : 'starts an empty group if it has not'} met that while it lived`, async () => {
      await elect(hasMet);
      assert.equal(fs.existsSync(path.join(directory.placeOf(2), SPOOL)), hasMet);
    });
  }
});
