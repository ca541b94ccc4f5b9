'use strict';

const assert = require('node:assert/strict');
const { execFile, execFileSync, fork } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');
const { after, beforeEach, describe, it } = require('node:test');
const { Worker } = require('node:worker_threads');

const { Spool } = require('../../lib/spool/spool.js');
const { spoolName, columnsName, logName } = require('../../lib/spool/file-names.js');
const { leaveSocket } = require('../fixtures/dead-socket.js');

const MINUTE = 60 * 1000;
const PREFIX = 'prom-client-cluster-';
const OWNER_PROGRAM = path.join(__dirname, 'fixtures/spool-owner.js');
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

const inMinutes = minutes => () => Date.now() + minutes * MINUTE;
const modeOf = file => fs.lstatSync(file).mode & 0o777;
const open = (t, options) =>
  Spool.open({ directory: place, fallbacks: [], ...options }).then(spool => {
    t.after(() => spool.close());
    return spool;
  });

/** Opens a spool two minutes from now, and returns what it swept. */
async function sweepLater(t, options) {
  const spool = await open(t, { now: inMinutes(2), ...options });
  return spool.swept;
}

async function openInThread(t, options) {
  const thread = new Worker(THREAD_PROGRAM, { workerData: { directory: place, fallbacks: [], ...options } });
  t.after(() => thread.terminate());
  const [{ directory, modules }] = await once(thread, 'message');
  const tell = async (command, argument) => {
    thread.postMessage({ command, argument });
    const [{ result }] = await once(thread, 'message');
    return result;
  };
  return { thread, directory, modules, tell };
}

async function startOwner(t, holder, options) {
  const argument = JSON.stringify({ directory: place, fallbacks: [], ...options });
  const child = fork(OWNER_PROGRAM, [holder, argument], { env: { ...process.env, TMPDIR: place } });
  t.after(() => child.kill('SIGKILL'));
  const [report] = await once(child, 'message');
  return { child, ...report };
}

async function killHard(child) {
  child.kill('SIGKILL');
  const [, signal] = await once(child, 'exit');
  assert.equal(signal, 'SIGKILL');
}

/** A directory as a primary leaves it, an hour old. */
function leaveBehind({
  name = spoolName(),
  files = ['w1-r1-000000000000000000000000.columns'],
  lock = true,
} = {}) {
  const directory = path.join(place, name);
  fs.mkdirSync(directory, { mode: 0o700 });
  for (const file of files) fs.writeFileSync(path.join(directory, file), 'old');
  if (lock) fs.mkdirSync(path.join(directory, 'lock'));
  for (const file of fs.readdirSync(directory)) age(path.join(directory, file), 60);
  age(directory, 60);
  return directory;
}

function age(file, minutes) {
  const time = new Date(Date.now() - minutes * MINUTE);
  fs.lutimesSync(file, time, time);
}

describe('opening a spool', () => {
  it('a new spool has a private directory, and a lock in it', onlyPosix, async t => {
    const spool = await open(t);
    assert.equal(path.dirname(spool.directory), place);
    assert.ok(path.basename(spool.directory).startsWith(PREFIX));
    assert.equal(modeOf(spool.directory), 0o700);
    assert.deepEqual(fs.readdirSync(spool.directory), ['lock']);
    assert.equal(spool.isPresent(), true);
  });

  it(
    'a new spool has a directory that this process can use, and remove, whatever the umask is',
    onlyPosix,
    async t => {
      const umask = process.umask(0o777);
      t.after(() => process.umask(umask));
      assert.equal(modeOf((await open(t)).directory), 0o700);
    },
  );

  it('a new spool uses the next place if a directory cannot be created in the first', async t => {
    const file = path.join(place, 'file');
    fs.writeFileSync(file, '');
    const last = path.join(place, 'last');
    fs.mkdirSync(last);
    const places = { directory: path.join(file, 'below'), fallbacks: [path.join(place, 'missing'), last] };
    const inPlace = await open(t, places);
    assert.equal(path.dirname(inPlace.directory), last);
    const inThread = await openInThread(t, places);
    assert.equal(path.dirname(inThread.directory), last);
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
});

describe('the application that holds a spool', () => {
  const traces = () => ({
    listeners: Object.fromEntries(process.eventNames().map(event => [event, process.listeners(event)])),
    emit: process.emit,
    reallyExit: process.reallyExit,
    closeSync: fs.closeSync,
    modules: Object.keys(require.cache),
  });

  it('the process of an application is unchanged while a thread holds a spool', async t => {
    const before = traces();
    const { modules } = await openInThread(t);
    const held = traces();
    const holds = modules.some(file => file.includes('signal-exit'));
    assert.ok(holds, 'the thread has loaded what hooks signals');
    assert.deepEqual(held.listeners.SIGTERM, before.listeners.SIGTERM);
    assert.deepEqual(held.listeners.exit, before.listeners.exit);
    assert.equal(held.emit, before.emit);
    assert.equal(held.reallyExit, before.reallyExit);
    assert.equal(held.closeSync, before.closeSync);
    assert.deepEqual(held.modules, before.modules);
  });

  it('the process of an application is unchanged if it holds the spool itself', async t => {
    const { untouched, modules } = await startOwner(t, 'in-place');
    assert.equal(untouched, true);
    const foreign = modules.filter(file => file.includes('node_modules'));
    assert.deepEqual(foreign, []);
  });

  for (const [holder, options] of [
    ['in-place', {}],
    ['thread', { stay: false }],
  ]) {
    it(`an application ends by itself with a spool open (${holder})`, async () => {
      const argument = JSON.stringify({ directory: place, fallbacks: [], ...options });
      // Rejects if the program had to be stopped.
      await promisify(execFile)(process.execPath, [OWNER_PROGRAM, holder, argument], { timeout: 60_000 });
      assert.equal(fs.readdirSync(place).length, 1);
    });
  }
});

describe('holding a spool', { timeout: 2 * MINUTE }, () => {
  it('the lock is renewed while the main loop hangs', async t => {
    const { directory } = await openInThread(t, { update: 1000 });
    const modified = () => fs.statSync(path.join(directory, 'lock')).mtimeMs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    const taken = modified();
    // Without renewal this file hangs, which the runner reports.
    while (modified() === taken) Atomics.wait(pause, 0, 0, 20);
  });

  it('the lock is renewed while the libuv pool is blocked', onlyPosix, async t => {
    const fifo = path.join(place, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
    const child = fork(STARVED_PROGRAM, [fifo, place], { env });
    t.after(() => child.kill('SIGKILL'));
    const [report] = await once(child, 'message');
    assert.deepEqual(report, { renewed: true });
  });

  it('the lock is renewed on a main thread', async t => {
    const spool = await open(t, { update: 5 });
    const lock = path.join(spool.directory, 'lock');
    const opened = fs.statSync(lock).mtimeMs;
    await until(() => fs.statSync(lock).mtimeMs > opened);
  });

  it('a directory that has vanished is reported once, from a thread', async t => {
    const { thread, directory, tell } = await openInThread(t, { update: 1000 });
    assert.equal(await tell('isPresent'), true);
    fs.rmSync(directory, { recursive: true });
    const [{ lost }] = await once(thread, 'message');
    assert.match(lost, /ENOENT/);
    assert.equal(await tell('isPresent'), false);
    assert.equal(await tell('close'), undefined);
  });

  it('a directory that has vanished is reported once, in place', async t => {
    const reasons = [];
    const onLost = reason => {
      reasons.push(reason);
      throw new Error('the callback may fail');
    };
    const spool = await open(t, { update: 5, onLost });
    fs.rmSync(spool.directory, { recursive: true });
    await until(() => reasons.length > 0);
    const another = await open(t, { update: 5 });
    const lock = path.join(another.directory, 'lock');
    const opened = fs.statSync(lock).mtimeMs;
    await until(() => fs.statSync(lock).mtimeMs > opened); // a timer as long as the first one's has run
    assert.equal(reasons.length, 1);
  });

  it('a spool does not take another directory of the same name for its own', async t => {
    const spool = await open(t);
    const moved = path.join(place, 'moved');
    fs.renameSync(spool.directory, moved);
    assert.equal(spool.isPresent(), false);
    fs.mkdirSync(spool.directory);
    assert.equal(spool.isPresent(), false);
    await spool.close();
    assert.equal(fs.existsSync(spool.directory), true, 'what is not its own is not removed');
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
      () => spool.unlink(name),
    ])
      assert.throws(use, { code: 'EIO' });
    // In timers and at the end, where nobody would catch an error.
    spool.touch(name);
    spool.freshen();
    spool.unlinkAllOf(1);
    spool.discard(name);
    await spool.close();
    failing.mock.restore();
    assert.deepEqual(spool.columnsOfWorker(1), [name]);
    assert.equal(onLost.mock.callCount(), 0);
  });
});

describe('taking over from a thread that has ended', () => {
  it('a thread that replaces another one takes over the directory, its files and the lock', async t => {
    const first = await openInThread(t);
    await first.tell('write', { name: 'retired.snap', text: 'totals' });
    await first.thread.terminate();
    assert.ok(fs.existsSync(path.join(first.directory, 'lock')), 'the thread had no time to unlock');

    const second = await openInThread(t, { adopt: first.directory, update: 1000 });
    assert.equal(second.directory, first.directory);
    assert.equal(await second.tell('read', 'retired.snap'), 'totals');
    fs.rmSync(second.directory, { recursive: true });
    const [{ lost }] = await once(second.thread, 'message');
    assert.match(lost, /ENOENT/);
  });

  it('a thread that replaces another one creates a directory if the old one is gone', async t => {
    const another = await open(t);
    await another.close();
    const anew = await open(t, { adopt: another.directory });
    assert.notEqual(anew.directory, another.directory);
    assert.ok(anew.isPresent());
  });
});

describe('files of a spool', () => {
  it('a file is read into memory that typed arrays can be laid over', async t => {
    const spool = await open(t);
    const numbers = new Float64Array([1 / 3, 2 / 3]); // few, as small buffers come from a pool;
    fs.writeFileSync(path.join(spool.directory, 'numbers'), numbers);
    const bytes = spool.read('numbers');
    assert.equal(bytes.byteOffset, 0);
    assert.equal(bytes.buffer.byteLength, numbers.byteLength);
    assert.deepEqual(new Float64Array(bytes.buffer), numbers);
  });

  it('a file that is larger than the limit is not read', onlyPosix, async t => {
    const spool = await open(t);
    const name = columnsName(1, 1);
    fs.writeFileSync(path.join(spool.directory, name), '');
    fs.truncateSync(path.join(spool.directory, name), 2 ** 30 + 1);
    assert.throws(() => spool.read(name), { code: 'EFBIG' });
    assert.throws(() => spool.read(name, Infinity), { code: 'EFBIG' });
    fs.truncateSync(path.join(spool.directory, name), 5);
    assert.throws(() => spool.read(name, 4), { code: 'EFBIG' });
    assert.equal(spool.read(name, 5).length, 5);
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

  it("empty directories under the names of a worker's files are removed with them, and others stay", async t => {
    const spool = await open(t);
    const [first, second, third, fourth] = [1, 2, 3, 4].map(request => columnsName(1, request));
    fs.writeFileSync(path.join(spool.directory, first), '');
    fs.mkdirSync(path.join(spool.directory, second, 'of somebody'), { recursive: true });
    fs.mkdirSync(path.join(spool.directory, third));
    fs.writeFileSync(path.join(spool.directory, fourth), '');
    spool.unlinkAllOf(1);
    assert.deepEqual(spool.columnsOfWorker(1), [second]);
    assert.deepEqual(fs.readdirSync(path.join(spool.directory, second)), ['of somebody']);
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
    const names = [columnsName, () => logName(1, 'a'.repeat(24)), () => 'retired.snap'];
    for (const [kind, create] of Object.entries(kinds)) {
      for (const nameOf of names) {
        const name = nameOf(1, 1);
        const file = path.join(spool.directory, name);
        await create(file);
        assert.throws(() => spool.readIfPresent(name), /EINVAL|ELOOP|ENXIO|ENODEV/, `${kind} ${name}`);
        assert.throws(() => spool.readRange(name, 0, 8), /EINVAL|ELOOP|ENXIO|ENODEV/, `${kind} ${name}`);
        spool.unlink(name);
      }
    }
    assert.equal(fs.readFileSync(outside, 'utf8'), 'unchanged');
  });

  it('a part of a file is read from where it is, as far as the file goes', async t => {
    const spool = await open(t);
    spool.writeAtomically('file', Buffer.from('0123456789'));
    assert.equal(spool.readRange('file', 2, 5).toString(), '234');
    assert.equal(spool.readRange('file', 8, 20).toString(), '89');
    assert.equal(spool.readRange('file', 15, 20).length, 0);
  });

  it('a spool touches nothing outside its directory', async t => {
    const spool = await open(t);
    const outside = path.join(place, 'outside');
    fs.writeFileSync(outside, 'unchanged');
    for (const name of ['../cluster/outside', outside, '..', '.', '', 'folder/file']) {
      assert.throws(() => spool.read(name), { code: 'EINVAL' });
      assert.throws(() => spool.readIfPresent(name), { code: 'EINVAL' });
      assert.throws(() => spool.unlink(name), { code: 'EINVAL' });
      assert.throws(() => spool.writeAtomically(name, Buffer.alloc(0)), { code: 'EINVAL' });
    }
    assert.equal(fs.readFileSync(outside, 'utf8'), 'unchanged');
  });

  it('the columns of one worker are listed by request, those that nobody has asked for last', async t => {
    const spool = await open(t);
    const [exit, second, tenth, hundredth] = [
      columnsName(1, 0),
      columnsName(1, 2),
      columnsName(1, 10),
      columnsName(1, 100),
    ];
    const others = [
      columnsName(11, 1),
      columnsName(2, 1),
      columnsName(2, 0),
      `${second}.tmp`,
      logName(1, 'a'.repeat(24)),
      'retired.snap',
    ];
    for (const name of [hundredth, exit, second, ...others, tenth]) {
      fs.writeFileSync(path.join(spool.directory, name), '');
    }
    assert.deepEqual(spool.columnsOfWorker(1), [second, tenth, hundredth, exit]);
    assert.deepEqual(spool.columnsOfWorker(3), []);
    fs.rmSync(spool.directory, { recursive: true });
    assert.deepEqual(spool.columnsOfWorker(1), []);
  });

  it('of a worker that has left hundreds of files, the last ones are read, and all are removed', async t => {
    const spool = await open(t);
    const names = Array.from({ length: 300 }, (_, i) => columnsName(1, i + 1));
    for (const name of names) fs.writeFileSync(path.join(spool.directory, name), '');
    const exit = columnsName(1, 0);
    fs.writeFileSync(path.join(spool.directory, exit), '');
    assert.deepEqual(spool.columnsOfWorker(1), [...names.slice(-7), exit]);
    spool.unlinkAllOf(1);
    assert.deepEqual(fs.readdirSync(spool.directory), ['lock']);
  });

  it(
    'a file is replaced in one step, over whatever an earlier thread left incomplete',
    onlyPosix,
    async t => {
      const spool = await open(t);
      const file = path.join(spool.directory, 'retired.snap');
      fs.writeFileSync(`${file}.tmp`, 'a longer text that was never finished', { mode: 0o600 });
      spool.writeAtomically('retired.snap', Buffer.from('one!'));
      const reader = fs.openSync(file, 'r');
      t.after(() => fs.closeSync(reader));
      spool.writeAtomically('retired.snap', Buffer.from('two'));
      assert.equal(
        fs.readFileSync(reader, 'utf8'),
        'one!',
        'who had it open still reads the old content, whole',
      );
      assert.equal(spool.read('retired.snap').toString(), 'two');
      assert.equal(modeOf(file), 0o600);
      assert.deepEqual(fs.readdirSync(spool.directory).sort(), ['lock', 'retired.snap']);
    },
  );

  it('a file that cannot be replaced leaves nothing incomplete', async t => {
    const spool = await open(t);
    const foreign = path.join(spool.directory, 'retired.snap', 'of somebody');
    fs.mkdirSync(foreign, { recursive: true });
    const write = () => spool.writeAtomically('retired.snap', Buffer.from('x'));
    assert.throws(write, /EISDIR|EPERM|ENOTEMPTY/);
    assert.deepEqual(fs.readdirSync(spool.directory).sort(), ['lock', 'retired.snap']);
  });
});

describe('closing a spool', () => {
  it('a spool that is closed in place leaves nothing, and can be closed again', async t => {
    const spool = await open(t);
    fs.writeFileSync(path.join(spool.directory, columnsName(1, 1)), '');
    await spool.close();
    assert.deepEqual(fs.readdirSync(place), []);
    await spool.close();
    assert.equal(spool.isPresent(), false);
  });

  it('a spool that is closed leaves its directory if asked to', async t => {
    const spool = await open(t);
    await spool.close({ remove: false });
    assert.equal(spool.isPresent(), true);
    await spool.close();
    assert.deepEqual(fs.readdirSync(place), []);
  });

  it('closing a spool does not fail if the directory cannot be removed', async t => {
    const spool = await open(t);
    t.mock.method(fs, 'renameSync', () => {
      throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    });
    await spool.close();
    assert.equal(spool.isPresent(), true);
  });
});

describe('a directory that was moved and replaced by a link', onlyPosix, () => {
  /** A spool whose directory is now behind a link. */
  async function openMoved(t) {
    const spool = await open(t);
    fs.writeFileSync(path.join(spool.directory, columnsName(1, 1)), 'numbers');
    const moved = path.join(place, 'moved');
    fs.renameSync(spool.directory, moved);
    fs.symlinkSync(moved, spool.directory);
    return { spool, moved };
  }

  it('a directory that was replaced by a link is lost: nothing is read or written through the link', async t => {
    const { spool, moved } = await openMoved(t);
    const [name] = fs.readdirSync(moved).filter(file => file.startsWith('w1-'));
    const gone = { code: 'ENOENT' };
    assert.equal(spool.isPresent(), false);
    assert.throws(() => spool.read(name), gone);
    assert.throws(() => spool.readRange(name, 0, 8), gone);
    assert.throws(() => spool.writeAtomically('retired.snap', Buffer.from('x')), gone);
    spool.unlink(name);
    spool.unlinkAllOf(1);
    assert.deepEqual(spool.columnsOfWorker(1), []);
    assert.deepEqual(fs.readdirSync(moved).sort(), ['lock', name]);
    fs.unlinkSync(spool.directory);
  });

  for (const [how, remove] of Object.entries({
    'on close': spool => spool.close(),
    'from an exit handler': spool => Spool.removeSync(spool.directory),
  })) {
    it(`a directory that was replaced by a link is left alone ${how} if the link leads to somebody else's`, async t => {
      const { spool, moved } = await openMoved(t);
      const other = path.join(place, 'other');
      fs.mkdirSync(other);
      for (const file of [`w1-r1-${'0'.repeat(24)}.columns`, 'retired.snap'])
        fs.writeFileSync(path.join(other, file), '');
      fs.unlinkSync(spool.directory);
      fs.symlinkSync(other, spool.directory);
      await remove(spool);
      assert.deepEqual(fs.readdirSync(other).sort(), ['retired.snap', `w1-r1-${'0'.repeat(24)}.columns`]);
      assert.equal(fs.readdirSync(moved).length, 2);
      fs.unlinkSync(spool.directory);
    });
  }
});

describe('removing from an exit handler', () => {
  it(
    'an exit handler removes a directory whose paths are nearly as long as the system allows',
    onlyPosix,
    async t => {
      let deep = place;
      const end = 4095 - PREFIX.length - 24 - columnsName(1, 1).length - 3;
      while (deep.length < end) {
        const left = end - deep.length - 1;
        deep = path.join(deep, 'x'.repeat(left > 210 ? 200 : left));
        fs.mkdirSync(deep);
      }
      const spool = await open(t, { directory: deep });
      fs.writeFileSync(path.join(spool.directory, columnsName(1, 1)), 'numbers');
      await spool.close();
      assert.deepEqual(fs.readdirSync(deep), []);
    },
  );

  for (const [what, put] of Object.entries({
    'a file of another name': file => fs.writeFileSync(file('notes.txt'), ''),
    'a directory': file => fs.mkdirSync(file('folder')),
    'a directory with files that has the name of a snapshot': file =>
      fs.mkdirSync(path.join(file(columnsName(1, 2)), 'of somebody'), { recursive: true }),
  })) {
    it(`an exit handler removes the files of a spool that contains ${what}, which stays with the directory`, async t => {
      const { directory } = await openInThread(t);
      const pathOf = name => path.join(directory, name);
      put(pathOf);
      const foreign = fs.readdirSync(directory).filter(name => name !== 'lock');
      fs.writeFileSync(pathOf(columnsName(1, 1)), '');
      Spool.removeSync(directory);
      assert.deepEqual(fs.readdirSync(place), [path.basename(directory)]);
      assert.deepEqual(fs.readdirSync(directory), foreign);
    });
  }

  it('an exit handler removes only a directory named like ours, and never throws', onlyPosix, async () => {
    const [foreign, target] = [path.join(place, 'foreign'), path.join(place, 'target')];
    const [link, file] = [spoolName(), spoolName()].map(name => path.join(place, name));
    fs.mkdirSync(foreign);
    fs.mkdirSync(target);
    fs.symlinkSync(target, link);
    fs.writeFileSync(file, '');
    const before = fs.readdirSync(place).sort();
    for (const directory of [foreign, link, file, path.join(place, `${PREFIX}missing`), '', undefined, 7]) {
      Spool.removeSync(directory);
    }
    assert.deepEqual(fs.readdirSync(place).sort(), before);
  });
});

describe('sweeping', () => {
  for (const holder of ['thread', 'in-place']) {
    it(`a sweep removes what a killed primary left, a minute later (${holder})`, async t => {
      const { child, directory } = await startOwner(t, holder);
      fs.writeFileSync(path.join(directory, columnsName(1, 1)), 'unread');
      await killHard(child);
      const spool = await open(t);
      assert.deepEqual(await spool.swept, [], 'its owner may live');
      await spool.close();
      assert.deepEqual(await sweepLater(t), [directory]);
      assert.equal(fs.existsSync(directory), false);
    });
  }

  it('a sweep is repeated every hour', async t => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    await open(t);
    const left = leaveBehind();
    t.mock.timers.tick(60 * MINUTE);
    await until(() => !fs.existsSync(left));
  });

  it('a sweep covers every place, not only the one in use', async t => {
    const left = leaveBehind();
    const first = fs.mkdtempSync(path.join(root, 'first-'));
    const file = path.join(first, 'file');
    fs.writeFileSync(file, '');
    const spool = await open(t, { directory: first, fallbacks: [file, path.join(first, 'missing'), place] });
    assert.equal(path.dirname(spool.directory), first);
    assert.deepEqual(await spool.swept, [left]);
  });

  it('a sweep removes a directory whose lock is gone', async t => {
    const left = leaveBehind({ lock: false });
    const spool = await open(t);
    assert.deepEqual(await spool.swept, [left]);
    assert.deepEqual(fs.readdirSync(place), [path.basename(spool.directory)]);
  });

  it('a sweep removes nothing in directories of similar names, such as an unpacked archive of this package', async t => {
    leaveBehind({
      name: `${PREFIX}15.2.0`,
      files: ['package.json', 'w1-r1-000000000000000000000000.columns'],
    });
    leaveBehind({ name: `${PREFIX}${'A'.repeat(24)}` });
    const contents = () => fs.readdirSync(place, { recursive: true }).sort();
    const before = contents();
    const spool = await open(t);
    assert.deepEqual(await spool.swept, []);
    await spool.close();
    assert.deepEqual(contents(), before);
  });

  it("a sweep removes only a spool's files from a directory that contains others, and leaves the directory", async t => {
    const mixed = leaveBehind({ files: ['notes.txt', `w1-r1-${'0'.repeat(24)}.columns`, 'retired.snap'] });
    const folder = path.join(mixed, 'folder');
    fs.mkdirSync(folder);
    fs.writeFileSync(path.join(folder, `w1-r1-${'0'.repeat(24)}.columns`), 'of somebody else');
    age(folder, 60);
    age(mixed, 60);
    assert.deepEqual(await (await open(t)).swept, []);
    assert.deepEqual(fs.readdirSync(mixed).sort(), ['folder', 'notes.txt']);
    assert.deepEqual(fs.readdirSync(folder), [`w1-r1-${'0'.repeat(24)}.columns`]);
  });

  for (const fresh of ['lock', 'w1-r1-000000000000000000000000.columns', '.']) {
    it(`a sweep leaves a directory alone in which something is new (${fresh})`, async t => {
      const directory = leaveBehind();
      age(path.join(directory, fresh), 0.9);
      const spool = await open(t);
      assert.deepEqual(await spool.swept, []);
      age(path.join(directory, fresh), 1.1);
      assert.deepEqual(await (await open(t)).swept, [directory]);
    });
  }

  it("a sweep leaves another user's directory alone", onlyRoot, async t => {
    const directory = leaveBehind();
    fs.chownSync(directory, 65534, 65534);
    assert.deepEqual(await (await open(t)).swept, []);
    fs.chownSync(directory, process.geteuid(), process.getegid());
    assert.deepEqual(await (await open(t)).swept, [directory]);
  });

  it('a sweep leaves directories of other names, plain files and links alone', onlyPosix, async t => {
    const target = leaveBehind();
    const renamed = path.join(place, 'other-name');
    fs.renameSync(target, renamed);
    fs.symlinkSync(renamed, path.join(place, spoolName()));
    fs.writeFileSync(path.join(place, spoolName()), '');
    for (const name of fs.readdirSync(place)) age(path.join(place, name), 60);
    const before = fs.readdirSync(place);
    const spool = await open(t);
    assert.deepEqual(await spool.swept, []);
    await spool.close();
    assert.deepEqual(fs.readdirSync(place), before);
    assert.equal(fs.readdirSync(renamed).length, 2);
  });

  it('a sweep does not follow links out of the directory that it removes', onlyPosix, async t => {
    const outside = path.join(place, 'outside');
    fs.mkdirSync(outside);
    fs.writeFileSync(path.join(outside, 'file'), 'unchanged');
    const directory = leaveBehind();
    const [folder, file] = [`w2-r1-${'0'.repeat(24)}.columns`, `w2-${'0'.repeat(24)}.log`];
    fs.symlinkSync(outside, path.join(directory, folder));
    fs.symlinkSync(path.join(outside, 'file'), path.join(directory, file));
    for (const name of [folder, file, '.']) age(path.join(directory, name), 60);
    assert.deepEqual(await (await open(t)).swept, [directory]);
    assert.equal(fs.readFileSync(path.join(outside, 'file'), 'utf8'), 'unchanged');
  });

  it('sweeps of several primaries that start at once do no harm', async t => {
    const left = Array.from({ length: 40 }, () => leaveBehind());
    const spools = await Promise.all(Array.from({ length: 4 }, () => open(t)));
    const swept = (await Promise.all(spools.map(spool => spool.swept))).flat();
    assert.deepEqual(swept.sort(), left.sort(), 'each removed by exactly one of them');
    assert.ok(spools.every(spool => spool.isPresent()));
    assert.equal(fs.readdirSync(place).length, spools.length);
  });

  it('a directory in which a file cannot be removed keeps its name and is swept later', async t => {
    const left = leaveBehind();
    const failing = t.mock.method(fs, 'unlinkSync', () => {
      throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
    });
    const spool = await open(t);
    assert.deepEqual(await spool.swept, []);
    assert.ok(failing.mock.callCount() > 0);
    failing.mock.restore();
    await spool.close();
    assert.deepEqual(await sweepLater(t), [left]);
  });
});

/**
 * Resolves as soon as a condition holds that nothing announces; the test runner's own limit ends the wait.
 */
async function until(condition) {
  while (!condition()) await new Promise(setImmediate);
}
