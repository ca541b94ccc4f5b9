'use strict';

// Rows that have ended in a process that lives: what of them is in sums, and when it leaves.

const { test } = require('node:test');
const assert = require('node:assert');
const { Histogram } = require('../../lib/metric/histogram');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { runThrough } = require('../../lib/event-loop/slices');
const { EndingWorker } = require('../fixtures/ending-worker');
const { randomFrom } = require('../../benchmarks/shared/random');
const { effort } = require('../fixtures/seeded-fast-check');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const { bytesOf, copyOf, textOf, samplesOf, seriesKey } = require('../fixtures/unit-scrape');

const START = 1_700_000_000_000;
const MINUTE = 60_000;
const MAX_IDLE = 5 * MINUTE;
const MAX_AGE = 60 * MINUTE;

/** Where a header has the incarnation. */
const INCARNATION_AT = 16;

class Cluster {
  clock = { now: START };
  workers = new Map();
  options = { now: () => this.clock.now, retiredMaxAge: MAX_AGE };
  store = new ClusterStore(this.options);
  saved = undefined;
  /** The last columns of each worker, with their whole log. */
  files = new Map();
  /** Workers that a page has shown. */
  shown = new Set();

  join(...workers) {
    for (const worker of workers) this.workers.set(worker.id, worker);
    return workers;
  }

  /** Those that answer. */
  scrape(ids = [...this.workers.keys()]) {
    for (const id of ids) {
      this.files.set(
        id,
        bytesOf(this.workers.get(id).source.captureWithLog(id, undefined, { isLast: true })),
      );
      this.store.apply(id, copyOf(this.files.get(id)));
      this.shown.add(id);
    }
  }

  die(id) {
    this.store.retire(id);
    for (const kept of [this.workers, this.files, this.shown]) kept.delete(id);
  }

  get samples() {
    return samplesOf(textOf({ merge: custom => this.store.merge(custom, [...this.shown]) }));
  }

  /** When the first series of the page began to count, or undefined. */
  startOfFirst() {
    const [family] = runThrough(this.store.merge(new Set(), [...this.shown]));
    const [row] = family.view.rows();
    return row === undefined ? undefined : family.view.starts.startAt(row);
  }

  /** The sum of a counter, or undefined. */
  sum(a = 'x') {
    return this.samples.get(seriesKey('m', { a }));
  }

  save() {
    this.saved = copyOf(this.store.encodeRetired());
    this.store.noteSaved();
  }

  acknowledge() {
    for (const [id, batch] of this.store.savedBatches) this.workers.get(id)?.acknowledge(batch);
  }

  /** The next thread has what was saved, and, if there is a directory, the last columns of workers. */
  loseThread({ hasFiles }) {
    this.store = new ClusterStore(this.options);
    if (this.saved !== undefined) this.store.restoreRetired(copyOf(this.saved));
    if (hasFiles) for (const [id, bytes] of this.files) this.store.apply(id, copyOf(bytes));
  }
}

/** Workers with one series: 5, 3, and perhaps 2. */
function clusterOf(values, options = { maxIdleSeconds: MAX_IDLE / 1000 }) {
  const cluster = new Cluster();
  const workers = cluster.join(...values.map((_, i) => new EndingWorker(i + 1, options)));
  workers.forEach((worker, i) => worker.record(values[i]));
  cluster.scrape();
  return { cluster, workers };
}

/**
 * Steps of the two workers with 5 and 3, and of their reader:
 *
 * - `end 1`, `remove 1`: the series of worker 1 ends; `born 1`: it counts 1 again
 * - `scrape`: both answer; `scrape 1`: one does, and the other hangs
 * - `page 8`: a page has that sum; `page none`: it does not have the series
 * - `save`: the totals are written; `tell`: workers hear of it
 * - `lose`: the thread, not the directory; `lose all`: there is no directory, and the primary has the totals
 */
function perform(cluster, workers, steps) {
  for (const step of steps) {
    const [what, of] = step.split(' ');
    const worker = workers[of - 1];
    const values = { 1: [5], 2: [3] };
    if (what === 'end' || what === 'remove') worker.end(values[of], { isRemoved: what === 'remove' });
    else if (what === 'born') worker.record(1);
    else if (what === 'scrape') cluster.scrape(of && [Number(of)]);
    else if (what === 'page') assert.strictEqual(cluster.sum(), of === 'none' ? undefined : Number(of), step);
    else if (what === 'save') cluster.save();
    else if (what === 'tell') cluster.acknowledge();
    else if (what === 'lose') cluster.loseThread({ hasFiles: of === undefined });
    else if (what === 'die') cluster.die(Number(of));
    else if (what === 'after') cluster.clock.now += Number(of) * MINUTE;
    else throw new Error(step);
  }
}

/** Each case is a history of steps: see perform(). */
function check(...cases) {
  for (const steps of cases) {
    const { cluster, workers } = clusterOf([5, 3]);
    try {
      perform(cluster, workers, steps.split(', '));
    } catch (error) {
      throw new Error(`${steps}: ${error.message}`, { cause: error });
    }
  }
}

// More of these histories are drawn at random in folded-totals-model.test.js.
test('folded totals: a row that ends in one worker stays in the sum while another has it, whatever is lost', () => {
  check(
    'end 1, scrape, page 8, page 8, after 1000, page 8, end 2, scrape, page none, born 1, scrape, page 1',
    'remove 1, scrape, page 8, page 8, after 1000, page 8, remove 2, scrape, page none, born 1, scrape, page 1',
    'end 1, scrape 1, page 8, end 2, scrape 2, page none',
    'end 1, scrape, page 8, save, lose, page 8, scrape, page 8, save, tell, scrape, page 8',
    'end 1, scrape, page 8, lose all, scrape 1, page none, save, tell, scrape 1, page none, scrape 2, page 8',
    'end 1, scrape, save, tell, lose all, scrape 1, page none, die 2, page none, born 1, scrape 1, page 1',
    'end 1, scrape, save, end 2, scrape, page none, lose, page none, scrape, page none, born 1, scrape, page 1',
    'die 2, page 8, remove 1, scrape, page none, born 1, scrape, page 1',
  );
});

test('folded totals: what a dead worker had counted stays for its time, and with it what is folded', () => {
  check(
    'die 2, page 8, after 4, page 8, end 1, scrape, page 8, after 1, page 8, after 1, page none, born 1, scrape, page 1',
    'die 2, after 100, page 8, after 100, page 8, end 1, scrape, page none, born 1, scrape, page 1',
    'end 1, scrape, page 8, die 2, page 8, after 5, page 8, after 1, page none',
    'end 1, scrape, page 8, die 2, save, lose, after 4, page 8, after 2, page none',
    'die 2, after 6, page 8, save, lose all, page none, scrape, page 8, end 1, scrape, page none',
    'die 2, save, lose all, after 6, page none, scrape, page 8, end 1, scrape, page none',
    'die 2, end 1, scrape, page 8, after 4, save, lose, after 1, page 8, after 1, page none',
    'die 2, end 1, scrape, page 8, save, after 4, lose, after 1, page 8, save, lose, page 8, after 1, page none',
    'die 2, after 6, page 8, born 1, scrape, page 9, end 1, scrape, page none',
    'die 2, die 1, page 8, after 6, page none',
    'die 2, after 3, die 1, after 3, page 8, after 2, page 8, after 1, page none',
  );
});

test('folded totals: those that are saved while a page is merged in slices have each batch that they name', () => {
  for (let step = 0, isOver = false; !isOver; step++) {
    const { cluster, workers } = clusterOf([5, 3]);
    for (let row = 0; row < 100; row++) workers.forEach(worker => worker.record(1, `row ${row}`));
    perform(cluster, workers, ['end 1', 'scrape', 'page 8', 'save', 'tell', 'born 1', 'scrape', 'page 9']);
    for (let row = 0; row < 100; row++) workers[0].endRow(`row ${row}`, row % 2 === 0);
    workers[0].end([1]);
    cluster.scrape();
    const merge = cluster.store.merge(new Set(), [...cluster.shown]);
    for (let i = 0; i < step; i++) isOver = merge.next().done;
    cluster.save();
    runThrough(merge);
    perform(cluster, workers, ['page 9', 'tell', 'lose', 'page 9', 'scrape', 'page 9']);
    for (let row = 0; row < 100; row++) assert.strictEqual(cluster.sum(`row ${row}`), 2);
  }
});

test('folded totals: a worker hears of a batch when it is in saved totals, also from the next thread', () => {
  const { cluster, workers } = clusterOf([5, 3]);
  const heard = [];
  for (const steps of ['end 1, scrape, page 8', 'save', 'born 1, scrape', 'lose, scrape', 'page 9']) {
    perform(cluster, workers, steps.split(', '));
    heard.push(cluster.store.savedBatches);
  }
  assert.deepStrictEqual(heard, [[], [[1, 1]], [[1, 1]], [[1, 1]], [[1, 1]]]);
  workers[0].end([1]);
  perform(cluster, workers, ['scrape', 'page 9']);
  assert.deepStrictEqual(cluster.store.savedBatches, [], 'until all that were taken over are saved');
  perform(cluster, workers, ['save']);
  assert.deepStrictEqual(cluster.store.savedBatches, [[1, 2]]);
  perform(cluster, workers, ['save', 'tell', 'die 1']);
  assert.deepStrictEqual(cluster.store.savedBatches, []);
});

test('folded totals: whether they have changed since they were saved', () => {
  const { cluster, workers } = clusterOf([5, 3]);
  const after = steps => {
    perform(cluster, workers, steps.split(', '));
    return cluster.store.isUnsaved;
  };
  assert.strictEqual(after('page 8'), false);
  assert.strictEqual(after('end 1, scrape, page 8'), true);
  assert.strictEqual(after('save'), false);
  assert.strictEqual(after('scrape, page 8'), false);
  assert.strictEqual(after('end 2, scrape, page none, save, page none'), false);
  assert.strictEqual(after('die 1, die 2, page none, save'), false);
  const idle = clusterOf([5, 3]);
  perform(idle.cluster, idle.workers, ['die 2', 'page 8', 'save', 'after 6', 'page 8']);
  assert.strictEqual(idle.cluster.store.isUnsaved, false, 'the next thread folds by the same age');
  perform(idle.cluster, idle.workers, ['lose', 'scrape', 'page 8', 'end 1', 'scrape', 'page none']);
});

const LASTING = METRIC_TYPES.filter(({ lasts }) => lasts);

test('folded totals: other aggregators have live rows only, and JSON has no ended row', () => {
  for (const type of LASTING)
    for (const aggregator of ['first', 'min', 'max', 'average', 'omit', 'mine']) {
      if (type.isNative && ['min', 'max', 'average'].includes(aggregator)) continue;
      const { cluster, workers } = clusterOf([5, 3], { type, aggregator });
      workers[0].end([5]);
      cluster.scrape();
      const [without] = [clusterOf([3], { type, aggregator })];
      const shown = ({ store }) => {
        const [family] = runThrough(store.merge(new Set(['mine'])));
        if (family === undefined || 'view' in family) return samplesOf(textOf(store));
        return family.metrics.flatMap(({ values }) => values);
      };
      assert.deepStrictEqual(shown(cluster), shown(without.cluster), `${aggregator} of ${type.name}`);
      assert.strictEqual(cluster.store.isUnsaved, true, 'the batch is taken');
      cluster.save();
      assert.deepStrictEqual(cluster.store.savedBatches, [[1, 1]]);
    }
});

test('folded totals: bounds of other workers, default labels and long labels', () => {
  const type = METRIC_TYPES.find(({ name }) => name === 'histogram');
  const narrow = { ...type, make: options => new Histogram({ ...options, buckets: [1, 2] }) };
  const cluster = new Cluster();
  const [a, b] = cluster.join(new EndingWorker(1, { type }), new EndingWorker(2, { type: narrow }));
  for (const worker of [a, b]) {
    worker.registry.setDefaultLabels({ zone: 'z' });
    worker.record(1.5);
    worker.record(1.5, 'y');
  }
  a.record(1, 'l'.repeat(2 ** 20));
  cluster.scrape();
  a.end([1.5], { isRemoved: true });
  a.end([1], { a: 'l'.repeat(2 ** 20), isRemoved: true });
  cluster.scrape();
  const buckets = key =>
    ['1', '2', '5', '+Inf'].map(le => cluster.samples.get(seriesKey('m_bucket', { a: key, zone: 'z', le })));
  assert.deepStrictEqual(buckets('x'), [0, 1, 2, 2]);
  a.end([1.5], { a: 'y', isRemoved: true });
  cluster.scrape();
  assert.deepStrictEqual(buckets('y'), [0, 1, 2, 2]);
  b.end([1.5], { isRemoved: true });
  b.end([1.5], { a: 'y', isRemoved: true });
  b.record(1, 'w');
  cluster.scrape();
  cluster.die(1);
  assert.deepStrictEqual(buckets('w'), [1, 1, undefined, 1], 'only the bounds of what is left');
  assert.strictEqual(cluster.samples.size, 5);
});

test('folded totals: no sum of floats falls by one ulp, and no start rises, when rows end, workers die and threads are lost', t => {
  t.mock.timers.enable({ apis: ['Date'], now: START });
  for (const type of LASTING) {
    const random = randomFrom(7);
    const { cluster, workers } = clusterOf([0.1, 0.2, 0.3], { type });
    let [before, exact, oldest] = [0, 0.6, Infinity];
    for (let step = 0; step < 300 * Math.max(effort, 1); step++) {
      t.mock.timers.tick(1000);
      const i = Math.floor(random() * 3);
      const worker = workers[i];
      const isShared = workers.filter(({ values }) => values.size > 0).length > 1;
      if (isShared && random() < 0.2) {
        worker.endRow('x', random() < 0.5);
      } else if (isShared && random() < 0.1) {
        cluster.scrape();
        cluster.die(worker.id);
        workers[i] = new EndingWorker(10 + step, { type });
        cluster.join(workers[i]);
      } else {
        const value = random() * 0.1;
        worker.record(value);
        exact += value;
      }
      perform(cluster, workers, random() < 0.2 ? ['scrape', 'save', 'tell', 'lose'] : ['scrape']);
      const { samples } = cluster;
      const sum = samples.get(seriesKey('m_sum', { a: 'x' })) ?? samples.get(seriesKey('m', { a: 'x' }));
      assert.ok(sum >= before, `${type.name}: ${before} became ${sum}`);
      before = sum;
      const start = cluster.startOfFirst();
      assert.ok(start <= oldest && start >= START / 1000, `${type.name}: ${oldest} became ${start}`);
      oldest = start;
    }
    assert.ok(Math.abs(before - exact) < 1e-9 * exact, `${type.name}: ${before}, ${exact}`);
  }
});

test('folded totals: buckets stay as coarse as on the last page while the series is there, and are fine again after it', () => {
  const [fine, coarse] = [1.1, 2].map(nativeHistogramBucketFactor => ({
    make: options => new Histogram({ ...options, buckets: [], nativeHistogramBucketFactor }),
    record: (histogram, labels, value) => histogram.observe(labels, value),
  }));
  const cluster = new Cluster();
  const maxIdleSeconds = MAX_IDLE / 1000;
  const workers = cluster.join(
    new EndingWorker(1, { type: fine, maxIdleSeconds }),
    new EndingWorker(2, { type: coarse, maxIdleSeconds }),
  );
  for (const worker of workers) worker.record(5);
  const schemaAfter = steps => {
    perform(cluster, workers, steps.split(', '));
    const [{ view }] = runThrough(cluster.store.merge(new Set(), [...cluster.shown]));
    return view.rows().length === 0 ? undefined : view.bucketsAt(view.rows()[0]).schema;
  };
  const schema = schemaAfter('scrape');
  workers[1].endRow('x', false);
  assert.strictEqual(schemaAfter('scrape'), schema);
  workers[0].endRow('x', false);
  workers[0].record(5);
  assert.strictEqual(schemaAfter('scrape'), schema);
  assert.strictEqual(schemaAfter('save, tell, lose, scrape'), schema);
  workers[0].endRow('x', false);
  assert.strictEqual(schemaAfter('scrape'), undefined);
  // It is born and dies between two pages.
  workers[0].record(5);
  assert.ok(schemaAfter('scrape 1, die 1') > schema);
});

test('folded totals: dead workers that are folded leave their rounding errors', () => {
  const { cluster, workers } = clusterOf(Array(13).fill(0.1), {});
  for (let id = 1; id <= 11; id++) cluster.die(id);
  assert.strictEqual(cluster.sum(), 1.3);
  workers[11].endRow('x', true);
  perform(cluster, workers, ['scrape', 'page 1.3', 'save', 'lose', 'page 1.3']);
});

test('folded totals: a sum is as old as the oldest that is in it, and after it has left, as old as what is born', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
  const { cluster, workers } = clusterOf([5, 3]);
  const startAfter = steps => {
    t.mock.timers.setTime(Date.now() + 100_000);
    perform(cluster, workers, steps.split(', '));
    return cluster.startOfFirst();
  };
  assert.strictEqual(startAfter('scrape'), 1000);
  assert.strictEqual(startAfter('end 1, scrape, page 8'), 1000);
  assert.strictEqual(startAfter('born 1, scrape, save, tell, lose, scrape, page 9'), 1000);
  assert.strictEqual(startAfter('end 2, scrape, page 9'), 1000);
  workers[0].end([1]);
  assert.strictEqual(startAfter('scrape, page none'), undefined);
  assert.strictEqual(startAfter('born 2, scrape, page 1'), 1600);
});

test('folded totals: those of a label set are dropped on request, like those of dead workers', () => {
  const { cluster, workers } = clusterOf([5, 3]);
  perform(cluster, workers, ['end 1', 'scrape']);
  assert.strictEqual(cluster.store.removeRetired([['a', 'y']]), 0);
  assert.strictEqual(cluster.store.removeRetired([['a', 'x']]), 1);
  perform(cluster, workers, ['page 3', 'scrape', 'page 3']);
});

test('folded totals: the batches of the last few thousand processes are stored', () => {
  const { cluster } = clusterOf([5, 3]);
  const worker = new EndingWorker(3);
  worker.end([1]);
  const bytes = bytesOf(worker.source.captureWithLog(3, undefined));
  const lengths = [];
  for (let process = 0; process < 4300; process++) {
    const copy = copyOf(bytes);
    copy.writeUInt32LE(process, INCARNATION_AT);
    cluster.store.apply(3, copy);
    cluster.store.forget(3);
    if (process < 4100 || process % 100 > 0) continue;
    cluster.save();
    lengths.push(cluster.saved.length);
  }
  assert.strictEqual(lengths[0], lengths[1]);
});
