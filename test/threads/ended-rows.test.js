'use strict';

// Rows that end in a thread that lives: they have expired (`maxIdleSeconds`), or the program has removed
// them.

const assert = require('node:assert/strict');
const path = require('node:path');
const { describe, it } = require('node:test');
const { WorkerRegistry, register } = require('../../index');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const { TestThread } = require('./fixtures/start-thread');

const PROGRAM = path.join(__dirname, 'fixtures/expiring-thread.js');
const MAX_IDLE = 120;
const PATIENT = { timeout: 60_000 };
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

describe('rows that end in a thread', () => {
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

  for (const inPlace of [false, true]) {
    for (const [how, end] of /** @type {[string, readonly [string, object]][]} */ ([
      ['expires', EXPIRE],
      ['is removed by remove()', ['remove', { key: 'a' }]],
      ['is removed by removeMatching()', ['removeMatching', { key: 'a' }]],
    ])) {
      const where = inPlace ? ' (in place)' : '';
      it(`the sum of a series that ${how} in one thread stays while another one has it${where}`, async t => {
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
  }
});
