'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { Counter, Histogram, Summary } = require('../..');
const { ClusterFamily } = require('../../lib/store/cluster-family');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { RetiredSource } = require('../../lib/store/retired-source');
const { runThrough } = require('../../lib/event-loop/slices');
const {
  makeWorker,
  copyOf,
  scrape,
  textOf,
  renderText,
  samplesOf,
  seriesKey,
} = require('../fixtures/unit-scrape');
require('../fixtures/extremes');

const START = 1_700_000_000_000;
const HOUR = 3_600_000;

/** A worker with one metric of each kind whose totals are retired. */
function lastingWorker({ labels = {}, buckets = [1, 5], summary = {} } = {}) {
  const worker = makeWorker();
  const common = { help: 'x', labelNames: ['a'], registers: [worker.registry] };
  const counter = new Counter({ name: 'c', ...common });
  const histogram = new Histogram({ name: 'h', buckets, ...common });
  const observed = new Summary({ name: 's', percentiles: [0.5], ...common, ...summary });
  return {
    ...worker,
    use(value, a = 'x') {
      counter.inc({ a, ...labels }, value);
      histogram.observe({ a, ...labels }, value);
      observed.observe({ a, ...labels }, value);
    },
  };
}

/** A store whose clock the test sets. */
function storeWithClock(options) {
  const clock = { now: START };
  const store = new ClusterStore({ now: () => clock.now, ...options });
  return { clock, store };
}

function restarted(store, options) {
  const fresh = new ClusterStore({ now: store.now, retiredMaxAge: store.retiredMaxAge, ...options });
  fresh.restoreRetired(copyOf(store.encodeRetired()));
  return fresh;
}

test('retired totals: those of metrics with another aggregator than the sum are dropped', () => {
  const store = new ClusterStore();
  const worker = makeWorker();
  for (const aggregator of ['sum', 'first', 'min', 'max', 'average', 'omit', 'mine'])
    new Counter({ name: aggregator, help: 'x', aggregator, registers: [worker.registry] }).inc();
  scrape(worker, store, 1);
  assert.strictEqual(store.retire(1), true);
  assert.deepStrictEqual(samplesOf(textOf(store, { custom: ['mine'] })), new Map([[seriesKey('sum'), 1]]));
});

test('retired totals: the digest of a dead worker is kept unless its summary has a sliding window', () => {
  for (const [summary, expected] of [
    [{}, 10],
    [{ maxAgeSeconds: 60, ageBuckets: 3 }, 0],
  ]) {
    const store = new ClusterStore();
    const worker = lastingWorker({ summary });
    for (const value of [1, 10, 100]) worker.use(value);
    scrape(worker, store, 1);
    assert.strictEqual(samplesOf(textOf(store)).get(seriesKey('s', { quantile: 0.5, a: 'x' })), 10);
    store.retire(1);
    const samples = samplesOf(textOf(store));
    assert.strictEqual(samples.get(seriesKey('s', { quantile: 0.5, a: 'x' })), expected);
    assert.strictEqual(samples.get(seriesKey('s_count', { a: 'x' })), 3);
  }
});

test('retired totals: with retiredMaxAge 0 they are shown in one scrape only, with Infinity for ever', () => {
  for (const [retiredMaxAge, expected] of [
    [0, '\n'],
    [Infinity, undefined],
  ]) {
    const { clock, store } = storeWithClock({ retiredMaxAge });
    const worker = lastingWorker();
    worker.use(1);
    scrape(worker, store, 1);
    store.retire(1);
    const text = textOf(store);
    assert.strictEqual(samplesOf(text).get(seriesKey('c', { a: 'x' })), 1);
    clock.now += 1000 * HOUR;
    textOf(store);
    assert.strictEqual(textOf(store), expected ?? text);
    assert.strictEqual(store.isEmpty, expected !== undefined);
  }
});

test('retired totals: a label set is as old as the last worker that had it, also one with other buckets', () => {
  const { clock, store } = storeWithClock({ retiredMaxAge: HOUR });
  [{ buckets: [1, 5] }, { buckets: [1, 2] }].forEach((options, i) => {
    const worker = lastingWorker(options);
    worker.use(1);
    scrape(worker, store, i + 1);
    clock.now = START + (i * HOUR) / 2;
    store.retire(i + 1);
    textOf(store);
  });
  const count = () => samplesOf(textOf(store)).get(seriesKey('h_count', { a: 'x' }));
  for (const [time, expected] of [
    [HOUR + 1, 2],
    [HOUR * 1.5, 2],
    [HOUR * 1.5 + 1, 2], // may be shown in one more scrape
    [HOUR * 1.5 + 2, undefined],
  ]) {
    clock.now = START + time;
    assert.strictEqual(count(), expected, `${time}`);
  }
});

test('retired totals: they are unsaved once rows have left, even if as many were added meanwhile', () => {
  const { clock, store } = storeWithClock({ retiredMaxAge: HOUR });
  ['x', 'y'].forEach((a, i) => {
    const worker = lastingWorker();
    worker.use(1, a);
    scrape(worker, store, i + 1);
    store.retire(i + 1);
    if (i > 0) return;
    store.encodeRetired();
    store.noteSaved();
    clock.now += HOUR + 1;
  });
  assert.strictEqual(store.isUnsaved, false);
  assert.ok(textOf(store).includes('a="x"'));
  assert.strictEqual(store.isUnsaved, true);
  assert.ok(!textOf(store).includes('a="x"'));
});

test('retired totals: those that were removed leave no rounding error to the next worker with the label set', () => {
  const store = new ClusterStore();
  for (let id = 1; id <= 4; id++) {
    const worker = lastingWorker();
    worker.use(0.1);
    worker.use(0.1, 'other');
    scrape(worker, store, id);
    store.retire(id);
    if (id === 3) assert.strictEqual(store.removeRetired([['a', 'x']]), 3);
  }
  for (const name of ['c', 'h_sum', 's_sum'])
    assert.strictEqual(samplesOf(textOf(store)).get(seriesKey(name, { a: 'x' })), 0.1);
});

test('retired totals: columns that are not added up are combined by their rule, beside rounding errors', () => {
  const layout = { kind: 'extremes', marks: [] };
  const definition = { name: 'e', help: 'h', type: 'extremes', aggregator: 'sum', windowed: false };
  const retired = new RetiredSource();
  const totals = retired.totalsOf({ ...definition, layout, labelNames: ['a'], maxIdleSeconds: 0 }, ['a']);
  for (const columns of [
    [5, 5, 0.1],
    [3, 7, 0.2],
    [2, 9, 0.3],
  ])
    totals.add({ a: 'x' }, Float64Array.from(columns), 0, {}, START);
  assert.strictEqual(totals.views.length, 2);
  const family = new ClusterFamily(totals.definition, assert.fail);
  family.begin(1);
  family.retired = [totals];
  const retiring = { now: START, maxAge: HOUR, isComplete: true };
  runThrough(family.merge('sum', retiring));
  assert.deepStrictEqual(
    samplesOf(renderText([family.view()])),
    new Map([
      [seriesKey('e_least', { a: 'x' }), 2],
      [seriesKey('e_greatest', { a: 'x' }), 9],
      [seriesKey('e_count', { a: 'x' }), 0.6],
    ]),
  );
});

test('retired totals: with retiredMaxAge 0, what a live worker has stays, however long a merge takes', () => {
  let now = START;
  const store = new ClusterStore({ retiredMaxAge: 0, now: () => now++ });
  for (const id of [1, 2]) {
    const worker = lastingWorker();
    worker.use(1);
    scrape(worker, store, id);
  }
  store.retire(1);
  for (let i = 0; i < 3; i++) assert.strictEqual(samplesOf(textOf(store)).get(seriesKey('c', { a: 'x' })), 2);
});

test('retired totals: a wall clock that jumps drops nothing, in this thread or the next', t => {
  t.mock.timers.enable({ apis: ['Date'], now: START });
  const store = new ClusterStore({ retiredMaxAge: HOUR });
  const worker = lastingWorker();
  worker.use(1);
  scrape(worker, store, 1);
  store.retire(1);
  const text = textOf(store);
  for (const days of [1, -1]) {
    t.mock.timers.setTime(START + days * 24 * HOUR);
    for (let i = 0; i < 2; i++) assert.strictEqual(textOf(store), text);
  }
  t.mock.timers.setTime(START + 24 * HOUR);
  const next = restarted(store);
  for (let i = 0; i < 2; i++) assert.strictEqual(textOf(next), text);
});

test('retired totals: labels of workers that come and go do not accumulate', () => {
  const { clock, store } = storeWithClock({ retiredMaxAge: HOUR });
  const worker = lastingWorker();
  for (let id = 1; id <= 30; id++) {
    const passing = lastingWorker();
    for (let i = 0; i < 20; i++) passing.use(1, `${id} ${i}`);
    scrape(passing, store, id);
    scrape(worker, store, 1_000_000);
    textOf(store);
    store.retire(id);
    clock.now += HOUR / 5;
  }
  const series = [...samplesOf(textOf(store)).keys()].filter(key => key.startsWith('c '));
  assert.ok(series.length <= 7 * 20, `${series.length} series`);
  assert.ok(store.encodeRetired().length < 100_000, `${store.encodeRetired().length} bytes`);
});

test('ClusterStore: it stores the ids of the last few thousand dead workers', () => {
  const store = new ClusterStore();
  for (let id = 1; id <= 10_000; id++) store.retire(id);
  assert.strictEqual(store.isClosed(10_000), true);
  assert.strictEqual(store.isClosed(6000), true);
  assert.strictEqual(store.isClosed(1), false);
  assert.strictEqual(restarted(store).isClosed(6000), true);
});

test('retired totals: infinities and NaN give the result of a plain sum', () => {
  for (const [values, expected] of [
    [[Infinity, 1], Infinity],
    [[1, Infinity], Infinity],
    [[1.7e308, 1.7e308], Infinity],
  ]) {
    const store = new ClusterStore();
    // A counter refuses infinity, but its sum may become infinite.
    values.forEach((value, i) => {
      const worker = makeWorker();
      const counter = new Counter({ name: 'c', help: 'x', registers: [worker.registry] });
      for (const part of value === Infinity ? [1.7e308, 1.7e308] : [value]) counter.inc(part);
      scrape(worker, store, i + 1);
    });
    for (let id = 1; id <= values.length; id++) {
      store.retire(id);
      assert.strictEqual(samplesOf(textOf(store)).get(seriesKey('c')), expected);
    }
    assert.strictEqual(samplesOf(textOf(restarted(store))).get(seriesKey('c')), expected);
  }
});

test('retired totals: a snapshot is refused as retired totals, and the other way round', () => {
  const store = new ClusterStore();
  const worker = lastingWorker();
  const snapshot = scrape(worker, store, 1);
  assert.throws(() => store.restoreRetired(copyOf(snapshot)), { code: 'worker' });
  assert.throws(() => store.apply(2, copyOf(store.encodeRetired())), { code: 'worker' });
});
