'use strict';

// The clock is a fake, and so are the workers, which record the messages to them.

const assert = require('node:assert/strict');
const { beforeEach, describe, it } = require('node:test');
const { WorkerRequests } = require('../../../lib/cluster/primary/worker-requests');
const { WorkerRecord } = require('../../../lib/cluster/primary/worker-record');

const FIELDS = { directory: '/spool' };

let now;
let sent;
let unreachable;
let requests;
let record;
beforeEach(() => {
  now = 1000;
  sent = [];
  unreachable = [];
  requests = new WorkerRequests(
    unreached => unreachable.push(unreached),
    () => now,
  );
  record = new WorkerRecord({ id: 7, send: message => sent.push(message) });
});

/** A scrape that times out; returns how long it waited. */
function scrapeInVain(timeout) {
  const wait = requests.ask(record, timeout, FIELDS);
  now += wait;
  if (wait > 0) requests.timeOut(record);
  return wait;
}

const answer = () => requests.settle(record, record.outstanding);

describe('requests to a worker', () => {
  it('requests to a worker whose file could not be read name no directory, once', () => {
    const directory = () => {
      requests.ask(record, 400, FIELDS);
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
    requests.ask(record, 400, FIELDS);
    assert.deepEqual(sent, [
      {
        type: 'prom-client:getMetricsReq',
        requestId: 1,
        known: record.position,
        badLog: 'b',
        ended: 3,
        timeout: 400,
        directory: '/spool',
      },
    ]);
  });

  it('requests to a worker are shared by the scrapes that come before the answer, each with its own timeout', () => {
    for (const timeout of [500, 500, 50_000, 10])
      assert.equal(requests.ask(record, timeout, FIELDS), timeout);
    assert.equal(sent.length, 1);
  });

  it('requests to a worker are settled by the answer to the outstanding one only, once', () => {
    requests.ask(record, 500, FIELDS);
    for (const requestId of [0, 2, -1, '1', null, undefined, NaN, {}])
      assert.equal(requests.settle(record, requestId), false);
    assert.equal(requests.settle(record, 1), true);
    assert.equal(requests.settle(record, 1), false);
    assert.equal(requests.settle(record, 0), false);
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
    assert.equal(requests.ask(record, 100, FIELDS), 100);
  });

  it('a worker that does not answer is waited for by a scrape with a longer timeout until it has had that timeout', () => {
    assert.equal(scrapeInVain(10), 10);
    assert.equal(requests.ask(record, 4000, FIELDS), 3990);
    now += 2000;
    assert.equal(requests.ask(record, 4000, FIELDS), 1990);
    assert.equal(sent.length, 1, 'all share the request');
    assert.equal(requests.ask(record, 10, FIELDS), 0);
    now += 1990;
    assert.equal(requests.ask(record, 4000, FIELDS), 0);
  });

  it('a worker that does not answer is sent the same request every five seconds, as it may not have listened', () => {
    const times = [];
    const start = now;
    for (let second = 0; second < 20; second++) {
      const before = sent.length;
      requests.ask(record, 500, FIELDS);
      if (sent.length > before) times.push(now - start);
      requests.timeOut(record);
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
      assert.equal(requests.ask(record, 5000, FIELDS), 0);
      assert.deepEqual(unreachable, [record]);
      assert.equal(record.timedOut, true);
      record.worker.send = message => sent.push(message);
      assert.equal(requests.ask(record, 5000, FIELDS), 5000, 'it is asked again');
    });
  }
});
