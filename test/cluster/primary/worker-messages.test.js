'use strict';

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { WorkerMessages } = require('../../../lib/cluster/primary/worker-messages');
const { WorkerRecord, deathOf } = require('../../../lib/cluster/primary/worker-record');
const { WorkerRequests } = require('../../../lib/cluster/primary/worker-requests');
const { LAST, RESPONSE } = require('../../../lib/cluster/wire/messages');

const FILE = `w1-r0-${'0'.repeat(24)}.columns`;

it('the last columns of a worker over IPC are the newest valid ones, and are part of its death', () => {
  const messages = new WorkerMessages({ supervisor: {}, requests: {}, onAnswered: () => assert.fail() });
  const record = new WorkerRecord({ id: 1, process: {} });
  const receive = fields => messages.receive(record, { type: LAST, ...fields });
  receive({ source: 'first', reason: 'ENOSPC' });
  receive({ source: 'second', reason: { toString: null } });
  const invalid = [
    ...[undefined, null, 7, {}, [], { toString: null }, 'x'.repeat(2 ** 25 + 1)].map(source => ({ source })),
    { metrics: [[{ name: 'x', help: 'h', type: 'gauge', values: [] }]], source: 'third' },
    { file: FILE, bytes: 5 },
    { error: 'failed' },
  ];
  for (const fields of invalid) receive(fields);
  assert.equal(deathOf(record).lastSource, 'second');
  assert.deepEqual(
    [...messages.overIpc],
    [
      ['ENOSPC', 1],
      ['unknown', 1],
    ],
  );
  assert.deepEqual([...messages.refused], [['answer', invalid.length]]);
});

it('hooks of a worker began when it says, but not before it was asked: no round asks without end', () => {
  const began = [];
  const requests = new WorkerRequests(() => assert.fail());
  const messages = new WorkerMessages({
    supervisor: { send() {} },
    requests,
    onAnswered: (answered, isUsable, hooksBegan) => began.push(hooksBegan),
  });
  const sent = [];
  const record = new WorkerRecord({ id: 1, process: {}, send: ({ requestId }) => sent.push(requestId) });
  for (const hookMilliseconds of [undefined, 0, -1, NaN, {}, 'x', null]) {
    requests.ask(record, 100, { directory: '/spool', pages: true });
    messages.receive(record, { type: RESPONSE, requestId: sent.at(-1), source: '', hookMilliseconds });
    assert.equal(began.at(-1), record.answeredAt);
  }
  for (const hookMilliseconds of [1e300, Infinity, '99999', [5e9]]) {
    requests.ask(record, 100, { directory: '/spool', pages: true });
    messages.receive(record, { type: RESPONSE, requestId: sent.at(-1), source: '', hookMilliseconds });
    assert.equal(began.at(-1), record.requestedAt);
  }
  assert.equal(began.length, 11);
});
