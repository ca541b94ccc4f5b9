'use strict';

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');

const { Holder } = require('../../../lib/cluster/group/holder.js');
const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { newKey } = require('../../../lib/cluster/group/group-names.js');
const { HELLO, PING } = require('../../../lib/cluster/wire/messages.js');

const SPOOL = 'prom-client-cluster-abc';

describe('a process that takes over from one that is dead', { skip: process.platform === 'win32' }, () => {
  let place;
  let directory;
  let holder;

  beforeEach(() => {
    place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-holder-'));
    directory = new GroupDirectory(path.join(place, 'd'));
    directory.open();
    const dead = newKey();
    directory.claim(1, dead);
    directory.generation(1).writeMembers({ next: 8, keys: new Map([[7, dead]]) });
    fs.mkdirSync(path.join(directory.generation(1).place, SPOOL));
    // The directory is not a young one.
    fs.writeFileSync(path.join(directory.path, dead), '');
  });
  afterEach(() => {
    holder?.close();
    holder = undefined;
    fs.rmSync(place, { recursive: true, force: true });
  });

  async function claim(isContinuing, options = () => ({ inPlace: true }), generation = 2) {
    holder = await Holder.claim({
      directory,
      generation,
      key: newKey(),
      isContinuing,
      options,
      onDeposed: () => {},
    });
  }

  it('continues if it has met that while it lived', async () => {
    await claim(true);
    assert.ok(fs.existsSync(path.join(directory.generation(2).place, SPOOL)));
  });

  for (const [what, method, isFailing] of [
    ['read the list of members', 'openSync', file => path.basename(file) === 'members.json'],
    ['list the files of the dead process', 'readdirSync', file => path.basename(file) === 'g1'],
    ['list the ids of dead processes', 'readdirSync', file => path.basename(file) === SPOOL],
  ]) {
    it(`does not aggregate without the totals and the ids if it cannot ${what}, and continues with them later`, async t => {
      const totals = path.join(directory.generation(1).place, SPOOL, 'retired.snap');
      fs.writeFileSync(totals, 'totals');
      const original = fs[method];
      const failing = t.mock.method(fs, method, (file, ...rest) => {
        if (isFailing(file))
          throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
        return original(file, ...rest);
      });
      await assert.rejects(claim(true), { code: 'EMFILE' });
      failing.mock.restore();
      const next = (directory.generations()[0] ?? 0) + 1;
      await claim(true, undefined, next);
      const spool = path.join(directory.generation(next).place, SPOOL);
      assert.equal(fs.readFileSync(path.join(spool, 'retired.snap'), 'utf8'), 'totals');
      assert.deepEqual(directory.generations(), [next]);
      assert.equal(directory.readMembers(next + 1).next, 8);
    });
  }

  it('is not held up by what is no directory of snapshot files', async () => {
    fs.rmSync(path.join(directory.generation(1).place, SPOOL), { recursive: true });
    const other = path.join(place, 'other');
    fs.mkdirSync(other);
    fs.writeFileSync(path.join(other, 'retired.snap'), 'of somebody else');
    fs.symlinkSync(other, path.join(directory.generation(1).place, SPOOL));
    fs.writeFileSync(directory.generation(2).place, 'no directory');
    await claim(true, undefined, 3);
    assert.equal(holder.isCurrent(), true);
    assert.equal(fs.existsSync(path.join(directory.generation(3).place, SPOOL)), false);
    assert.deepEqual(fs.readdirSync(other), ['retired.snap']);
  });

  it('stops as soon as its file is gone: another process has taken over, or somebody has removed the directory', async t => {
    await claim(true);
    const deposed = t.mock.method(holder, 'close');
    assert.equal(holder.isCurrent(), true);
    fs.rmSync(directory.path, { recursive: true });
    assert.equal(holder.isCurrent(), false);
    assert.equal(deposed.mock.callCount(), 1);
  });

  it('aggregates as soon as it can, if it could not when it took over', async () => {
    let failures = 3;
    await claim(true, () => {
      if (failures-- > 0) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      return { inPlace: true };
    });
    const socket = Object.assign(new EventEmitter(), {
      ...{ writable: true, writableLength: 0, sent: [] },
      ...{ unref() {}, destroy() {}, write: frame => socket.sent.push(JSON.parse(frame.subarray(4))) },
    });
    const receive = message => {
      const bytes = Buffer.from(`xxxx${JSON.stringify(message)}`);
      bytes.writeUInt32BE(bytes.length - 4, 0);
      socket.emit('data', bytes);
    };
    holder.accept(socket);
    receive({ type: HELLO, key: newKey() });
    assert.deepEqual(socket.sent, [{ type: HELLO, id: 8 }]);
    for (let i = 0; i < 3; i++) receive({ type: PING });
    assert.notEqual(holder.primary, undefined);
  });

  it('starts an empty group if it has not', async () => {
    await claim(false);
    assert.deepEqual(
      fs.readdirSync(directory.generation(2).place).filter(name => name === SPOOL),
      [],
    );
  });
});
