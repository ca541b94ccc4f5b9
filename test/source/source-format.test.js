'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../..');
const { viewOf } = require('../../lib/registry/metric-view');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { WorkerSeries } = require('../../lib/store/worker-series');
const { BlocksAhead } = require('../../lib/source/blocks-ahead');
const { encodeColumns } = require('../../lib/source/columns-encoder');
const { SourceLog } = require('../../lib/source/source-log');
const { ByteWriter, SnapshotError } = require('../../lib/source/byte-buffers');
const {
  makeWorker,
  bytesOf,
  copyOf,
  scrape,
  snapshotAhead,
  textOf,
  samplesOf,
  seriesKey,
} = require('../fixtures/unit-scrape');

const WORKER = 3;

// Offsets of the header's fields; docs/internals/snapshot-format.md has the whole table.
const AT = {
  magic: 0,
  byteOrder: 8,
  version: 12,
  incarnation: 16,
  log: 32,
  workerId: 44,
  logChecksum: 48,
  checksum: 52,
  sequence: 56,
  logBytes: 72,
  numbersStart: 80,
  bytes: 88,
  columnsStart: 96,
};

/** Checks that a store shows, after one snapshot, what the worker itself shows. */
async function assertRoundTrip(worker, { afterwards = () => {} } = {}) {
  await worker.source.prepare(1000);
  const store = new ClusterStore();
  scrape(worker, store, WORKER);
  const text = textOf(store);
  const texts = await Promise.all(worker.registries.map(registry => registry.metrics()));
  // Equal pages have equal samples, which take much longer to compare.
  if (texts.length > 1 || text !== texts[0]) {
    const expected = new Map(texts.flatMap(text => [...samplesOf(text)]));
    assert.deepStrictEqual(samplesOf(text), expected);
  }
  afterwards(store);
  return store;
}

test('snapshot: no metrics, and metrics without series, add nothing to the page', async () => {
  await assertRoundTrip(makeWorker());
  const worker = makeWorker();
  const registers = [worker.registry];
  new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers });
  new Histogram({ name: 'h', help: 'h', labelNames: ['a'], registers });
  new Summary({ name: 's', help: 's', labelNames: ['a'], registers });
  const store = await assertRoundTrip(worker);
  assert.strictEqual(textOf(store), await worker.registry.metrics());
});

test('snapshot: series and their labels are in the order of first use', async () => {
  const worker = makeWorker();
  const gauge = new Gauge({
    name: 'g',
    help: 'g',
    labelNames: ['a', 'b', 'c'],
    registers: [worker.registry],
  });
  gauge.set({ c: 1, a: 'x' }, 1);
  gauge.set({ a: 'x', b: '' }, 2);
  gauge.set({}, 3);
  gauge.set({ b: 2, c: null, a: true }, 4);
  gauge.set({ a: 'y', b: '' }, 5);
  gauge.remove({ a: 'x', c: '1' });
  gauge.remove({});
  gauge.set({}, 6);
  const store = await assertRoundTrip(worker);
  assert.strictEqual(textOf(store), await worker.registry.metrics());
});

test('snapshot: a label that is undefined is left out, and its series added to that without it', async () => {
  const recordIn = ({ registry }, labels, defaults) => {
    const options = { help: 'h', labelNames: ['a', 'b'], registers: [registry] };
    registry.setDefaultLabels(defaults);
    new Counter({ name: 'c', ...options }).inc(labels, 3);
    new Histogram({ name: 'h', buckets: [1], ...options }).observe(labels, 2);
    new Summary({ name: 's', percentiles: [0.5], ...options }).observe(labels, 2);
  };
  const pageOf = labels => {
    const worker = makeWorker();
    recordIn(worker, labels, { b: 'default' });
    const store = new ClusterStore();
    for (const workerId of [WORKER, WORKER + 1]) scrape(worker, store, workerId);
    return textOf(store);
  };
  for (const labels of [{ a: 'x' }, {}]) {
    const store = new ClusterStore();
    for (const [i, given] of [
      { b: undefined, ...labels },
      { ...labels, b: undefined },
    ].entries()) {
      const worker = makeWorker();
      recordIn(worker, given, { zone: undefined, b: 'default' });
      assert.match(await worker.registry.metrics(), /b="undefined"/);
      scrape(worker, store, WORKER + i);
    }
    assert.strictEqual(textOf(store), pageOf(labels));
  }
});

test('snapshot: a table may have many pages, with and without removed rows', async () => {
  const worker = makeWorker();
  const registers = [worker.registry];
  const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['a'], registers });
  for (let a = 0; a < 1300; a++) histogram.observe({ a }, a / 100);
  assert.ok(viewOf(histogram).table.pages.length > 1);
  await assertRoundTrip(worker);
  for (let a = 0; a < 1300; a += 2) histogram.remove({ a });
  await assertRoundTrip(worker);
});

test('snapshot: label values of any type are shown as the worker prints them', async () => {
  const worker = makeWorker();
  const gauge = new Gauge({ name: 'g', help: 'g', labelNames: ['a', 'b'], registers: [worker.registry] });
  const values = [
    '',
    'é',
    '日本',
    '😀',
    '\u{10ffff}',
    '\ufeff',
    '\0',
    '\\',
    '"',
    '\n',
    'a="b",c',
    '\ufffd',
    'x'.repeat(70_000),
  ];
  for (const [i, a] of values.entries()) gauge.set({ a, b: values.at(-i) }, i);
  await assertRoundTrip(worker);
});

test('snapshot: default labels may change, and do not replace labels of the series', async () => {
  const worker = makeWorker();
  const registers = [worker.registry];
  const counter = new Counter({ name: 'c', help: 'c', labelNames: ['a', 'b'], registers });
  const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['a'], buckets: [1], registers });
  const summary = new Summary({ name: 's', help: 's', labelNames: ['a'], percentiles: [0.5], registers });
  counter.inc({ a: 'own' });
  counter.inc({ b: 'x' });
  counter.inc({ a: '' });
  histogram.observe({ a: 'own' }, 1);
  histogram.observe({}, 2);
  summary.observe({ a: 'own' }, 1);
  for (const labels of [
    { a: 'default', z: 5 },
    { z: 6 },
    {},
    { a: 'default', z: 5 },
    { a: 1, b: 2, le: 3, quantile: 4 },
  ]) {
    worker.registry.setDefaultLabels(labels);
    await assertRoundTrip(worker);
  }
});

test('snapshot: a custom metric object may have NaN, infinities, BigInt and other values', async () => {
  const worker = makeWorker();
  const metric = (name, type, values) => ({ name, get: () => ({ name, help: name, type, values }) });
  worker.registry.registerMetric(
    metric('g', 'gauge', [
      { value: NaN, labels: { a: 'nan' } },
      { value: Infinity, labels: { a: 'inf' } },
      { value: -Infinity, labels: { a: '-inf' } },
      { value: 5n, labels: { a: 1, b: true } },
      { value: -(2n ** 64n), labels: { a: 2n ** 53n + 1n } },
      { value: 1, labels: { a: 2n ** 53n } },
      { value: '7', labels: {} },
    ]),
  );
  worker.registry.registerMetric(
    metric('h', 'histogram', [
      { metricName: 'h_bucket', value: 1, labels: { le: 0.5, a: 'x' } },
      { metricName: 'h_bucket', value: 3, labels: { le: '+Inf', a: 'x' } },
      { metricName: 'h_sum', value: 4.5, labels: { a: 'x' } },
      { metricName: 'h_count', value: 3, labels: { a: 'x' } },
    ]),
  );
  worker.registry.registerMetric(
    metric('s', 'summary', [
      { value: 2, labels: { quantile: 0.5 } },
      { metricName: 's_sum', value: 4, labels: {} },
      { metricName: 's_count', value: 2, labels: {} },
    ]),
  );
  worker.registry.registerMetric(
    metric('odd', 'gauge', [{ metricName: 'odd_child', value: 1, labels: { a: 'x' } }]),
  );
  worker.registry.registerMetric(metric('none', 'gauge', []));
  worker.registry.registerMetric({
    name: 'async',
    get: async () => ({ ...(await metric('async', 'counter', [{ value: 1, labels: {} }]).get()) }),
  });
  await assertRoundTrip(worker);
});

test('snapshot: a custom metric object that JSON cannot represent is left out and counted, and no other metric is affected', async () => {
  const worker = makeWorker();
  new Counter({ name: 'c', help: 'c', registers: [worker.registry] }).inc(5);
  const circular = { name: 'x', help: 'x', type: 'gauge', values: [{ value: 1, labels: {} }] };
  circular.self = circular;
  worker.registry.registerMetric({ name: 'x', get: () => circular });
  await worker.source.prepare(1000);
  const store = new ClusterStore();
  scrape(worker, store, WORKER);
  assert.deepStrictEqual([...samplesOf(textOf(store))], [[seriesKey('c'), 5]]);
  assert.deepStrictEqual([...store.workers()][0].failures, [['collect', 'x', 1]]);
});

test('snapshot: exemplars have their labels, values and timestamps', async () => {
  const worker = makeWorker([new Registry(Registry.OPENMETRICS_CONTENT_TYPE)]);
  const options = { enableExemplars: true, registers: [worker.registry] };
  const counter = new Counter({ name: 'c', help: 'c', labelNames: ['a'], ...options });
  const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['a'], buckets: [1, 2], ...options });
  for (const a of ['x', 'y', 'z']) {
    counter.inc({ labels: { a }, value: 2, exemplarLabels: { trace: `t "${a}"` } });
    for (const value of [0.5, 1.5, 7])
      histogram.observe({ labels: { a }, value, exemplarLabels: { trace: `${a}${value}`, é: '' } });
  }
  counter.remove('y');
  await worker.source.prepare(1000);
  const store = new ClusterStore();
  scrape(worker, store, WORKER);
  const expected = await worker.registry.metrics();
  assert.match(expected, /# \{trace="z7",é=""\} 7 \d/);
  assert.strictEqual(textOf(store, { openMetrics: true }), expected);
});

test('snapshot: exemplars belong to the same series after a capture compacts the table', async () => {
  const worker = makeWorker([new Registry(Registry.OPENMETRICS_CONTENT_TYPE)]);
  const counter = new Counter({
    name: 'c',
    help: 'c',
    labelNames: ['a'],
    enableExemplars: true,
    registers: [worker.registry],
  });
  for (let a = 0; a < 2000; a++)
    counter.inc({ labels: { a }, exemplarLabels: a % 500 === 499 ? { t: `${a}` } : undefined });
  const store = new ClusterStore();
  const check = async () => {
    await worker.source.prepare(1000);
    scrape(worker, store, WORKER);
    assert.strictEqual(textOf(store, { openMetrics: true }), await worker.registry.metrics());
  };
  await check();
  for (let a = 0; a < 1490; a++) counter.remove({ a });
  await check();
  assert.ok(viewOf(counter).table.epoch > 0);
});

test('snapshot: it has only the label sets that the reader does not have', () => {
  const worker = makeWorker();
  const registers = [worker.registry];
  const counter = new Counter({ name: 'c', help: 'c', labelNames: ['path'], registers });
  const path = i => `/a/rather/long/path/that/is/expensive/to/send/${i}`;
  for (let i = 0; i < 1000; i++) counter.inc({ path: path(i) });
  const store = new ClusterStore();
  const full = scrape(worker, store, WORKER);
  assert.ok(full.length > 1000 * path(100).length);
  const overhead = 400;
  const numbers = 1000 * 8;
  const second = scrape(worker, store, WORKER);
  assert.ok(second.length < numbers + overhead, `${second.length} bytes`);
  assert.strictEqual(second.indexOf('path'), -1);
  counter.inc({ path: path('new') });
  const third = scrape(worker, store, WORKER);
  assert.ok(third.length < numbers + overhead + path('new').length, `${third.length} bytes`);
  assert.ok(third.includes(path('new')));
  assert.ok(!third.includes(path(999)));
  const fourth = scrape(worker, store, WORKER);
  assert.ok(!fourth.includes(path('new')));
  // A reader that has nothing gets everything, at any time: another log, if it is not in memory any more.
  const other = new ClusterStore();
  scrape(worker, other, WORKER);
  assert.strictEqual(textOf(other), textOf(store));
});

/** A worker with a small example of everything that a snapshot may contain. */
async function richWorker() {
  const registries = [new Registry(Registry.OPENMETRICS_CONTENT_TYPE), new Registry()];
  const worker = makeWorker(registries, { keepsEnded: true });
  const [openMetrics, registry] = worker.registries;
  const registers = [openMetrics];
  openMetrics.setDefaultLabels({ env: 'test', a: 'default' });
  const counter = new Counter({
    name: 'c',
    help: 'a counter',
    labelNames: ['a', 'b'],
    enableExemplars: true,
    registers,
  });
  counter.inc({ labels: { a: 'one' }, exemplarLabels: { trace: 'abc' } });
  counter.inc({ labels: { b: 'two', a: 'é' } });
  counter.inc({ labels: { a: 'gone' } });
  counter.remove({ a: 'gone' });
  const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['a'], buckets: [1, 2], registers });
  histogram.observe({ a: 'x' }, 1.5);
  histogram.observe({ a: 'y' }, 5);
  const gauge = new Gauge({ name: 'g', help: 'g', registers });
  gauge.set(NaN);
  const summary = new Summary({
    name: 's',
    help: 's',
    labelNames: ['a'],
    percentiles: [0.5, 0.9],
    registers,
  });
  for (const value of [1, 2, 3]) summary.observe({ a: 'x' }, value);
  summary.observe({ a: 'y' }, 7);
  const json = { name: 'j', help: 'j', type: 'gauge', values: [{ value: Infinity, labels: { k: 'v' } }] };
  registry.registerMetric({ name: 'j', get: () => json });
  registry.registerMetric({ name: 'broken', get: () => Promise.reject(new Error('no')) });
  await worker.source.prepare(1000);
  return { ...worker, counter, histogram, summary, gauge };
}

/** A worker's first snapshot, a later one to be damaged, and the text of a store that has only the first. */
async function firstAndLater() {
  const worker = await richWorker();
  const control = new ClusterStore();
  const first = scrape(worker, control, WORKER);
  worker.counter.inc({ labels: { a: 'new', b: 'three' }, value: 5 });
  worker.histogram.observe({ a: 'new' }, 0.5);
  for (const metric of [worker.histogram, worker.summary]) metric.remove({ a: 'x' });
  worker.summary.observe({ a: 'new' }, 9);
  worker.gauge.help = 'another metric from now on';
  const later = await snapshotAhead(worker, WORKER, control.worker(WORKER)?.position);
  return { first, later, text: bothTexts(control) };
}

function bothTexts(store) {
  return textOf(store) + textOf(store, { openMetrics: true });
}

for (const [code, name, damage] of [
  ['magic', 'another magic number', buffer => buffer.write('X', AT.magic)],
  ['byte-order', 'the other byte order', buffer => buffer.subarray(AT.byteOrder, AT.byteOrder + 4).reverse()],
  [
    'version',
    'a later version',
    buffer => buffer.writeUInt32LE(buffer.readUInt32LE(AT.version) + 1, AT.version),
  ],
  ['incarnation', 'another process', buffer => buffer.fill(0xab, AT.incarnation, AT.incarnation + 16)],
  ['worker', 'another worker', buffer => buffer.writeUInt32LE(WORKER + 1, AT.workerId)],
  ['end-mark', 'no end mark', buffer => buffer.fill(0, endOf(buffer) - 8, endOf(buffer))],
  ['end-mark', 'the end mark of others', buffer => buffer.writeDoubleLE(77, endOf(buffer) - 16)],
  ['length', 'a wrong length', buffer => buffer.writeDoubleLE(buffer.length + 8, AT.bytes)],
  ['length', 'numbers in the header', buffer => buffer.writeDoubleLE(64, AT.numbersStart)],
  ['length', 'digests that end at NaN', buffer => buffer.writeDoubleLE(NaN, AT.numbersStart)],
  ['length', 'columns that start at NaN', buffer => buffer.writeDoubleLE(NaN, AT.columnsStart)],
  ['log', 'a log of no length', buffer => buffer.writeDoubleLE(NaN, AT.logBytes)],
  ['log', 'a shorter log', buffer => buffer.writeDoubleLE(8, AT.logBytes)],
  ['log', 'a longer log', buffer => buffer.writeDoubleLE(1e6, AT.logBytes)],
  ['log', 'the end of another log', buffer => buffer.fill(0xab, AT.log, AT.log + 12)],
  ['checksum', 'another checksum of the log', buffer => (buffer[AT.logChecksum] ^= 1)],
  ['checksum', 'another checksum of the number part', buffer => (buffer[AT.checksum] ^= 1)],
  ['checksum', 'a damaged log', buffer => (buffer[buffer.length - 9] ^= 1)],
  ['checksum', 'a damaged number part', buffer => (buffer[buffer.readDoubleLE(AT.columnsStart) - 9] ^= 1)],
  [
    'sequence',
    'the sequence of those before',
    buffer => {
      buffer.writeDoubleLE(1, AT.sequence);
      buffer.writeDoubleLE(1, endOf(buffer) - 16);
    },
  ],
]) {
  test(`columns with ${name} are refused with the code '${code}'`, async () => {
    const { first, later, text } = await firstAndLater();
    const store = new ClusterStore();
    store.apply(WORKER, first);
    const damaged = copyOf(later);
    damage(damaged);
    assert.throws(() => store.apply(WORKER, damaged), { code });
    assert.strictEqual(bothTexts(store), text);
    store.apply(WORKER, later);
  });
}

/** Where the columns end, and the log begins. */
function endOf(buffer) {
  return buffer.readDoubleLE(AT.bytes);
}

function forgedCapture(entries, sequence = 1) {
  return {
    workerId: WORKER,
    incarnation: '0f'.repeat(16),
    sequence,
    capturedAt: 1,
    defaultLabels: [{}],
    entries,
    failures: [],
  };
}

const LOG = 'ab'.repeat(12);
const LOG_HEAD = ['PCCLOG\x00\x01', 0x01020304, 1, Buffer.from(LOG, 'hex')];

/** The numbers of a float64 in two integers. */
const float64 = number => [...new Uint32Array(new Float64Array([number]).buffer)];
const define = (number = 0, names = ['a'], maxIdleSeconds = 0) => {
  const texts = ['c', 'c', 'counter', 'sum'];
  return [1, number, ...texts, 0, 0, 0, ...float64(maxIdleSeconds), names];
};
const rows = ({
  number = 0,
  from = 0,
  values = ['x', 'y'],
  first = 1,
  tuples = [0, 1, 0, 2],
  forms = [[0]],
} = {}) => {
  const lists = [first, { texts: values }, forms, { integers: tuples }];
  return [2, number, from, tuples.length / 2, ...lists];
};
const drop = (number = 0) => [3, number];

/** Columns of one counter with two rows, and a log with these records. */
function forged({ records = [define(), rows()], sequence = 1, number = 0, values = ['x', 'y'], ended } = {}) {
  const log = new ByteWriter();
  log.bytes(Buffer.from(LOG_HEAD[0], 'latin1'));
  for (const word of LOG_HEAD.slice(1, 3)) log.uint32(word);
  log.bytes(LOG_HEAD[3]);
  log.align(8);
  for (const record of records) {
    write(log, record);
    log.align(8);
  }
  const counter = new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers: [] });
  for (const a of values) counter.inc({ a });
  const named = { name: LOG, length: log.length, checksum: 0, numberOf: () => number };
  const capture = forgedCapture([{ defaults: 0, view: { ...viewOf(counter), ended } }], sequence);
  const { chunks, bytes } = encodeColumns(capture, named, new BlocksAhead());
  return bytesOf({ chunks: [...chunks, ...log.chunks()], bytes: bytes + log.length });
}

/** Writes numbers, texts and lists as a log has them. */
function write(writer, fields) {
  for (const field of fields) {
    if (typeof field === 'number') writer.uint32(field);
    else if (typeof field === 'string') writer.string(field);
    else if (Array.isArray(field)) writer.list(field, item => write(writer, [item]));
    else if (field.texts) writer.strings(field.texts);
    else {
      writer.align(4);
      writer.append(Int32Array.from(field.integers));
    }
  }
}

test('columns and a log that are made by hand are read', () => {
  const store = new ClusterStore();
  store.apply(WORKER, forged());
  assert.deepStrictEqual([...samplesOf(textOf(store)).values()], [1, 1]);
});

test('rows that have ended are told from live ones, by their batch and how they have ended', () => {
  for (const ended of [
    { batch: 1, isRemoved: false },
    { batch: 1, isRemoved: true },
    { batch: 2 ** 31 - 1, isRemoved: true },
  ]) {
    const series = new WorkerSeries(WORKER);
    series.apply(forged({ records: [define(0, ['a'], 90.5), rows()], ended }));
    const [source] = series.sources;
    assert.deepStrictEqual([source.ended, source.definition.maxIdleSeconds], [ended, 90.5]);
    const store = new ClusterStore();
    store.apply(WORKER, forged());
    assert.deepStrictEqual(store.worker(WORKER).sources[0].ended, undefined);
  }
});

for (const [name, forgery] of [
  ['a metric number after a gap', { records: [define(1), rows({ number: 1 })], number: 1 }],
  ['the highest possible metric number', { records: [define(0xffffffff)], number: 0xffffffff }],
  ['numbers of a metric that is not in its log', { number: 1 }],
  ['rows that do not follow those before', { records: [define(), rows({ from: 1 })] }],
  ['the same rows twice', { records: [define(), rows(), rows()] }],
  ['more rows of numbers than label sets', { records: [define(), rows({ tuples: [0, 1] })] }],
  ['label values that do not follow those before', { records: [define(), rows({ first: 2 })] }],
  ['label sets with integers that have no value', { records: [define(), rows({ values: ['x'] })] }],
  [
    'other labels for rows before',
    { records: [define(), rows(), rows({ from: 2, first: 3, values: [], tuples: [0, 1], forms: [[]] })] },
  ],
  ['a form that does not exist', { records: [define(), rows({ tuples: [1, 1, 0, 2] })] }],
  ['a metric that is not defined', { records: [rows()] }],
  ['a metric that is defined twice', { records: [define(), define(), rows()] }],
  ['a dropped metric that is not defined', { records: [drop()] }],
  ['numbers of a dropped metric', { records: [define(), rows(), drop()] }],
  ['rows of a dropped metric', { records: [define(), drop(), rows()] }],
  ['a record of an unknown kind', { records: [define(), rows(), [4, 0]] }],
  ['a label of an invalid name', { records: [define(0, ['a b']), rows()] }],
  ['a time to be idle below 0', { records: [define(0, ['a'], -1), rows()] }],
  ['a time to be idle that is not a number', { records: [define(0, ['a'], NaN), rows()] }],
]) {
  test(`a source with ${name} is refused`, () => {
    const store = new ClusterStore();
    assert.throws(() => store.apply(WORKER, forged(forgery)), SnapshotError);
    assert.strictEqual(store.isEmpty, true);
    store.apply(WORKER, forged());
    // Whoever reads them has only the log that this continues, or another one.
    assert.throws(() => store.apply(WORKER, forged({ ...forgery, sequence: 1 })), SnapshotError);
    assert.deepStrictEqual([...samplesOf(textOf(store)).values()], [1, 1]);
  });
}

/** A snapshot with two metrics and a default label, in which one text replaces another of the same length. */
function withText(text, replacement) {
  const worker = makeWorker();
  const registers = [worker.registry];
  worker.registry.setDefaultLabels({ region: 'x' });
  new Counter({ name: 'first_total', help: 'h', labelNames: ['label'], registers }).inc({ label: 'y' });
  new Gauge({ name: 'second', help: 'h', registers }).set(2);
  const bytes = bytesOf(worker.source.captureWithLog(WORKER, undefined)).toString('latin1');
  const replaced = Buffer.from(bytes.replace(text, replacement), 'latin1');
  replaced.fill(0, AT.logChecksum, AT.checksum + 4);
  return copyOf(replaced);
}

for (const [text, replacement] of [
  ['label', 'la el'],
  ['region', 'reg"on'],
]) {
  test(`a snapshot with a label of the name ${replacement} is refused`, () => {
    const store = new ClusterStore();
    store.apply(WORKER, withText('', ''));
    assert.throws(() => new ClusterStore().apply(WORKER, withText(text, replacement)), SnapshotError);
  });
}

test('the failures of a snapshot have names of bounded length, and counts that are numbers', () => {
  const snapshotWith = failure => {
    const log = new SourceLog();
    const { chunks, bytes } = encodeColumns(
      { ...forgedCapture([]), failures: [failure] },
      log,
      new BlocksAhead(),
    );
    return bytesOf({ chunks: [...chunks, ...log.bytesFrom(0)], bytes: bytes + log.length });
  };
  const store = new ClusterStore();
  store.apply(WORKER, snapshotWith(['s'.repeat(1e5), 'n'.repeat(1e5), 2]));
  const [{ stage, metric, count }] = store.state().failures;
  assert.deepStrictEqual([stage.length, metric.length, count], [200, 1000, 2]);
  for (const count of [NaN, -1]) {
    assert.throws(() => new ClusterStore().apply(WORKER, snapshotWith(['s', 'n', count])), SnapshotError);
  }
});

test('a metric of a snapshot whose name or type would make the page unreadable is left out and counted', () => {
  for (const [text, replacement] of [
    ['first_total', 'first_tot\n1'],
    ['first_total', 'first_\xe4otal'],
    ['first_total', '\0irst_total'],
    ['counter', 'coun\ner'],
  ]) {
    const store = new ClusterStore();
    store.apply(WORKER, withText(text, replacement));
    assert.deepStrictEqual([...samplesOf(textOf(store)).values()], [2]);
    const [{ stage, count }] = store.state().failures;
    assert.deepStrictEqual([stage, count], ['merge', 1]);
    store.retire(WORKER);
    assert.strictEqual(samplesOf(textOf(store)).size, 0);
  }
});

test('columns with a row in their order that does not exist are refused', () => {
  for (const row of [2, -2, 0x7fffffff]) {
    const { registry, source } = makeWorker();
    const counter = new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers: [registry] });
    for (const a of ['x', 'y']) counter.inc({ a });
    counter.remove({ a: 'x' });
    counter.inc({ a: 'x' });
    const { table } = viewOf(counter);
    const store = new ClusterStore();
    scrape({ source }, store, WORKER);
    table.live.order[table.live.length - 1] = row;
    assert.throws(() => scrape({ source }, store, WORKER), { code: 'numbers' });
    assert.strictEqual(samplesOf(textOf(store)).size, 2);
  }
});

test('logs and columns that were swapped between two workers are refused', () => {
  const [one, two] = [makeWorker(), makeWorker()];
  const sizes = [one, two].map(({ registry, source }, i) => {
    new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers: [registry] }).inc({ a: `${i}` }, i + 1);
    const bytes = bytesOf(source.captureWithLog(WORKER + i, undefined));
    const end = endOf(bytes);
    return { columns: bytes.subarray(0, end), log: bytes.subarray(end) };
  });
  const [first, second] = sizes;
  const store = new ClusterStore();
  const refused = (columns, log, code) =>
    assert.throws(() => store.apply(WORKER, copyOf(Buffer.concat([columns, log]))), { code });
  refused(second.columns, second.log, 'worker');
  refused(first.columns, second.log, 'checksum');
  const unchecked = copyOf(first.columns);
  unchecked.fill(0, AT.logChecksum, AT.checksum + 4);
  refused(unchecked, second.log, 'log');
  store.apply(WORKER, copyOf(Buffer.concat([first.columns, first.log])));
  assert.deepStrictEqual([...samplesOf(textOf(store)).values()], [1]);
});
