'use strict';

// Threads for several minutes. The short forms are in test/threads.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');
const util = require('node:util');
const v8 = require('node:v8');
const vm = require('node:vm');
const { WorkerRegistry, register } = require('../../index');
const { joinedThread } = require('../threads/fixtures/start-thread');

const POOL_THREADS = 200;
const PROGRAMS = 25;
const PATIENT = { timeout: 60_000 };
/** Of heap and array buffers, while a hundred threads come and go. */
const MOST_GROWTH_BYTES = 4 * 2 ** 20;

describe('threads, for minutes', () => {
  /** @type {WorkerRegistry} */
  let registry;
  /** @type {TestThread[]} */
  let threads;

  beforeEach(() => {
    threads = [];
    registry = new WorkerRegistry(undefined, true, PATIENT);
  });

  afterEach(async () => {
    await Promise.all(threads.map(thread => thread.terminate()));
    await registry.shutdown();
    register.clear();
  });

  /** @param {...(string | [string, object])} actions */
  async function start(...actions) {
    const thread = await joinedThread(...actions);
    threads.push(thread);
    return thread;
  }

  it(`${POOL_THREADS} threads that come and go leave their counts, and nothing else`, async t => {
    v8.setFlagsFromString('--expose-gc');
    const collectGarbage = vm.runInNewContext('gc');
    /** @type {number[]} */
    const memory = [];
    /** @type {number[]} */
    const descriptors = [];
    for (let i = 1; i <= POOL_THREADS; i++) {
      const actions = /** @type {[string, object][]} */ ([
        ['inc', { kind: 'a', value: 1 }],
        ['observe', { kind: 'x', value: 3 }],
        ['set', { value: 1 }],
        ['many', { count: 100 }],
      ]);
      const thread = await joinedThread(...actions);
      if (i % 3 === 0) await thread.terminate();
      else await thread.end(i % 3 === 1 ? 'exit' : 'throw');
      const page = await registry.workerMetrics();
      assert.match(page, new RegExp(`^jobs_total\\{kind="a"\\} ${i}$`, 'm'));
      assert.match(page, new RegExp(`^seconds_count\\{kind="x"\\} ${i}$`, 'm'));
      assert.match(page, new RegExp(`^jobs_total\\{kind="kind99"\\} ${i}$`, 'm'));
      assert.doesNotMatch(page, /^queue_size\{/m);
      assert.equal(registry.workerCount(), 0);
      if (i % (POOL_THREADS / 2) !== 0) continue;
      await pause(100);
      collectGarbage();
      const { heapUsed, external } = process.memoryUsage();
      memory.push(heapUsed + external);
      if (fs.existsSync('/proc/self/fd')) descriptors.push(fs.readdirSync('/proc/self/fd').length);
    }
    t.diagnostic(`bytes ${memory.join(', ')}; descriptors ${descriptors.join(', ')}`);
    assert.ok(memory[1] - memory[0] < MOST_GROWTH_BYTES, `${memory}`);
    assert.equal(descriptors[1], descriptors[0]);
  });

  it('no count falls or is shown twice while a thread leaves and joins again and again', async () => {
    const thread = await start(['many', { count: 3000 }]);
    const shared = new SharedArrayBuffer(16);
    const limit = new Int32Array(shared, 4, 1);
    const counted = new Float64Array(shared, 8, 1);
    assert.equal(await thread.do('rejoin', { shared }), 'rejoins');
    let last = 0;
    for (let scrape = 0; scrape < 200; scrape++) {
      const before = counted[0];
      // Without a limit, a busy machine would have it join faster than the aggregator can follow.
      Atomics.store(limit, 0, before + 50);
      const page = await registry.workerMetrics();
      const shown = Number(/^jobs_total\{kind="rejoin"\} (\d+)$/m.exec(page)?.[1] ?? 0);
      // It records before it counts.
      assert.ok(shown >= Math.max(before, last) && shown <= counted[0] + 1, `${before}, ${last}, ${shown}`);
      assert.equal(page.match(/^jobs_total\{kind="kind\d+"\} 1$/gm)?.length, 3000);
      last = shown;
    }
    Atomics.store(new Int32Array(shared), 0, 1);
  });

  it(`pages of random programs with threads are those of a model, ${PROGRAMS} times`, async t => {
    const first = Number(process.env.PROPERTY_SEED ?? Math.floor(Math.random() * 2 ** 30));
    t.diagnostic(`PROPERTY_SEED=${first}`);
    let [pages, late] = [0, 0];
    for (let seed = first; seed < first + PROGRAMS; seed++) {
      const random = randomNumbers(seed);
      const below = (/** @type {number} */ end) => Math.floor(random() * end);
      /** @type {{thread: TestThread, counts: Record<string, number>}[]} */
      const live = [];
      /** @type {Books} */
      const books = { ended: {}, folded: {}, removed: new Set() };
      for (let round = 0; round < 40; round++) {
        // It reads while the threads act, and may share its work with the one that is checked.
        const overlapping = random() < 0.5 ? registry.workerMetrics() : undefined;
        if (live.length < 2 || (live.length < 5 && random() < 0.3))
          live.push({ thread: await start(), counts: { plain_total: 0, sizes_count: 0, sizes_sum: 0 } });
        // Otherwise a page may or may not see that no thread has a series for a moment, or that a thread has
        // ended before another one removes the series.
        const mayRemove = overlapping === undefined && random() < 0.5;
        for (const each of [...live]) await actAtRandom(each, below, live, books, mayRemove);
        settle(books, live);
        const expected = { ...books.ended };
        for (const counts of [books.folded, ...live.map(({ counts }) => counts)]) addCounts(expected, counts);
        const shown = countsOn(await registry.workerMetrics());
        await overlapping;
        pages++;
        if (util.isDeepStrictEqual(shown, expected)) continue;
        late++;
        const next = countsOn(await registry.workerMetrics());
        assert.deepEqual(next, expected, `PROPERTY_SEED=${seed}, round ${round}`);
        t.diagnostic(`PROPERTY_SEED=${seed}, round ${round}: ${JSON.stringify([shown, expected])}`);
      }
      await Promise.all(threads.splice(0).map(thread => thread.terminate()));
      await registry.shutdown();
      registry = new WorkerRegistry(undefined, true, PATIENT);
    }
    t.diagnostic(`${pages} pages, ${late} of them right at the next scrape only`);
  });
});

/**
 * @param {number} seed
 * @returns {() => number} from 0 to 1, as Math.random()
 */
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * @param {Record<string, number>} sums
 * @param {Record<string, number>} counts
 */
function addCounts(sums, counts) {
  for (const [key, count] of Object.entries(counts)) sums[key] = (sums[key] ?? 0) + count;
}

/**
 * Counts that threads have left: of ended threads, and of series that threads have removed.
 *
 * @typedef {{ended: Record<string, number>, folded: Record<string, number>, removed: Set<string>}} Books
 */

/**
 * A page: removed series take with them what ended threads had counted, and leave when no thread has them.
 *
 * @param {Books} books
 * @param {{counts: Record<string, number>}[]} live
 */
function settle({ ended, folded, removed }, live) {
  for (const key of removed) {
    addCounts(folded, { [key]: ended[key] ?? 0 });
    delete ended[key];
  }
  removed.clear();
  for (const key of Object.keys(folded))
    if (!(key in ended) && !live.some(({ counts }) => key in counts)) delete folded[key];
}

/**
 * A few things that a thread may do; the model does the same.
 *
 * @param {{thread: TestThread, counts: Record<string, number>}} each
 * @param {(end: number) => number} below a random whole number
 * @param {any[]} live
 * @param {Books} books
 * @param {boolean} mayRemove whether series may be removed; otherwise threads may end
 */
async function actAtRandom(each, below, live, { ended, folded, removed }, mayRemove) {
  const { thread, counts } = each;
  for (let step = below(8); step > 0; step--) {
    const [kind, value, choice] = [`kind${below(8)}`, 1 + below(5), below(20)];
    const key = `jobs_total{kind="${kind}"}`;
    if (choice < 9) {
      await thread.do('inc', { kind, value });
      addCounts(counts, { [key]: value });
    } else if (choice < 11) {
      await thread.do('plain', { value });
      addCounts(counts, { plain_total: value });
    } else if (choice < 14) {
      await thread.do('summarize', { value });
      addCounts(counts, { sizes_count: 1, sizes_sum: value });
    } else if (choice < 17) {
      if (!mayRemove) continue;
      await thread.do('remove', { kind });
      if (!(key in counts)) continue;
      addCounts(folded, { [key]: counts[key] });
      removed.add(key);
      delete counts[key];
    } else if (choice === 17) {
      if (!mayRemove) continue;
      await thread.do('reset');
      for (const name of Object.keys(counts)) if (name.startsWith('jobs_total')) delete counts[name];
    } else if (choice === 18) {
      await thread.doAll('leave', 'join');
    } else if (!mayRemove) {
      live.splice(live.indexOf(each), 1);
      addCounts(ended, counts);
      if (value === 1) await thread.terminate();
      else await thread.end(value % 2 === 0 ? 'exit' : 'throw');
      return;
    }
  }
}

/** @param {string} page @returns {Record<string, number>} what the model has of it */
function countsOn(page) {
  const lines = page.matchAll(/^((?:jobs|plain)_total\S*|sizes_(?:sum|count)) (\d+)$/gm);
  return Object.fromEntries(Array.from(lines, ([, key, value]) => [key, Number(value)]));
}
