'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { SnapshotFile } = require('../../../lib/cluster/worker/snapshot-file');

function makeDirectory(t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'snapshot-file-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function snapshotOf(...texts) {
  const chunks = texts.map(text => Buffer.from(text));
  return { chunks, bytes: chunks.reduce((sum, { length }) => sum + length, 0) };
}

/** A file writer in a directory of its own, whose clock says how long each write has taken. */
function writerWithClock(t) {
  const directory = makeDirectory(t);
  let time = 0;
  let reads = 0;
  let duration = 0;
  let count = 0;
  const file = new SnapshotFile(() => (reads++ % 2 === 0 ? time : (time += duration)));
  return {
    directory,
    /** Writes a snapshot that takes some milliseconds; tells whether it was written asynchronously. */
    async write(milliseconds, snapshot = snapshotOf('head', 'columns', 'end')) {
      duration = milliseconds;
      const name = `${count++}`;
      const writing = file.write(directory, name, snapshot);
      await writing;
      assert.ok(fs.readFileSync(path.join(directory, name)).equals(Buffer.concat(snapshot.chunks)));
      return writing !== undefined;
    },
  };
}

const FAST = 1;
const SLOW = 6;
const STALLED = 1000;

test('a snapshot is there when write() returns, whole and for its owner alone', t => {
  const directory = makeDirectory(t);
  const umask = process.umask(0);
  try {
    assert.strictEqual(
      new SnapshotFile().write(directory, 'a', snapshotOf('head', '', 'columns', 'end')),
      undefined,
    );
  } finally {
    process.umask(umask);
  }
  assert.strictEqual(fs.readFileSync(path.join(directory, 'a'), 'utf8'), 'headcolumnsend');
  assert.strictEqual(fs.statSync(path.join(directory, 'a')).mode & 0o777, 0o600);
});

test('thousands of chunks are written, more than a system call takes at once', t => {
  const directory = makeDirectory(t);
  const texts = Array.from({ length: 5000 }, (_, i) => `chunk ${i};`);
  new SnapshotFile().write(directory, 'a', snapshotOf(...texts));
  assert.strictEqual(fs.readFileSync(path.join(directory, 'a'), 'utf8'), texts.join(''));
});

test('a name that is taken is refused, and what has it stays as it is', async t => {
  const { directory, write } = writerWithClock(t);
  const target = path.join(directory, 'elsewhere');
  fs.writeFileSync(target, 'precious');
  fs.symlinkSync(target, path.join(directory, 'link'));
  fs.writeFileSync(path.join(directory, 'taken'), 'precious');
  const file = new SnapshotFile();
  for (const name of ['taken', 'link']) {
    assert.throws(() => file.write(directory, name, snapshotOf('x')), { code: 'EEXIST' });
    assert.strictEqual(fs.readFileSync(path.join(directory, name), 'utf8'), 'precious');
  }
  assert.throws(() => file.write(path.join(directory, 'nowhere'), 'a', snapshotOf('x')), { code: 'ENOENT' });
  assert.strictEqual(await write(FAST), false);
});

test('what the kernel does not take at once is offered again, wherever it stopped', t => {
  const directory = makeDirectory(t);
  const snapshot = snapshotOf('head', 'the columns', '', 'end');
  const whole = Buffer.concat(snapshot.chunks);
  for (let taken = 0; taken <= whole.length; taken++) {
    t.mock.method(fs, 'writevSync', descriptor => fs.writeSync(descriptor, whole, 0, taken));
    SnapshotFile.writeSync(path.join(directory, `${taken}`), snapshot);
    t.mock.restoreAll();
    assert.ok(fs.readFileSync(path.join(directory, `${taken}`)).equals(whole), `after ${taken}`);
  }
});

for (const [name, write] of [
  [
    'is full',
    () => {
      throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    },
  ],
  ['takes nothing more', () => 0],
]) {
  test(`where the disk ${name}, nothing is left behind and the reason is told`, t => {
    const directory = makeDirectory(t);
    t.mock.method(fs, 'writevSync', () => 3);
    t.mock.method(fs, 'writeSync', write);
    const reason = /no space left|takes no more bytes/;
    assert.throws(() => new SnapshotFile().write(directory, 'a', snapshotOf('head', 'columns')), reason);
    assert.deepStrictEqual(fs.readdirSync(directory), []);
    t.mock.restoreAll();
    new SnapshotFile().write(directory, 'a', snapshotOf('again'));
  });
}

test('no descriptor stays open, whether a write succeeds or fails', t => {
  const directory = makeDirectory(t);
  const open = new Set();
  const { openSync, closeSync } = fs;
  t.mock.method(fs, 'openSync', (...parameters) => {
    const descriptor = openSync(...parameters);
    open.add(descriptor);
    return descriptor;
  });
  t.mock.method(fs, 'closeSync', descriptor => {
    open.delete(descriptor);
    closeSync(descriptor);
  });
  new SnapshotFile().write(directory, 'a', snapshotOf('x'));
  t.mock.method(fs, 'writevSync', () => {
    throw new Error('broken');
  });
  assert.throws(() => new SnapshotFile().write(directory, 'b', snapshotOf('x')), /broken/);
  assert.strictEqual(fs.openSync.mock.callCount(), 2);
  assert.strictEqual(open.size, 0);
});

test('slow writes that are not in a row change nothing', async t => {
  const { write } = writerWithClock(t);
  for (let i = 0; i < 20; i++) {
    for (const milliseconds of [SLOW, SLOW, FAST]) assert.strictEqual(await write(milliseconds), false);
  }
});

test('after three slow writes in a row writing goes on asynchronously', async t => {
  const { write } = writerWithClock(t);
  assert.deepStrictEqual(
    [await write(STALLED), await write(SLOW), await write(SLOW), await write(SLOW), await write(FAST)],
    [false, false, false, true, true],
  );
});

test('a write is slow for its size: two megabytes may take 15 ms', async t => {
  const large = { chunks: [Buffer.alloc(2_000_000, 'x')], bytes: 2_000_000 };
  const patient = writerWithClock(t);
  for (let i = 0; i < 6; i++) assert.strictEqual(await patient.write(15, large), false);
  const impatient = writerWithClock(t);
  for (let i = 0; i < 6; i++) assert.strictEqual(await impatient.write(16, large), i >= 3);
});

test('what is written asynchronously is the state of the call, not of a later moment', async t => {
  const directory = makeDirectory(t);
  let time = 0;
  const file = new SnapshotFile(() => (time += STALLED));
  for (let i = 0; i < 3; i++) file.write(directory, `${i}`, snapshotOf('x'));
  const snapshot = snapshotOf('before', 'before');
  const writing = file.write(directory, 'a', snapshot);
  for (const chunk of snapshot.chunks) chunk.fill('!');
  await writing;
  assert.strictEqual(fs.readFileSync(path.join(directory, 'a'), 'utf8'), 'beforebefore');
  assert.strictEqual(fs.statSync(path.join(directory, 'a')).mode & 0o077, 0);
});

test('a failure of an asynchronous write is told, and leaves nothing of its own behind', async t => {
  const directory = makeDirectory(t);
  let time = 0;
  const file = new SnapshotFile(() => (time += STALLED));
  for (let i = 0; i < 3; i++) file.write(directory, `${i}`, snapshotOf('x'));
  await assert.rejects(async () => file.write(directory, '0', snapshotOf('y')), { code: 'EEXIST' });
  assert.strictEqual(fs.readFileSync(path.join(directory, '0'), 'utf8'), 'x');
  t.mock.method(fs, 'write', (...parameters) => {
    process.nextTick(parameters.at(-1), Object.assign(new Error('no space left'), { code: 'ENOSPC' }));
  });
  await assert.rejects(async () => file.write(directory, 'a', snapshotOf('y')), { code: 'ENOSPC' });
  assert.strictEqual(fs.existsSync(path.join(directory, 'a')), false);
  t.mock.restoreAll();
  await file.write(directory, 'a', snapshotOf('y'));
  assert.strictEqual(fs.readFileSync(path.join(directory, 'a'), 'utf8'), 'y');
});

test('an asynchronous write that is taken in parts is written whole', async t => {
  const directory = makeDirectory(t);
  let time = 0;
  const file = new SnapshotFile(() => (time += STALLED));
  for (let i = 0; i < 3; i++) file.write(directory, `${i}`, snapshotOf('x'));
  const { write } = fs;
  const mocked = t.mock.method(fs, 'write', (descriptor, buffer, offset, length, position, done) =>
    write(descriptor, buffer, offset, Math.min(length, 5), position, done),
  );
  await file.write(directory, 'a', snapshotOf('the head, ', 'the columns, ', 'the end'));
  assert.ok(mocked.mock.callCount() >= 6);
  assert.strictEqual(fs.readFileSync(path.join(directory, 'a'), 'utf8'), 'the head, the columns, the end');
});

test('where the pool is slower than the disk was, writing is synchronous again, for a long time', async t => {
  const { write } = writerWithClock(t);
  for (const milliseconds of [SLOW, SLOW + 3, SLOW]) await write(milliseconds);
  assert.strictEqual(await write(SLOW), true);
  assert.strictEqual(await write(STALLED), true);
  let synchronous = 0;
  while (!(await write(SLOW))) synchronous++;
  assert.ok(synchronous >= 100 && synchronous <= 110, `${synchronous} writes`);
});
