'use strict';

const assert = require('node:assert/strict');
const { execFileSync, fork } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, beforeEach, describe, it } = require('node:test');
const { Worker } = require('node:worker_threads');

const { Spool } = require('../../lib/spool/spool.js');
const { sweep } = require('../../lib/spool/sweep.js');
const { spoolName, columnsName, logName } = require('../../lib/spool/file-names.js');
const { leaveSocket } = require('../fixtures/dead-socket.js');

const MINUTE = 60 * 1000;
const PREFIX = 'prom-client-cluster-';
const STARVED_PROGRAM = path.join(__dirname, 'fixtures/spool-starved-pool.js');
const THREAD_PROGRAM = path.join(__dirname, 'fixtures/spool-thread.js');

const onlyPosix = { skip: process.platform === 'win32' ? 'needs POSIX files' : false };
const onlyRoot = { skip: process.geteuid?.() === 0 ? false : 'needs root, to give a directory away' };

const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'spool-test-')));
after(() => fs.rmSync(root, { recursive: true, force: true }));

/** A place of its own for each test, so that no sweep meets another test's directories. */
let place;
beforeEach(() => {
  place = fs.mkdtempSync(path.join(root, 'place-'));
});

const modeOf = file => fs.lstatSync(file).mode & 0o777;
const contentsOf = directory => fs.readdirSync(directory, { recursive: true }).sort();
const open = (t, options) =>
  Spool.open({ directory: place, fallbacks: [], ...options }).then(spool => {
    t.after(() => spool.close());
    return spool;
  });

async function openInThread(t, options) {
  const thread = new Worker(THREAD_PROGRAM, { workerData: { directory: place, fallbacks: [], ...options } });
  t.after(() => thread.terminate());
  const [{ directory }] = await once(thread, 'message');
  return { thread, directory };
}

/** A directory as a primary leaves it, an hour old. */
function leaveBehind({ name = spoolName(), files = [columnsName(1, 1)], lock = true } = {}) {
  const directory = path.join(place, name);
  fs.mkdirSync(directory, { mode: 0o700 });
  for (const file of files) fs.writeFileSync(path.join(directory, file), 'old');
  if (lock) fs.mkdirSync(path.join(directory, 'lock'));
  ageAll(directory);
  return directory;
}

function age(file, minutes = 60) {
  const time = new Date(Date.now() - minutes * MINUTE);
  fs.lutimesSync(file, time, time);
}

function ageAll(directory) {
  for (const file of [...fs.readdirSync(directory), '.']) age(path.join(directory, file));
}

describe('opening a spool', () => {
  it('a new spool has a private directory, whatever the umask is, and a lock; the process is unchanged', async t => {
    const traces = () => ({
      listeners: Object.fromEntries(process.eventNames().map(event => [event, process.listeners(event)])),
      ...{ emit: process.emit, reallyExit: process.reallyExit, closeSync: fs.closeSync },
      modules: Object.keys(require.cache),
    });
    const before = traces();
    const umask = process.umask(0o777);
    t.after(() => process.umask(umask));
    const spool = await open(t);
    assert.deepEqual(traces(), before);
    assert.equal(path.dirname(spool.directory), place);
    assert.ok(path.basename(spool.directory).startsWith(PREFIX));
    if (process.platform !== 'win32') assert.equal(modeOf(spool.directory), 0o700);
    assert.deepEqual(fs.readdirSync(spool.directory), ['lock']);
    assert.equal(spool.isPresent(), true);
  });

  it('a new spool uses the next place if a directory cannot be created in the first', async t => {
    const file = path.join(place, 'file');
    fs.writeFileSync(file, '');
    const last = path.join(place, 'last');
    fs.mkdirSync(last);
    const places = { directory: path.join(file, 'below'), fallbacks: [path.join(place, 'missing'), last] };
    for (const { directory } of [await open(t, places), await openInThread(t, places)])
      assert.equal(path.dirname(directory), last);
  });

  it('opening a spool rejects with every failure if no place is usable', async () => {
    const file = path.join(place, 'file');
    fs.writeFileSync(file, '');
    const missing = path.join(place, 'missing');
    await assert.rejects(Spool.open({ directory: file, fallbacks: [missing, missing] }), ({ message }) => {
      const reasons = [...message.matchAll(/(E[A-Z]+): .*? '([^']+)'/g)];
      const shown = reasons.map(([, code, tried]) => [code, tried.startsWith(`${place}/missing`)]);
      assert.deepEqual(shown, [
        ['ENOTDIR', false],
        ['ENOENT', true],
      ]);
      return true;
    });
  });

  it('a spool continues the directory of a thread that has ended, with its files, or creates another one', async t => {
    const first = await open(t);
    first.writeAtomically('retired.snap', Buffer.from('totals'));
    await first.close({ remove: false });
    fs.mkdirSync(path.join(first.directory, 'lock'), { recursive: true });
    const second = await open(t, { adopt: first.directory });
    assert.equal(second.directory, first.directory);
    assert.equal(second.read('retired.snap').toString(), 'totals');
    await second.close();
    const third = await open(t, { adopt: first.directory });
    assert.notEqual(third.directory, first.directory);
    assert.ok(third.isPresent());
  });
});

describe('holding a spool', { timeout: 2 * MINUTE }, () => {
  it(
    'a thread renews the lock while the main loop hangs and the libuv pool is blocked',
    onlyPosix,
    async t => {
      const fifo = path.join(place, 'fifo');
      execFileSync('mkfifo', [fifo]);
      const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
      const child = fork(STARVED_PROGRAM, [fifo, place], { env });
      t.after(() => child.kill('SIGKILL'));
      const [report] = await once(child, 'message');
      assert.deepEqual(report, { renewed: true });
    },
  );

  it('a directory that has vanished is reported once, from a thread', async t => {
    const { thread, directory } = await openInThread(t, { update: 1000 });
    fs.rmSync(directory, { recursive: true });
    const [{ lost }] = await once(thread, 'message');
    assert.match(lost, /ENOENT/);
    // It ends, so no timer is left.
    thread.postMessage('close');
    await once(thread, 'exit');
  });

  it('on a main thread, the lock is renewed, and a directory that has vanished is reported once', async t => {
    const until = async condition => {
      while (!condition()) await new Promise(setImmediate);
    };
    const onLost = t.mock.fn();
    const spool = await open(t, { onLost, update: 5 });
    const lockOf = ({ directory }) => path.join(directory, 'lock');
    const isRenewed = async each => {
      age(lockOf(each));
      await until(() => Date.now() - fs.statSync(lockOf(each)).mtimeMs < MINUTE);
    };
    await isRenewed(spool);
    // Somebody may remove it.
    fs.rmdirSync(lockOf(spool));
    await until(() => fs.existsSync(lockOf(spool)));
    assert.equal(onLost.mock.callCount(), 0);
    fs.rmSync(spool.directory, { recursive: true });
    await until(() => onLost.mock.callCount() > 0);
    // A timer as long as the first one's has run.
    await isRenewed(await open(t, { update: 5 }));
    assert.equal(onLost.mock.callCount(), 1);
  });

  it('a spool does not take an error of the disk for the end of its directory', async t => {
    const onLost = t.mock.fn();
    const spool = await open(t, { onLost });
    const name = columnsName(1, 1);
    fs.writeFileSync(path.join(spool.directory, name), 'unread');
    const failing = t.mock.method(fs, 'lstatSync', () => {
      throw Object.assign(new Error('EIO: i/o error, lstat'), { code: 'EIO' });
    });
    assert.equal(spool.isPresent(), true);
    for (const use of [
      () => spool.columnsOfWorker(1),
      () => spool.workers(),
      () => spool.readIfPresent(name),
    ])
      assert.throws(use, { code: 'EIO' });
    // In timers and at the end, where nobody would catch an error.
    spool.touch(name);
    spool.unlinkAllOf(1);
    spool.discard(name);
    await spool.close();
    failing.mock.restore();
    assert.deepEqual(spool.columnsOfWorker(1), [name]);
    assert.equal(onLost.mock.callCount(), 0);
  });

  it('a directory that was replaced is lost: nothing is read, written or removed in another one, or through a link', async t => {
    const spool = await open(t);
    const name = columnsName(1, 1);
    fs.writeFileSync(path.join(spool.directory, name), 'numbers');
    const moved = path.join(place, 'moved');
    fs.renameSync(spool.directory, moved);
    const assertLost = async directory => {
      const before = contentsOf(directory);
      assert.equal(spool.isPresent(), false);
      for (const use of [
        () => spool.read(name),
        () => spool.writeAtomically('retired.snap', Buffer.from('x')),
        () => spool.create(name, Buffer.from('x')).next(),
      ])
        assert.throws(use, { code: 'ENOENT' });
      assert.deepEqual(spool.columnsOfWorker(1), []);
      spool.discard(name);
      spool.unlinkAllOf(1);
      await spool.close();
      assert.deepEqual(contentsOf(directory), before);
    };
    fs.mkdirSync(spool.directory);
    fs.writeFileSync(path.join(spool.directory, name), 'of somebody');
    await assertLost(spool.directory);
    fs.rmSync(spool.directory, { recursive: true });
    if (process.platform === 'win32') return;
    fs.symlinkSync(moved, spool.directory);
    Spool.removeSync(spool.directory);
    await assertLost(moved);
    fs.unlinkSync(spool.directory);
  });
});

describe('files of a spool', () => {
  it('a file, or a part of it, is read into memory of its own, unless it is larger than the limit', async t => {
    const spool = await open(t);
    const numbers = new Float64Array([1 / 3, 2 / 3]); // few, as small buffers come from a pool
    const file = path.join(spool.directory, 'numbers');
    fs.writeFileSync(file, numbers);
    const bytes = spool.read('numbers');
    assert.equal(bytes.byteOffset, 0);
    assert.equal(bytes.buffer.byteLength, numbers.byteLength);
    assert.deepEqual(new Float64Array(bytes.buffer), numbers);
    assert.equal(spool.read('numbers', { from: 8, to: 100 }).readDoubleLE(), 2 / 3);
    assert.equal(spool.read('numbers', { from: 50, to: 100 }).length, 0);
    assert.throws(() => spool.read('numbers', { maxBytes: 15 }), { code: 'EFBIG' });
    assert.equal(spool.read('numbers', { maxBytes: 16 }).length, 16);
    // A sparse file.
    fs.truncateSync(file, 2 ** 30 + 1);
    for (const part of [undefined, { maxBytes: Infinity }, { to: 2 ** 31 }])
      assert.throws(() => spool.read('numbers', part), { code: 'EFBIG' });
  });

  it('a file is replaced in one step, or not at all', onlyPosix, async t => {
    const spool = await open(t);
    const file = path.join(spool.directory, 'retired.snap');
    // Of an earlier thread.
    fs.writeFileSync(`${file}.tmp`, 'a longer text that was never finished', { mode: 0o600 });
    spool.writeAtomically('retired.snap', Buffer.from('one!'));
    const reader = fs.openSync(file, 'r');
    t.after(() => fs.closeSync(reader));
    spool.writeAtomically('retired.snap', Buffer.from('two'));
    assert.equal(fs.readFileSync(reader, 'utf8'), 'one!', 'who has it open reads the old content');
    assert.equal(spool.read('retired.snap').toString(), 'two');
    assert.equal(modeOf(file), 0o600);
    fs.unlinkSync(file);
    fs.mkdirSync(path.join(file, 'of somebody'), { recursive: true });
    assert.throws(() => spool.writeAtomically('retired.snap', Buffer.from('x')), /EISDIR|EPERM|ENOTEMPTY/);
    assert.deepEqual(fs.readdirSync(spool.directory).sort(), ['lock', 'retired.snap']);
  });

  it('writing follows no links and waits for no readers', onlyPosix, async t => {
    const spool = await open(t);
    const outside = path.join(place, 'outside');
    fs.writeFileSync(outside, 'unchanged');
    fs.symlinkSync(outside, path.join(spool.directory, 'link.tmp'));
    fs.linkSync(outside, path.join(spool.directory, 'second-name.tmp'));
    execFileSync('mkfifo', [path.join(spool.directory, 'fifo.tmp')]);
    for (const name of ['link', 'second-name', 'fifo']) {
      spool.writeAtomically(name, Buffer.from('x'));
      assert.equal(spool.read(name).toString(), 'x');
    }
    assert.equal(fs.readFileSync(outside, 'utf8'), 'unchanged');
  });

  it('what is not a file under the name of one is not read, and is removed', onlyPosix, async t => {
    const spool = await open(t);
    const outside = path.join(place, 'outside');
    fs.writeFileSync(outside, 'unchanged');
    const kinds = {
      link: file => fs.symlinkSync(outside, file),
      fifo: file => execFileSync('mkfifo', [file]),
      socket: file => leaveSocket(file),
      device: file => execFileSync('mknod', [file, 'c', '1', '3'], { stdio: 'ignore' }),
      directory: file => fs.mkdirSync(file),
    };
    if (process.geteuid() !== 0) delete kinds.device;
    for (const [kind, create] of Object.entries(kinds)) {
      const name = columnsName(1, 1);
      await create(path.join(spool.directory, name));
      assert.throws(() => spool.readIfPresent(name), /EINVAL|ELOOP|ENXIO|ENODEV/, kind);
      spool.discard(name);
      assert.deepEqual(fs.readdirSync(spool.directory), ['lock'], kind);
    }
    assert.equal(fs.readFileSync(outside, 'utf8'), 'unchanged');
  });

  it('a spool touches nothing outside its directory', async t => {
    const spool = await open(t);
    const outside = path.join(place, 'outside');
    fs.writeFileSync(outside, 'unchanged');
    for (const name of ['../outside', outside, '..', '.', '', 'folder/file']) {
      assert.throws(() => spool.read(name), { code: 'EINVAL' });
      assert.throws(() => spool.writeAtomically(name, Buffer.alloc(0)), { code: 'EINVAL' });
      spool.discard(name);
    }
    assert.equal(fs.readFileSync(outside, 'utf8'), 'unchanged');
  });

  it('the last columns of a worker are listed by request, those that nobody has asked for last; all its files are removed', async t => {
    const spool = await open(t);
    const numbered = Array.from({ length: 300 }, (_, i) => columnsName(1, i + 1));
    const exit = columnsName(1, 0);
    const log = logName(1, 'a'.repeat(24));
    const directories = [1, 2].map(request => columnsName(2, request));
    const others = [columnsName(11, 1), `${exit}.tmp`, 'retired.snap'];
    for (const name of [exit, ...numbered, log, ...others])
      fs.writeFileSync(path.join(spool.directory, name), '');
    for (const name of directories) fs.mkdirSync(path.join(spool.directory, name));
    fs.writeFileSync(path.join(spool.directory, directories[0], 'of somebody'), '');
    assert.deepEqual(spool.columnsOfWorker(1), [...numbered.slice(-7), exit]);
    assert.deepEqual(spool.columnsOfWorker(3), []);
    for (const id of [1, 2]) spool.unlinkAllOf(id);
    assert.deepEqual(fs.readdirSync(spool.directory).sort(), [...others, directories[0], 'lock'].sort());
  });
});

describe('removing a spool', () => {
  it('a spool that is closed leaves nothing, unless it is asked to, and can be closed again', async t => {
    const spool = await open(t);
    fs.writeFileSync(path.join(spool.directory, columnsName(1, 1)), '');
    await spool.close({ remove: false });
    assert.equal(spool.isPresent(), true);
    const failing = t.mock.method(fs, 'renameSync', () => {
      throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    });
    await spool.close();
    assert.equal(spool.isPresent(), true, 'it cannot be removed');
    failing.mock.restore();
    await spool.close();
    assert.deepEqual(fs.readdirSync(place), []);
    await spool.close();
  });

  for (const [what, put] of Object.entries({
    'a file of another name': file => fs.writeFileSync(file('notes.txt'), ''),
    'a directory': file => fs.mkdirSync(file('folder')),
    'a directory with files that has the name of a snapshot': file =>
      fs.mkdirSync(path.join(file(columnsName(1, 2)), 'of somebody'), { recursive: true }),
  })) {
    it(`an exit handler removes the files of a spool that contains ${what}, which stays with the directory`, () => {
      const directory = leaveBehind({ files: [] });
      put(name => path.join(directory, name));
      const foreign = contentsOf(directory).filter(name => name !== 'lock');
      for (const name of [columnsName(1, 1), 'retired.snap'])
        fs.writeFileSync(path.join(directory, name), '');
      Spool.removeSync(directory);
      assert.deepEqual(fs.readdirSync(place), [path.basename(directory)]);
      assert.deepEqual(contentsOf(directory), foreign);
    });
  }

  it('an exit handler removes only a directory named like ours, and never throws', onlyPosix, async () => {
    const [foreign, target] = [path.join(place, 'foreign'), path.join(place, 'target')];
    const [link, file] = [spoolName(), spoolName()].map(name => path.join(place, name));
    fs.mkdirSync(foreign);
    fs.mkdirSync(target);
    fs.symlinkSync(target, link);
    fs.writeFileSync(file, '');
    const before = contentsOf(place);
    for (const directory of [foreign, link, file, path.join(place, `${PREFIX}missing`), '', undefined, 7]) {
      Spool.removeSync(directory);
    }
    assert.deepEqual(contentsOf(place), before);
  });
});

describe('sweeping', () => {
  const sweepAll = () => sweep([path.join(place, 'missing'), place], '');

  it('a sweep is repeated every hour, in every place, and the times of files are renewed', async t => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const removed = async left => {
      while (fs.existsSync(left)) await new Promise(setImmediate);
    };
    const first = leaveBehind();
    const directory = fs.mkdtempSync(path.join(root, 'first-'));
    const spool = await open(t, { directory, fallbacks: [path.join(directory, 'missing'), place] });
    await removed(first);
    spool.writeAtomically('retired.snap', Buffer.from('totals'));
    const file = path.join(spool.directory, 'retired.snap');
    age(file);
    const { mtimeMs } = fs.statSync(file);
    const second = leaveBehind({ lock: false });
    t.mock.timers.tick(60 * MINUTE);
    assert.ok(fs.statSync(file).mtimeMs > mtimeMs);
    await removed(second);
    assert.equal(spool.isPresent(), true);
  });

  for (const fresh of ['lock', 'columns', '.']) {
    it(`a sweep leaves a directory alone in which something is new (${fresh})`, async () => {
      const directory = leaveBehind();
      const name = fs.readdirSync(directory).find(each => each.endsWith(fresh)) ?? '.';
      age(path.join(directory, name), 0.9);
      await sweepAll();
      assert.equal(fs.readdirSync(directory).length, 2);
      age(path.join(directory, name), 1.1);
      await sweepAll();
      assert.deepEqual(fs.readdirSync(place), []);
    });
  }

  it("a sweep leaves another user's directory alone", onlyRoot, async () => {
    const directory = leaveBehind();
    fs.chownSync(directory, 65534, 65534);
    await sweepAll();
    assert.equal(fs.readdirSync(directory).length, 2);
  });

  it('a sweep removes nothing in directories of similar names, such as an unpacked archive of this package', async () => {
    leaveBehind({ name: `${PREFIX}15.2.0`, files: ['package.json', columnsName(1, 1)] });
    leaveBehind({ name: `${PREFIX}${'A'.repeat(24)}` });
    const before = contentsOf(place);
    await sweepAll();
    assert.deepEqual(contentsOf(place), before);
  });

  it('a sweep leaves directories of other names, plain files and links alone', onlyPosix, async () => {
    const renamed = path.join(place, 'other-name');
    fs.renameSync(leaveBehind(), renamed);
    fs.symlinkSync(renamed, path.join(place, spoolName()));
    fs.writeFileSync(path.join(place, spoolName()), '');
    ageAll(place);
    const before = contentsOf(place);
    await sweepAll();
    assert.deepEqual(contentsOf(place), before);
  });

  it('a sweep does not follow links out of the directory that it removes', onlyPosix, async () => {
    const outside = path.join(place, 'outside');
    fs.mkdirSync(outside);
    fs.writeFileSync(path.join(outside, 'file'), 'unchanged');
    const directory = leaveBehind();
    fs.symlinkSync(outside, path.join(directory, columnsName(2, 1)));
    fs.symlinkSync(path.join(outside, 'file'), path.join(directory, logName(2, '0'.repeat(24))));
    ageAll(directory);
    await sweepAll();
    assert.deepEqual(contentsOf(place), ['outside', 'outside/file']);
    assert.equal(fs.readFileSync(path.join(outside, 'file'), 'utf8'), 'unchanged');
  });

  it('sweeps of several primaries that start at once do no harm', async t => {
    for (let i = 0; i < 40; i++) leaveBehind();
    const spools = await Promise.all(Array.from({ length: 4 }, () => open(t)));
    await sweepAll();
    while (fs.readdirSync(place).length > spools.length) await new Promise(setImmediate);
    assert.ok(spools.every(spool => spool.isPresent()));
  });

  it('a directory in which a file cannot be removed keeps its name and is swept later', async t => {
    const left = leaveBehind();
    const failing = t.mock.method(fs, 'unlinkSync', () => {
      throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
    });
    await sweepAll();
    assert.ok(failing.mock.callCount() > 0);
    failing.mock.restore();
    assert.deepEqual(fs.readdirSync(place), [path.basename(left)]);
    ageAll(left);
    await sweepAll();
    assert.deepEqual(fs.readdirSync(place), []);
  });
});
