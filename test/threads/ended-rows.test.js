'use strict';

// Rows that end in a thread that lives: they have expired (`maxIdleSeconds`), or the program has removed
// them.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const path = require('node:path');
const { describe, it } = require('node:test');
const { promisify } = require('node:util');
const { WorkerRegistry, register } = require('../../index');
const { familiesOf } = require('../fixtures/protobuf-page');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const { compareWithBooks } = require('./fixtures/books');
const { TestThread } = require('./fixtures/start-thread');

const PROGRAM = path.join(__dirname, 'fixtures/expiring-thread.js');
const MAX_IDLE = 120;
const PATIENT = { timeout: 60_000 };
const PROTOBUF =
  'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited';
const EXPIRE = /** @type {const} */ (['expire', { seconds: 2 * MAX_IDLE }]);

/**
 * @param {string} page
 * @returns {Record<string, string>} all samples of the threads' metrics but quantiles
 */
function samplesIn(page) {
  const lines = page.matchAll(/^(metric\d+\S*\{[^}]*\}) (\S+)$/gm);
  return Object.fromEntries(Array.from(lines, ([, sample, value]) => [sample, value]));
}

/**
 * @param {Record<string, number[]>} live values of label sets that a thread has
 * @param {Record<string, number[]>} [ended] values of rows that have ended
 */
function expected(live, ended = {}) {
  /** @type {Record<string, string>} */
  const samples = {};
  METRIC_TYPES.forEach(({ samples: samplesOf, lasts }, i) => {
    for (const [key, values] of Object.entries(live)) {
      for (const [suffix, label, value] of samplesOf([...values, ...(lasts ? (ended[key] ?? []) : [])])) {
        const labels = Object.entries({ key, ...label }).map(([name, text]) => `${name}="${text}"`);
        samples[`metric${i}${suffix}{${labels.sort()}}`] = String(value);
      }
    }
  });
  return samples;
}

/** @param {string} page */
function sorted(page) {
  const samples = Object.entries(samplesIn(page)).map(([sample, value]) => {
    const [, name, labels] = /** @type {RegExpMatchArray} */ (sample.match(/^(\w+)\{(.*)\}$/));
    return [`${name}{${labels.split(',').sort()}}`, value];
  });
  return Object.fromEntries(samples);
}

describe('rows that end in a thread', { timeout: 120_000 }, () => {
  /**
   * @param {import('node:test').TestContext} t
   * @param {object} [options] of the registry
   */
  async function setUp(t, options = {}) {
    const registry = new WorkerRegistry({ ...PATIENT, ...options });
    /** @type {TestThread[]} */
    const threads = [];
    /** @type {any[]} */
    const workers = [];
    const onWorker = (/** @type {any} */ worker) => workers.push(worker);
    process.on('worker', onWorker);
    t.after(async () => {
      process.off('worker', onWorker);
      await Promise.all(threads.map(thread => thread.terminate()));
      await registry.shutdown();
      register.clear();
    });
    return {
      registry,
      async start(/** @type {number} */ maxIdleSeconds = MAX_IDLE) {
        const thread = new TestThread({ maxIdleSeconds }, PROGRAM);
        threads.push(thread);
        return thread;
      },
      page: async () => sorted(await registry.workerMetrics()),
      async loseAggregator() {
        await workers.findLast(each => !threads.some(({ worker }) => worker === each)).terminate();
      },
    };
  }

  for (const [how, end, inPlace] of /** @type {[string, readonly [string, object], boolean][]} */ ([
    ['expires', EXPIRE, false],
    ['expires (in place)', EXPIRE, true],
    ['is removed', ['remove', { key: 'a' }], false],
  ])) {
    it(`the sum of a series that ${how} in one thread stays while another one has it`, async t => {
      const { start, page } = await setUp(t, { inPlace });
      const [one, two] = [await start(), await start()];
      await one.doAll(['record', { key: 'a', value: 3 }], ['record', { key: 'b', value: 4 }]);
      await two.do('record', { key: 'a', value: 5 });
      assert.deepEqual(await page(), expected({ a: [3, 5], b: [4] }));
      await one.doAll(['record', { key: 'a', value: 2 }], end, ['record', { key: 'b', value: 1 }]);
      // What was recorded after the last page is there, too. The other label set begins again at once.
      const isExpiry = end === EXPIRE;
      const [b, ended] = isExpiry ? [[1], [4]] : [[4, 1], []];
      assert.deepEqual(await page(), expected({ a: [5], b }, { a: [3, 2], b: ended }));
      await one.do('record', { key: 'a', value: 7 });
      assert.deepEqual(await page(), expected({ a: [5, 7], b }, { a: [3, 2], b: ended }));
      await two.doAll(end);
      assert.deepEqual(await page(), expected({ a: [7], b }, { a: [3, 2, 5], b: ended }));
      // With the last of them, it leaves at once. Nothing of it is left when it is born again.
      await one.doAll(end, ['record', { key: 'b', value: 1 }]);
      const left = isExpiry ? [[1], [4, 1]] : [[4, 1, 1], []];
      assert.deepEqual(await page(), expected({ b: left[0] }, { b: left[1] }));
      await two.do('record', { key: 'a', value: 9 });
      assert.deepEqual(await page(), expected({ a: [9], b: left[0] }, { b: left[1] }));
    });
  }

  for (const [
    when,
    end,
  ] of /** @type {[string, (thread: TestThread, lose: () => Promise<void>) => any][]} */ ([
    ['ended after that', async thread => [await thread.do('remove', { key: 'a' }), await thread.terminate()]],
    [
      'was terminated in the same turn',
      async thread => {
        assert.equal(await thread.do('removeAndSleep', { key: 'a' }), 'sleeps');
        await thread.terminate();
      },
    ],
    ['has published everything anew', thread => thread.doAll(['remove', { key: 'a' }], 'publish')],
    [
      'has published everything anew, and the aggregator is lost',
      async (thread, lose) => [await thread.doAll(['remove', { key: 'a' }], 'publish'), await lose()],
    ],
    [
      'computes when the aggregator is lost',
      async (thread, lose) => [await thread.do('removeAndSleep', { key: 'a' }), await lose()],
    ],
  ])) {
    it(`what a thread has removed is in the sum once if it ${when}`, async t => {
      const { start, page, loseAggregator } = await setUp(t);
      const [one, two] = [await start(), await start()];
      await one.do('record', { key: 'a', value: 3 });
      await two.do('record', { key: 'a', value: 5 });
      assert.deepEqual(await page(), expected({ a: [3, 5] }));
      await one.do('record', { key: 'a', value: 2 });
      await end(one, loseAggregator);
      // As long as the other one has it, whatever happens to the aggregator.
      for (let loss = 0; loss < 3; loss++) {
        assert.deepEqual(await page(), expected({ a: [5] }, { a: [3, 2] }));
        await loseAggregator();
      }
      await two.do('publish');
      assert.deepEqual(await page(), expected({ a: [5] }, { a: [3, 2] }));
      await two.do('remove', { key: 'a' });
      assert.deepEqual(await page(), {});
      await two.do('record', { key: 'a', value: 1 });
      assert.deepEqual(await page(), expected({ a: [1] }));
    });
  }

  it('a series that begins again in a thread has the start of its new life', async t => {
    const { registry, start } = await setUp(t);
    registry.setContentType(PROTOBUF);
    const [one, two] = [await start(), await start()];
    const started = async () => {
      const families = familiesOf(await registry.workerMetrics());
      const [{ counter } = { counter: undefined }] =
        families.find(({ name }) => name === 'metric0')?.metric ?? [];
      return counter && [counter.value, counter.start];
    };
    await one.doAll(['record', { key: 'a', value: 1 }]);
    const [, first] = await started();
    await one.doAll(['remove', { key: 'a' }], ['pass', { seconds: 60 }], ['record', { key: 'a', value: 1 }]);
    // Nobody has seen that it was gone.
    assert.deepEqual(await started(), [2, first]);
    await one.do('remove', { key: 'a' });
    assert.equal(await started(), undefined);
    await one.do('record', { key: 'a', value: 1 });
    const [value, second] = await started();
    assert.deepEqual([value, second >= first + 60], [1, true]);
    // What another one has folded is as old as it was.
    await two.doAll(['record', { key: 'a', value: 1 }], ['pass', { seconds: 60 }]);
    const oldest = await started();
    await two.doAll(['remove', { key: 'a' }], ['record', { key: 'a', value: 1 }]);
    await one.do('remove', { key: 'a' });
    assert.deepEqual(await started(), [oldest[0] + 1, oldest[1]]);
  });

  it('threads whose series come and go lose nothing and count nothing twice', async t => {
    const { registry, start, loseAggregator } = await setUp(t);
    const page = () => registry.workerMetrics();
    const recorded = await compareWithBooks({ pages: 40, seed: 1, start, page, loseAggregator });
    t.diagnostic(`${recorded} recorded`);
    assert.ok(recorded > 10_000);
  });
});

/** @param {...string} args of a program that prints pages */
async function pagesOf(...args) {
  const program = path.join(__dirname, 'fixtures/processes.js');
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args]);
  return JSON.parse(stdout).map(sorted);
}

it("a cluster's page has the threads of its workers, rows that have ended in them until nobody has them, and the counts of those that have ended", async () => {
  const wanted = [
    expected({ a: [3, 5, 7] }),
    expected({ a: [5, 7] }, { a: [3, 2] }),
    expected({ a: [7] }, { a: [3, 2, 5] }),
    expected({ a: [7] }, { a: [3, 2, 5] }),
    {},
    expected({ a: [1] }),
    {},
    expected({ a: [2, 4, 8] }),
    expected({ a: [2, 8] }, { a: [4] }),
    expected({ a: [8] }, { a: [2, 4] }),
  ];
  const ofWorker = expected({ a: [2] }, { a: [4] });
  assert.deepEqual(await pagesOf(), [...wanted.flatMap(page => [page, page]), ofWorker]);
});

it("a group's page has the threads of its members", async () => {
  assert.deepEqual(await pagesOf('group'), [expected({ a: [3, 5, 7] })]);
});

it('threads of a primary that includes its own metrics are shown once, if the aggregator is lost', async () => {
  const program = path.join(__dirname, 'fixtures/primary-threads-program.js');
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  const both = (/** @type {string} */ count) => [count, count];
  assert.deepEqual(JSON.parse(stdout), ['2', '2', '3', '3'].map(both));
});
