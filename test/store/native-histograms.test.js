'use strict';

// Native histograms of several processes: in columns, in the store and in retired totals.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { inspect } = require('node:util');
const fc = require('../fixtures/seeded-fast-check');
const { Gauge, Histogram, Summary } = require('../..');
const { hasNativeHistograms, viewOf } = require('../../lib/registry/metric-view');
const { countOf, NO_BUCKETS } = require('../../lib/series/merged-buckets');
const { nativeJson } = require('../../lib/series/native-json');
const { indexOf } = require('../../lib/series/native-index');
const { BucketWriter, BucketReader } = require('../../lib/source/bucket-rows');
const { RowBlock, blockOf } = require('../../lib/source/row-blocks');
const { BUCKETS } = require('../../lib/source/source-format');
const { ByteReader } = require('../../lib/source/byte-buffers');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { PROTOBUF } = require('../../lib/exposition/formats');
const { detectsReset } = require('../fixtures/native-reference');
const { familiesOf, nativeHistograms } = require('../fixtures/protobuf-page');
const { aggregators, plainMetric } = require('../../lib/cluster/primary/json-aggregators');
const { aggregateJson } = require('../../lib/cluster/aggregate-json');
const { runThrough } = require('../../lib/event-loop/slices');
const { makeWorker, bytesOf, scrape, snapshotAhead, pageOf, textOf } = require('../fixtures/unit-scrape');

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
  return bucketsOn(runThrough(store.merge(new Set())).flatMap(family => family.view ?? []));
}

function bucketsOn(families) {
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

  it('can be read if the program drops all rows while they are encoded ahead, in slices', async () => {
    const worker = nativeWorker();
    const store = new ClusterStore();
    for (let i = 0; i < 5000; i++) worker.histogram.observe({ a: `${i}` }, i);
    new Gauge({ name: 'next', help: 'h', registers: [worker.registry] }).set(1);
    const snapshot = snapshotAhead(worker, 1, undefined);
    await new Promise(resolve => setImmediate(resolve));
    worker.histogram.reset();
    store.apply(1, await snapshot);
    assert.deepEqual(bucketsIn(store), {});
    assert.match(textOf(store), /^next 1$/m);
  });
});

describe('the buckets of a row, from another process', () => {
  const row = { schema: 3, zeroThreshold: 2 ** -128, zeroCount: 1, maxBuckets: 160 };
  const [side, none] = [[-5, 1, 7, 3], []].map(pairs => ({
    indices: pairs.filter((_, i) => i % 2 === 0),
    counts: pairs.filter((_, i) => i % 2 === 1),
  }));

  /** Rows as a worker writes them, which are read again. */
  function read(buckets, { rows = buckets.map((_, i) => i), rowCount = buckets.length, damage } = {}) {
    const writer = new BucketWriter();
    const encoded = [];
    buckets.forEach((each, i) => {
      encoded[rows[i]] = { version: 1, bytes: writer.add(each).slice() };
    });
    damage?.(encoded[0]);
    const { count, chunks } = runThrough(blockOf(BUCKETS, rows, encoded));
    const bytes = Buffer.from(chunks[0].buffer);
    const reader = new ByteReader(bytes, 0, bytes.length);
    const block = new RowBlock(reader, count, rowCount, own => new BucketReader(own));
    return rows.map(each => block.read(each));
  }

  it('are read as they were written, at each limit', () => {
    const all = [
      { ...row, positive: side, negative: none },
      { ...row, positive: none, negative: side, zeroThreshold: 0, maxBuckets: Number.MAX_SAFE_INTEGER },
      { ...row, positive: { indices: [3], counts: [Number.MAX_SAFE_INTEGER] }, negative: none, zeroCount: 0 },
    ];
    for (let schema = -4; schema <= 8; schema++) {
      const indices = [Number.MIN_VALUE, 1, Number.MAX_VALUE].map(value => indexOf(value, schema));
      const counts = [1, 2 ** 31 + 1, 2 ** 40];
      all.push({ ...row, schema, positive: { indices, counts }, negative: { indices, counts } });
    }
    assert.deepEqual(read(all), all);
    // More than numbers can count is the most that they can.
    const [{ zeroCount }] = read([{ ...row, zeroCount: 2 ** 80, positive: none, negative: none }]);
    assert.equal(zeroCount, Number.MAX_SAFE_INTEGER);
  });

  it('are refused if a number is out of range, or something is missing', () => {
    const good = { ...row, positive: side, negative: none };
    /** @type {[string, object, object?][]} */
    const cases = [
      ['numbers', { schema: 9 }],
      ['numbers', { schema: -5 }],
      ['numbers', { zeroThreshold: -1 }],
      ['numbers', { zeroThreshold: NaN }],
      ['numbers', { zeroThreshold: Infinity }],
      ['numbers', { positive: { indices: [1], counts: [0] } }],
      ['numbers', { positive: { indices: [8193], counts: [1] } }],
      ['numbers', { negative: { indices: [-8593], counts: [1] } }],
      ['numbers', {}, { rowCount: 0 }],
      ['numbers', {}, { rows: [1], rowCount: 1 }],
      ['numbers', {}, { damage: each => (each.bytes = Uint8Array.of(...new Array(9), ...new Array(11).fill(255))) }],
      ['length', {}, { damage: each => (each.bytes = each.bytes.subarray(0, -1)) }],
      ['length', {}, { damage: each => (each.bytes = each.bytes.subarray(0, 9)) }],
      ['length', {}, { damage: each => (each.bytes = Uint8Array.of(...each.bytes, 0)) }],
    ]; // prettier-ignore
    for (const [code, change, options] of cases) {
      const name = `${inspect(change)} ${inspect(options)}`;
      assert.throws(() => read([{ ...good, ...change }], options), { name: 'SnapshotError', code }, name);
    }
    assert.throws(() => read([good, good], { rows: [1, 0] }), { code: 'numbers' });
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

  it('are those of the first worker with the aggregator first; others are a failure of the metric', () => {
    for (const aggregator of ['first', 'max']) {
      const store = new ClusterStore();
      const workers = [1, 2].map(id => {
        const worker = nativeWorker({ aggregator: 'first' });
        worker.histogram.aggregator = aggregator;
        worker.histogram.observe({ a: 'x' }, id);
        scrape(worker, store, id);
        return worker;
      });
      const isFirst = aggregator === 'first';
      assert.deepEqual(bucketsIn(store), isFirst ? bucketsOf(workers[0].histogram) : {});
      store.retire(1);
      assert.deepEqual(bucketsIn(store), isFirst ? bucketsOf(workers[1].histogram) : {});
      const failures = store.state().failures.map(({ stage, metric }) => [stage, metric]);
      assert.deepEqual(failures, isFirst ? [] : [['merge', NAME]]);
    }
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

it('the exemplars of sparse buckets are the newest of all workers, as many as a worker may have', async t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1e12 });
  const store = new ClusterStore();
  const workers = [{}, { nativeHistogramMaxExemplars: 12 }].map(options =>
    nativeWorker({ enableExemplars: true, ...options }),
  );
  const shown = async () => {
    for (const [i, worker] of workers.entries())
      store.apply(i + 1, await snapshotAhead(worker, i + 1, store.worker(i + 1)?.position));
    const [{ view }] = /** @type {any} */ (runThrough(store.merge(new Set())));
    const [x, y] = [...view.rows()].map(row => view.nativeExemplarsAt(row));
    assert.deepEqual(y, []);
    return x.map(({ labelSet }) => Number(labelSet.id));
  };
  const observe = (/** @type {number} */ worker, /** @type {number} */ value) => {
    t.mock.timers.tick(1000);
    const exemplarLabels = { id: `${value}` };
    workers[worker].histogram.observe({ labels: { a: 'x' }, value, exemplarLabels });
  };
  for (const value of [1, 2]) for (const worker of [0, 1]) observe(worker, 2 * value + worker);
  workers[0].histogram.observe({ a: 'y' }, 1);
  assert.deepEqual(await shown(), [2, 3, 4, 5]);
  // The second worker has twelve then.
  for (let power = 3; power < 13; power++) observe(1, 2 ** power);
  assert.deepEqual(await shown(), [4, 5, ...Array.from({ length: 10 }, (_, i) => 2 ** (i + 3))]);
});

describe('native histograms as JSON', () => {
  const values = [
    [1, 2, -3, 0],
    [2, 1e9, 1e-9, 0.3],
  ];

  it('are added up by aggregators that the application calls, and by aggregate()', async () => {
    const workers = values.map(() => nativeWorker({ aggregator: 'own' }));
    const one = nativeWorker();
    const store = new ClusterStore();
    workers.forEach((worker, i) => {
      for (const value of values[i])
        for (const each of [worker, one]) each.histogram.observe({ a: 'x' }, value);
      scrape(worker, store, i + 1);
    });
    const [{ metrics }] = /** @type {any} */ (runThrough(store.merge(new Set(['own']))));
    const [sum] = store.familyOf(plainMetric(aggregators.sum(metrics)));
    assert.deepEqual(bucketsOn([sum]), bucketsOf(one.histogram));
    const [first] = store.familyOf(plainMetric(aggregators.first(metrics)));
    assert.deepEqual(bucketsOn([first]), bucketsOf(workers[0].histogram));
    assert.equal(aggregators.average(metrics).nativeHistograms, undefined);
    assert.equal(
      aggregators.sum([{ ...metrics[0], nativeHistograms: undefined }, metrics[1]]).nativeHistograms,
      undefined,
    );

    const lists = await Promise.all(workers.map(({ registry }) => registry.getMetricsAsJSON()));
    for (const list of lists) list[0].aggregator = 'sum';
    const registry = aggregateJson(lists);
    const [aggregated] = await registry.getMetricsAsJSON();
    const [own] = await one.registry.getMetricsAsJSON();
    const ages = { createdTimestamp: lists[0][0].nativeHistograms[0].createdTimestamp };
    assert.deepEqual(aggregated.nativeHistograms, [{ ...own.nativeHistograms[0], ...ages }]);
    const pageOfRegistry = (/** @type {any} */ each) => {
      each.setDefaultLabels({ zone: 'z' });
      each.setContentType(PROTOBUF.contentType);
      return each.metrics();
    };
    const [page, expected] = await Promise.all([registry, one.registry].map(pageOfRegistry));
    assert.equal(hasNativeHistograms(registry), true);
    assert.deepEqual(nativeHistograms(page), nativeHistograms(expected));
  });

  it('have the newest exemplars of all workers when they are added up, as many as a worker may have', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: 1e12 });
    const lists = [10, 12].map((most, worker) => {
      const { registry, histogram } = nativeWorker({
        ...{ enableExemplars: true, nativeHistogramMaxExemplars: most, labelNames: [] },
      });
      for (let i = 0; i < 8; i++) {
        t.mock.timers.tick(1000);
        histogram.observe({ value: 2 ** i, exemplarLabels: { id: `${worker} ${i}` } });
      }
      return registry.getMetricsAsJSON();
    });
    const metrics = (await Promise.all(lists)).flat();
    const idsOf = ([{ exemplars }]) => exemplars.map(({ labelSet }) => labelSet.id);
    const expected = Array.from({ length: 16 }, (_, i) => `${Math.floor(i / 8)} ${i % 8}`);
    assert.deepEqual(idsOf(aggregators.sum(metrics).nativeHistograms), expected.slice(6));
    // A worker that has more shows how many there may be.
    const [first, second] = metrics.map(({ nativeHistograms: [{ exemplars }] }) => exemplars);
    metrics[1].nativeHistograms[0].exemplars = [...second, ...first.slice(0, 4), null];
    assert.equal(aggregators.sum(metrics).nativeHistograms[0].exemplars.length, 13);
  });

  it('are shown by their buckets alone, and left out if these are not valid', async () => {
    const worker = nativeWorker();
    for (const value of values[0]) worker.histogram.observe({ a: 'x' }, value);
    const [json] = await worker.registry.getMetricsAsJSON();
    const [series] = json.nativeHistograms;
    const shown = changed => {
      const store = new ClusterStore();
      store.applyJson(1, [[{ ...json, values: [], nativeHistograms: [changed] }]]);
      return bucketsIn(store);
    };
    assert.deepEqual(shown(series), bucketsOf(worker.histogram));
    const startOf = createdTimestamp => {
      const store = new ClusterStore();
      store.applyJson(1, [[{ ...json, nativeHistograms: [{ ...series, createdTimestamp }] }]]);
      const [{ view }] = runThrough(store.merge(new Set()));
      return view.starts.startAt(view.rows()[0]);
    };
    assert.equal(startOf(series.createdTimestamp), series.createdTimestamp);
    for (const unknown of [undefined, null, 'x', NaN, {}, [1, 2]]) assert.equal(startOf(unknown), 0);
    const { positiveSpans: spans, positiveDeltas: deltas } = series;
    for (const change of [
      { schema: 9 },
      { schema: '3' },
      { zeroThreshold: -1 },
      { zeroThreshold: null },
      { zeroCount: 0.5 },
      { positiveSpans: undefined },
      { positiveSpans: [...spans, { offset: 1, length: 1e9 }] },
      { positiveSpans: [...spans, { offset: -1, length: 1 }], positiveDeltas: [...deltas, 1] },
      { positiveSpans: [{ offset: 1e9, length: 1 }], positiveDeltas: [1] },
      { positiveSpans: [null] },
      { positiveDeltas: [...deltas, 1] },
      { positiveDeltas: deltas.map(() => -1) },
      { positiveDeltas: deltas.map(String) },
    ])
      assert.deepEqual(shown({ ...series, ...change }), {}, inspect(change));
  });

  it('are ignored under a foreign key of that name, as prom-client ignores it, by aggregate() and in answers', async () => {
    const valid = nativeJson(NO_BUCKETS, { labels: { a: 'y' }, sum: 2, exemplars: [] });
    const classic = {
      ...{ name: 'h', help: 'x', type: 'histogram', aggregator: 'sum' },
      values: [
        ['bucket', 1, { le: '+Inf' }],
        ['sum', 2],
        ['count', 1],
      ].map(([suffix, value, labels]) => ({
        ...{ metricName: `h_${suffix}`, value, labels: { a: 'x', ...labels } },
      })),
    };
    const pagesOf = async metric => {
      const store = new ClusterStore();
      for (const id of [1, 2]) store.applyJson(id, [[metric]]);
      const registry = aggregateJson([[metric], [metric]]);
      registry.setDefaultLabels({ zone: 'z' });
      await registry.getMetricsAsJSON();
      return [await registry.metrics(), textOf(store)];
    };
    const expected = await pagesOf(classic);
    const broken = { ...valid, positiveSpans: undefined };
    for (const foreign of [1, 'x', true, {}, [1], [null], [{}], [{ labels: 'x' }], [valid, null], [broken]])
      assert.deepEqual(await pagesOf({ ...classic, nativeHistograms: foreign }), expected, inspect(foreign));
    assert.match((await pagesOf({ ...classic, nativeHistograms: [valid] }))[1], /a="y"/);
  });

  it('have the count of their buckets, however much workers claim: servers refuse the whole page otherwise', async () => {
    const worker = nativeWorker();
    worker.histogram.observe({ a: 'x' }, 1);
    const [json] = await worker.registry.getMetricsAsJSON();
    const [series] = json.nativeHistograms;
    const most = Number.MAX_SAFE_INTEGER;
    for (const [zeroCount, positiveDeltas] of [
      [most, [most - 1]],
      [0, [most - 1, 2 - most]],
      [0, [2 ** 52 + 2, -(2 ** 52) - 1]],
      [0, [2 ** 52 - 1, 2 - 2 ** 52]],
    ]) {
      const store = new ClusterStore();
      const positiveSpans = [{ offset: 0, length: positiveDeltas.length }];
      const nativeHistograms = [{ ...series, zeroCount, positiveSpans, positiveDeltas }];
      store.applyJson(1, [[{ ...json, nativeHistograms }]]);
      const [{ metric }] = familiesOf(pageOf(store, PROTOBUF), { longs: String });
      const { count, zeroCount: zeros, positiveDelta = [] } = metric[0].histogram;
      let [bucket, sum] = [0n, BigInt(zeros)];
      for (const delta of positiveDelta) sum += bucket += BigInt(delta);
      assert.equal(BigInt(count), sum);
      assert.equal(sum > 0n, zeroCount + positiveDeltas[0] < 2 ** 52);
    }
  });
});
