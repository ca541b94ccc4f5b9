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
    workerId => unreachable.push(workerId),
    () => now,
  );
  record = new WorkerRecord({ id: 7, send: message => sent.push(message) });
});

/** A scrape that times out; returns how long it waited. */
function scrapeInVain(timeout) {
  const wait = requests.ask(record, timeout, FIELDS);
  now += wait;
  if (wait > 0) requests.timeOut(record, wait);
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

  it('requests to a worker carry the timeout and what the aggregator has of its dictionary', () => {
    record.position = { incarnation: 'a', epoch: 1, series: 5 };
    requests.ask(record, 400, FIELDS);
    assert.deepEqual(sent, [
      {
        type: 'prom-client:getMetricsReq',
        requestId: 1,
        exitName: record.exitName,
        known: record.position,
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
    for (const timeout of [5000, 4760, 5240, 100, 600_000]) assert.equal(scrapeInVain(timeout), 0);
    assert.equal(record.timedOut, true);
  });

  it('a worker that does not answer delays one scrape until its deadline, also if all scrapes have a short timeout', () => {
    assert.equal(scrapeInVain(300), 300);
    // A scrape asks somewhat earlier or later after its call.
    for (const timeout of [300, 310, 290, 420]) assert.equal(scrapeInVain(timeout), 0);
  });

  it('a worker that does not answer is waited for again after its answer', () => {
    scrapeInVain(5000);
    assert.equal(answer(), true);
    assert.equal(record.timedOut, false);
    assert.equal(requests.ask(record, 100, FIELDS), 100);
  });

  it('a worker that does not answer within a short timeout is waited for by a scrape with a longer one, which sends a new request', () => {
    assert.equal(scrapeInVain(10), 10);
    assert.equal(requests.ask(record, 4000, FIELDS), 4000);
    assert.deepEqual(
      sent.map(({ requestId, timeout }) => [requestId, timeout]),
      [
        [1, 10],
        [2, 4000],
      ],
    );
    assert.equal(requests.settle(record, 1), false, 'that answer may be older than the second call');
    assert.equal(requests.settle(record, 2), true);
  });

  it('a worker that does not answer is waited for by scrapes with a long timeout until it has not answered for 5 seconds', () => {
    scrapeInVain(10);
    assert.equal(requests.ask(record, 600_000, FIELDS), 4990);
    now += 2000;
    assert.equal(requests.ask(record, 600_000, FIELDS), 2990);
    assert.equal(sent.length, 2, 'the second scrape with a long timeout shares the request of the first');
    assert.equal(requests.ask(record, 10, FIELDS), 0);
    now += 2990;
    assert.equal(requests.ask(record, 600_000, FIELDS), 0);
  });

  /** Milliseconds between the messages if there is one scrape per second. */
  function pausesOf(seconds) {
    const times = [];
    const start = now;
    for (let second = 0; second < seconds; second++) {
      const before = sent.length;
      requests.ask(record, 500, FIELDS);
      if (sent.length > before) times.push(now - start);
      requests.timeOut(record, 500);
      now += 1000;
    }
    return times.slice(1).map((time, i) => time - times[i]);
  }

  it('a worker that does not answer and never has is sent the same request each second', () => {
    assert.deepEqual(pausesOf(6), [1000, 1000, 1000, 1000, 1000]);
    assert.equal(new Set(sent.map(({ requestId }) => requestId)).size, 1);
  });

  it('a worker that does not answer and did before is sent the same request after pauses that double up to five minutes', () => {
    record.hasReplied = true;
    const pauses = pausesOf(2000);
    assert.deepEqual(pauses.slice(0, 7), [5000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000]);
    assert.equal(new Set(pauses.slice(6)).size, 1);
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
      assert.deepEqual([requests.ask(record, 5000, FIELDS), requests.ask(record, 5000, FIELDS)], [0, 0]);
      assert.deepEqual(unreachable, [7]);
      assert.equal(record.timedOut, true);
    });

    it(`a worker that has not answered within a short timeout, because ${what} then, is not waited for`, () => {
      scrapeInVain(100);
      record.worker.send = send;
      assert.deepEqual([requests.ask(record, 5000, FIELDS), requests.ask(record, 5000, FIELDS)], [0, 0]);
      assert.deepEqual(unreachable, [7]);
    });
  }
});
