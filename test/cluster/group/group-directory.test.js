'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, after, beforeEach, afterEach } = require('node:test');

const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { pathOfGroup, newId, leaderName } = require('../../../lib/cluster/group/group-names.js');
const { leaveSocket } = require('../../fixtures/dead-socket.js');

const SPOOL = `prom-client-cluster-${'0'.repeat(24)}`;
const { pid } = process;
/** A process with this id is dead, or is this one. */
const [A, B, C] = [newId(), newId() + 1, newId() + 2];

describe("a group's directory", { skip: process.platform === 'win32' }, () => {
  let place;
  let directory;

  beforeEach(() => {
    place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-directory-'));
    directory = new GroupDirectory(path.join(place, 'd'));
    directory.open();
  });
  afterEach(() => fs.rmSync(place, { recursive: true, force: true }));

  function addSpool(generation) {
    const spool = path.join(directory.placeOf(generation), SPOOL);
    fs.mkdirSync(spool);
    fs.writeFileSync(path.join(spool, 'retired.snap'), 'totals');
  }

  it('has the name of the group and the id of the user', () => {
    const expected = path.join(
      fs.realpathSync(os.tmpdir()),
      `prom-client-group-${process.geteuid()}-shop_1.a-b`,
    );
    assert.equal(pathOfGroup('shop_1.a-b'), expected);
    assert.equal(pathOfGroup('/run/shop/'), '/run/shop');
  });

  for (const name of ['', '..', '.a', 'a/b', 'a b', 'ä', 'x'.repeat(33), '-a', `/${'x'.repeat(100)}`]) {
    it(`refuses the name ${JSON.stringify(name.slice(0, 40))}`, () => {
      assert.throws(() => pathOfGroup(name), { name: 'TypeError', message: /^group/ });
    });
  }

  describe('by a name', () => {
    const { TMPDIR } = process.env;
    const place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-places-'));
    // Where a name has no place in the directory for temporary files. It is removed by the tests.
    const [fallback] = ['/dev/shm', '/tmp'].filter(fs.existsSync).map(other => fs.realpathSync(other));
    const prefix = `prom-client-group-${process.geteuid?.()}-`;

    afterEach(() => {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    });
    after(() => fs.rmSync(place, { recursive: true, force: true }));

    /** @returns {string} its path if that is the directory for temporary files */
    const pathIn = (directory, name = 'shop') => {
      process.env.TMPDIR = directory;
      return pathOfGroup(name);
    };

    it('is in another place if there is no directory for temporary files, in the same one for all processes', () => {
      const file = path.join(place, 'file');
      fs.writeFileSync(file, '');
      for (const unusable of [path.join(place, 'missing'), file, path.join(place, 'x'.repeat(200))]) {
        const found = pathIn(unusable);
        assert.match(path.basename(found), /^prom-client-group-\d+-\.[0-9a-f]{10}$/);
        assert.equal(path.dirname(found), fallback);
        assert.equal(pathIn(unusable), found);
        // Other groups are in other places.
        assert.notEqual(pathIn(unusable, 'other'), found);
        assert.notEqual(pathIn(`${unusable}2`), found);
      }
    });

    it('stays there for all processes although there is one by now, and is in that if it was there before', t => {
      const late = path.join(place, 'late');
      const found = pathIn(late);
      fs.mkdirSync(found, { mode: 0o700 });
      t.after(() => fs.rmSync(found, { recursive: true, force: true }));
      fs.mkdirSync(late);
      assert.equal(pathIn(late), found);
      fs.mkdirSync(path.join(late, `${prefix}shop`), { mode: 0o700 });
      assert.equal(pathIn(late), path.join(late, `${prefix}shop`));
      fs.rmdirSync(path.join(late, `${prefix}shop`));
      // A link that somebody else has put there is not followed.
      fs.rmdirSync(found);
      fs.symlinkSync(place, found);
      assert.equal(pathIn(late), path.join(late, `${prefix}shop`));
    });

    it('is in a directory for temporary files that nobody can use if there is no other place, until there is', t => {
      t.mock.method(fs, 'accessSync', () => {
        throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
      });
      assert.equal(pathIn(place), path.join(place, `${prefix}shop`));
    });

    for (const [platform, max] of [
      ['linux', 107],
      ['darwin', 103],
    ]) {
      it(`has a short name if the sockets have no room otherwise: ${max} bytes on ${platform}`, t => {
        const before = process.platform;
        t.after(() => Object.defineProperty(process, 'platform', { value: before }));
        Object.defineProperty(process, 'platform', { value: platform });
        const name = 'x'.repeat(32);
        for (let length = place.length + 2; length < 100; length++) {
          const long = path.join(place, 'd'.repeat(length - place.length - 1));
          fs.mkdirSync(long, { recursive: true });
          const found = pathIn(long, name);
          assert.ok(`${found}/m4294967295`.length <= max, found);
          const isFull = found === path.join(long, prefix + name);
          assert.equal(isFull, `${long}/${prefix}${name}/m4294967295`.length <= max, found);
          const short = `${long}/${prefix}.0123456789`;
          if (!isFull)
            assert.equal(path.dirname(found) === long, `${short}/m4294967295`.length <= max, found);
        }
      });
    }
  });

  it('is refused unless it is a directory of this user and for this user only', () => {
    const refused = /is refused: it must be a directory of this user with mode 0700/;
    fs.chmodSync(directory.path, 0o750);
    assert.throws(() => directory.open(), refused);
    fs.rmdirSync(directory.path);
    fs.symlinkSync(place, directory.path);
    assert.throws(() => directory.open(), refused);
    fs.unlinkSync(directory.path);
    fs.writeFileSync(directory.path, '', { mode: 0o700 });
    assert.throws(() => directory.open(), refused);
    fs.unlinkSync(directory.path);
    if (process.geteuid?.() !== 0) return;
    fs.mkdirSync(directory.path, { mode: 0o700 });
    fs.chownSync(directory.path, 1, 1);
    assert.throws(() => directory.open(), refused);
  });

  it('one process wins a generation', () => {
    assert.deepEqual(directory.newest(), { generation: 0, leader: undefined });
    assert.equal(directory.claim(1, A), true);
    assert.equal(directory.claim(1, B), false);
    assert.deepEqual(directory.newest(), { generation: 1, leader: { id: A, pid } });
    assert.equal(directory.claim(2, B), true);
    assert.deepEqual(directory.newest(), { generation: 2, leader: { id: B, pid } });
    assert.deepEqual(fs.readdirSync(directory.path).sort(), ['g1', 'g2']);
  });

  it('a process that was stopped before it claims an old generation does not win it', () => {
    assert.equal(directory.claim(5, A), true);
    assert.equal(directory.claim(4, B), false);
    assert.deepEqual(directory.generations(), [5]);
  });

  it('the next leader continues with snapshot files; those of an ended group are removed', () => {
    directory.claim(1, A);
    const shown = [A, B].map(id => directory.isLedBy(1, id));
    assert.deepEqual(shown, [true, false]);
    addSpool(1);
    const digits = '0'.repeat(24);
    for (const name of [`w3-r1-${digits}.columns`, `w3-${digits}.log`, `w7-r0-${digits}.columns`])
      fs.writeFileSync(path.join(directory.placeOf(1), SPOOL, name), '');
    directory.claim(2, B);
    assert.deepEqual(directory.idsBefore(2), [3, 7]);
    const moved = directory.succeed(2, true);
    assert.equal(moved, path.join(directory.placeOf(2), SPOOL));
    assert.equal(directory.spool(), moved);
    assert.equal(fs.readFileSync(path.join(moved, 'retired.snap'), 'utf8'), 'totals');
    assert.equal(directory.isLedBy(1, A), false);
    directory.claim(3, C);
    assert.equal(directory.succeed(3, false), undefined);
    const names = fs.readdirSync(directory.path, { recursive: true });
    assert.deepEqual(names.sort(), ['g3', `g3/${leaderName({ id: C, pid })}`]);
  });

  it('says who leads and how many members there are, in names alone', async () => {
    const unknown = { directory: directory.path, generation: 0, members: 0, leader: undefined };
    assert.deepEqual(directory.facts(), unknown);
    directory.claim(1, A);
    for (const id of [A, B]) await leaveSocket(directory.socketOf(id));
    assert.deepEqual(directory.facts(), {
      ...{ ...unknown, generation: 1, members: 2 },
      leader: { id: A, pid },
    });
    for (const name of ['m0', 'm01', 'm4294967296', 'm1x', 'xm1', 'm-1'])
      fs.writeFileSync(path.join(directory.path, name), '');
    for (const name of ['leader-1', 'leader-0-1', 'leader-1-x', 'leader-4294967296-1', 'a-leader-1-1']) {
      fs.rmSync(directory.placeOf(1), { recursive: true });
      fs.mkdirSync(directory.placeOf(1));
      fs.writeFileSync(path.join(directory.placeOf(1), name), '');
      assert.deepEqual(directory.facts(), { ...unknown, generation: 1, members: 2 }, name);
    }
    fs.rmSync(directory.path, { recursive: true });
    assert.deepEqual(directory.facts(), unknown);
  });

  it('the last process that leaves removes it', async () => {
    for (const id of [A, B]) await leaveSocket(directory.socketOf(id));
    directory.claim(1, A);
    addSpool(1);
    directory.leave(A);
    assert.deepEqual(directory.generations(), [1]);
    directory.leave(B);
    assert.equal(fs.existsSync(directory.path), false);
  });

  it('has a file for each named pipe on Windows, and no mode and length there', t => {
    const { platform } = process;
    t.after(() => Object.defineProperty(process, 'platform', { value: platform }));
    Object.defineProperty(process, 'platform', { value: 'win32' });
    const long = path.join(place, 'x'.repeat(200));
    assert.equal(pathOfGroup(long), long);
    fs.chmodSync(directory.path, 0o755);
    directory.open();
    assert.match(
      directory.socketOf(A),
      new RegExp(`^\\\\\\\\\\.\\\\pipe\\\\prom-client-group-[0-9a-f]{24}-${A}$`),
    );
    assert.equal(directory.socketOf(A), new GroupDirectory(directory.path).socketOf(A));
    assert.notEqual(directory.socketOf(A), new GroupDirectory(long).socketOf(A));
    assert.equal(directory.hasSocket(A), false);
    for (const id of [A, B]) directory.showPipe(id);
    assert.equal(directory.hasSocket(A), true);
    directory.claim(1, A);
    // The other one lives.
    directory.leave(A);
    assert.deepEqual(directory.newest(), { generation: 1, leader: { id: A, pid } });
    assert.equal(directory.hasSocket(A), false);
    directory.leave(B);
    assert.equal(fs.existsSync(directory.path), false);
  });

  it('leaves what is not its own, whatever the names: not in an election, and not at the end', async () => {
    const outside = path.join(place, 'outside');
    const files = {
      // A cache with hashes or numbers for names, and its shards.
      'd/0123456789': 'a file',
      'd/abcdef0123/entry': 'in a directory',
      'd/candidate-0123456789/entry': 'in a directory',
      'd/g1/members.json': 'of the program',
      'd/g3/prom-client-cluster-15.2.0/lock': 'an unpacked archive',
      'd/g4/leader-of-keys': 'a file',
      'd/g5': 'a file',
      'outside/leader-1-1': 'behind a link',
    };
    for (const [name, content] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(path.join(place, name)), { recursive: true });
      fs.writeFileSync(path.join(place, name), content);
    }
    for (const link of ['g6', `g1/${SPOOL}`]) fs.symlinkSync(outside, path.join(directory.path, link));
    const names = () => fs.readdirSync(place, { recursive: true }).sort();
    const before = names();

    await leaveSocket(directory.socketOf(A));
    assert.equal(directory.claim(7, A), true);
    await leaveSocket(directory.socketOf(B));
    assert.equal(directory.claim(8, B), true);
    assert.deepEqual(directory.idsBefore(8), []);
    directory.succeed(8, true);
    assert.deepEqual(directory.newest(), { generation: 8, leader: { id: B, pid } });
    for (const id of [A, B]) directory.leave(id);
    assert.deepEqual(names(), before);
    for (const [name, content] of Object.entries(files))
      assert.equal(fs.readFileSync(path.join(place, name), 'utf8'), content, name);
  });

  it('has room for 4 thousand million ids, which follow the time', () => {
    const before = Date.now();
    const id = newId();
    assert.ok(id > before % 0xffff_ffff && id <= (Date.now() % 0xffff_ffff) + 1, `${id}`);
    assert.equal(newId(id), id + 1);
    assert.equal(newId(0xffff_ffff), 1);
    assert.equal(newId(0xffff_fffe), 0xffff_ffff);
  });
});
