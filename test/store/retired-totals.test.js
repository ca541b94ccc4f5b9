'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { Counter, Gauge, Histogram, Summary } = require('../..');
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
const { randomFrom } = require('../../benchmarks/shared/random');
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

test('retired totals: counters, histograms and summaries of a dead worker are kept, other metrics are dropped', () => {
  const store = new ClusterStore();
  const worker = lastingWorker();
  worker.use(2);
  const registers = [worker.registry];
  new Gauge({ name: 'g', help: 'x', registers }).set(1);
  for (const aggregator of ['first', 'min', 'max', 'average', 'omit', 'mine']) {
    new Counter({ name: `c_${aggregator}`, help: 'x', aggregator, registers }).inc();
  }
  scrape(worker, store, 1);
  assert.strictEqual(store.retire(1), true);
  assert.deepStrictEqual(
    samplesOf(textOf(store, { custom: ['mine'] })),
    new Map([
      [seriesKey('c', { a: 'x' }), 2],
      [seriesKey('h_bucket', { le: 1, a: 'x' }), 0],
      [seriesKey('h_bucket', { le: 5, a: 'x' }), 1],
      [seriesKey('h_bucket', { le: '+Inf', a: 'x' }), 1],
      [seriesKey('h_sum', { a: 'x' }), 2],
      [seriesKey('h_count', { a: 'x' }), 1],
      [seriesKey('s', { quantile: 0.5, a: 'x' }), 2],
      [seriesKey('s_sum', { a: 'x' }), 2],
      [seriesKey('s_count', { a: 'x' }), 1],
    ]),
  );
});

test('retired totals: numbers from before a change of default labels are not added', () => {
  const store = new ClusterStore();
  const worker = lastingWorker();
  worker.use(1);
  worker.registry.setDefaultLabels({ zone: 'a' });
  scrape(worker, store, 1);
  textOf(store);
  worker.registry.setDefaultLabels({ zone: 'b' });
  scrape(worker, store, 1);
  store.retire(1);
  const keys = [...samplesOf(textOf(store)).keys()].filter(key => key.startsWith('c '));
  assert.deepStrictEqual(keys, [seriesKey('c', { a: 'x', zone: 'b' })]);
});

test('retired totals: a gauge does not get the totals of a counter of the same name', () => {
  const { clock, store } = storeWithClock({ retiredMaxAge: HOUR });
  const [former, present] = [makeWorker(), makeWorker()];
  new Counter({ name: 'm', help: 'x', registers: [former.registry] }).inc(1000);
  new Gauge({ name: 'm', help: 'x', registers: [present.registry] }).set(5);
  scrape(former, store, 1);
  scrape(present, store, 2);
  store.retire(1);
  for (let i = 0; i < 3; i++) {
    assert.deepStrictEqual([...samplesOf(textOf(store))], [[seriesKey('m'), 5]]);
    clock.now += HOUR;
  }
  store.retire(2);
  textOf(store);
  assert.strictEqual(textOf(store), '\n');
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

test('retired totals: a series that no live worker exposes is dropped after retiredMaxAge, and starts from zero when it returns', () => {
  const { clock, store } = storeWithClock({ retiredMaxAge: HOUR });
  const dead = lastingWorker();
  dead.use(1, 'passing');
  dead.use(1, 'lasting');
  const alive = lastingWorker();
  alive.use(1, 'lasting');
  scrape(dead, store, 1);
  scrape(alive, store, 2);
  store.retire(1);
  const seen = () => {
    const samples = samplesOf(textOf(store));
    return ['passing', 'lasting'].map(a => samples.get(seriesKey('c', { a })));
  };
  assert.deepStrictEqual(seen(), [1, 2]);
  for (let minutes = 0; minutes < 60; minutes += 10) {
    clock.now = START + minutes * 60_000;
    assert.deepStrictEqual(seen(), [1, 2]);
  }
  clock.now = START + HOUR;
  assert.deepStrictEqual(seen(), [1, 2]);
  clock.now = START + HOUR + 1;
  seen(); // may be shown in one more scrape
  assert.deepStrictEqual(seen(), [undefined, 2]);
  clock.now = START + 50 * HOUR;
  seen();
  assert.deepStrictEqual(seen(), [undefined, 2]);
  alive.use(5, 'passing');
  scrape(alive, store, 2);
  assert.deepStrictEqual(seen(), [5, 2]);
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
  const retired = new RetiredSource(() => START);
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
  family.addRetired();
  const retiring = { retired, fold: assert.fail, now: START, maxAge: HOUR, isComplete: true };
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

// `npm run test:long` has 16 times as many steps.
const STEPS = fc.effort > 1 ? 400 : 25;

test('retired totals: no counter falls, and no start timestamp rises, while workers die and join at random', t => {
  t.mock.timers.enable({ apis: ['Date'], now: START });
  const random = randomFrom(2026);
  const pick = list => list[Math.floor(random() * list.length)];
  const series = Array.from({ length: 30 }, (_, i) => `series ${i}`);
  const exact = new Map(series.map(a => [a, 0]));
  const workers = new Map();
  let nextId = 1;
  let store = new ClusterStore();
  let before = new Map();
  const starts = new Map();
  /**
   * Most series do not change between two deaths: otherwise a fall by one unit in the last place would not
   * show.
   */
  const check = () => {
    const samples = samplesOf(textOf(store));
    for (const [key, value] of samples) {
      if (key.includes('quantile')) continue;
      if (!(value >= (before.get(key) ?? 0))) assert.fail(`${key} fell from ${before.get(key)} to ${value}`);
    }
    before = samples;
    for (const { view } of runThrough(store.merge(new Set()))) {
      for (const row of view.rows()) {
        const key = `${view.name} ${view.labelText(row, false)}`;
        const start = view.starts.startAt(row);
        if (!(start <= (starts.get(key) ?? Infinity) && start >= START / 1000))
          assert.fail(`${key}: ${start}`);
        starts.set(key, start);
      }
    }
  };
  for (let step = 0; step < STEPS; step++) {
    t.mock.timers.tick(1000);
    while (workers.size < 2 || (workers.size < 7 && random() < 0.5)) workers.set(nextId++, lastingWorker());
    for (let i = 0; i < 167; i++) {
      const a = pick(series);
      const value = random() * 10 ** Math.floor(random() * 6 - 3);
      // Three sums: the counter, the histogram's and the summary's.
      workers.get(pick([...workers.keys()])).use(value, a);
      exact.set(a, exact.get(a) + value);
    }
    for (const [id, worker] of workers) scrape(worker, store, id);
    check();
    for (let deaths = Math.floor(random() * 3); deaths > 0; deaths--) {
      const id = pick([...workers.keys()]);
      store.retire(id);
      workers.delete(id);
      check();
    }
    if (random() < 0.1) {
      store = restarted(store);
      for (const [id, worker] of workers) scrape(worker, store, id);
      check();
    }
  }
  for (const a of series) {
    const total = before.get(seriesKey('c', { a }));
    assert.ok(Math.abs(total - exact.get(a)) < 1e-9 * total, `${a}: ${total}, ${exact.get(a)}`);
    assert.strictEqual(before.get(seriesKey('h_sum', { a })), total);
    assert.strictEqual(before.get(seriesKey('s_sum', { a })), total);
  }
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

/** A store with retired totals of every kind. */
function richStore() {
  const { clock, store } = storeWithClock();
  for (const [id, options] of [
    [1, {}],
    [2, { buckets: [1, 2, 10] }],
    [3, {}],
  ]) {
    const worker = lastingWorker(options);
    worker.registry.setDefaultLabels(id === 3 ? { zone: 'ü"\\\n' } : {});
    for (let i = 0; i < 40; i++) worker.use((((i * 0.1) % 3) + 0.1) * 1000 ** id, `v${i % 4}`);
    new Counter({ name: 'plain', help: 'multi\nline \\', registers: [worker.registry] }).inc(0.1 * id);
    scrape(worker, store, id);
    store.retire(id);
    clock.now += 1000;
  }
  return { clock, store };
}

test('retired totals: restoring them preserves every bit', () => {
  const { store } = richStore();
  const fresh = restarted(store);
  assert.strictEqual(textOf(fresh), textOf(store));
  const again = restarted(fresh);
  assert.strictEqual(textOf(again), textOf(store));
  for (const id of [1, 2, 3]) assert.strictEqual(again.isClosed(id), true);
  // Rounding errors and digests included: later additions round as without a restart.
  const stores = [store, fresh, again];
  for (let id = 10; id < 60; id++) {
    const worker = lastingWorker();
    worker.use(id * 0.1, `v${id % 4}`);
    for (const one of stores) scrape(worker, one, id);
    for (const one of stores) one.retire(id);
    assert.strictEqual(new Set(stores.map(one => textOf(one))).size, 1);
  }
});

test('retired totals: after a restart the age of their series counts from zero', () => {
  const { clock, store } = storeWithClock({ retiredMaxAge: HOUR });
  const worker = lastingWorker();
  worker.use(1);
  scrape(worker, store, 1);
  store.retire(1);
  clock.now += HOUR - 1;
  const fresh = restarted(store);
  assert.strictEqual(textOf(fresh), textOf(store));
  clock.now += 2;
  textOf(store);
  assert.strictEqual(textOf(store), '\n');
  assert.notStrictEqual(textOf(fresh), '\n');
  clock.now += HOUR;
  textOf(fresh);
  assert.strictEqual(textOf(fresh), '\n');
});

test('retired totals: a snapshot is refused as retired totals, and the other way round', () => {
  const store = new ClusterStore();
  const worker = lastingWorker();
  const snapshot = scrape(worker, store, 1);
  assert.throws(() => store.restoreRetired(copyOf(snapshot)), { code: 'worker' });
  assert.throws(() => store.apply(2, copyOf(store.encodeRetired())), { code: 'worker' });
});
