'use strict';

// Native histograms of several processes: in columns, in the store and in retired totals.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check');
const { Gauge } = require('../../lib/metric/gauge');
const { Histogram } = require('../../lib/metric/histogram');
const { Summary } = require('../../lib/metric/summary');
const { viewOf } = require('../../lib/registry/metric-view');
const { countOf } = require('../../lib/series/merged-buckets');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { detectsReset } = require('../fixtures/native-reference');
const { runThrough } = require('../../lib/event-loop/slices');
const { makeWorker, bytesOf, scrape, snapshotAhead } = require('../fixtures/unit-scrape');

const NAME = 'n';

/** @param {object} [options] */
function nativeWorker(options) {
  const worker = makeWorker();
  return { ...worker, options, histogram: histogramIn(worker, options) };
}

function histogramIn({ registry }, options = {}) {
  return new Histogram({
    name: NAME,
    help: 'h',
    labelNames: ['a'],
    buckets: [],
    nativeHistogramBucketFactor: 1.1,
    registers: [registry],
    ...options,
  });
}

/** @returns {Record<string, any>} the buckets of each series of the page by its label */
function bucketsIn(store) {
  const families = runThrough(store.merge(new Set())).flatMap(family => family.view ?? []);
  const family = families.find(({ name }) => name === NAME);
  if (family === undefined) return {};
  return Object.fromEntries(
    Array.from(family.rows(), row => {
      const buckets = family.bucketsAt(row);
      const page = family.pageOf(row);
      const offset = family.offsetOf(row);
      const { length } = family.layout.marks;
      const classic = page.slice(offset, offset + length + 1).reduce((sum, count) => sum + count, 0);
      assert.equal(classic, countOf(buckets), 'classic buckets and native ones have the same count');
      return [new Map(family.labels(row, false)).get('a'), buckets];
    }),
  );
}

/** @returns {Record<string, any>} the buckets of a process by label */
function bucketsOf(histogram) {
  const { table, buckets } = viewOf(histogram);
  return Object.fromEntries(Array.from(table.liveRows(), row => [table.labelsOf(row).a, buckets.read(row)]));
}

describe('a native histogram in columns', () => {
  it('has in them all that was observed up to the capture, whether it was encoded ahead or not', async () => {
    const worker = nativeWorker();
    // Its digests are written ahead, too.
    const summary = new Summary({ name: 's', help: 'h', registers: [worker.registry] });
    const store = new ClusterStore();
    const check = snapshot => {
      store.apply(1, snapshot);
      assert.deepEqual(bucketsIn(store), bucketsOf(worker.histogram));
    };
    for (let i = 0; i < 300; i++) worker.histogram.observe({ a: `${i}` }, i - 50);
    summary.observe(1);
    check(await snapshotAhead(worker, 1, undefined));
    // Encoded ahead, then some of the rows change, come or go, and one comes back.
    await worker.source.prepare(1000);
    worker.histogram.observe({ a: '7' }, 1e-9);
    worker.histogram.observe({ a: 'new' }, 2);
    worker.histogram.zero({ a: '9' });
    for (const a of ['11', '12']) worker.histogram.remove({ a });
    worker.histogram.observe({ a: '12' }, 3);
    check(bytesOf(worker.source.captureWithLog(1, store.worker(1).position)));
    check(await snapshotAhead(worker, 1, store.worker(1).position));
    // Rows get new numbers.
    for (let i = 0; i < 3000; i++) worker.histogram.observe({ a: `short ${i}` }, i);
    await worker.source.prepare(1000);
    for (let i = 0; i < 3000; i++) worker.histogram.remove({ a: `short ${i}` });
    check(await snapshotAhead(worker, 1, store.worker(1).position));
    worker.histogram.reset();
    worker.histogram.observe({ a: '3' }, 5);
    check(bytesOf(worker.source.captureWithLog(1, store.worker(1).position)));
  });

  it('is as it was when the hooks were called that others wait for', async () => {
    const worker = nativeWorker();
    const slow = new Gauge({ name: 'slow', help: 'h', registers: [worker.registry], collect: () => hook });
    let end;
    const hook = new Promise(resolve => (end = resolve));
    slow.set(1);
    worker.histogram.observe({ a: 'x' }, 3);
    const before = bucketsOf(worker.histogram);
    const snapshot = worker.source.prepare(1000, {
      onWaiting: renew => {
        if (renew === undefined) return;
        worker.histogram.reset();
        worker.histogram.observe({ a: 'x' }, 1e6);
        end();
      },
      capture: ahead => bytesOf(worker.source.captureWithLog(1, undefined, { ahead })),
    });
    const store = new ClusterStore();
    store.apply(1, await snapshot);
    assert.deepEqual(bucketsIn(store), before);
  });
});

const size = fc.oneof(
  fc.double({ min: 1e-3, max: 1e3, noNaN: true }),
  fc.double({ min: -10, max: 10, noNaN: true }),
  fc.constantFrom(0, 1, 2, 0.5, 1e-300, -1e300),
);

/** @param {fc.Arbitrary<object>} options of a worker */
const history = options => {
  const number = fc.nat({ max: 5 });
  const one = (/** @type {string} */ name) => fc.record({ step: fc.constant(name), worker: number });
  const observed = {
    step: fc.constant('observe'),
    worker: number,
    options,
    a: fc.constantFrom('x', 'y'),
    values: fc.array(size, { minLength: 1, maxLength: 30 }),
  };
  return fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record(observed) },
      { weight: 2, arbitrary: one('scrape') },
      { weight: 1, arbitrary: one('end') },
      { weight: 1, arbitrary: one('next thread') },
    ),
    { maxLength: 25 },
  );
};

/**
 * Workers that observe, end, are followed by others, and aggregators that are lost. Each page is compared
 * with one process that has observed what these pages should have, and with the page before.
 *
 * @param {any[]} steps
 * @param {(page: Record<string, any>, reference: Record<string, any>) => void} compare
 */
function replay(steps, compare) {
  let store = new ClusterStore();
  /** @type {Map<number, ReturnType<typeof nativeWorker> & {id: number}>} */
  const workers = new Map();
  let nextId = 1;
  /** @type {[string, number, object][]} that a page should have */
  const shown = [];
  /** @type {Record<string, any>} */
  let before = {};
  for (const { step, worker: number, options, a, values } of [...steps, { step: 'scrape' }]) {
    const worker = workers.get(number);
    if (step === 'observe') {
      const own = worker ?? { ...nativeWorker(options), id: nextId++ };
      workers.set(number, own);
      for (const value of values) own.histogram.observe({ a }, value);
      shown.push(...values.map(value => [a, value, own]));
    } else if (step === 'end' && worker !== undefined) {
      // Of one that is killed, the page has what it had last.
      scrape(worker, store, worker.id);
      store.retire(worker.id);
      workers.delete(number);
    } else if (step === 'next thread') {
      const totals = store.encodeRetired();
      store = new ClusterStore();
      store.restoreRetired(bytesOf({ chunks: [totals], bytes: totals.length }));
    }
    if (step === 'observe') continue;
    for (const each of workers.values()) scrape(each, store, each.id);
    const page = bucketsIn(store);
    const reference = histogramIn(makeWorker(), shown[0]?.[2].options);
    for (const [label, value] of shown) reference.observe({ a: label }, value);
    compare(page, bucketsOf(reference));
    for (const [label, previous] of Object.entries(before))
      assert.equal(detectsReset(previous, page[label]), false, `a reset of ${label} after ${step}`);
    before = page;
  }
}

describe('the native histograms of a cluster', () => {
  it('keep schema and zero threshold when the workers end that these come from, and the thread is lost', () => {
    const observe = (/** @type {string} */ a, factor, nativeHistogramZeroThreshold, ...values) =>
      values.map(value => ({
        step: 'observe',
        options: { nativeHistogramBucketFactor: factor, nativeHistogramZeroThreshold },
        worker: a,
        a: 'x',
        values: [value],
      }));
    // The threshold 1.05 is inside a bucket (1, 1.09] of the second worker, and (1, 2] of the third one.
    const workers = [...observe('1', 1.1, 1.05, 3), ...observe('2', 1.1, 0, 1.07), ...observe('3', 2, 0, 5)];
    const ends = ['1', '2'].map(worker => ({ step: 'end', worker }));
    for (const last of ['scrape', 'next thread']) {
      replay([...workers, { step: 'scrape' }, ...ends, { step: last }], ({ x }) =>
        assert.deepEqual([x.schema, x.zeroThreshold, countOf(x)], [0, 2, 3]),
      );
    }
  });

  it('have each bucket that one process has with all observations, and no page shows a reset', () => {
    const options = { nativeHistogramBucketFactor: 1.005, nativeHistogramMaxBucketNumber: 20 };
    fc.assert(
      fc.property(history(fc.constant(options)), steps =>
        replay(steps, (page, reference) => assert.deepEqual(page, reference)),
      ),
      { numRuns: 100 },
    );
  });

  it('lose no observation, and show no reset, if workers have other options', () => {
    const options = fc.record({
      nativeHistogramBucketFactor: fc.constantFrom(1.005, 1.1, 1.5, 5, 1000),
      nativeHistogramZeroThreshold: fc.constantFrom(0, 2 ** -128, 0.3, 1, 3),
      nativeHistogramMaxBucketNumber: fc.constantFrom(4, 20, 160),
      buckets: fc.constantFrom([], [1, 2], [5]),
    });
    const countsOf = (/** @type {Record<string, any>} */ page) =>
      Object.fromEntries(Object.entries(page).map(([a, buckets]) => [a, countOf(buckets)]));
    fc.assert(
      fc.property(history(options), steps =>
        replay(steps, (page, reference) => assert.deepEqual(countsOf(page), countsOf(reference))),
      ),
      { numRuns: 300 },
    );
  });
});
