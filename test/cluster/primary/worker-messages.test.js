'use strict';

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { WorkerMessages } = require('../../../lib/cluster/primary/worker-messages');
const { WorkerRecord, deathOf } = require('../../../lib/cluster/primary/worker-record');
const { LAST } = require('../../../lib/cluster/wire/messages');

const FILE = `w1-r0-${'0'.repeat(24)}.snap`;

it('the last snapshot of a worker over IPC is the newest valid one, and is part of its death', () => {
  const messages = new WorkerMessages({ supervisor: {}, requests: {}, onAnswered: () => assert.fail() });
  const record = new WorkerRecord({ id: 1, process: {} });
  const receive = fields => messages.receive(record, { type: LAST, ...fields });
  receive({ snapshot: 'first', reason: 'ENOSPC' });
  receive({ snapshot: 'second', reason: { toString: null } });
  const invalid = [
    ...[undefined, null, 7, {}, [], { toString: null }, 'x'.repeat(2 ** 25 + 1)].map(snapshot => ({
      snapshot,
    })),
    { metrics: [[{ name: 'x', help: 'h', type: 'gauge', values: [] }]], snapshot: 'third' },
    { file: FILE, bytes: 5 },
    { error: 'failed' },
  ];
  for (const fields of invalid) receive(fields);
  assert.equal(deathOf(record).lastSnapshot, 'second');
  assert.deepEqual(messages.overIpc.entries, [
    ['ENOSPC', 1],
    ['unknown', 1],
  ]);
  assert.deepEqual(messages.refused.entries, [['answer', invalid.length]]);
});
