'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');
const { Counter, Registry } = require('../../..');
const { makePlace } = require('../../fixtures/cluster-harness');
const { WorkerResponder } = require('../../../lib/cluster/worker/worker-responder');
const { linkToPrimary } = require('../../../lib/cluster/links/ipc');
const { exitSnapshotName } = require('../../../lib/spool/file-names');
const { WELCOME, REQUEST, READY, LAST } = require('../../../lib/cluster/wire/messages');

it("a program that has replaced process.send() gets no error in its 'message' event", async t => {
  const { connected, send } = process;
  t.after(() => Object.assign(process, { connected, send }));
  const failing = t.mock.fn(() => {
    throw new Error('this is not sent');
  });
  Object.assign(process, { connected: true, send: failing });
  const responder = new WorkerResponder(linkToPrimary(1), () => []);
  const fields = { directory: '', exitName: exitSnapshotName(1) };
  responder.receive({ type: WELCOME, ...fields });
  assert.equal(failing.mock.callCount(), 1);
  responder.receive({ type: REQUEST, requestId: 1, ...fields });
  await new Promise(resolve => setImmediate(resolve));
  await responder.handOver(1000);
  responder.writeExitSnapshot();
  assert.ok(failing.mock.callCount() >= 4);
  // Neither an error of a registry can be sent, with this primary or one with prom-client.
  const broken = new WorkerResponder(linkToPrimary(1), () => [undefined]);
  const calls = failing.mock.callCount();
  broken.receive({ type: REQUEST, requestId: 1, ...fields });
  broken.receive({ type: REQUEST, requestId: 2 });
  while (failing.mock.callCount() < calls + 2) await new Promise(resolve => setImmediate(resolve));
});

it('there are checkpoints if there is a directory, and none without', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const registry = new Registry();
  const counter = new Counter({ name: 'done_total', help: 'h', registers: [registry] });
  const exitName = exitSnapshotName(1);
  const sent = [];
  const link = {
    id: 1,
    isConnected: () => true,
    send: message => sent.push(message.type),
  };
  const writers = [makePlace(t), ''].map(directory => {
    const responder = new WorkerResponder(link, () => [registry]);
    responder.receive({ type: WELCOME, directory, exitName, checkpointInterval: 100 });
    return { responder, file: path.join(directory, exitName) };
  });
  const [{ file }, { responder, file: other }] = writers;
  while (!fs.existsSync(file)) {
    counter.inc();
    t.mock.timers.tick(100);
    await new Promise(resolve => setImmediate(resolve));
  }
  assert.equal(fs.existsSync(other), false);
  assert.deepEqual(sent, [READY, READY]);
  responder.writeExitSnapshot();
  assert.deepEqual(sent, [READY, READY, LAST]);
  // Closed once: the number of the descriptor in reserve may be that of another file by now.
  const closed = t.mock.method(fs, 'closeSync');
  responder.writeExitSnapshot();
  assert.equal(closed.mock.callCount(), 0);
  assert.deepEqual(sent.splice(-1), [LAST]);
  // A network file system may fail to close a file.
  t.mock.method(fs, 'closeSync', () => {
    throw Object.assign(new Error('EIO: i/o error, close'), { code: 'EIO' });
  });
  writers[0].responder.writeExitSnapshot();
  assert.deepEqual(sent, [READY, READY, LAST, LAST]);
});

it('a request is ignored if no file can be named by its id', t => {
  const link = { id: 1, isConnected: () => true, send() {} };
  const registries = t.mock.fn(() => []);
  const request = { type: REQUEST, directory: makePlace(t), exitName: exitSnapshotName(1) };
  for (const requestId of [-1, 0.5, 2 ** 53, '1', null, undefined])
    new WorkerResponder(link, registries).receive({ ...request, requestId });
  assert.equal(registries.mock.callCount(), 0);
  new WorkerResponder(link, registries).receive({ ...request, requestId: 1 });
  assert.notEqual(registries.mock.callCount(), 0);
});
