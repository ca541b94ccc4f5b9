'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, after, beforeEach, afterEach } = require('node:test');

const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { pathOfGroup, newKey, isKey } = require('../../../lib/cluster/group/group-names.js');
const { listen } = require('../../../lib/cluster/links/socket.js');
const { leaveSocket } = require('../../fixtures/dead-socket.js');

const SPOOL = 'prom-client-cluster-abc';

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
    const spool = path.join(directory.generation(generation).place, SPOOL);
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
          assert.ok(`${found}/0123456789`.length <= max, found);
          const isFull = found === path.join(long, prefix + name);
          assert.equal(isFull, `${long}/${prefix}${name}/0123456789`.length <= max, found);
          const short = `${long}/${prefix}.0123456789`;
          if (!isFull) assert.equal(path.dirname(found) === long, `${short}/0123456789`.length <= max, found);
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
    const [a, b] = [newKey(), newKey()];
    assert.ok(isKey(a) && isKey(b));
    assert.equal(directory.newest(), undefined);
    assert.equal(directory.claim(1, a), true);
    assert.equal(directory.claim(1, b), false);
    assert.deepEqual(directory.newest(), { generation: 1, key: a });
    assert.equal(directory.claim(2, b), true);
    assert.deepEqual(directory.newest(), { generation: 2, key: b });
    assert.deepEqual(fs.readdirSync(directory.path).sort(), ['g1', 'g2']);
  });

  it('a process that was stopped before it claims an old generation does not win it', () => {
    assert.equal(directory.claim(5, newKey()), true);
    assert.equal(directory.claim(4, newKey()), false);
    assert.deepEqual(directory.generations(), [5]);
  });

  it('the next holder continues with snapshot files and ids; those of an ended group are removed', () => {
    const first = newKey();
    directory.claim(1, first);
    assert.equal(directory.generation(1).isHeldBy(first), true);
    assert.equal(directory.generation(1).isHeldBy(newKey()), false);
    const keys = new Map([
      [3, newKey()],
      [7, newKey()],
    ]);
    directory.generation(1).writeMembers({ next: 8, keys });
    addSpool(1);
    directory.claim(2, newKey());
    assert.deepEqual(directory.readMembers(2), { next: 8, keys });
    const moved = directory.succeed(2, true);
    assert.equal(moved, path.join(directory.generation(2).place, SPOOL));
    assert.equal(fs.readFileSync(path.join(moved, 'retired.snap'), 'utf8'), 'totals');
    assert.equal(directory.generation(1).isHeldBy(first), false);
    // Also for the case that this process dies, or is stopped, before it writes its own list.
    assert.deepEqual(directory.readMembers(3), { next: 8, keys });
    const key = newKey();
    directory.claim(3, key);
    assert.equal(directory.succeed(3, false), undefined);
    assert.deepEqual(fs.readdirSync(directory.path, { recursive: true }).sort(), ['g3', `g3/holder-${key}`]);
  });

  it('the next holder takes over on a full disk, too', t => {
    directory.claim(1, newKey());
    addSpool(1);
    const write = fs.writeSync;
    const full = t.mock.method(fs, 'writeSync', (descriptor, ...more) => {
      // There is space where something has been written before.
      if (fs.fstatSync(descriptor).size > 0) return write(descriptor, ...more);
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    });
    const key = newKey();
    assert.equal(directory.claim(2, key), true);
    assert.deepEqual(directory.newest(), { generation: 2, key });
    const moved = directory.succeed(2, true);
    assert.equal(fs.readFileSync(path.join(moved, 'retired.snap'), 'utf8'), 'totals');
    assert.deepEqual(directory.generation(2).facts, { members: 0, aggregator: undefined });
    assert.throws(() => directory.generation(2).completeHolder(key), { code: 'ENOSPC' });
    full.mock.restore();
    directory.generation(2).completeHolder(key);
    directory.generation(2).writeMembers({ next: 2, keys: new Map([[1, key]]) });
    assert.deepEqual(directory.generation(2).facts, { members: 1, aggregator: { pid: process.pid, id: 1 } });
  });

  it('a holder that is replaced does not write itself into the generation of another one', () => {
    const key = newKey();
    directory.claim(1, key);
    directory.generation(1).completeHolder(newKey());
    assert.deepEqual(directory.newest(), { generation: 1, key });
  });

  it('an invalid list of members is ignored', () => {
    directory.claim(1, newKey());
    const file = path.join(directory.generation(1).place, 'members.json');
    for (const content of [
      '',
      '[]',
      'null',
      '{"next":"7","members":[[1,"x"],[0,"0123456789"],[-1],["a"]]}',
    ]) {
      fs.writeFileSync(file, content);
      assert.deepEqual(directory.readMembers(2), { next: 1, keys: new Map() }, content);
    }
    fs.writeFileSync(file, '{"next":4,"members":{"1":2}}');
    assert.deepEqual(directory.readMembers(2), { next: 4, keys: new Map() });
    fs.writeFileSync(file, '{"next":4,"members":[null,7,{},[2,"0123456789"]]}');
    assert.deepEqual(directory.readMembers(2), { next: 4, keys: new Map([[2, '0123456789']]) });
  });

  it('says who aggregates and how many members there are, as far as the holder has written that', () => {
    const unknown = { members: 0, aggregator: undefined };
    assert.deepEqual(directory.generation(1).facts, unknown);
    const [holder, other] = [newKey(), newKey()];
    directory.claim(1, holder);
    assert.deepEqual(directory.generation(1).facts, unknown);
    directory.generation(1).writeMembers({ next: 4, keys: new Map([[3, other]]) });
    assert.deepEqual(directory.generation(1).facts, { members: 1, aggregator: undefined });
    const keys = new Map([
      [3, other],
      [4, holder],
    ]);
    directory.generation(1).writeMembers({ next: 5, keys });
    assert.deepEqual(directory.generation(1).facts, { members: 2, aggregator: { pid: process.pid, id: 4 } });
    const file = path.join(directory.generation(1).place, `holder-${holder}`);
    for (const content of [
      '',
      'null',
      '[]',
      '{"pid":"7"}',
      '{"pid":1e400}',
      `{"pid":7${' '.repeat(2 ** 20)}}`,
    ]) {
      fs.writeFileSync(file, content);
      assert.deepEqual(
        directory.generation(1).facts,
        { members: 2, aggregator: undefined },
        content.slice(0, 20),
      );
    }
  });

  it('whether a process lives is shown by its socket', async () => {
    const key = newKey();
    assert.equal(await directory.isAlive(key), false);
    const server = await listen(directory.socketOf(key), socket => socket.destroy());
    assert.equal(await directory.isAlive(key), true);
    server.close();
    // The socket of a dead process stays.
    await leaveSocket(path.join(directory.path, key));
    assert.equal(await directory.isAlive(key), false);
  });

  it('a socket that cannot be removed stays', async t => {
    const key = newKey();
    await leaveSocket(path.join(place, 'd', key));
    const failing = t.mock.method(fs, 'rmSync', () => {
      throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
    });
    directory.removeSocket(key);
    failing.mock.restore();
    assert.equal(directory.hasSocket(key), true);
  });

  it('the last process that leaves removes it', async () => {
    const [a, b] = [newKey(), newKey()];
    for (const key of [a, b]) await leaveSocket(path.join(directory.path, key));
    directory.claim(1, a);
    addSpool(1);
    directory.leave(a);
    assert.deepEqual(directory.generations(), [1]);
    directory.leave(b);
    assert.equal(fs.existsSync(directory.path), false);
  });

  it('removes those of dead groups after ten minutes', async () => {
    const age = Date.now() / 1000 - 700;
    const others = ['dead', 'living', 'young', 'notes'].map(name => {
      const other = new GroupDirectory(path.join(place, `prom-client-group-${process.geteuid()}-${name}`));
      other.open();
      return other;
    });
    const [dead, living, young, notes] = others;
    for (const other of others) {
      const key = newKey();
      other.claim(1, key);
      fs.mkdirSync(path.join(other.generation(1).place, SPOOL));
      await leaveSocket(path.join(other.path, key));
    }
    const server = await listen(living.socketOf(newKey()), socket => socket.destroy());
    fs.writeFileSync(path.join(notes.path, 'notes.txt'), '');
    for (const other of [dead, living, notes]) fs.utimesSync(other.path, age, age);
    await directory.sweep();
    server.close();
    assert.deepEqual(
      others.map(other => fs.existsSync(other.path)),
      [false, true, true, true],
    );
    assert.deepEqual(fs.readdirSync(notes.path), ['notes.txt']);
    assert.deepEqual(young.generations(), [1]);
  });

  it('has a file for each named pipe on Windows, and no mode and length there', t => {
    const { platform } = process;
    t.after(() => Object.defineProperty(process, 'platform', { value: platform }));
    Object.defineProperty(process, 'platform', { value: 'win32' });
    const long = path.join(place, 'x'.repeat(200));
    assert.equal(pathOfGroup(long), long);
    fs.chmodSync(directory.path, 0o755);
    directory.open();
    const [a, b] = [newKey(), newKey()];
    assert.match(
      directory.socketOf(a),
      new RegExp(`^\\\\\\\\\\.\\\\pipe\\\\prom-client-group-[0-9a-f]{24}-${a}$`),
    );
    assert.equal(directory.socketOf(a), new GroupDirectory(directory.path).socketOf(a));
    assert.notEqual(directory.socketOf(a).slice(0, -10), new GroupDirectory(long).socketOf(a).slice(0, -10));
    assert.equal(directory.hasSocket(a), false);
    for (const key of [a, b]) directory.showPipe(key);
    assert.equal(directory.hasSocket(a), true);
    directory.claim(1, a);
    // The other one lives.
    directory.leave(a);
    assert.deepEqual(directory.newest(), { generation: 1, key: a });
    assert.equal(directory.hasSocket(a), false);
    directory.leave(b);
    assert.equal(fs.existsSync(directory.path), false);
  });

  it('leaves what is not its own', async () => {
    const key = newKey();
    await leaveSocket(path.join(directory.path, key));
    fs.writeFileSync(path.join(directory.path, 'notes.txt'), '');
    directory.claim(1, key);
    directory.leave(key);
    assert.deepEqual(fs.readdirSync(directory.path), ['notes.txt']);
  });

  it('removes nothing of a program whose directory it is, whatever the names: not in an election, and not at the end', async () => {
    const outside = path.join(place, 'outside');
    const files = {
      // A cache with hashes for names, and its shards.
      'd/0123456789': 'a file',
      'd/abcdef0123/entry': 'in a directory',
      'd/candidate-0123456789/entry': 'in a directory',
      'd/candidate-1123456789': 'a file',
      'd/candidate-2123456789/members.json': 'of the program',
      'd/g1/members.json': '{"next":70,"members":[]}',
      'd/g2/members.json.tmp': 'of the program',
      'd/g3/prom-client-cluster-15.2.0/lock': 'an unpacked archive',
      'd/g4/holder-of-keys': 'a file',
      'd/g5': 'a file',
      'outside/members.json': 'behind a link',
    };
    for (const [name, content] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(path.join(place, name)), { recursive: true });
      fs.writeFileSync(path.join(place, name), content);
    }
    fs.symlinkSync(outside, path.join(directory.path, 'g6'));
    fs.symlinkSync(outside, path.join(directory.path, '1123456789'));
    const names = () => fs.readdirSync(place, { recursive: true }).sort();
    const before = names();
    for (const name of before) fs.lutimesSync(path.join(place, name), 1, 1);

    const [dead, key] = [newKey(), newKey()];
    await leaveSocket(path.join(directory.path, dead));
    assert.equal(directory.claim(7, dead), true);
    await leaveSocket(path.join(directory.path, key));
    assert.equal(directory.claim(8, key), true);
    assert.deepEqual(directory.readMembers(8), { next: 1, keys: new Map() });
    directory.succeed(8, true);
    await directory.notifyAll(key);
    assert.deepEqual(directory.newest(), { generation: 8, key });
    assert.equal(directory.hasOthersThan(key), false);
    directory.leave(key);
    assert.deepEqual(names(), before);
    for (const [name, content] of Object.entries(files))
      assert.equal(fs.readFileSync(path.join(place, name), 'utf8'), content, name);
  });

  it('removes sockets and candidates of dead processes, however young', async () => {
    const [dead, key] = [newKey(), newKey()];
    await leaveSocket(path.join(directory.path, dead));
    const server = await listen(directory.socketOf(key), socket => socket.destroy());
    const candidate = path.join(directory.path, `candidate-${dead}`);
    fs.mkdirSync(candidate);
    fs.writeFileSync(path.join(candidate, `holder-${dead}`), '{"pid":1}');
    fs.mkdirSync(path.join(directory.path, `candidate-${key}`));
    await directory.notifyAll(newKey());
    assert.deepEqual(fs.readdirSync(directory.path).sort(), [key, `candidate-${key}`].sort());
    server.close();
  });

  it('has a next generation after any that somebody has put there', () => {
    fs.mkdirSync(path.join(directory.path, 'g999999999'));
    assert.deepEqual(directory.newest(), { generation: 999_999_999, key: '' });
    const key = newKey();
    assert.equal(directory.claim(1_000_000_000, key), true);
    directory.succeed(1_000_000_000, false);
    assert.deepEqual(directory.newest(), { generation: 1_000_000_000, key });
    directory.leave(key);
    assert.equal(fs.existsSync(directory.path), false);
  });
});
