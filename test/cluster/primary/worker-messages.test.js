'use strict';

// The clock is a fake, and so are the workers, which record the messages to them.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, describe, it, mock } = require('node:test');
const { WorkerMessages } = require('../../../lib/cluster/primary/worker-messages');
const { WorkerRecord, deathOf } = require('../../../lib/cluster/primary/worker-record');
const { LAST, RESPONSE } = require('../../../lib/cluster/wire/messages');

const FILE = `w1-r0-${'0'.repeat(24)}.columns`;

let now;
let sent;
let answered;
let messages;
let record;
beforeEach(() => {
  now = 1000;
  sent = [];
  answered = [];
  messages = new WorkerMessages({
    supervisor: { directory: '/spool', send() {} },
    checkpointInterval: 100,
    onAnswered: (...args) => answered.push(args),
  });
  record = new WorkerRecord({ id: 7, send: message => sent.push(message) });
  mock.method(performance, 'now', () => now);
});
afterEach(() => mock.restoreAll());

/** A scrape that times out; returns how long it waited. */
function scrapeInVain(timeout) {
  const wait = messages.ask(record, timeout);
  now += wait;
  if (wait > 0) messages.timeOut(record);
  return wait;
}

const answerTo = requestId => {
  answered = [];
  messages.receive(record, { type: RESPONSE, requestId, source: '' });
  return answered.length > 0;
};
const answer = () => answerTo(record.outstanding);

describe('requests to a worker', () => {
  it('requests to a worker whose file could not be read name no directory, once', () => {
    const directory = () => {
      messages.ask(record, 400);
      answer();
      return sent.at(-1).directory;
    };
    assert.equal(directory(), '/spool');
    record.overIpc = true;
    assert.deepEqual([directory(), directory()], ['', '/spool']);
  });

  it('requests to a worker carry the timeout, what the aggregator has of its log, and which ended rows', () => {
    record.position = { log: 'a', bytes: 5 };
    record.badLog = 'b';
    record.ended = 3;
    messages.ask(record, 400);
    assert.deepEqual(sent, [
      {
        type: 'prom-client:getMetricsReq',
        requestId: 1,
        known: record.position,
        badLog: 'b',
        ended: 3,
        timeout: 400,
        directory: '/spool',
        checkpointInterval: 100,
      },
    ]);
  });

  it('requests to a worker are shared by the scrapes that come before the answer, each with its own timeout', () => {
    for (const timeout of [500, 500, 50_000, 10]) assert.equal(messages.ask(record, timeout), timeout);
    assert.equal(sent.length, 1);
  });

  it('requests to a worker are settled by the answer to the outstanding one only, once', () => {
    messages.ask(record, 500);
    for (const requestId of [0, 2, -1, '1', null, undefined, NaN, {}])
      assert.equal(answerTo(requestId), false);
    assert.equal(answerTo(1), true);
    assert.equal(answerTo(1), false);
    assert.equal(answerTo(0), false);
  });
});

describe('a worker that does not answer', () => {
  it('a worker that does not answer delays one scrape until its deadline: later scrapes do not wait for it', () => {
    assert.equal(scrapeInVain(5000), 5000);
    for (const timeout of [5000, 4760, 100]) assert.equal(scrapeInVain(timeout), 0);
    assert.equal(record.timedOut, true);
  });

  it('a worker that does not answer delays one scrape until its deadline, even if all scrapes have a short timeout', () => {
    assert.equal(scrapeInVain(300), 300);
    now += 200;
    // A scrape asks somewhat earlier or later after its call.
    for (const timeout of [300, 310, 290, 420]) assert.equal(scrapeInVain(timeout), 0);
  });

  it('a worker that does not answer is waited for again after its answer', () => {
    scrapeInVain(5000);
    assert.equal(answer(), true);
    assert.equal(record.timedOut, false);
    assert.equal(messages.ask(record, 100), 100);
  });

  it('a worker that does not answer is waited for by a scrape with a longer timeout until it has had that timeout', () => {
    assert.equal(scrapeInVain(10), 10);
    assert.equal(messages.ask(record, 4000), 3990);
    now += 2000;
    assert.equal(messages.ask(record, 4000), 1990);
    assert.equal(sent.length, 1, 'all share the request');
    assert.equal(messages.ask(record, 10), 0);
    now += 1990;
    assert.equal(messages.ask(record, 4000), 0);
  });

  it('a worker that does not answer is sent the same request every five seconds, as it may not have listened', () => {
    const times = [];
    const start = now;
    for (let second = 0; second < 20; second++) {
      const before = sent.length;
      messages.ask(record, 500);
      if (sent.length > before) times.push(now - start);
      messages.timeOut(record);
      now += 1000;
    }
    assert.deepEqual(times, [0, 5000, 10_000, 15_000]);
    assert.equal(new Set(sent.map(({ requestId }) => requestId)).size, 1);
  });

  for (const [what, send] of [
    ['the channel is closed', (message, callback) => callback(new Error('closed'))],
    [
      'sending throws',
      () => {
        throw new Error('no channel');
      },
    ],
  ]) {
    it(`a worker that does not answer because ${what} is not waited for`, () => {
      record.worker.send = send;
      answered = [];
      assert.equal(messages.ask(record, 5000), 0);
      assert.deepEqual(answered, [[record, false]]);
      assert.equal(record.timedOut, true);
      record.worker.send = message => sent.push(message);
      assert.equal(messages.ask(record, 5000), 5000, 'it is asked again');
    });
  }
});

it('the last columns of a worker over IPC are the newest valid ones, and are part of its death', () => {
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
  const hooksBegan = hookMilliseconds => {
    messages.ask(record, 100);
    now += 10;
    messages.receive(record, {
      type: RESPONSE,
      requestId: sent.at(-1).requestId,
      source: '',
      hookMilliseconds,
    });
    return answered.at(-1)[2];
  };
  for (const hookMilliseconds of [undefined, 0, -1, NaN, {}, 'x', null])
    assert.equal(hooksBegan(hookMilliseconds), now);
  assert.equal(hooksBegan(3), now - 3);
  for (const hookMilliseconds of [1e300, Infinity, '99999', [5e9]])
    assert.equal(hooksBegan(hookMilliseconds), now - 10);
});
