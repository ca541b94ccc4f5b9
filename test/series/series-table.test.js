'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { CapturedTable } = require('../../lib/series/captured-table');
const { SeriesTable } = require('../../lib/series/series-table');
const { SeriesHandle } = require('../../lib/series/series-handle');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../..');
const { viewOf } = require('../../lib/registry/metric-view');

/** @returns {boolean} whether the rows have new numbers */
function compact(table) {
  const { epoch } = table;
  const steps = table.compactionSteps();
  while (!steps.next().done);
  return table.epoch !== epoch;
}

function add(table, labels, value) {
  const row = table.locate(labels);
  table.pageOf(row)[table.offsetOf(row)] += value;
  return row;
}

/** What a handle's owner does: bind where the table says so, then add. */
function addThrough(handle, value) {
  if (handle.generation !== handle.table.generation) handle.bind();
  handle.page[handle.offset] += value;
}

/** The live series in order: labels as entries, and the first number of the row. */
function contentsOf(table) {
  return Array.from(table.liveRows(), row => [
    Object.entries(table.labelsOf(row)),
    table.pageOf(row)[table.offsetOf(row)],
  ]);
}

function labelsOf(table) {
  return Array.from(table.liveRows(), row => table.labelsOf(row).a);
}

/** How many numbers and row numbers a table holds memory for. */
function capacityOf(table) {
  const numbers = table.pages.reduce((sum, page) => sum + page.length, 0);
  const tuples = table.index === undefined ? 0 : table.index.tuplePages.length;
  return [numbers, tuples, table.live?.order.length ?? 0, table.forms.list.length];
}

test('small and dense tables are not compacted', () => {
  const table = new SeriesTable(['a'], 1);
  for (let a = 0; a < 1000; a++) table.locate({ a });
  table.clear();
  assert.strictEqual(compact(table), false);
  for (let a = 0; a < 3000; a++) table.locate({ a });
  for (let a = 0; a < 1500; a++) table.removeRow(table.find({ a }));
  assert.strictEqual(compact(table), false);
  table.removeRow(table.find({ a: 1500 }));
  assert.strictEqual(compact(table), true);
});

test('a gauge that is reset and refilled with the same labels does not grow', () => {
  const gauge = new Gauge({ name: 'g', help: 'g', labelNames: ['a', 'b'], registers: [] });
  const { table } = viewOf(gauge);
  const refill = () => {
    gauge.reset();
    for (let i = 0; i < 300; i++) gauge.set({ a: i, b: 'x' }, i);
  };
  for (let round = 0; round < 3; round++) refill();
  const before = capacityOf(table);
  for (let round = 0; round < 500; round++) refill();
  assert.deepStrictEqual(capacityOf(table), before);
  assert.strictEqual(table.rowCount, 300);
});

for (const [name, forget] of [
  ['removed one by one', (table, live) => table.removeRow(table.find({ a: live.shift() }))],
  ['cleared', (table, live) => (table.clear(), live.splice(0))],
]) {
  test(`labels that never return, ${name}, do not grow a table that nobody scrapes`, () => {
    const table = new SeriesTable(['a'], 4);
    const live = [];
    for (let i = 0; i < 50_000; i++) {
      if (live.length === 100) forget(table, live);
      add(table, { a: `v${i}` }, i);
      live.push(`v${i}`);
    }
    assert.deepStrictEqual(labelsOf(table), live);
    assert.ok(table.rowCount <= 2048, `${table.rowCount} rows`);
    assert.ok(table.index.dictionaries[0].values.length <= 2049);
    const [numbers, tuplePages, capacity] = capacityOf(table);
    assert.ok(numbers <= 4 * 4096 && tuplePages <= 1, `${numbers} numbers, ${tuplePages} pages of tuples`);
    assert.ok(capacity <= 4096, `live rows: ${capacity}`);
  });
}

test('a table holds a few rows at first, and no page is ever larger than 128 KB', () => {
  for (const width of [1, 2, 13, 1000]) {
    const table = new SeriesTable(['a'], width);
    table.locate({ a: 'first' });
    assert.ok(table.pages[0].length <= 4 * width);
    for (let a = 0; a < 40_000 / width; a++) table.locate({ a });
    for (const page of table.pages) assert.ok(page.byteLength <= 131_072, `width ${width}`);
    assert.ok(table.pages.length > 1);
  }
});

test('widths from 1 to more than a page keep rows apart', () => {
  for (const width of [1, 2, 3, 7, 16, 8191, 8192, 8193, 16_383, 16_384, 16_385]) {
    const table = new SeriesTable(['a'], width);
    const rows = Array.from({ length: 9 }, (_, a) => table.locate({ a }));
    for (const row of rows) table.pageOf(row).fill(row + 1, table.offsetOf(row), table.offsetOf(row) + width);
    for (const row of rows) {
      const numbers = table.pageOf(row).subarray(table.offsetOf(row), table.offsetOf(row) + width);
      assert.strictEqual(numbers.length, width);
      const shown = numbers.every(number => number === row + 1);
      assert.ok(shown, `width ${width}`);
    }
  }
});

/** A series table as a Map: what it must be seen as from outside. */
class ModelTable {
  series = new Map();

  static keyOf(names, labels) {
    return JSON.stringify(names.map(name => (labels[name] === undefined ? null : String(labels[name]))));
  }

  constructor(names) {
    this.names = names;
  }

  add(labels, value) {
    const key = ModelTable.keyOf(this.names, labels);
    const known = this.series.get(key);
    if (known !== undefined) known.value += value;
    else {
      this.series.set(key, { entries: Object.entries(labels), value });
    }
  }

  remove(labels) {
    this.series.delete(ModelTable.keyOf(this.names, labels));
  }

  get contents() {
    return [...this.series.values()].map(({ entries, value }) => [entries, value]);
  }
}

test('any sequence of uses, removals and compactions is that of an ordered map', () => {
  const names = ['a', 'b'];
  const value = fc.oneof(
    fc.integer({ min: 0, max: 6 }),
    fc.constantFrom('0', '1', 'x', true, null, undefined, 5n),
  );
  const labelSet = fc
    .tuple(fc.shuffledSubarray(names), value, value)
    .map(([keys, ...values]) => Object.fromEntries(keys.map((key, i) => [key, values[i]])));
  const operation = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(fc.constant('add'), labelSet, fc.integer({ min: 1, max: 9 })) },
    { weight: 4, arbitrary: fc.tuple(fc.constant('child'), fc.nat({ max: 3 })) },
    { weight: 4, arbitrary: fc.tuple(fc.constant('remove'), labelSet) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('clear')) },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.constant('addMany'), fc.nat({ max: 50 }), fc.integer({ min: 1, max: 1500 })),
    },
    { weight: 1, arbitrary: fc.tuple(fc.constant('removeMany'), fc.integer({ min: 2, max: 5 })) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('compact')) },
    { weight: 4, arbitrary: fc.tuple(fc.constant('compactSome'), fc.integer({ min: 1, max: 40 })) },
  );
  let compactionsUnderWay = 0;
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60, size: 'max' }), operations => {
      const table = new SeriesTable(names, 3);
      const model = new ModelTable(names);
      let begun = false;
      const childLabels = [{ a: 1 }, { b: 'x', a: '1' }, {}, { a: 'many 7' }];
      const children = childLabels.map(labels => new SeriesHandle(table, labels));
      const run = {
        add(labels, amount) {
          add(table, labels, amount);
          model.add(labels, amount);
        },
        child(number) {
          addThrough(children[number], 1);
          model.add(childLabels[number], 1);
        },
        remove(labels) {
          const row = table.find(labels);
          if (row !== -1) table.removeRow(row);
          model.remove(labels);
        },
        clear() {
          table.clear();
          model.series.clear();
        },
        addMany(from, count) {
          for (let i = from; i < from + count; i++) this.add({ a: `many ${i}` }, 1);
        },
        removeMany(each) {
          const all = model.contents.filter((_, i) => i % each !== 0);
          for (const [entries] of all) this.remove(Object.fromEntries(entries));
        },
        compact() {
          compact(table);
        },
        // Some steps of a compaction, which the next operations find under way.
        compactSome(count) {
          const { epoch } = table;
          const steps = table.compactionSteps();
          for (let i = 0; i < count; i++) if (steps.next().done) break;
          begun ||= count > 0 && table.isSparse && table.epoch === epoch;
        },
      };
      for (const [name, ...parameters] of operations) {
        run[name](...parameters);
        assert.strictEqual(table.liveCount, model.series.size);
      }
      assert.deepStrictEqual(contentsOf(table), model.contents);
      if (begun) compactionsUnderWay++;
      for (const [entries] of model.contents)
        assert.notStrictEqual(table.find(Object.fromEntries(entries)), -1);
    }),
    { numRuns: 150 },
  );
  assert.ok(compactionsUnderWay > 0, 'no compaction was under way');
});

test('a compaction takes many steps, in which the table is recorded to, and copies each row once after that', () => {
  const table = new SeriesTable(['a'], 1);
  let copied = 0;
  let finished = 0;
  table.listeners = [
    { rowStarted() {}, startMove: () => ({ copy: () => copied++, finish: () => finished++ }) },
  ];
  for (let i = 0; i < 20_000; i++) add(table, { a: `v${i}` }, i);
  for (let i = 0; i < 20_000; i++) if (i % 5 < 3) table.removeRow(table.find({ a: `v${i}` }));
  const child = new SeriesHandle(table, { a: 'v3' });
  addThrough(child, 1);
  let steps = 0;
  for (const step of table.compactionSteps()) {
    assert.equal(step, undefined);
    steps++;
    addThrough(child, 1);
    add(table, { a: 'v4' }, 1);
  }
  assert.ok(steps > 20_000 / 64, `${steps} steps`);
  assert.deepEqual([copied, finished], [8000 + 2, 1]);
  const valueOf = row => table.pageOf(row)[table.offsetOf(row)];
  const shown = ['v3', 'v4'].map(a => valueOf(table.find({ a })));
  assert.deepEqual(shown, [3 + 1 + steps, 4 + steps]);
});

test('a compaction ends although all series of a full metric are recorded to in each step', () => {
  const maxSeries = 1200;
  const counter = new Counter({ name: 'c', help: 'C', labelNames: ['a'], maxSeries, registers: [] });
  for (let a = 0; a < 3 * maxSeries; a++) {
    if (a >= maxSeries) counter.remove({ a: a - maxSeries });
    counter.inc({ a });
  }
  counter.inc({ a: 'beyond' });
  const { table } = viewOf(counter);
  const { epoch } = table;
  let steps = 0;
  for (const compaction = table.compactionSteps(); !compaction.next().done; steps++) {
    counter.labels({ a: 2 * maxSeries }).inc();
    for (let a = 2 * maxSeries + 1; a < 3 * maxSeries; a++) counter.inc({ a });
    counter.inc({ a: 'beyond' });
  }
  assert.deepEqual([table.epoch - epoch, table.rowCount], [1, maxSeries + 1]);
  assert.ok(steps > 3 * (maxSeries / 64), `${steps} steps`);
  const values = Array.from(table.liveRows(), row => table.pageOf(row)[table.offsetOf(row)]);
  assert.deepEqual(new Set(values), new Set([1 + steps]));
});

test('a summary that is reset between the steps of a compaction has no observations after it', async () => {
  const summary = new Summary({ name: 's', help: 'S', labelNames: ['a'], registers: [] });
  for (let a = 0; a < 6000; a++) summary.observe({ a }, a);
  for (let a = 0; a < 4000; a++) summary.remove({ a });
  const { table } = viewOf(summary);
  const { epoch } = table;
  const steps = table.compactionSteps();
  for (let i = 0; i < 20; i++) steps.next();
  summary.reset();
  summary.observe({ a: 4500 }, 2);
  while (!steps.next().done);
  assert.strictEqual(table.epoch, epoch + 1);
  const { values } = await summary.get();
  const sums = values.filter(({ metricName }) => metricName === 's_sum');
  assert.strictEqual(sums.length, 2000);
  for (const { labels, value } of sums) assert.strictEqual(value, labels.a === 4500 ? 2 : 0);
});

test('exemplars that are recorded between the steps of a compaction are at their series after it', async () => {
  const registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
  const counter = new Counter({
    name: 'c',
    help: 'C',
    labelNames: ['a'],
    enableExemplars: true,
    registers: [registry],
  });
  const record = (a, id) => counter.inc({ labels: { a }, value: 1, exemplarLabels: { id } });
  for (let a = 0; a < 6000; a++) record(a, `first ${a}`);
  for (let a = 0; a < 4000; a++) counter.remove({ a });
  const { table } = viewOf(counter);
  const steps = table.compactionSteps();
  for (let i = 0; i < 20; i++) steps.next();
  record(4000, 'second 4000');
  record(5999, 'second 5999');
  record(1, 'second 1');
  counter.remove({ a: 4001 });
  counter.inc({ a: 4001 });
  while (!steps.next().done);
  const { values } = await counter.get();
  const ids = new Map(values.map(({ labels, exemplar }) => [labels.a, exemplar?.labelSet.id]));
  assert.strictEqual(ids.size, 2001);
  assert.strictEqual(ids.get(4000), 'second 4000');
  assert.strictEqual(ids.get(5999), 'second 5999');
  assert.strictEqual(ids.get(1), 'second 1');
  assert.strictEqual(ids.get(4001), undefined);
  assert.strictEqual(ids.get(4002), 'first 4002');
});

test('label names that are added between the steps of a compaction end it', () => {
  const table = new SeriesTable(['a'], 1);
  for (let a = 0; a < 6000; a++) add(table, { a }, a);
  for (let a = 0; a < 4000; a++) table.removeRow(table.find({ a }));
  const steps = table.compactionSteps();
  for (let i = 0; i < 5; i++) steps.next();
  table.addLabelNames(['a', 'b']);
  const { epoch } = table;
  add(table, { a: 1, b: 2 }, 3);
  while (!steps.next().done);
  assert.strictEqual(table.epoch, epoch);
  assert.strictEqual(table.liveCount, 2001);
  assert.deepStrictEqual(contentsOf(table).at(-1), [
    [
      ['a', 1],
      ['b', 2],
    ],
    3,
  ]);
});

test('a row starts, each time from zero, not after its first use, nor before starts were last read', async t => {
  t.mock.timers.enable({ apis: ['Date'], now: 5_000_999 });
  const registers = [new Registry()];
  const options = { name: 'm', help: 'h', labelNames: ['a'], registers };
  for (const Type of [Counter, Histogram, Summary]) {
    registers[0].clear();
    t.mock.timers.setTime(5_000_999);
    const metric = new Type(options);
    const record = metric.inc?.bind(metric) ?? (labels => metric.observe(labels, 1));
    const { table } = viewOf(metric);
    const starts = () => Array.from(table.liveRows(), row => [table.labelsOf(row).a, table.startAt(row)]);
    new CapturedTable(table);
    record({ a: 'x' });
    t.mock.timers.tick(1000);
    record({ a: 'y' });
    // Most tables need no more than this.
    assert.strictEqual(table.starts, 5000);
    new CapturedTable(table);
    record({ a: 'z' });
    record({ a: 'x' });
    assert.deepStrictEqual(starts(), Object.entries({ x: 5000, y: 5000, z: 5001 }), metric.type);
    const captured = new CapturedTable(table);
    t.mock.timers.tick(1000);
    metric.remove('y');
    record({ a: 'y' });
    metric.zero?.({ a: 'z' });
    assert.deepStrictEqual(starts(), Object.entries({ x: 5000, z: metric.zero ? 5002 : 5001, y: 5002 }));
    const shown = [0, 1, 2].map(row => captured.startAt(row));
    assert.deepStrictEqual(shown, [5000, 5000, 5001]);
    t.mock.timers.tick(1000);
    metric.reset();
    t.mock.timers.tick(1000);
    record({ a: 'y' });
    // A summary's series stay.
    const after = Type === Summary ? { x: 5003, z: 5003, y: 5003 } : { y: 5004 };
    assert.deepStrictEqual(starts(), Object.entries(after), metric.type);
    for (let second = 0; second < 3000; second++) {
      t.mock.timers.tick(1000);
      starts();
      record({ a: `n${second}` });
    }
    for (let second = 0; second < 2999; second++) metric.remove(`n${second}`);
    assert.ok(compact(table));
    record({ a: 'y' });
    assert.deepStrictEqual(starts(), Object.entries({ ...after, n2999: 8004 }), metric.type);
    table.addLabelNames(['b']);
    assert.deepStrictEqual(starts(), Object.entries({ ...after, n2999: 8004 }), metric.type);
  }
});

test('a row that comes back starts after the second in which it was last read, unless it is still that', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 5_000_000 });
  const step = fc.record({ what: fc.constantFrom('inc', 'inc', 'remove', 'read', 'tick'), row: fc.nat(3) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 60 }), steps => {
      const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a'], registers: [] });
      const { table } = viewOf(counter);
      new CapturedTable(table);
      let read = 0;
      /** @type {Map<number, number>} in which second each label set was read the last time */
      const lastRead = new Map();
      for (const { what, row: a } of steps) {
        // Pages are a second apart.
        if (what === 'read') t.mock.timers.tick(1000);
        const now = Math.floor(Date.now() / 1000);
        const before = table.find({ a });
        if (what === 'remove') counter.remove({ a });
        if (what === 'tick') t.mock.timers.tick(700);
        if (what === 'read') {
          read = now;
          for (const row of new CapturedTable(table).liveRows()) lastRead.set(table.labelsOf(row).a, now);
        }
        if (what !== 'inc') continue;
        counter.inc({ a });
        if (before !== -1) continue;
        const start = table.starts.seconds?.[table.find({ a })] ?? table.starts;
        assert.ok(start <= now && start >= read, `${start} at ${now}, read at ${read}`);
        assert.ok(
          !(lastRead.get(a) >= start) || start === now,
          `${start} at ${now}, read at ${lastRead.get(a)}`,
        );
      }
    }),
    { numRuns: 300 },
  );
});

test('a metric without labels has one second and no list, also after resets; a gauge has none', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 5_000_000 });
  const registers = [new Registry()];
  const metrics = [Counter, Histogram, Summary].map(
    Type => new Type({ name: Type.name, help: 'h', registers }),
  );
  for (const metric of metrics) {
    const { table } = viewOf(metric);
    t.mock.timers.tick(1000);
    new CapturedTable(table);
    metric.reset();
    if (metric.type === 'histogram') metric.observe(1);
    assert.strictEqual(table.starts, Math.floor(Date.now() / 1000), metric.type);
    t.mock.timers.tick(1000);
    new CapturedTable(table);
    metric.remove();
    t.mock.timers.tick(1000);
    if (metric.inc) metric.inc();
    else metric.observe(1);
    assert.strictEqual(table.starts, Math.floor(Date.now() / 1000), metric.type);
  }
  const gauge = new Gauge({ name: 'g', help: 'h', registers });
  gauge.set(1);
  gauge.reset();
  assert.strictEqual(viewOf(gauge).table.starts, undefined);
  assert.strictEqual(viewOf(gauge).table.startAt(0), 0);
});
