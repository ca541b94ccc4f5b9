'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');
const { Counter, Registry } = require('../../..');
const { makePlace } = require('../../fixtures/cluster-harness');
const { WorkerResponder } = require('../../../lib/cluster/worker/worker-responder');
const { SourceFiles } = require('../../../lib/cluster/worker/source-files');
const { Source } = require('../../../lib/source/source');
const { textOf } = require('../../fixtures/unit-scrape');
const { fromBase64 } = require('../../../lib/source/byte-buffers');
const { ClusterStore } = require('../../../lib/store/cluster-store');
const { linkToPrimary } = require('../../../lib/cluster/links/ipc');
const { WELCOME, REQUEST, LAST } = require('../../../lib/cluster/wire/messages');

/** A worker with a counter, what it has sent to its primary, and its answer to a request. */
function makeResponder() {
  const registry = new Registry();
  const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a'], registers: [registry] });
  const sent = [];
  const link = { id: 1, isConnected: () => true, send: message => sent.push(message) };
  const responder = new WorkerResponder(link, () => [registry]);
  const answer = async (requestId, directory, more) => {
    responder.receive({ type: REQUEST, requestId, directory, checkpointInterval: 0, ...more });
    const find = () => sent.find(message => message.requestId === requestId);
    while (find() === undefined) await turn();
    return find();
  };
  return { counter, sent, responder, answer };
}

const logsIn = directory => fs.readdirSync(directory).filter(name => name.endsWith('.log'));

it("a program that has replaced process.send() gets no error in its 'message' event", async t => {
  const { connected, send } = process;
  t.after(() => Object.assign(process, { connected, send }));
  const failing = t.mock.fn(() => {
    throw new Error('this is not sent');
  });
  Object.assign(process, { connected: true, send: failing });
  const responder = new WorkerResponder(linkToPrimary(1), () => []);
  const fields = { directory: '' };
  responder.receive({ type: WELCOME, ...fields });
  responder.receive({ type: REQUEST, requestId: 1, ...fields });
  await turn();
  await responder.handOver(1000);
  responder.writeLast();
  assert.ok(failing.mock.callCount() >= 3);
  // Neither an error of a registry can be sent, with this primary or one with prom-client.
  const broken = new WorkerResponder(linkToPrimary(1), () => [undefined]);
  const calls = failing.mock.callCount();
  broken.receive({ type: REQUEST, requestId: 1, ...fields });
  broken.receive({ type: REQUEST, requestId: 2 });
  while (failing.mock.callCount() < calls + 2) await turn();
});

it('there are checkpoints if there is a directory, and none without', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const registry = new Registry();
  const counter = new Counter({ name: 'done_total', help: 'h', registers: [registry] });
  const sent = [];
  const link = { id: 1, isConnected: () => true, send: message => sent.push(message.type) };
  const writers = [makePlace(t), ''].map(directory => {
    const responder = new WorkerResponder(link, () => [registry]);
    responder.receive({ type: WELCOME, directory, checkpointInterval: 100 });
    return { responder, directory };
  });
  const [{ directory }, { responder }] = writers;
  while (!fs.readdirSync(directory).some(name => name.endsWith('.columns'))) {
    counter.inc();
    t.mock.timers.tick(100);
    await turn();
  }
  assert.deepEqual(sent, []);
  responder.writeLast();
  assert.deepEqual(sent, [LAST]);
  // A network file system may fail to close a file.
  t.mock.method(fs, 'closeSync', () => {
    throw Object.assign(new Error('EIO: i/o error, close'), { code: 'EIO' });
  });
  writers[0].responder.writeLast();
  assert.deepEqual(sent, [LAST, LAST]);
});

it('a request is ignored if no file can be named by its id', t => {
  const link = { id: 1, isConnected: () => true, send() {} };
  const registries = t.mock.fn(() => []);
  const request = { type: REQUEST, directory: makePlace(t) };
  for (const requestId of [-1, 0.5, 2 ** 53, '1', null, undefined])
    new WorkerResponder(link, registries).receive({ ...request, requestId });
  assert.equal(registries.mock.callCount(), 0);
  new WorkerResponder(link, registries).receive({ ...request, requestId: 1 });
  assert.notEqual(registries.mock.callCount(), 0);
});

it('a checkpoint replaces the one before, and the log it needs, and has time after an answer', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { counter, responder, answer } = makeResponder();
  const directory = makePlace(t);
  const files = () => fs.readdirSync(directory).sort();
  const until = async condition => {
    while (!condition()) await turn();
  };
  responder.receive({ type: WELCOME, directory, checkpointInterval: 1000 });
  let before = [];
  for (let checkpoint = 0; checkpoint < 3; checkpoint++) {
    counter.inc({ a: checkpoint });
    t.mock.timers.tick(1000);
    await until(() => files().length === 2 && files().join() !== before.join());
    if (checkpoint > 0) assert.equal(files()[0], before[0], 'the log is the same');
    before = files();
  }
  counter.inc({ a: 'answered' });
  t.mock.timers.tick(999);
  assert.notEqual((await answer(7, directory, { checkpointInterval: 1000 })).file, undefined);
  const answered = files();
  assert.equal(answered.length, 3);
  t.mock.timers.tick(999);
  await turn();
  assert.deepEqual(files(), answered, 'the answer has just been written');
  const badLog = before[0].slice(3, -4);
  assert.notEqual((await answer(8, directory, { badLog, checkpointInterval: 1000 })).file, undefined);
  assert.equal(files().includes(before[0]), false, 'another log has begun');
  assert.equal(logsIn(directory).length, 1);
});

it('complete columns and their log exist at any time while both are replaced', async t => {
  const directory = makePlace(t);
  const registry = new Registry();
  const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a'], registers: [registry] });
  for (let a = 0; a < 20_000; a++) counter.inc({ a });
  const source = new Source(() => [registry]);
  const files = new SourceFiles(source, 1);
  files.aimAt(directory);
  const replace = () => files.write({ requestId: 0 }, (file, ahead) => files.replace(file, { ahead }));
  await replace();
  const before = fs.readdirSync(directory);
  const isComplete = name => {
    const read = file => Buffer.from(new Uint8Array(fs.readFileSync(path.join(directory, file))).buffer);
    try {
      new ClusterStore().apply(1, read(name), (log, from, to) => read(`w1-${log}.log`).subarray(from, to));
      return true;
    } catch (error) {
      if (typeof error.code !== 'string') throw error;
      return false;
    }
  };
  let isLooking = false;
  const missing = [];
  const calls = ['openSync', 'writevSync', 'closeSync', 'rmSync'].map(name => {
    const call = fs[name];
    return t.mock.method(fs, name, (...parameters) => {
      const result = call(...parameters);
      if (isLooking) return result;
      isLooking = true;
      if (!fs.readdirSync(directory).some(file => file.endsWith('.columns') && isComplete(file)))
        missing.push(name);
      isLooking = false;
      return result;
    });
  });
  // As if most of it were about what is gone.
  source.log.restart();
  await replace();
  for (const call of calls) call.mock.restore();
  assert.deepEqual(missing, [], 'calls of the file system after which nothing complete was there');
  const after = fs.readdirSync(directory);
  assert.deepEqual([after.length, after.filter(name => before.includes(name))], [2, []]);
});

it('the last numbers over IPC are complete for a thread that has nothing, after its welcome', async () => {
  const { counter, sent, responder, answer } = makeResponder();
  for (let a = 0; a < 20_000; a++) counter.inc({ a });
  const applyTo = (store, { source }) => store.apply(1, fromBase64(source));
  const store = new ClusterStore();
  for (const requestId of [1, 2]) {
    applyTo(store, await answer(requestId, '', { known: store.worker(1)?.position }));
  }
  counter.inc({ a: 7 });
  responder.writeLast();
  assert.throws(() => applyTo(new ClusterStore(), sent.at(-1)), { code: 'log' });
  applyTo(store, sent.at(-1));
  responder.receive({ type: WELCOME, directory: '' });
  responder.writeLast();
  const next = new ClusterStore();
  applyTo(next, sent.at(-1));
  assert.match(textOf(next), /^c\{a="7"\} 2$/m);
});

it('a log that somebody has removed is written anew', async t => {
  const { counter, answer } = makeResponder();
  const directory = makePlace(t);
  counter.inc({ a: 1 });
  assert.notEqual((await answer(1, directory)).file, undefined);
  fs.rmSync(path.join(directory, logsIn(directory)[0]));
  counter.inc({ a: 2 });
  assert.equal((await answer(2, directory)).reason, 'ENOENT');
  counter.inc({ a: 3 });
  assert.notEqual((await answer(3, directory)).file, undefined);
  assert.equal(logsIn(directory).length, 1);
});

it('after an answer in a message, the file of the log goes on', async t => {
  const { counter, answer } = makeResponder();
  const directory = makePlace(t);
  for (const [i, place] of [directory, '', directory, '', directory].entries()) {
    counter.inc({ a: i });
    const { file, reason } = await answer(i + 1, place);
    assert.equal(file === undefined, place === '', reason);
  }
  assert.equal(logsIn(directory).length, 1);
});

it('in a directory to which its files were moved, a worker begins another log, and leaves the one before', async t => {
  const { counter, answer } = makeResponder();
  const place = makePlace(t);
  const [first, second] = ['first', 'second'].map(name => path.join(place, name));
  fs.mkdirSync(first);
  counter.inc({ a: 1 });
  assert.equal((await answer(1, first)).reason, undefined);
  fs.renameSync(first, second);
  const before = fs.readdirSync(second);
  counter.inc({ a: 2 });
  assert.equal((await answer(2, second)).reason, undefined);
  const after = fs.readdirSync(second);
  for (const name of before) assert.ok(after.includes(name), name);
  assert.equal(after.length, 4);
});
