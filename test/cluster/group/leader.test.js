'use strict';

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');

const { Leader } = require('../../../lib/cluster/group/leader.js');
const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { newId } = require('../../../lib/cluster/group/group-names.js');
const { HELLO, PING } = require('../../../lib/cluster/wire/messages.js');

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

  async function elect(isContinuing, options = () => ({ inPlace: true }), generation = 2) {
    leader = await Leader.elect({
      directory,
      generation,
      id: newId(),
      isContinuing,
      options,
      onRequest: () => {},
      onDeposed: () => {},
    });
  }

  it('continues if it has met that while it lived', async () => {
    await elect(true);
    assert.ok(fs.existsSync(path.join(directory.placeOf(2), SPOOL)));
  });

  for (const [what, method, isFailing] of [
    ['list the files of the dead process', 'readdirSync', file => path.basename(file) === 'g1'],
    ['list the ids of dead processes', 'readdirSync', file => path.basename(file) === SPOOL],
  ]) {
    it(`does not aggregate without the totals and the ids if it cannot ${what}, and continues with them later`, async t => {
      const totals = path.join(directory.placeOf(1), SPOOL, 'retired.snap');
      fs.writeFileSync(totals, 'totals');
      const original = fs[method];
      const failing = t.mock.method(fs, method, (file, ...rest) => {
        if (isFailing(file))
          throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
        return original(file, ...rest);
      });
      await assert.rejects(elect(true), { code: 'EMFILE' });
      failing.mock.restore();
      const next = (directory.generations()[0] ?? 0) + 1;
      await elect(true, undefined, next);
      const spool = path.join(directory.placeOf(next), SPOOL);
      assert.equal(fs.readFileSync(path.join(spool, 'retired.snap'), 'utf8'), 'totals');
      assert.deepEqual(directory.generations(), [next]);
    });
  }

  it('is not held up by what is no directory of snapshot files', async () => {
    fs.rmSync(path.join(directory.placeOf(1), SPOOL), { recursive: true });
    const other = path.join(place, 'other');
    fs.mkdirSync(other);
    fs.writeFileSync(path.join(other, 'retired.snap'), 'of somebody else');
    fs.symlinkSync(other, path.join(directory.placeOf(1), SPOOL));
    fs.writeFileSync(directory.placeOf(2), 'no directory');
    await elect(true, undefined, 3);
    assert.equal(leader.isCurrent(), true);
    assert.equal(fs.existsSync(path.join(directory.placeOf(3), SPOOL)), false);
    assert.deepEqual(fs.readdirSync(other), ['retired.snap']);
  });

  it('stops as soon as its file is gone: another process has taken over, or somebody has removed the directory', async t => {
    await elect(true);
    const deposed = t.mock.method(leader, 'close');
    assert.equal(leader.isCurrent(), true);
    fs.rmSync(directory.path, { recursive: true });
    assert.equal(leader.isCurrent(), false);
    assert.equal(deposed.mock.callCount(), 1);
  });

  it('aggregates as soon as it can, if it could not when it took over', async () => {
    let failures = 3;
    await elect(true, () => {
      if (failures-- > 0) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      return { inPlace: true };
    });
    const socket = Object.assign(new EventEmitter(), {
      ...{ writable: true, writableLength: 0, sent: [] },
      ...{ unref() {}, setEncoding() {}, destroy() {}, write: line => socket.sent.push(JSON.parse(line)) },
    });
    const receive = message => socket.emit('data', `${JSON.stringify(message)}\n`);
    leader.accept(socket);
    receive({ type: HELLO, id: 8 });
    assert.deepEqual(socket.sent, [{ type: HELLO }]);
    for (let i = 0; i < 3; i++) receive({ type: PING });
    assert.notEqual(leader.primary, undefined);
  });

  it('starts an empty group if it has not', async () => {
    await elect(false);
    const shown = fs.readdirSync(directory.placeOf(2)).filter(name => name === SPOOL);
    assert.deepEqual(shown, []);
  });
});
