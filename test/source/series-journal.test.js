'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { SeriesJournal } = require('../../lib/source/series-journal');
const { Counter } = require('../../lib/metric/counter');
const { viewOf } = require('../../lib/registry/metric-view');

/** @returns {boolean} whether the rows have new numbers */
function compactTable(table) {
  const { epoch } = table;
  const steps = table.compactionSteps();
  while (!steps.next().done);
  return table.epoch !== epoch;
}

function counter(name, labelNames = ['a']) {
  return new Counter({ name, help: name, labelNames, registers: [] });
}

function note(journal, metrics) {
  journal.note(metrics.map(viewOf));
}

/** How many label values a metric's dictionaries hold, and how many rows its table. */
function extentOf(metric) {
  const { table } = viewOf(metric);
  const values = table.index === undefined ? [] : table.index.dictionaries.map(({ values }) => values.length);
  return { rows: table.rowCount, values };
}

/** A metric that was dropped: it continues under another number. */
const DROPPED = { rows: 0, values: [] };

/** Where a reader at a position has to continue, and with which segments. */
function since(journal, position) {
  const start = journal.startFor(position);
  return { start, segments: journal.after({ epoch: journal.epoch, series: start }) };
}

/** A reader of the journal: how many rows and values it has of each metric, by the metric's number. */
class Reader {
  position = undefined;
  metrics = new Map();

  /** Applies the segments that it does not have. Throws if they do not continue what it has. */
  read(journal) {
    const { start, segments } = since(journal, this.position);
    if (this.position?.epoch !== journal.epoch) {
      assert.strictEqual(start, 0);
      this.metrics.clear();
    }
    assert.ok(start <= (this.position?.epoch === journal.epoch ? this.position.series : 0));
    for (const { metric, defines, drops, fromRow, toRow, fromValues, toValues } of segments) {
      let extent = this.metrics.get(metric.number);
      if (extent === undefined) {
        assert.ok(defines, `metric ${metric.number} was never defined`);
        // Numbers have no gaps: a reader has its metrics in a list.
        assert.strictEqual(metric.number, this.metrics.size);
        extent = { rows: 0, values: metric.view.table.labelNames.map(() => 1) };
        this.metrics.set(metric.number, extent);
      }
      if (drops) {
        this.metrics.set(metric.number, DROPPED);
        continue;
      }
      if (extent === DROPPED) {
        assert.strictEqual(toRow, fromRow, `rows of metric ${metric.number}, which was dropped`);
        continue;
      }
      assert.ok(fromRow <= extent.rows, `rows from ${extent.rows} to ${fromRow} are missing`);
      fromValues.forEach((from, label) => assert.ok(from <= extent.values[label], 'values are missing'));
      extent.rows = Math.max(extent.rows, toRow);
      extent.values = extent.values.map((count, label) => Math.max(count, toValues[label]));
    }
    this.position = { epoch: journal.epoch, series: journal.length };
    return { start, segments };
  }

  /** Checks that it has all rows and values of the metrics that were noted last. */
  check(journal, metrics) {
    for (const metric of metrics) {
      assert.deepStrictEqual(this.metrics.get(journal.numberOf(viewOf(metric))), extentOf(metric));
    }
  }
}

/** How many series the segments have. */
function rowsIn(segments) {
  return segments.reduce((sum, { fromRow, toRow }) => sum + toRow - fromRow, 0);
}

test('SeriesJournal: startFor() and after() return everything to a reader that has nothing, and nothing to one that has everything', () => {
  const journal = new SeriesJournal();
  const metrics = [counter('a'), counter('b', []), counter('c')];
  metrics[0].inc({ a: 1 });
  note(journal, metrics);
  const reader = new Reader();
  assert.strictEqual(reader.read(journal).segments.length, 3);
  reader.check(journal, metrics);
  note(journal, metrics);
  assert.deepStrictEqual(reader.read(journal), { start: journal.length, segments: [] });
});

test('SeriesJournal: startFor() and after() return only the series that the reader does not have', () => {
  const journal = new SeriesJournal();
  const metrics = [counter('a'), counter('b')];
  const reader = new Reader();
  for (let i = 0; i < 50; i++) {
    metrics[i % 2].inc({ a: i });
    if (i % 5 === 0) metrics[0].inc({ a: `more ${i}` });
    note(journal, metrics);
    journal.forgetBefore(reader.position);
    const { start, segments } = reader.read(journal);
    assert.strictEqual(rowsIn(segments), i % 5 === 0 ? 2 : 1);
    if (i > 0) assert.ok(start > 0);
    reader.check(journal, metrics);
  }
});

test('SeriesJournal: startFor() accepts the position of any earlier capture, and starts at 0 for any other position', () => {
  const journal = new SeriesJournal();
  const metrics = [counter('a'), counter('b')];
  const boundaries = [];
  for (let i = 0; i < 20; i++) {
    metrics[i % 2].inc({ a: i });
    if (i % 3 === 0) metrics[1].inc({ a: `b${i}` });
    note(journal, metrics);
    boundaries.push(journal.length);
  }
  for (let series = 0; series <= journal.length + 5; series++) {
    const { start } = since(journal, { epoch: journal.epoch, series });
    const isExact = series <= journal.length && boundaries.includes(series);
    if (isExact) assert.strictEqual(start, series);
    // A position between two segments of one capture is accepted, too; any other one starts at 0.
    else assert.ok(start === 0 || start === series, `${series}: ${start}`);
    if (series > journal.length) assert.strictEqual(start, 0);
  }
  assert.strictEqual(since(journal, { epoch: journal.epoch, series: NaN }).start, 0);
  assert.strictEqual(since(journal, { epoch: journal.epoch, series: null }).start, 0);
  assert.strictEqual(since(journal, { epoch: journal.epoch, series: -1 }).start, 0);
  assert.strictEqual(since(journal, { epoch: journal.epoch + 1, series: journal.length }).start, 0);
  assert.strictEqual(since(journal, undefined).start, 0);
});

test('SeriesJournal: the segments of a thousand captures with new series are forgotten', () => {
  const journal = new SeriesJournal();
  const metrics = [counter('a'), counter('b'), counter('c')];
  const reader = new Reader();
  for (let i = 0; i < 1000; i++) {
    metrics[i % 3].inc({ a: i });
    note(journal, metrics);
    journal.forgetBefore(reader.position);
    const { position } = reader;
    assert.strictEqual(reader.read(journal).start > 0, i > 0);
    // Of all earlier positions, it continues from the reader's last one only.
    const positions = [0, position?.series ?? 0, journal.length].map(series => ({
      epoch: journal.epoch,
      series,
    }));
    assert.deepStrictEqual(
      positions.map(position => journal.after(position)?.length),
      [i === 0 ? 3 : undefined, i === 0 ? 3 : 1, 0],
    );
  }
  const late = new Reader();
  assert.strictEqual(rowsIn(late.read(journal).segments), 1000);
  late.check(journal, metrics);
});

test('SeriesJournal: a reader that needs what was forgotten gets everything, in a new epoch', () => {
  const journal = new SeriesJournal();
  const [a, b] = [counter('a'), counter('b')];
  a.inc({ a: 1 });
  note(journal, [a, b]);
  const [early, steady] = [new Reader(), new Reader()];
  early.read(journal);
  steady.read(journal);
  a.inc({ a: 2 });
  for (let i = 0; i < 6; i++) {
    note(journal, [a, b]);
    journal.forgetBefore(steady.position);
    steady.read(journal);
    b.inc({ a: i });
  }
  note(journal, [a, b]);
  const { epoch } = journal;
  const { segments } = early.read(journal);
  assert.strictEqual(segments.length, 2);
  assert.strictEqual(journal.epoch, epoch + 1);
  early.check(journal, [a, b]);
  steady.read(journal);
  steady.check(journal, [a, b]);
});

test('SeriesJournal: a position that it never had forgets nothing that the reader needs', () => {
  const journal = new SeriesJournal();
  const a = counter('a');
  const reader = new Reader();
  for (let i = 0; i < 5; i++) {
    a.inc({ a: i });
    note(journal, [a]);
    journal.forgetBefore({ epoch: journal.epoch + (i % 2), series: 1 });
    reader.read(journal);
    reader.check(journal, [a]);
  }
});

/** Compacts the table of a metric, which renumbers its rows. */
function compact(metric) {
  for (let i = 0; i < 1100; i++) metric.inc({ a: `churn ${i}` });
  for (let i = 0; i < 1100; i++) metric.remove({ a: `churn ${i}` });
  assert.ok(compactTable(viewOf(metric).table));
}

for (const [name, change] of [
  ['rows were renumbered', compact],
  ['help has changed', metric => (metric.help = 'other')],
  ['name has changed', metric => (metric.name = 'other')],
  ['aggregator has changed', metric => (metric.aggregator = 'max')],
]) {
  test(`SeriesJournal: a metric whose ${name} is sent again, and no other metric`, () => {
    const journal = new SeriesJournal();
    const metrics = [counter('a'), counter('b')];
    for (const metric of metrics) for (let a = 0; a < 5; a++) metric.inc({ a });
    note(journal, metrics);
    const [reader, late, latest] = [new Reader(), new Reader(), new Reader()];
    reader.read(journal);
    late.read(journal);
    const { epoch } = journal;
    const before = journal.numberOf(viewOf(metrics[0]));
    for (let times = 1; times <= 3; times++) {
      change(metrics[0]);
      metrics[0].inc({ a: `after ${times}` });
      if (name !== 'rows were renumbered') metrics[0][name.split(' ')[0]] += `_${times}`;
      note(journal, metrics);
      assert.notStrictEqual(journal.numberOf(viewOf(metrics[0])), before);
      journal.forgetBefore(reader.position);
      const { segments } = reader.read(journal);
      assert.strictEqual(rowsIn(segments), 5 + times);
      assert.ok(segments.every(({ metric }) => metric.view.table === viewOf(metrics[0]).table));
      reader.check(journal, metrics);
      note(journal, metrics);
      assert.strictEqual(reader.read(journal).segments.length, 0);
    }
    assert.strictEqual(journal.epoch, epoch);
    for (const other of [late, latest]) {
      other.read(journal);
      other.check(journal, metrics);
    }
    // The rows that it had under its earlier numbers are not sent.
    assert.strictEqual(rowsIn(since(journal, undefined).segments), 5 + 8);
  });
}

test('SeriesJournal: a reader that has not seen a metric gets its definition even if the metric was dropped meanwhile', () => {
  const journal = new SeriesJournal();
  const metrics = [counter('a')];
  note(journal, metrics);
  const [reader, steady] = [new Reader(), new Reader()];
  reader.read(journal);
  const passing = counter('passing');
  passing.inc({ a: 'x' });
  metrics.push(passing);
  note(journal, metrics);
  steady.read(journal);
  compact(passing);
  passing.inc({ a: 'y' });
  note(journal, metrics);
  journal.forgetBefore(steady.position);
  for (const one of [reader, steady, new Reader()]) {
    one.read(journal);
    one.check(journal, metrics);
  }
});

test('SeriesJournal: a metric that is redefined at every capture does not make the journal grow', () => {
  const journal = new SeriesJournal();
  const metrics = [counter('a'), counter('b'), counter('c')];
  for (const metric of metrics) for (let a = 0; a < 100; a++) metric.inc({ a });
  const reader = new Reader();
  let sent = 0;
  for (let i = 0; i < 1000; i++) {
    metrics[0].help = `help ${i}`;
    note(journal, metrics);
    journal.forgetBefore(reader.position);
    sent += rowsIn(reader.read(journal).segments);
    reader.check(journal, metrics);
  }
  // Usually one metric is sent. Now and then a new epoch begins and everything is sent.
  assert.ok(sent < 1000 * 120, `${sent} rows`);
  assert.ok(reader.metrics.size < 150);
});

test('SeriesJournal: creating and dropping metrics does not make the journal grow', () => {
  const journal = new SeriesJournal();
  const lasting = counter('lasting');
  lasting.inc({ a: 1 });
  const reader = new Reader();
  for (let i = 0; i < 2000; i++) {
    const passing = counter(`passing_${i}`);
    passing.inc({ a: 1 });
    note(journal, [lasting, passing]);
    journal.forgetBefore(reader.position);
    reader.read(journal);
    reader.check(journal, [lasting, passing]);
    assert.ok(reader.metrics.size < 150);
  }
});

test('SeriesJournal: a metric that is absent from a capture is dropped, and sent again when it returns', () => {
  const journal = new SeriesJournal();
  const [a, b] = [counter('a'), counter('b')];
  for (const metric of [a, b]) metric.inc({ a: 1 });
  note(journal, [a, b]);
  const reader = new Reader();
  reader.read(journal);
  a.inc({ a: 2 });
  note(journal, [b]);
  const { segments } = reader.read(journal);
  assert.deepStrictEqual(
    segments.map(({ metric, drops }) => [metric.view.name, drops]),
    [['a', true]],
  );
  note(journal, [b, a]);
  assert.strictEqual(rowsIn(reader.read(journal).segments), 2);
  reader.check(journal, [a, b]);
});

test('SeriesJournal: a metric in two registries is sent once', () => {
  const journal = new SeriesJournal();
  const a = counter('a');
  a.inc({ a: 1 });
  note(journal, [a, a]);
  assert.strictEqual(since(journal, undefined).segments.length, 1);
  assert.strictEqual(journal.length, 2);
});

test('SeriesJournal: readers have every row after each read, in random histories', () => {
  const use = fc.oneof(
    { weight: 6, arbitrary: fc.record({ inc: fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 40 })) }) },
    { weight: 4, arbitrary: fc.record({ scrape: fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 2 })) }) },
    { weight: 1, arbitrary: fc.record({ forget: fc.nat({ max: 2 }) }) },
    { weight: 1, arbitrary: fc.record({ redefine: fc.nat({ max: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ renumber: fc.nat({ max: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ absent: fc.nat({ max: 3 }) }) },
  );
  fc.assert(
    fc.property(fc.array(use, { maxLength: 120, size: 'max' }), operations => {
      const journal = new SeriesJournal();
      const metrics = [counter('a'), counter('b', ['a', 'b']), counter('c', []), counter('d')];
      const readers = [new Reader(), new Reader(), new Reader()];
      let absent = -1;
      for (const [index, operation] of operations.entries()) {
        const { inc, scrape, forget, redefine, renumber, absent: away } = operation;
        if (inc !== undefined) metrics[inc[0]].inc(inc[0] === 2 ? {} : { a: inc[1] });
        if (forget !== undefined) readers[forget] = new Reader();
        if (redefine !== undefined) metrics[redefine].help = `help ${index}`;
        if (renumber !== undefined && renumber !== 2) compact(metrics[renumber]);
        if (away !== undefined) absent = away === absent ? -1 : away;
        if (scrape === undefined) continue;
        const [reader, merger] = scrape;
        const present = metrics.filter((_, i) => i !== absent);
        note(journal, present);
        journal.forgetBefore(readers[merger].position);
        readers[reader].read(journal);
        readers[reader].check(journal, present);
      }
    }),
    { numRuns: 120 },
  );
});
