'use strict';

// 2,100 damaged snapshots, files of retired totals, lists of JSON and answers (168,000 in test:long). Each is
// applied or refused as a whole, the page can be written, and no case takes more memory than its size
// explains.

const { before, describe, it } = require('node:test');
const assert = require('node:assert/strict');
const { effort, seed } = require('../fixtures/seeded-fast-check');
const { randomFrom } = require('../../benchmarks/shared/random');
const { Counter, Gauge, Histogram, Summary } = require('../..');
const { VIEW } = require('../../lib/registry/metric-view');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { readAnswer } = require('../../lib/cluster/primary/worker-answer');
const { columnsName, isColumnsNameOf } = require('../../lib/spool/file-names');
const { ByteWriter, SnapshotError, joined } = require('../../lib/source/byte-buffers');
const { decodeLog } = require('../../lib/source/log-decoder');
const { applyRecords } = require('../../lib/store/worker-log');
const {
  BYTES_OFFSET,
  END_MARK,
  TABLE_ENTRY,
  DIGESTS,
  LATER_DIGESTS,
  EXEMPLARS,
  BUCKETS,
  LATER_BUCKETS,
  ROWS: ROWS_RECORD,
  STARTS,
} = require('../../lib/source/source-format');
const { damaged, anyValue, hostileMessage, pick } = require('../fixtures/hostile-input');
const { makeWorker, bytesOf, copyOf, scrape, snapshotAhead, textOf } = require('../fixtures/unit-scrape');

const WORKER = 1;

// Decoded label sets, rows and text take some 100 bytes for a byte of a snapshot; V8 frees nothing in
// between.
const BYTES_PER_BYTE = 1024;
const FIXED_BYTES = 2 ** 23;
const CASES_PER_READING = 20;

/** A worker with a metric of each kind, and what it counts from one snapshot to the next. */
async function richWorker() {
  const worker = makeWorker(undefined, { keepsEnded: true });
  const registers = [worker.registry];
  const labelled = { help: 'h', labelNames: ['a', 'b'], registers };
  const counter = new Counter({ name: 'c', enableExemplars: false, ...labelled });
  const histogram = new Histogram({ name: 'h', buckets: [1, 2], ...labelled });
  const summary = new Summary({ name: 's', percentiles: [0.5, 0.9], ...labelled });
  const native = new Histogram({ name: 'n', buckets: [1], nativeHistogramBucketFactor: 1.1, ...labelled });
  const gauge = new Gauge({ name: 'g', help: 'g', registers, aggregator: 'max' });
  const values = [{ value: Infinity, labels: { k: 'v' } }];
  worker.registry.registerMetric({ name: 'j', get: () => ({ name: 'j', help: 'j', type: 'gauge', values }) });
  const use = value => {
    const labels = { a: `v${value}`, b: 'ü' };
    counter.inc(labels, value);
    histogram.observe(labels, value);
    for (let i = 0; i < 5; i++) summary.observe(labels, value + i);
    for (const each of [value, -value, value / 1000, 0]) native.observe(labels, each);
    gauge.set(value);
    // Of the capture before this one, if there was one: they end.
    for (const metric of [counter, histogram, summary, native]) metric.remove({ a: `v${value - 1}`, b: 'ü' });
  };
  use(1);
  use(2);
  await worker.source.prepare(1000);
  return { ...worker, use };
}

/** Snapshots that follow each other: a first one, and a later one as a delta and in full. */
async function snapshotsOf(worker) {
  const store = new ClusterStore();
  const first = scrape(worker, store, WORKER);
  const text = textOf(store);
  worker.use(3);
  const delta = await snapshotAhead(worker, WORKER, store.worker(WORKER)?.position);
  const full = bytesOf(worker.source.captureWithLog(WORKER, undefined));
  return { first, text, later: [delta, full] };
}

// Offsets in the header; docs/internals/snapshot-format.md has the whole table.
const CHECKSUMS = 48;
const SEQUENCE = 56;
const NUMBERS_START = 80;
const COLUMNS_START = 96;

/** How many bytes of a source in a message are of its log. */
function logBytesOf(source) {
  return source.length - source.readDoubleLE(BYTES_OFFSET);
}

/** Makes length, end mark and checksums fit again, so that the damage gets past the first checks. */
function closed(source, logBytes) {
  const end = (source.length - logBytes) & ~7;
  if (end < 128 + 16) return source;
  source.writeDoubleLE(end, BYTES_OFFSET);
  source.copy(source, end - 16, SEQUENCE, SEQUENCE + 8);
  END_MARK.copy(source, end - 8);
  source.fill(0, CHECKSUMS, CHECKSUMS + 8);
  return source;
}

/**
 * Runs cases that have a number each, so that a failure can be repeated: the seed and the number choose it.
 *
 * @param {number} count
 * @param {(random: () => number) => number} run returns the size of its input in bytes
 */
function runCases(count, run) {
  let memory = process.memoryUsage();
  let size = 0;
  for (let number = 0; number < count * effort; number++) {
    try {
      size += run(randomFrom(seed + number * 7919));
    } catch (error) {
      throw new Error(`case ${number} of PROPERTY_SEED=${seed}`, { cause: error });
    }
    // Reading the memory takes longer than a case.
    if ((number + 1) % CASES_PER_READING > 0) continue;
    const now = process.memoryUsage();
    for (const kind of ['heapUsed', 'arrayBuffers']) {
      const grown = now[kind] - memory[kind];
      const cases = `one of ${CASES_PER_READING} cases up to ${number} of PROPERTY_SEED=${seed}`;
      assert.ok(grown <= FIXED_BYTES + BYTES_PER_BYTE * size, `${cases} took ${grown} bytes (${kind})`);
    }
    memory = now;
    size = 0;
  }
}

/**
 * A source with the log and the columns of another one, and other entries.
 *
 * @param {Buffer} source of one registry
 * @param {object} numbers
 * @param {Record<string, string>[]} numbers.defaultLabels
 * @param {{defaults: number, rows: number, start: number, extras?: number[]}[]} numbers.entries of the metric
 *   0; `extras`: kinds of blocks, all of them empty
 */
function withNumbers(source, { defaultLabels, entries }) {
  const numbersStart = source.readDoubleLE(NUMBERS_START);
  const rest = source.subarray(source.readDoubleLE(COLUMNS_START));
  const writer = new ByteWriter(4096, numbersStart);
  writer.list(defaultLabels, labels => writer.labels(labels));
  writer.uint32(0);
  writer.list(entries, ({ defaults, rows, start, extras = [] }) => {
    for (const number of [TABLE_ENTRY, defaults, 0, 0, rows, rows, 1]) writer.uint32(number);
    for (const number of [start, rows * 8]) writer.float64(number);
    writer.list(extras, kind => {
      for (const number of [kind, 0]) writer.uint32(number);
      for (const number of [start + rows * 8, 0]) writer.float64(number);
    });
  });
  writer.align(8);
  const crafted = copyOf(Buffer.concat([source.subarray(0, numbersStart), ...writer.chunks(), rest]));
  crafted.writeDoubleLE(writer.length, COLUMNS_START);
  return closed(crafted, logBytesOf(source));
}

/** Most values of anyValue() have less. */
const JSON_BYTES = 100_000;

describe('bytes from another process', () => {
  let snapshots;
  let retired;

  before(async () => {
    const worker = await richWorker();
    const store = new ClusterStore();
    scrape(worker, store, WORKER);
    store.retire(WORKER);
    retired = store.encodeRetired();
    snapshots = await snapshotsOf(await richWorker());
  });

  it('a damaged snapshot is applied or refused as a whole', () => {
    let refused = 0;
    let applied = 0;
    runCases(3200, random => {
      const store = new ClusterStore();
      store.apply(WORKER, copyOf(snapshots.first));
      const later = snapshots.later[random() < 0.5 ? 0 : 1];
      let input = damaged(later, random);
      if (random() < 0.8) input = closed(input, logBytesOf(later));
      try {
        store.apply(WORKER, input);
        applied++;
      } catch (error) {
        if (!(error instanceof SnapshotError)) throw error;
        assert.equal(textOf(store), snapshots.text);
        refused++;
        return input.length;
      }
      textOf(store);
      store.retire(WORKER);
      textOf(store, { openMetrics: true });
      return input.length;
    });
    assert.ok(
      refused > 600 * effort && applied > 250 * effort,
      `${refused} refused, ${applied} applied: both are tested`,
    );
  });

  describe('a short snapshot', () => {
    const ROWS = 10_000;
    const MANY = 2000;
    let long;
    before(() => {
      const worker = makeWorker();
      const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a'], registers: [worker.registry] });
      for (let i = 0; i < ROWS; i++) counter.inc({ a: `${i}` });
      long = bytesOf(worker.source.captureWithLog(WORKER, undefined));
    });

    it('cannot have the same numbers many times', () => {
      const entry = { defaults: 0, rows: ROWS, start: 0 };
      const one = withNumbers(long, { defaultLabels: [{}], entries: [entry] });
      new ClusterStore().apply(WORKER, one);
      for (const entries of [
        [entry, entry],
        [entry, { ...entry, rows: 0 }],
      ]) {
        const crafted = withNumbers(long, { defaultLabels: [{}], entries });
        assert.throws(() => new ClusterStore().apply(WORKER, crafted), { code: 'length' });
      }
    });

    it('does not take memory for the rows of each entry that has no numbers', () => {
      const entries = Array.from({ length: MANY }, (_, i) => ({ defaults: i, rows: 0, start: 0 }));
      const defaultLabels = entries.map((_, i) => ({ d: `${i}` }));
      const crafted = withNumbers(long, { defaultLabels, entries });
      const before = process.memoryUsage().arrayBuffers;
      new ClusterStore().apply(WORKER, crafted);
      const taken = process.memoryUsage().arrayBuffers - before;
      assert.ok(taken < ROWS * MANY, `${taken} bytes`);
    });

    it('does not take time for the default labels of each entry', t => {
      const entries = Array.from({ length: MANY }, () => ({ defaults: 0, rows: 0, start: 0 }));
      const crafted = withNumbers(long, { defaultLabels: [{ d: 'x'.repeat(1000) }], entries });
      const { mock } = t.mock.method(JSON, 'stringify');
      new ClusterStore().apply(WORKER, crafted);
      assert.equal(mock.callCount(), 1);
    });

    it('does not take time for a long name or type of each entry', t => {
      const text = 'x'.repeat(20_000);
      for (const wrong of [{ name: text }, { type: text }]) {
        const worker = makeWorker();
        const counter = new Counter({ name: 'c', help: 'h', registers: [worker.registry] });
        const view = counter[VIEW]();
        counter[VIEW] = () => ({ ...view, ...wrong });
        const entries = Array.from({ length: MANY }, () => ({ defaults: 0, rows: 0, start: 0 }));
        const crafted = withNumbers(bytesOf(worker.source.captureWithLog(WORKER, undefined)), {
          defaultLabels: [{}],
          entries,
        });
        const store = new ClusterStore();
        const { mock } = t.mock.method(RegExp.prototype, 'test');
        store.apply(WORKER, crafted);
        const lengths = mock.calls.map(({ arguments: [tested] }) => tested.length);
        mock.restore();
        assert.ok(Math.max(0, ...lengths) < text.length, `${lengths.length} texts`);
        assert.equal(store.state().failures[0].count, MANY);
      }
    });

    it('has at most one block of each kind of extras, in order, and no unknown kind', () => {
      for (const [extras, isValid] of [
        [[EXEMPLARS], true],
        [[EXEMPLARS, BUCKETS, LATER_BUCKETS], true],
        [[DIGESTS, LATER_DIGESTS], true],
        [[LATER_BUCKETS + 1], false],
        [[EXEMPLARS, EXEMPLARS], false],
        [[BUCKETS, EXEMPLARS], false],
      ]) {
        const entries = [{ defaults: 0, rows: ROWS, start: 0, extras }];
        const apply = () =>
          new ClusterStore().apply(WORKER, withNumbers(long, { defaultLabels: [{}], entries }));
        if (isValid) apply();
        else assert.throws(apply, { code: 'numbers' }, `${extras}`);
      }
    });

    it('cannot have many rows with many default labels', () => {
      const labels = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`l${i}`, '']));
      const entries = [{ defaults: 0, rows: ROWS, start: 0 }];
      const crafted = withNumbers(long, { defaultLabels: [labels], entries });
      assert.throws(() => new ClusterStore().apply(WORKER, crafted), { code: 'length' });
    });
  });

  it('a log with starts of rows that there are not, or of some rows only, is refused', () => {
    for (const fields of [
      [STARTS, 0, 1, 1, 1000],
      [STARTS, 0, 1, 2 ** 32 - 1, 1000],
      [STARTS, 1, 1, 0, 1000],
      [STARTS, 0, 2 ** 31, 0, 1000],
      [ROWS_RECORD, 0, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 3, 1000, 1000, 1000],
    ]) {
      const worker = makeWorker();
      new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers: [worker.registry] }).inc({ a: 'x' });
      const { chunks } = worker.source.captureWithLog(WORKER, undefined);
      const log = joined(worker.source.log.bytesFrom(0));
      const metrics = [];
      applyRecords(
        metrics,
        decodeLog(log, worker.source.log.name, () => undefined),
      );
      assert.ok(chunks.length > 0);
      assert.throws(
        () =>
          applyRecords(
            metrics,
            decodeLog(Buffer.from(new Uint32Array(fields).buffer), undefined, () => 1),
          ),
        SnapshotError,
        `${fields}`,
      );
    }
  });

  it('dozens of default labels on each of half a million rows are accepted, whole and as a delta', () => {
    const worker = makeWorker();
    worker.registry.setDefaultLabels(
      Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`d${i}`, 'x'])),
    );
    const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a'], registers: [worker.registry] });
    for (let i = 0; i <= 2 ** 19; i++) counter.inc({ a: i });
    const store = new ClusterStore();
    for (const wanted of [1, 2]) {
      const snapshot = worker.source.captureWithLog(WORKER, store.worker(WORKER)?.position);
      store.apply(WORKER, bytesOf(snapshot));
      assert.equal(store.worker(WORKER).sources[0].rowCount, 2 ** 19 + 1, `snapshot ${wanted}`);
    }
  });

  it('a damaged file of retired totals is restored or refused as a whole', () => {
    let restored = 0;
    runCases(1600, random => {
      const store = new ClusterStore();
      const changed = damaged(retired, random);
      const input = random() < 0.8 ? closed(changed, logBytesOf(retired)) : changed;
      try {
        store.restoreRetired(input);
        restored++;
      } catch (error) {
        if (!(error instanceof SnapshotError)) throw error;
        assert.equal(store.isEmpty, true);
        assert.equal(store.isClosed(WORKER), false);
        return input.length;
      }
      textOf(store, { openMetrics: random() < 0.5 });
      return input.length;
    });
    assert.ok(restored > 40 * effort, `${restored} restored: that is tested, too`);
  });

  it('JSON of any form costs at most the metric that it is', () => {
    const valid = {
      name: 'fine_total',
      help: 'h',
      type: 'counter',
      aggregator: 'sum',
      values: [{ value: 7, labels: {} }],
    };
    const fields = ['name', 'help', 'type', 'aggregator', 'values'];
    runCases(1600, random => {
      const store = new ClusterStore();
      const hostile = hostileMessage({ ...valid, name: 'hostile' }, random, fields);
      if (Array.isArray(hostile.values) && random() < 0.7) {
        hostile.values = [
          hostileMessage({ value: 1, labels: { a: 'b' } }, random, [
            'value',
            'labels',
            'metricName',
            'exemplar',
          ]),
        ];
      }
      const registries = [[hostile, valid], random() < 0.5 ? anyValue(random) : []];
      store.applyJson(WORKER, registries);
      assert.match(textOf(store), /^fine_total 7$/m);
      store.retire(WORKER);
      textOf(store, { openMetrics: true });
      return JSON_BYTES;
    });
  });

  it('an answer with fields of any type is read or refused, and what is read has the announced types', () => {
    const forms = [
      { file: columnsName(WORKER, 5), bytes: 100 },
      { source: 'AAAA', reason: 'ENOSPC' },
      { metrics: [[]] },
      { error: 'failed' },
    ];
    const fields = ['file', 'bytes', 'source', 'reason', 'metrics', 'error'];
    let refused = 0;
    runCases(2000, random => {
      const message = hostileMessage(pick(random, forms), random, fields);
      const { answer, ...texts } = readAnswer(message, WORKER, 5);
      for (const text of Object.values(texts)) {
        assert.equal(typeof text, 'string');
        assert.ok(text.length <= 200);
      }
      if (answer === undefined) refused++;
      else assert.equal(isReadable(answer), true);
      return JSON_BYTES;
    });
    assert.ok(refused > 200 * effort && refused < 1900 * effort, `${refused} refused`);
  });
});

/** Whether an answer has one part, of the announced type; a file's name is then one of ours. */
function isReadable({ workerId, file, source, metrics }) {
  if (workerId !== WORKER) return false;
  if (metrics !== undefined) return Array.isArray(metrics);
  if (source !== undefined) return typeof source === 'string';
  return isColumnsNameOf(file, WORKER, 5);
}
