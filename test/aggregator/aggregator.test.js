'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { Counter } = require('../..');
const { Aggregator } = require('../../lib/aggregator/aggregator');
const { runThrough } = require('../../lib/event-loop/slices');
const { columnsName } = require('../../lib/spool/file-names');
const { Spool } = require('../../lib/spool/spool');
const { BYTES_OFFSET } = require('../../lib/source/source-format');
const { makePlace } = require('../fixtures/cluster-harness');
const { makeWorker, bytesOf } = require('../fixtures/unit-scrape');

// See docs/internals/snapshot-format.md.
const INCARNATION_OFFSET = 16;
const SEQUENCE_OFFSET = 56;

const WORKER = 1;
const PLAIN_TEXT = { format: 'text', gzip: false, selfMetrics: false };

let aggregator;
let directory;
let worker;
let counter;
let counted;
let requests = 0;
const textless = { toString: null };
beforeEach(async t => {
  aggregator = await openAggregator(t);
  worker = makeWorker();
  counter = new Counter({ name: 'done_total', help: 'h', registers: [worker.registry] });
  counted = 0;
});
afterEach(() => aggregator.close());

async function openAggregator(t, Class = Aggregator, options = {}) {
  const opened = new Class({
    directory: makePlace(t),
    lock: false,
    fallbacks: [],
    onDirectory: created => (directory = created),
    onRetired() {},
    ...options,
  });
  await opened.open();
  return opened;
}

/** The worker counts one, and answers with a file, which also has its log. */
function answer(change = () => {}) {
  counter.inc();
  counted++;
  const bytes = bytesOf(worker.source.captureWithLog(WORKER, undefined));
  change(bytes);
  const file = columnsName(WORKER, ++requests);
  fs.writeFileSync(path.join(directory, file), bytes);
  aggregator.answer({ workerId: WORKER, file });
  return path.join(directory, file);
}

/** What a scrape shows, and whom it asks again. */
function page(final = true) {
  const result = runThrough(aggregator.render({ formats: [PLAIN_TEXT], custom: [], final }));
  const text = result.bodies?.map(({ buffer, length }) => Buffer.from(buffer, 0, length).toString()).join('');
  return { again: result.again, total: Number(/^done_total (.*)$/m.exec(text)?.[1]) };
}

describe('a bit of a snapshot that has changed on the way', () => {
  const changes = {
    'in the incarnation': bytes => (bytes[INCARNATION_OFFSET] ^= 1),
    'in the sequence, and in its copy at the end': bytes => {
      bytes.writeDoubleLE(1e200, SEQUENCE_OFFSET);
      bytes.writeDoubleLE(1e200, bytes.readDoubleLE(BYTES_OFFSET) - 16);
    },
  };
  for (const [where, change] of Object.entries(changes)) {
    it(`${where} costs one scrape, not all later ones`, () => {
      answer(change);
      assert.deepEqual(page(), { again: [], total: 1 });
      answer();
      assert.equal(page().total, 1);
      for (let scrape = 0; scrape < 3; scrape++) {
        answer();
        assert.deepEqual(page(false), { again: [], total: counted });
      }
    });
  }
});

it('the columns of an answer stay for the next thread until those of the next answer are there', async t => {
  for (let scrape = 1; scrape <= 3; scrape++) {
    const file = answer();
    page();
    const isColumns = name => name.endsWith('.columns');
    assert.deepEqual(fs.readdirSync(directory).filter(isColumns), [path.basename(file)]);
  }
  await aggregator.close({ remove: false });
  aggregator = await openAggregator(t, Aggregator, { adopt: directory });
  assert.deepEqual(page(), { again: [], total: 3 });
  answer();
  assert.deepEqual(page(), { again: [], total: 4 });
  assert.equal(fs.readdirSync(directory).filter(name => name.startsWith('w')).length, 1);
});

it('after the directory is removed, workers that answered in messages are asked again: the next thread finds what a page shows', async t => {
  answer();
  page();
  fs.rmSync(directory, { recursive: true });
  counter.inc();
  counted++;
  const source = bytesOf(worker.source.captureWithLog(WORKER, undefined)).toString('base64');
  aggregator.answer({ workerId: WORKER, source });
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(page(false), { again: [WORKER], total: NaN });
  answer();
  assert.deepEqual(page(false), { again: [], total: 3 });
  await aggregator.close({ remove: false });
  aggregator = await openAggregator(t, Aggregator, { adopt: directory });
  assert.equal(page().total, 3);
});

it('a worker whose log is missing is asked again, with the name of that log', () => {
  counter.inc();
  const { chunks, bytes } = worker.source.capture(WORKER);
  const file = columnsName(WORKER, ++requests);
  fs.writeFileSync(path.join(directory, file), bytesOf({ chunks, bytes }));
  aggregator.answer({ workerId: WORKER, file });
  const result = runThrough(aggregator.render({ formats: [PLAIN_TEXT], custom: [], final: false }));
  assert.deepEqual(result.again, [WORKER]);
  assert.deepEqual(result.failures, [[WORKER, { badLog: worker.source.log.name }]]);
  counted = 1;
  answer();
  assert.deepEqual(page(false), { again: [], total: 2 });
  assert.deepEqual([...aggregator.refused], [['ENOENT', 1]]);
});

it('a directory that cannot be created is tried again every 30 seconds', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await aggregator.close();
  const create = t.mock.method(fs, 'mkdirSync', () => {
    throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
  });
  aggregator = await openAggregator(t);
  for (let tries = 0; tries < 3; tries++) {
    assert.equal(directory, '');
    if (tries === 2) create.mock.restore();
    t.mock.timers.tick(30_000);
    await new Promise(resolve => setImmediate(resolve));
  }
  assert.ok(fs.existsSync(directory));
});

/** Answers while no file can be opened, which is counted: the worker is asked again, over IPC. */
function assertIsAskedOverIpc(t, code) {
  answer();
  assert.equal(page().total, 1);
  const { openSync } = fs;
  t.mock.method(fs, 'openSync', (file, flags, ...rest) => {
    if (flags === 'w' || typeof flags === 'string') return openSync(file, flags, ...rest);
    throw Object.assign(new Error(`${code}: it cannot be opened`), { code });
  });
  const file = answer();
  const { again, failures } = runThrough(
    aggregator.render({ formats: [PLAIN_TEXT], custom: [], final: false }),
  );
  assert.deepEqual({ again, failures }, { again: [WORKER], failures: [[WORKER, { isUnreadable: true }]] });
  assert.ok(!fs.existsSync(file));
  assert.equal(aggregator.refused.get(code), 1);
}

it('a metric that cannot be written costs the page nothing but that metric, and is counted', () => {
  const metric = { name: 'odd', help: 'h', type: 'gauge' };
  const values = [
    ...Array.from({ length: 5000 }, (_, i) => ({ value: i })),
    { value: 1, labels: { a: textless } },
  ];
  new Counter({ name: 'odd_total', help: 'h', aggregator: 'odd', registers: [worker.registry] });
  answer();
  const { custom } = runThrough(aggregator.render({ formats: [PLAIN_TEXT], custom: ['odd'], final: true }));
  const names = custom.map(({ name }) => name);
  assert.deepEqual(names, ['odd_total']);
  const { bodies } = runThrough(
    aggregator.finish({ formats: [PLAIN_TEXT], aggregated: [{ ...metric, values }] }),
  );
  const text = Buffer.from(bodies[0].buffer, 0, bodies[0].length).toString();
  assert.equal(text, '# HELP done_total h\n# TYPE done_total counter\ndone_total 1\n');
  const { state } = runThrough(aggregator.render({ formats: [PLAIN_TEXT], custom: [], final: true }));
  assert.deepEqual(state.failures[0], { stage: 'merge', metric: 'odd', count: 1 });
});

it('an answer that cannot be read for want of descriptors is asked for again, over IPC', t =>
  assertIsAskedOverIpc(t, 'EMFILE'));

describe('the name of the retired totals that is taken', () => {
  const NAME = 'retired.snap';
  let retired;
  beforeEach(async t => {
    retired = [];
    await aggregator.close();
    aggregator = await openAggregator(t, Aggregator, { onRetired: workerIds => retired.push(...workerIds) });
  });

  it('the name of the retired totals that is taken by a directory with files blocks nothing else, and is left alone', async () => {
    const fileOfOthers = path.join(directory, NAME, 'of somebody');
    fs.mkdirSync(fileOfOthers, { recursive: true });
    answer();
    aggregator.retire(WORKER, { isLastExpected: false });
    await new Promise(resolve => setImmediate(resolve));
    assert.deepEqual(retired, [WORKER]);
    assert.equal(page().total, 1);
    assert.ok(fs.existsSync(fileOfOthers));
    await aggregator.close();
    assert.deepEqual(fs.readdirSync(directory), [NAME]);
  });

  it(
    'names of files that are taken by FIFOs do not delay the next thread',
    { skip: process.platform === 'win32' },
    async t => {
      const files = [answer(), path.join(directory, NAME)];
      await aggregator.close({ remove: false });
      for (const file of files) fs.rmSync(file, { force: true });
      execFileSync('mkfifo', files);
      aggregator = await openAggregator(t, Aggregator, { adopt: directory });
      assert.deepEqual(
        [...aggregator.refused],
        [
          ['restore-retired', 1],
          ['restore-worker', 1],
        ],
      );
      answer();
      assert.equal(page().total, counted);
    },
  );
});

describe('the files of a process that has died while another one takes over', () => {
  it('its last columns are on the first page: the one before may have shown it', async t => {
    await aggregator.close();
    aggregator = await openAggregator(t);
    answer();
    assert.equal(page().total, 1);
    counter.inc(2);
    const bytes = bytesOf(worker.source.captureWithLog(WORKER, undefined, { isLast: true }));
    fs.writeFileSync(path.join(directory, columnsName(WORKER, 0)), bytes);
    // It is retired, and the leader ends before the totals are saved.
    const spool = path.join(path.dirname(directory), 'spool.copy');
    fs.cpSync(directory, spool, { recursive: true });
    aggregator.retire(WORKER, { isLastExpected: true });
    assert.equal(page().total, 3);
    await aggregator.close();
    fs.renameSync(spool, directory);
    aggregator = await openAggregator(t, Aggregator, { adopt: directory });
    assert.equal(page().total, 3);
    aggregator.retire(WORKER, { isLastExpected: true });
    assert.equal(page().total, 3);
    assert.deepEqual([...aggregator.refused], []);
  });
});

it('an aggregator that runs out of descriptors while it takes over shows everything, or does not start and can be started again', async t => {
  await aggregator.close();
  aggregator = await openAggregator(t);
  answer();
  for (const [id, value] of [
    [WORKER + 1, 10],
    [WORKER + 2, 100],
  ]) {
    const ending = makeWorker();
    new Counter({ name: 'done_total', help: 'h', registers: [ending.registry] }).inc(value);
    fs.writeFileSync(
      path.join(directory, columnsName(id, 0)),
      bytesOf(ending.source.captureWithLog(id, undefined)),
    );
  }
  aggregator.retire(WORKER + 1, { isLastExpected: true });
  assert.equal(page().total, 11);
  let failures = 0;
  for (let fault = 1; ; fault++) {
    await aggregator.close({ remove: false });
    let calls = 0;
    for (const name of /** @type {const} */ (['openSync', 'readFileSync', 'readdirSync'])) {
      const original = fs[name];
      t.mock.method(fs, name, (...parameters) => {
        if (++calls !== fault) return original.apply(fs, parameters);
        throw Object.assign(new Error(`EMFILE: too many open files, ${name}`), { code: 'EMFILE' });
      });
    }
    const options = { adopt: directory };
    const next = await openAggregator(t, Aggregator, options).catch(error => error);
    const wasHit = calls >= fault;
    t.mock.restoreAll();
    if (next instanceof Error) {
      assert.equal(/** @type {any} */ (next).code, 'EMFILE');
      failures++;
      aggregator = await openAggregator(t, Aggregator, options);
    } else {
      aggregator = next;
    }
    // The sweep, which nothing waits for, meets some of the faults.
    await new Promise(resolve => setImmediate(resolve));
    aggregator.retire(WORKER + 2, { isLastExpected: true });
    assert.equal(page().total, 111, `fault ${fault}`);
    if (!wasHit) break;
  }
  assert.ok(failures > 3, `${failures}`);
});

describe('an answer that a virus scanner has open', () => {
  for (const code of ['EBUSY', 'EPERM', 'EACCES']) {
    it(`an answer that a virus scanner has open is asked for again, over IPC, on Windows (${code})`, async t => {
      const { platform } = process;
      const loaded = ['aggregator', 'worker-answers', 'retirement'].map(name =>
        require.resolve(`../../lib/aggregator/${name}`),
      );
      t.after(() => Object.defineProperty(process, 'platform', { value: platform }));
      Object.defineProperty(process, 'platform', { value: 'win32' });
      for (const file of loaded) delete require.cache[file];
      await aggregator.close();
      aggregator = await openAggregator(t, require(loaded[0]).Aggregator);
      assertIsAskedOverIpc(t, code);
    });
  }
});

describe('rows that have ended in a worker', () => {
  const render = (of, shown) => {
    const result = runThrough(of.render({ formats: [PLAIN_TEXT], custom: [], final: true, shown }));
    const text = Buffer.from(result.bodies[0].buffer, 0, result.bodies[0].length).toString();
    return { ended: result.ended, sum: Number(/^ended_total{a="x"} (.*)$/m.exec(text)?.[1]) };
  };

  for (const hasDirectory of [true, false])
    it(`are part of saved totals before a page is written, ${hasDirectory ? 'in the directory' : 'or the primary has them'}`, async t => {
      let totals;
      let own = '';
      const options = {
        inMemory: !hasDirectory,
        onDirectory: created => (own = created),
        onRetired: (_, saved) => (totals = saved),
      };
      const first = await openAggregator(t, Aggregator, options);
      const workers = [1, 2].map(id => {
        const made = makeWorker(undefined, { keepsEnded: true });
        const registers = [made.registry];
        const series = new Counter({ name: 'ended_total', help: 'h', labelNames: ['a'], registers });
        series.inc({ a: 'x' }, id);
        const answerTo = (reader, known) => {
          const bytes = bytesOf(made.source.captureWithLog(id, known));
          reader.answer({ workerId: id, bytes: new Uint8Array(bytes) });
        };
        return { id, series, source: made.source, answerTo };
      });
      for (const { answerTo } of workers) answerTo(first);
      assert.deepEqual(render(first, []), { ended: [], sum: 3 });
      workers[0].series.remove({ a: 'x' });
      for (const { answerTo } of workers) answerTo(first);
      const { ended, sum } = render(first, [1, 2]);
      assert.deepEqual([ended, sum], [[[1, 1]], 3]);
      // From now on, the worker does not offer them any more.
      workers[0].source.asked(1);
      await first.close({ remove: false });
      const next = await openAggregator(t, Aggregator, { ...options, adopt: own || undefined, totals });
      for (const { answerTo } of workers) answerTo(next);
      assert.deepEqual(render(next, [1, 2]), { ended: [[1, 1]], sum: 3 });
      workers[1].series.remove({ a: 'x' });
      for (const { answerTo } of workers) answerTo(next);
      assert.deepEqual(render(next, [1, 2]), {
        ended: [
          [1, 1],
          [2, 1],
        ],
        sum: NaN,
      });
      await next.close();
    });

  it('do not come back after a page without them, however shortly before that totals were written', async t => {
    let own = '';
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const write = Spool.prototype.writeAtomically;
    t.mock.method(Spool.prototype, 'writeAtomically', function (...written) {
      now += 1000;
      return write.apply(this, written);
    });
    const options = { onDirectory: created => (own = created) };
    const lost = await openAggregator(t, Aggregator, options);
    const workers = [1, 2].map(id => {
      const made = makeWorker(undefined, { keepsEnded: true });
      const series = new Counter({
        name: 'ended_total',
        help: 'h',
        labelNames: ['a'],
        registers: [made.registry],
      });
      series.inc({ a: 'x' }, 10);
      const answerTo = reader => {
        const bytes = bytesOf(made.source.captureWithLog(id, undefined));
        reader.answer({ workerId: id, bytes: new Uint8Array(bytes) });
      };
      return { series, answerTo };
    });
    const pageOf = reader => {
      for (const { answerTo } of workers) answerTo(reader);
      return render(reader, [1, 2]).sum;
    };
    assert.equal(pageOf(lost), 20);
    workers[0].series.remove({ a: 'x' });
    assert.equal(pageOf(lost), 20);
    workers[1].series.remove({ a: 'x' });
    assert.equal(pageOf(lost), NaN);
    workers[0].series.inc({ a: 'x' });
    assert.equal(pageOf(lost), 1);
    const next = await openAggregator(t, Aggregator, { ...options, adopt: own });
    assert.equal(pageOf(next), 1);
    await next.close();
  });

  it('do not leave while a worker that a page has shown has not answered a new aggregator', async () => {
    const made = makeWorker(undefined, { keepsEnded: true });
    const registers = [made.registry];
    const series = new Counter({ name: 'ended_total', help: 'h', labelNames: ['a'], registers });
    series.inc({ a: 'x' });
    const answerWith = () =>
      aggregator.answer({
        workerId: 1,
        bytes: new Uint8Array(bytesOf(made.source.captureWithLog(1, undefined))),
      });
    answerWith();
    series.remove({ a: 'x' });
    answerWith();
    assert.equal(render(aggregator, [1, 2]).sum, NaN);
    series.inc({ a: 'x' });
    answerWith();
    assert.equal(render(aggregator, [1, 2]).sum, 2);
    series.remove({ a: 'x' });
    answerWith();
    assert.equal(render(aggregator, [1]).sum, NaN);
    series.inc({ a: 'x' });
    answerWith();
    assert.equal(render(aggregator, [1]).sum, 1);
  });
});
