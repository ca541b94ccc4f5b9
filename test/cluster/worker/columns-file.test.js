'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { BlocksAhead } = require('../../../lib/source/blocks-ahead');
const { encodeColumns } = require('../../../lib/source/columns-encoder');
const { HEADER_BYTES } = require('../../../lib/source/source-format');
const { SourceLog } = require('../../../lib/source/source-log');
const { runThrough } = require('../../../lib/event-loop/slices');
const { ColumnsFile } = require('../../../lib/cluster/worker/columns-file');
const { ClusterStore } = require('../../../lib/store/cluster-store');
const { Counter } = require('../../../lib/metric/counter');
const { viewOf } = require('../../../lib/registry/metric-view');

const WORKER = 1;

function makeDirectory(t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'columns-file-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function snapshotOf(...texts) {
  const chunks = texts.map(text => Buffer.from(text));
  return { chunks, bytes: chunks.reduce((sum, { length }) => sum + length, 0) };
}

const fileIn = (directory, name) => new ColumnsFile(directory, name, () => {});

/** Writes columns under a name of a directory. */
function write(directory, name, snapshot) {
  fileIn(directory, name).finish(() => snapshot);
}

/** Blocks that are written ahead in several steps, and columns with them. */
function largeBlocks() {
  const counter = new Counter({ name: 'c', help: 'c', registers: [] });
  const view = viewOf(counter);
  const log = new SourceLog();
  runThrough(log.extend([view]));
  const blocks = new BlocksAhead();
  const steps = blocks.add([{ count: 1, chunks: [new Float64Array(100_000).fill(1.5)] }]);
  const capture = {
    workerId: WORKER,
    incarnation: '0f'.repeat(16),
    sequence: 1,
    capturedAt: 1,
    defaultLabels: [{}],
    entries: [{ defaults: 0, view }],
    failures: [],
  };
  return { blocks, steps, encode: () => encodeColumns(capture, log, blocks) };
}

/** Performs some steps and writes what is complete ahead. */
function writeAhead(file, { blocks, steps }, atMost = Infinity) {
  for (let step = 0; step < atMost && !steps.next().done; step++) file.writeAhead(blocks);
}

test('a file of columns is complete when finish() returns, even if one system call cannot write it, and only its owner may read it', t => {
  const directory = makeDirectory(t);
  const header = ' '.repeat(HEADER_BYTES);
  const texts = [header, ...Array.from({ length: 5000 }, (_, i) => (i === 1 ? '' : `chunk ${i};`))];
  const umask = process.umask(0);
  try {
    write(directory, 'a', snapshotOf(...texts));
  } finally {
    process.umask(umask);
  }
  assert.strictEqual(fs.readFileSync(path.join(directory, 'a'), 'utf8'), texts.join(''));
  assert.strictEqual(fs.statSync(path.join(directory, 'a')).mode & 0o777, 0o600);
});

test('a file of columns never replaces an existing file, and does not follow a link', t => {
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

for (const [what, writevSync, error] of [
  ['is full', () => 3, { code: 'ENOSPC' }],
  ['has an error', () => assert.fail('broken'), /broken/],
]) {
  test(`a file of columns on a disk that ${what} is closed and removed, and the error says why`, t => {
    const directory = makeDirectory(t);
    const { openSync, closeSync } = fs;
    const opened = t.mock.method(fs, 'openSync', (...parameters) => openSync(...parameters));
    const closed = t.mock.method(fs, 'closeSync', descriptor => closeSync(descriptor));
    const failing = t.mock.method(fs, 'writevSync', writevSync);
    assert.throws(() => write(directory, 'a', snapshotOf('head', 'columns')), error);
    assert.deepStrictEqual(fs.readdirSync(directory), []);
    failing.mock.restore();
    write(directory, 'a', snapshotOf('again'));
    assert.deepStrictEqual(
      closed.mock.calls.map(call => call.arguments[0]),
      opened.mock.calls.map(call => call.result),
    );
  });
}

for (const [name, prepare] of [
  ['finishing', () => {}],
  ['discarding', file => writeAhead(file, largeBlocks())],
]) {
  // NFS reports a full disk when the file is closed.
  test(`a file of columns that cannot be closed is removed, when ${name} it`, t => {
    const directory = makeDirectory(t);
    const file = fileIn(directory, 'a');
    prepare(file);
    const { closeSync } = fs;
    t.mock.method(fs, 'closeSync', descriptor => {
      closeSync(descriptor);
      throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    });
    if (name === 'finishing') assert.throws(() => file.finish(() => snapshotOf('x')), { code: 'ENOSPC' });
    else file.discard();
    assert.strictEqual(fs.closeSync.mock.callCount(), 1);
    assert.deepStrictEqual(fs.readdirSync(directory), []);
  });
}

test('a file of columns of which blocks were written ahead equals one that was written at once', t => {
  const directory = makeDirectory(t);
  const large = largeBlocks();
  const file = fileIn(directory, 'ahead');
  writeAhead(file, large);
  const already = fs.statSync(path.join(directory, 'ahead')).size;
  const written = t.mock.method(fs, 'writevSync');
  const snapshot = large.encode();
  file.finish(() => snapshot);
  const later = written.mock.calls
    .flatMap(call => call.arguments[1])
    .reduce((sum, { length }) => sum + length, 0);
  write(directory, 'at-once', snapshot);
  const bytes = fs.readFileSync(path.join(directory, 'ahead'));
  assert.ok(bytes.equals(fs.readFileSync(path.join(directory, 'at-once'))));
  assert.strictEqual(bytes.length, snapshot.bytes);
  assert.ok(already + later < snapshot.bytes + 200, `${already} bytes, then ${later} of ${snapshot.bytes}`);
});

test('a file of columns that is incomplete after any step is refused, because it has no header', t => {
  const directory = makeDirectory(t);
  const large = largeBlocks();
  const file = fileIn(directory, 'a');
  let sizes = 0;
  for (let size = 0; ;) {
    const { done } = large.steps.next();
    file.writeAhead(large.blocks);
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

test('a file of columns that is discarded is removed and cannot be finished, even if the file system fails', t => {
  const directory = makeDirectory(t);
  const large = largeBlocks();
  const file = fileIn(directory, 'a');
  writeAhead(file, large, 3);
  file.discard();
  assert.deepStrictEqual(fs.readdirSync(directory), []);
  writeAhead(file, large);
  assert.throws(() => file.finish(large.encode), /discarded/);
  fileIn(directory, 'never-begun').discard();
  const other = fileIn(directory, 'b');
  writeAhead(other, largeBlocks(), 3);
  const failing = t.mock.method(fs, 'rmSync', () => {
    throw Object.assign(new Error('EIO: i/o error, unlink'), { code: 'EIO' });
  });
  other.discard(new Error('the first reason'));
  failing.mock.restore();
  assert.throws(() => other.finish(() => snapshotOf('x')), /the first reason/);
});

test('a file of columns: finish() throws the error of writing ahead', t => {
  const directory = makeDirectory(t);
  const large = largeBlocks();
  const file = fileIn(directory, 'a');
  writeAhead(file, large, 3);
  const failing = t.mock.method(fs, 'writevSync', () => {
    throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
  });
  writeAhead(file, large);
  failing.mock.restore();
  assert.deepStrictEqual(fs.readdirSync(directory), []);
  assert.throws(() => file.finish(large.encode), { code: 'ENOSPC' });
});
