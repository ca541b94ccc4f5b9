'use strict';

// The soak can fail: its books find a count that is missing or too much, and its report a line that grows.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { Books } = require('../../benchmarks/soak/books');
const { runBatch } = require('../../benchmarks/soak/load');
const { summaryOf } = require('../../benchmarks/soak/report');
const { Counter, Histogram, Registry } = require('../..');

/** What a worker of the soak records, in a registry of this process. */
function recordingWorker(number, firstEpoch) {
  const registers = [new Registry()];
  const common = { help: 'h', registers };
  const batches = new Counter({ name: 'soak_batches_total', labelNames: ['worker'], ...common });
  const requests = new Counter({ name: 'soak_requests_total', labelNames: ['set', 'version'], ...common });
  const buckets = [0.25, 0.5, 1];
  const durations = new Histogram({
    name: 'soak_duration_seconds',
    labelNames: ['route'],
    buckets,
    ...common,
  });
  let batch = 0;
  return {
    requests,
    run(count) {
      for (const end = batch + count; batch < end; batch++) {
        batches.inc({ worker: number });
        runBatch(firstEpoch, batch, {
          replace: (set, version) => requests.remove({ set: `s${set}`, version: `v${version - 1}` }),
          count: (set, version, amount) => requests.inc({ set: `s${set}`, version: `v${version}` }, amount),
          observe: (route, value) => durations.observe({ route: `r${route}` }, value),
        });
      }
    },
    page: () => registers[0].metrics(),
  };
}

describe('the books of a soak', () => {
  it('the books of a soak agree with a worker whose label sets are replaced', async () => {
    const books = new Books();
    const worker = recordingWorker(1, books.open(1));
    for (let i = 0; i < 3; i++) {
      worker.run(700);
      const { recorded, shown } = books.check(await worker.page());
      assert.ok(recorded > 0);
      assert.equal(shown, recorded);
    }
    assert.deepEqual(books.differences, []);
    assert.ok(books.checked > 5000);
  });

  it('the books of a soak find a count that is missing, one too much, and a worker whose numbers fall', async () => {
    const books = new Books();
    const worker = recordingWorker(1, books.open(1));
    worker.run(10);
    const page = await worker.page();
    worker.requests.inc({ set: 's1', version: 'v0' });
    books.check(await worker.page());
    assert.match(books.differences.pop(), /set="s1",version="v0"\} is 2, recorded were 1/);
    books.check(page.replace(/^soak_requests_total\{set="s2",.*\n/m, ''));
    assert.match(books.differences.pop(), /set="s2",version="v0"\} is undefined, recorded were 1/);
    books.check(page.replace('worker="1"} 10', 'worker="1"} 9'));
    assert.match(books.differences[0], /worker 1 fell from 10 batches to 9/);
  });
});

describe('the report of a soak', () => {
  /** What was measured in ten minutes; `growth` of the primary's RSS in bytes a second. */
  function recordOf({ growth = 0, ...rest } = {}) {
    const seconds = 600;
    const times = Array.from({ length: seconds }, (_, at) => at);
    const steady = { name: 'primary', descriptors: 20, files: 9 };
    return {
      seconds,
      scrapes: times.map(at => ({ at, seconds: 0.01, recorded: at, shown: at })),
      processes: times.map(at => ({ at, rss: 1e8 + at * growth, ...steady })),
      heaps: times.map(at => ({ at, name: 'primary', bytes: 5e6 })),
      events: [{ at: 20, what: 'worker killed' }],
      ...{ failures: [], leftBehind: [], skipped: [], differences: [] },
      ...{ checked: 1, last: { recorded: 1, shown: 1 } },
      ...rest,
    };
  }

  it('the report of a soak passes what is flat and exact, and fails for memory that grows, a difference, a failed scrape, a file that is left', () => {
    assert.deepEqual(summaryOf(recordOf()).failures, []);
    const { failures } = summaryOf(
      recordOf({
        growth: 100_000,
        differences: ['x is 1, recorded were 2'],
        failures: [{ at: 5, reason: 'status 500' }],
        leftBehind: ['prom-client-cluster-x'],
      }),
    );
    for (const text of ['rss of primary grows', 'recorded were 2', 'status 500', 'prom-client-cluster-x'])
      assert.ok(failures.join().includes(text), text);
  });
});
