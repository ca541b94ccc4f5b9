'use strict';

// Rows that end while their process lives: what captures offer of them, until the reader has it.

const { describe, it } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { Counter, Gauge, Registry, Summary } = require('../..');
const { Source } = require('../../lib/source/source');
const { WorkerSeries } = require('../../lib/store/worker-series');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { runThrough } = require('../../lib/event-loop/slices');
const { viewOf } = require('../../lib/registry/metric-view');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const { MovedClock } = require('../fixtures/idle-clock');
const { bytesOf, scrape, ...fixtures } = require('../fixtures/unit-scrape');

const makeWorker = registries => fixtures.makeWorker(registries, { keepsEnded: true });

const WORKER = 1;

/** What a store does with the columns of one process: it takes each batch once. */
class Reader {
  series = new WorkerSeries(WORKER);
  taken = 0;
  /** By label set, from batches. */
  folded = new Map();

  take(bytes) {
    this.series.apply(bytes);
    const ended = this.ended();
    for (const { batch, value, labels } of ended) if (batch > this.taken) add(this.folded, labels, value);
    this.taken = Math.max(this.taken, ...ended.map(({ batch }) => batch));
    return ended;
  }

  /** What is offered: one object a row. */
  ended() {
    return this.series.sources.flatMap(source => (source.ended === undefined ? [] : rowsOf(source)));
  }

  /** By label set: what live rows and all batches taken have counted. */
  totals() {
    const totals = new Map(this.folded);
    for (const source of this.series.sources)
      for (const { labels, value } of source.ended === undefined && source.definition.type !== 'gauge'
        ? rowsOf(source)
        : [])
        add(totals, labels, value);
    return totals;
  }
}

function add(totals, labels, value) {
  const key = JSON.stringify(labels);
  totals.set(key, (totals.get(key) ?? 0) + value);
}

function rowsOf(source) {
  const { definition, rows, pages, starts, extras, ended } = source;
  const width = pages[0].length / source.rowCount;
  return Array.from(source.order, row => ({
    ...ended,
    name: definition.name,
    labels: rows.labelsOf(row),
    numbers: [...pages[0].subarray(row * width, (row + 1) * width)],
    value: pages[0][row * width],
    start: typeof starts === 'number' ? starts : starts?.seconds[row],
    centroids: extras.digestOf && [...extras.digestOf(row).centroids],
    buckets: extras.buckets?.read(row),
    maxIdleSeconds: definition.maxIdleSeconds,
  }));
}

/** The columns of an answer, as a worker writes them; `saved` is what the request says. */
async function answer({ source }, reader, saved) {
  source.asked(saved);
  return reader.take(
    await source.prepare(1000, {
      capture: ahead => bytesOf(source.captureWithLog(WORKER, reader.series.position, { ahead })),
    }),
  );
}

/** The columns of a checkpoint or of the end of the process, which nobody has asked for. */
function unasked({ source }, reader, isLast = false) {
  return reader.take(bytesOf(source.captureWithLog(WORKER, undefined, { isLast })));
}

function workerWith(options) {
  const worker = makeWorker();
  const counter = new Counter({
    name: 'c',
    help: 'h',
    labelNames: ['a'],
    registers: [worker.registry],
    ...options,
  });
  return { ...worker, counter };
}

describe('rows that have ended', () => {
  for (const type of METRIC_TYPES) {
    const { name, make, record, lasts } = type;
    it(`of a ${name} are offered with all that they had, or not at all if its totals do not last`, async t => {
      const clock = new MovedClock(t);
      const worker = makeWorker();
      const options = { name: 'm', help: 'h', labelNames: ['a'], registers: [worker.registry] };
      const metric = make({ ...options, maxIdleSeconds: 900 });
      const reader = new Reader();
      for (const a of ['kept', 'removed', 'expired', 'expired too']) record(metric, { a }, 2);
      await answer(worker, reader);
      const before = new Map(rowsOf(reader.series.sources[0]).map(row => [row.labels.a, row]));
      for (let i = 0; i < 10; i++, ['kept', 'removed'].forEach(a => record(metric, { a }, 1)))
        await clock.move(120);
      metric.remove({ a: 'removed' });
      await null;
      // What is recorded from now on is another row.
      record(metric, { a: 'removed' }, 7);
      const ended = await answer(worker, reader);
      assert.deepStrictEqual(
        ended.map(({ labels, isRemoved }) => [labels.a, isRemoved]),
        lasts
          ? [
              ['expired', false],
              ['expired too', false],
              ['removed', true],
            ]
          : [],
      );
      for (const row of ended.slice(0, 2)) {
        const { batch, isRemoved } = row;
        assert.deepStrictEqual(row, { batch, isRemoved, ...before.get(row.labels.a) });
      }
      assert.deepStrictEqual(await answer(worker, reader, 0), ended, 'and again');
      assert.deepStrictEqual(await answer(worker, reader, reader.taken), []);
    });
  }

  it('are those of sums only, and not those of a reset', async () => {
    const { registry, ...worker } = makeWorker();
    const options = { help: 'h', labelNames: ['a'], registers: [registry] };
    const first = new Counter({ name: 'first', aggregator: 'first', ...options });
    const reset = new Counter({ name: 'reset', ...options });
    const assigned = new Counter({ name: 'assigned', ...options });
    const only = new Counter({ name: 'only', help: 'h', registers: [registry] });
    for (const metric of [first, reset, assigned]) metric.inc({ a: 1 });
    only.inc(5);
    const reader = new Reader();
    await answer(worker, reader);
    first.remove({ a: 1 });
    reset.reset();
    assigned.hashMap = {};
    only.remove();
    const shown = (await answer(worker, reader)).map(({ name, value }) => [name, value]);
    assert.deepStrictEqual(shown, [['only', 5]]);
  });

  for (const { name, make, record } of METRIC_TYPES.filter(({ lasts }) => lasts)) {
    it(`of a ${name} are dropped if the program has removed them and records them again in the same step`, async () => {
      const worker = makeWorker();
      const metric = make({ name: 'm', help: 'h', labelNames: ['a'], registers: [worker.registry] });
      const reader = new Reader();
      const replace = () => {
        for (const a of ['x', 'y']) metric.remove({ a });
        for (const a of ['x', 'y']) record(metric, { a }, 2);
      };
      replace();
      await answer(worker, reader);
      const [first] = reader.series.sources.map(rowsOf);
      const { name: log } = worker.source.log;
      for (let i = 0; i < 50; i++) {
        replace();
        if (i % 2 === 0) replace();
        if (i % 3 === 0) await null;
        assert.deepStrictEqual(await answer(worker, reader), []);
      }
      assert.strictEqual(worker.source.log.name, log);
      const numbersOf = rows => rows.map(({ numbers, centroids, buckets }) => [numbers, centroids, buckets]);
      assert.deepStrictEqual(numbersOf(rowsOf(reader.series.sources[0])), numbersOf(first));
      metric.remove({ a: 'y' });
      await null;
      replace();
      const labels = (await answer(worker, reader)).map(({ labels: { a } }) => a);
      assert.deepStrictEqual(labels, ['y'], 'it was removed earlier');
    });
  }

  it('are in batches with rising numbers; a number that is none, old or too large drops nothing', async () => {
    const worker = workerWith();
    const { counter } = worker;
    const reader = new Reader();
    await answer(worker, reader);
    for (const value of [1, 2, 3]) {
      counter.inc({ a: 'x' }, value);
      counter.remove({ a: 'x' });
      if (value < 3) unasked(worker, reader);
    }
    const batches = async saved => (await answer(worker, reader, saved)).map(({ batch }) => batch);
    assert.deepStrictEqual(await batches(undefined), [1, 2, 3]);
    for (const wrong of [0, -1, NaN, Infinity, 4, 2 ** 31, '2', null, { batch: 2 }, [2], true])
      assert.deepStrictEqual(await batches(wrong), [1, 2, 3], `${wrong}`);
    assert.deepStrictEqual(await batches(2), [3]);
    assert.deepStrictEqual(await batches(1), [3]);
    assert.deepStrictEqual(await batches(3), []);
    counter.inc({ a: 'x' }, 4);
    counter.remove({ a: 'x' });
    assert.deepStrictEqual(await batches(3), [4]);
    assert.deepStrictEqual([...reader.totals()], [['{"a":"x"}', 10]]);
  });

  it('may have the same label set several times, new label names, and values that are not text', async () => {
    const worker = workerWith({ labelNames: ['a', 'b'] });
    const { counter } = worker;
    const reader = new Reader();
    await answer(worker, reader);
    for (const labels of [{ a: 'x' }, { a: 'x' }, { a: 1, b: true }, { b: undefined, a: 'x' }]) {
      counter.inc(labels, 5);
      counter.removeMatching({});
      await null;
    }
    counter.labelNames = ['a', 'b', 'c'];
    counter.inc({ a: 'x', c: 'new' }, 7);
    counter.remove({ a: 'x', c: 'new' });
    await answer(worker, reader);
    assert.deepStrictEqual(Object.fromEntries(reader.totals()), {
      '{"a":"x"}': 15,
      '{"a":"1","b":"true"}': 5,
      '{"a":"x","c":"new"}': 7,
    });
  });

  it('are offered with the default labels of each registry that has the metric', async () => {
    const worker = makeWorker([new Registry(), new Registry()]);
    const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a'], registers: worker.registries });
    worker.registries[1].setDefaultLabels({ zone: 'z' });
    const reader = new Reader();
    await answer(worker, reader);
    counter.inc({ a: 'x' });
    counter.remove({ a: 'x' });
    const ended = await answer(worker, reader);
    const shown = ended.map(({ labels }) => labels);
    assert.deepStrictEqual(shown, [{ a: 'x' }, { a: 'x', zone: 'z' }]);
  });

  it('of a summary with a window have no digest, and those that it prunes while it is read are on that page', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: 1e12 });
    const worker = makeWorker();
    const options = {
      help: 'h',
      labelNames: ['a'],
      maxAgeSeconds: 10,
      ageBuckets: 2,
      pruneAgedBuckets: true,
    };
    const summary = new Summary({ name: 's', ...options, registers: [worker.registry] });
    const reader = new Reader();
    await answer(worker, reader);
    summary.observe({ a: 'x' }, 5);
    await answer(worker, reader);
    t.mock.timers.tick(60_000);
    unasked(worker, reader);
    assert.deepStrictEqual([...reader.totals()], [['{"a":"x"}', 5]]);
    assert.deepStrictEqual(reader.ended()[0].centroids, undefined);
  });

  it('are offered by each source of a process; a metric that is gone offers none, and is followed no more', async () => {
    const worker = workerWith();
    const { counter, registry, registries } = worker;
    const other = { source: new Source(() => registries) };
    const readers = [new Reader(), new Reader()];
    await answer(worker, readers[0]);
    await answer(other, readers[1]);
    counter.inc({ a: 'x' }, 5);
    counter.remove({ a: 'x' });
    await answer(worker, readers[0]);
    await answer(worker, readers[0], 1);
    assert.strictEqual((await answer(other, readers[1])).length, 1);
    const { table } = viewOf(counter);
    assert.strictEqual(table.followers.length, 2);
    registry.removeSingleMetric('c');
    worker.source.log.restart();
    for (const [i, each] of [worker, other].entries())
      assert.deepStrictEqual(await answer(each, readers[i]), []);
    assert.strictEqual(table.followers.length, 0);
    registry.registerMetric(counter);
    await answer(worker, readers[0]);
    counter.inc({ a: 'x' }, 3);
    counter.remove({ a: 'x' });
    const values = (await answer(worker, readers[0])).map(({ value }) => value);
    assert.deepStrictEqual(values, [3]);
  });

  it('leave no follower in the totals of a store that were written', () => {
    const worker = workerWith();
    worker.counter.inc({ a: 'x' });
    const store = new ClusterStore();
    scrape(worker, store, WORKER);
    store.retire(WORKER);
    const restored = new ClusterStore();
    restored.restoreRetired(store.encodeRetired());
    let followed = 0;
    const { SeriesTable } = require('../../lib/series/series-table');
    const { get } = Object.getOwnPropertyDescriptor(SeriesTable.prototype, 'labelNames');
    Object.defineProperty(SeriesTable.prototype, 'labelNames', {
      configurable: true,
      get() {
        followed += this.followers.length;
        return get.call(this);
      },
    });
    for (let i = 0; i < 3; i++) restored.encodeRetired();
    Object.defineProperty(SeriesTable.prototype, 'labelNames', { configurable: true, get });
    assert.strictEqual(followed, 0);
  });

  it('do not make the log begin again', async () => {
    const worker = workerWith();
    const reader = new Reader();
    await answer(worker, reader);
    const { name } = worker.source.log;
    for (let i = 0; i < 500; i++) {
      worker.counter.inc({ a: 'x' });
      worker.counter.remove({ a: 'x' });
      await answer(worker, reader, reader.taken);
    }
    assert.strictEqual(worker.source.log.name, name);
    assert.deepStrictEqual([...reader.totals()], [['{"a":"x"}', 500]]);
  });

  it('are dropped after 5 minutes in which nobody asks, or after the idle time, and counted if somebody asks again', async t => {
    const clock = new MovedClock(t);
    const worker = workerWith();
    const slow = new Counter({
      name: 'slow',
      help: 'h',
      labelNames: ['a'],
      maxIdleSeconds: 900,
      registers: [worker.registry],
    });
    const reader = new Reader();
    unasked(worker, reader);
    const end = () => {
      for (const metric of [worker.counter, slow]) {
        metric.inc({ a: 'x' });
        metric.remove({ a: 'x' });
      }
    };
    const offered = () => unasked(worker, reader).map(({ name }) => name);
    end();
    clock.hold(1000);
    assert.deepStrictEqual(offered(), [], 'nobody has ever asked');
    end();
    await answer(worker, reader);
    clock.hold(1);
    end();
    await null;
    end();
    clock.hold(298);
    assert.deepStrictEqual(offered(), ['c', 'c', 'c', 'slow', 'slow', 'slow']);
    clock.hold(2);
    assert.deepStrictEqual(offered(), ['slow', 'slow', 'slow']);
    assert.deepStrictEqual(reader.series.failures, []);
    clock.hold(600);
    assert.deepStrictEqual(offered(), []);
    await answer(worker, reader);
    const failures = [
      ['ended', 'c', 2],
      ['ended', 'slow', 2],
    ];
    assert.deepStrictEqual(reader.series.failures, failures);
    // Whoever asks again and again has time.
    end();
    for (let i = 0; i < 20; i++, clock.hold(100))
      assert.strictEqual((await answer(worker, reader)).length, 2);
    assert.deepStrictEqual(reader.series.failures, failures);
  });

  it('are bounded if nothing is captured', t => {
    const clock = new MovedClock(t);
    const worker = workerWith();
    const reader = new Reader();
    unasked(worker, reader);
    for (let i = 0; i < 4000; i++, clock.hold(1)) {
      worker.counter.inc({ a: i });
      worker.counter.remove({ a: i });
    }
    const ended = unasked(worker, reader);
    assert.ok(ended.length < 302, `${ended.length}`);
  });

  it('are counted by metric if they have expired, which is no failure of a kind that is left out', async t => {
    const clock = new MovedClock(t);
    const worker = workerWith({ maxIdleSeconds: 200 });
    const reader = new Reader();
    for (const a of ['x', 'y']) worker.counter.inc({ a });
    for (let i = 0; i < 1000; i++) worker.source.countFailure('other', `name ${i}`, 'it failed');
    await answer(worker, reader);
    for (let i = 0; i < 5; i++) await clock.move(100);
    await answer(worker, reader);
    assert.deepStrictEqual(reader.series.failures.at(-1), ['expired', 'c', 2]);
    const store = new ClusterStore();
    scrape(worker, store, WORKER);
    const counts = store.state().failures.filter(({ stage }) => stage !== 'other');
    assert.deepStrictEqual(counts, [{ stage: 'expired', metric: '', count: 2 }]);
  });

  it('count once if they end while a capture waits for hooks, and others write columns meanwhile', async () => {
    for (const isWritten of [false, true]) {
      const worker = workerWith();
      const { counter, registry } = worker;
      const reader = new Reader();
      await answer(worker, reader);
      counter.inc({ a: 'x' }, 5);
      const collect = async () => {
        await null;
        counter.remove({ a: 'x' });
        await null;
        counter.inc({ a: 'x' }, 2);
        if (isWritten) unasked(worker, reader);
      };
      new Gauge({ name: 'slow', help: 'h', registers: [registry], collect });
      for (let i = 0; i < 2; i++, registry.removeSingleMetric('slow')) {
        await answer(worker, reader);
        assert.deepStrictEqual(Object.fromEntries(reader.totals()), { '{"a":"x"}': 7 });
      }
    }
  });

  it('and live ones have all that was counted, in any columns, whatever happens', async () => {
    const label = fc.nat({ max: 5 });
    const step = fc.oneof(
      fc.record({ op: fc.constant('inc'), label, value: fc.integer({ min: 1, max: 9 }) }),
      fc.record({ op: fc.constant('remove'), label }),
      fc.record({
        op: fc.constantFrom('answer', 'answer', 'checkpoint', 'compact', 'restart', 'lost', 'empty', 'step'),
      }),
    );
    const property = fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
      const worker = workerWith();
      const { counter, source } = worker;
      const { table } = viewOf(counter);
      let reader = new Reader();
      let saved = { taken: 0, folded: new Map() };
      const books = new Map();
      /** What was removed in this step, by label: it does not count if it is recorded again. */
      const removed = new Map();
      const remove = a => {
        const value = counter.value({ a });
        if (value !== undefined) removed.set(a, value);
        counter.remove({ a });
      };
      unasked(worker, reader);
      for (const { op, label: a, value } of steps) {
        if (!['inc', 'remove', 'empty', 'restart'].includes(op)) removed.clear();
        if (op === 'inc') {
          counter.inc({ a }, value);
          add(books, { a: String(a) }, value - (removed.get(a) ?? 0));
          removed.delete(a);
        } else if (op === 'remove') remove(a);
        else if (op === 'empty') for (let each = 0; each <= 5; each++) remove(each);
        else if (op === 'step') await null;
        else if (op === 'restart') source.log.restart();
        else if (op === 'compact') {
          for (let i = 0; i < 2000; i++) counter.inc({ a: `passing ${i}` }, 0);
          for (let i = 0; i < 2000; i++) counter.remove({ a: `passing ${i}` });
          runThrough(table.compactionSteps());
        } else if (op === 'lost') {
          // The next one has what was saved.
          reader = Object.assign(new Reader(), { taken: saved.taken, folded: new Map(saved.folded) });
          unasked(worker, reader);
        } else {
          if (op === 'answer') await answer(worker, reader, saved.taken);
          else unasked(worker, reader);
          const totals = [...reader.totals()].filter(([, total]) => total > 0).sort();
          assert.deepStrictEqual(totals, [...books].sort());
          if (op === 'answer') saved = { taken: reader.taken, folded: new Map(reader.folded) };
        }
      }
      unasked(worker, reader, true);
      assert.deepStrictEqual([...reader.totals()].filter(([, total]) => total > 0).sort(), [...books].sort());
    });
    await fc.assert(property, { numRuns: 150 * fc.effort });
  });
});
