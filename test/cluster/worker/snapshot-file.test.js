'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { DictionaryPart } = require('../../../lib/source/dictionary-part');
const { encodeSnapshot } = require('../../../lib/source/snapshot-encoder');
const { SnapshotFile } = require('../../../lib/cluster/worker/snapshot-file');
const { SeriesJournal } = require('../../../lib/source/series-journal');
const { ClusterStore } = require('../../../lib/store/cluster-store');
const { Counter } = require('../../../lib/metric/counter');
const { viewOf } = require('../../../lib/registry/metric-view');

const WORKER = 1;

function makeDirectory(t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'snapshot-file-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function snapshotOf(...texts) {
  const chunks = texts.map(text => Buffer.from(text));
  return { chunks, bytes: chunks.reduce((sum, { length }) => sum + length, 0) };
}

/** Writes a snapshot under a name of a directory. */
function write(directory, name, snapshot) {
  new SnapshotFile(directory, name).finish(snapshot);
}

/** A dictionary of several blocks, encoded in steps, and a snapshot with it. */
function largeDictionary() {
  const counter = new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers: [] });
  for (let i = 0; i < 20_000; i++) counter.inc({ a: `value ${i}` });
  const view = viewOf(counter);
  const journal = new SeriesJournal();
  journal.note([view]);
  const dictionary = new DictionaryPart(journal.epoch, 0);
  const steps = dictionary.add(journal.after({ epoch: journal.epoch, series: 0 }), journal.length);
  const capture = {
    workerId: WORKER,
    incarnation: '0f'.repeat(16),
    sequence: 1,
    capturedAt: 1,
    defaultLabels: [{}],
    entries: [{ defaults: 0, view }],
    failures: [],
  };
  return {
    dictionary,
    steps,
    encode: (part = dictionary) => encodeSnapshot(capture, journal, part),
    journal,
  };
}

/** Performs some steps of a dictionary and writes its complete chunks ahead. */
function writeAhead(file, { dictionary, steps }, atMost = Infinity) {
  for (let step = 0; step < atMost && !steps.next().done; step++) file.writeAhead(dictionary);
}

test('a snapshot file is complete when finish() returns, and only its owner may read it', t => {
  const directory = makeDirectory(t);
  const umask = process.umask(0);
  try {
    write(directory, 'a', snapshotOf('head', '', 'columns', 'end'));
  } finally {
    process.umask(umask);
  }
  assert.strictEqual(fs.readFileSync(path.join(directory, 'a'), 'utf8'), 'headcolumnsend');
  assert.strictEqual(fs.statSync(path.join(directory, 'a')).mode & 0o777, 0o600);
});

test('a snapshot file may have more chunks than one system call can write', t => {
  const directory = makeDirectory(t);
  const texts = Array.from({ length: 5000 }, (_, i) => `chunk ${i};`);
  write(directory, 'a', snapshotOf(...texts));
  assert.strictEqual(fs.readFileSync(path.join(directory, 'a'), 'utf8'), texts.join(''));
});

test('a snapshot file never replaces an existing file, and does not follow a link', t => {
  const directory = makeDirectory(t);
  const target = path.join(directory, 'elsewhere');
  fs.writeFileSync(target, 'precious');
  fs.symlinkSync(target, path.join(directory, 'link'));
  fs.writeFileSync(path.join(directory, 'taken'), 'precious');
  for (const name of ['taken', 'link']) {
    assert.throws(() => write(directory, name, snapshotOf('x')), { code: 'EEXIST' });
    assert.strictEqual(fs.readFileSync(path.join(directory, name), 'utf8'), 'precious');
  }
  assert.throws(() => write(path.join(directory, 'nowhere'), 'a', snapshotOf('x')), { code: 'ENOENT' });
});

test('a snapshot file is complete even if writev() writes only a part', t => {
  const directory = makeDirectory(t);
  const snapshot = snapshotOf('head', 'the columns', '', 'end');
  const whole = Buffer.concat(snapshot.chunks);
  for (let taken = 0; taken <= whole.length; taken++) {
    t.mock.method(fs, 'writevSync', descriptor => fs.writeSync(descriptor, whole, 0, taken));
    write(directory, `${taken}`, snapshot);
    t.mock.restoreAll();
    assert.ok(fs.readFileSync(path.join(directory, `${taken}`)).equals(whole), `after ${taken}`);
  }
});

for (const [name, writeSync] of [
  [
    'is full',
    () => {
      throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    },
  ],
  ['takes nothing more', () => 0],
]) {
  test(`a snapshot file on a disk that ${name} is removed, and the error says why`, t => {
    const directory = makeDirectory(t);
    t.mock.method(fs, 'writevSync', () => 3);
    t.mock.method(fs, 'writeSync', writeSync);
    const reason = /no space left|takes no more bytes/;
    assert.throws(() => write(directory, 'a', snapshotOf('head', 'columns')), reason);
    assert.deepStrictEqual(fs.readdirSync(directory), []);
    t.mock.restoreAll();
    write(directory, 'a', snapshotOf('again'));
  });
}

test('a snapshot file is closed, also after a write error', t => {
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
  write(directory, 'a', snapshotOf('x'));
  t.mock.method(fs, 'writevSync', () => {
    throw new Error('broken');
  });
  assert.throws(() => write(directory, 'b', snapshotOf('x')), /broken/);
  assert.strictEqual(fs.openSync.mock.callCount(), 2);
  assert.strictEqual(open.size, 0);
});

for (const [name, prepare] of [
  ['finishing', () => {}],
  ['discarding', file => writeAhead(file, largeDictionary())],
]) {
  // NFS reports a full disk when the file is closed.
  test(`a snapshot file that cannot be closed is removed, when ${name} it`, t => {
    const directory = makeDirectory(t);
    const file = new SnapshotFile(directory, 'a');
    prepare(file);
    const { closeSync } = fs;
    t.mock.method(fs, 'closeSync', descriptor => {
      closeSync(descriptor);
      throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    });
    if (name === 'finishing') assert.throws(() => file.finish(snapshotOf('x')), { code: 'ENOSPC' });
    else file.discard();
    assert.strictEqual(fs.closeSync.mock.callCount(), 1);
    assert.deepStrictEqual(fs.readdirSync(directory), []);
  });
}

test('a snapshot file whose dictionary was written ahead equals one that was written at once', t => {
  const directory = makeDirectory(t);
  const large = largeDictionary();
  const file = new SnapshotFile(directory, 'ahead');
  writeAhead(file, large);
  const already = fs.statSync(path.join(directory, 'ahead')).size;
  const written = t.mock.method(fs, 'writevSync');
  const snapshot = large.encode();
  file.finish(snapshot);
  const later = written.mock.calls
    .flatMap(call => call.arguments[1])
    .reduce((sum, { length }) => sum + length, 0);
  write(directory, 'at-once', snapshot);
  const bytes = fs.readFileSync(path.join(directory, 'ahead'));
  assert.ok(bytes.equals(fs.readFileSync(path.join(directory, 'at-once'))));
  assert.strictEqual(bytes.length, snapshot.bytes);
  assert.ok(already + later < snapshot.bytes + 200, `${already} bytes, then ${later} of ${snapshot.bytes}`);
});

test('discarding a snapshot file does not throw if the file system fails', t => {
  const directory = makeDirectory(t);
  const file = new SnapshotFile(directory, 'ahead');
  writeAhead(file, largeDictionary());
  const removed = t.mock.method(fs, 'rmSync', () => {
    throw Object.assign(new Error('EIO: i/o error, unlink'), { code: 'EIO' });
  });
  file.discard(new Error('the first reason'));
  assert.strictEqual(removed.mock.callCount(), 1);
  t.mock.restoreAll();
  assert.throws(() => file.finish(snapshotOf('x')), /the first reason/);
});

test('a snapshot file that was written ahead for another dictionary is rewritten with the right one', t => {
  const directory = makeDirectory(t);
  const large = largeDictionary();
  const file = new SnapshotFile(directory, 'a');
  writeAhead(file, large);
  const small = new DictionaryPart(large.journal.epoch, large.journal.length);
  const snapshot = large.encode(small);
  file.finish(snapshot);
  assert.ok(fs.readFileSync(path.join(directory, 'a')).equals(Buffer.concat(snapshot.chunks)));
});

test('a snapshot file that is incomplete after any step is refused because of its length', t => {
  const directory = makeDirectory(t);
  const large = largeDictionary();
  const file = new SnapshotFile(directory, 'a');
  let sizes = 0;
  for (let size = 0; ;) {
    const { done } = large.steps.next();
    file.writeAhead(large.dictionary);
    const { size: now } = fs.statSync(path.join(directory, 'a'), { throwIfNoEntry: false }) ?? { size: 0 };
    if (now > size) {
      const bytes = Buffer.from(new Uint8Array(fs.readFileSync(path.join(directory, 'a'))).buffer);
      assert.throws(() => new ClusterStore().apply(WORKER, bytes), { code: 'length' });
      sizes++;
    }
    size = now;
    if (done) break;
  }
  assert.ok(sizes > 2, `${sizes} sizes`);
  file.discard();
});

test('a snapshot file that is discarded is removed and cannot be finished', t => {
  const directory = makeDirectory(t);
  const large = largeDictionary();
  const file = new SnapshotFile(directory, 'a');
  writeAhead(file, large, 100);
  assert.deepStrictEqual(fs.readdirSync(directory), ['a']);
  file.discard();
  assert.deepStrictEqual(fs.readdirSync(directory), []);
  writeAhead(file, large);
  assert.throws(() => file.finish(large.encode()), /discarded/);
  assert.deepStrictEqual(fs.readdirSync(directory), []);
  new SnapshotFile(directory, 'never-begun').discard();
});

test('a snapshot file: finish() throws the error of writing ahead', t => {
  const directory = makeDirectory(t);
  const large = largeDictionary();
  const file = new SnapshotFile(directory, 'a');
  writeAhead(file, large, 60);
  t.mock.method(fs, 'writevSync', () => {
    throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
  });
  writeAhead(file, large);
  t.mock.restoreAll();
  assert.deepStrictEqual(fs.readdirSync(directory), []);
  assert.throws(() => file.finish(large.encode()), { code: 'ENOSPC' });
  fs.writeFileSync(path.join(directory, 'taken'), 'precious');
  const other = new SnapshotFile(directory, 'taken');
  const again = largeDictionary();
  writeAhead(other, again);
  assert.throws(() => other.finish(again.encode()), { code: 'EEXIST' });
  assert.strictEqual(fs.readFileSync(path.join(directory, 'taken'), 'utf8'), 'precious');
});
