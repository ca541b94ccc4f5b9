'use strict';

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');
const { Counter, Gauge, Registry } = require('../..');
const { SourceLog } = require('../../lib/source/source-log');
const { decodeLog } = require('../../lib/source/log-decoder');
const { applyRecords } = require('../../lib/store/worker-log');
const { runThrough } = require('../../lib/event-loop/slices');
const { viewOf } = require('../../lib/registry/metric-view');
const { joined } = require('../../lib/source/byte-buffers');

const MANY = 20_000;

function makeCounter(name, labelNames = ['a']) {
  const counter = new Counter({ name, help: name, labelNames, registers: [new Registry()] });
  return { counter, view: viewOf(counter) };
}

function extend(log, ...views) {
  runThrough(log.extend(views));
}

/** What the log says from its beginning: a line for each record. */
function recordsOf(log, from = 0) {
  const labels = new Map();
  const records = decodeLog(
    joined(log.bytesFrom(from)),
    from === 0 ? log.name : undefined,
    metric => labels.get(metric) ?? 1,
  );
  return records.map(record => {
    if ('definition' in record) return `define ${record.metric} ${record.definition.name}`;
    if ('dropped' in record) return `drop ${record.metric}`;
    if ('restarted' in record) return `restart ${record.metric} ${record.restarted} at ${record.starts}`;
    return `rows ${record.metric} ${record.fromRow} ${record.rows}`;
  });
}

describe('the log of a source', () => {
  it('has when rows have started, and once which of them have done so again', t => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
    const log = new SourceLog();
    const [one, two, none] = [makeCounter('one'), makeCounter('two', []), makeCounter('none')];
    const gauge = new Gauge({ name: 'g', help: 'g', labelNames: ['a'], registers: [new Registry()] });
    const views = [one.view, two.view, viewOf(gauge), none.view];
    for (const a of ['x', 'y', 'z']) one.counter.inc({ a });
    gauge.set({ a: 'x' }, 1);
    extend(log, ...views);
    t.mock.timers.tick(1000);
    // In the second of an extension, before it and after it.
    one.counter.remove({ a: 'y' });
    one.counter.inc({ a: 'y' });
    extend(log, ...views);
    one.counter.inc({ a: 'w' });
    gauge.remove({ a: 'x' });
    gauge.set({ a: 'x' }, 1);
    extend(log, ...views);
    one.counter.inc({ a: 'v' });
    t.mock.timers.tick(1000);
    for (const a of ['w', 'x']) one.counter.remove({ a });
    for (const a of ['w', 'x', 'u']) one.counter.inc({ a });
    two.counter.reset();
    extend(log, ...views);
    extend(log, ...views);
    const records = decodeLog(joined(log.bytesFrom(0)), log.name, () => 1);
    const starts = records.flatMap(({ metric, starts: seconds, fromRow, restarted }) =>
      seconds === undefined ? [] : [[metric, restarted ? [...restarted] : fromRow, [...seconds]]],
    );
    assert.deepEqual(starts, [
      [0, 0, [1000]],
      [1, 0, [1000]],
      [2, 0, []],
      [0, [1], [1001]],
      [0, 3, [1001]],
      [0, [0, 3], [1002, 1002]],
      [0, 4, [1001, 1002]],
      [1, [0], [1002]],
    ]);
  });

  it('takes little memory when a file or a reader has it, and goes on', () => {
    const log = new SourceLog();
    const { counter, view } = makeCounter('many');
    for (let a = 0; a < MANY; a++) counter.inc({ a });
    extend(log, view);
    const { length } = log;
    log.forgetBefore(length);
    assert.ok(length - log.start < 70_000, `${length - log.start} bytes of ${length}`);
    counter.inc({ a: 'new' });
    extend(log, view);
    assert.deepEqual(recordsOf(log, length), [`rows 0 ${MANY} 1`]);
  });

  it('reads a bounded number of label sets in each step, and writes records of a bounded size', () => {
    const log = new SourceLog();
    const { counter, view } = makeCounter('many');
    for (let a = 0; a < MANY; a++) counter.inc({ a });
    let [steps, length, longest] = [0, 0, 0];
    for (const step of stepsOf(log.extend([view]))) {
      steps += step;
      longest = Math.max(longest, log.length - length);
      length = log.length;
    }
    assert.ok(steps >= MANY / 1024, `${steps} steps`);
    assert.ok(longest < length / 2, `${longest} bytes of ${length}`);
  });

  it('writes a bounded number of values with each record, even if a compaction has left many without a row', () => {
    const log = new SourceLog();
    const { counter, view } = makeCounter('many');
    for (let a = 0; a < MANY; a++) counter.inc({ a });
    for (let a = 0; a < MANY * 0.6; a++) counter.remove({ a });
    runThrough(view.table.compactionSteps());
    extend(log, view);
    const records = decodeLog(joined(log.bytesFrom(0)), log.name, () => 1);
    for (const { values } of records.slice(1)) assert.ok(values[0].values.length <= 1024);
    const metrics = [];
    applyRecords(metrics, records);
    const [metric] = metrics;
    const shown = Array.from({ length: metric.rows }, (_, row) => metric.valuesOf(0)[metric.idAt(row, 0)]);
    assert.deepEqual(
      shown,
      Array.from({ length: MANY * 0.4 }, (_, i) => String(MANY * 0.6 + i)),
    );
  });

  it('has everything once if two extend it at a time, and begins again, and the program records meanwhile', () => {
    for (const restartAt of [1, 5, 20, Infinity]) {
      const log = new SourceLog();
      const { counter, view } = makeCounter('many');
      for (let a = 0; a < MANY; a++) counter.inc({ a });
      const [first, second] = [log.extend([view]), log.extend([view])];
      for (let step = 1; ![first.next(), second.next()].every(({ done }) => done); step++) {
        counter.inc({ a: `meanwhile ${step}` });
        if (step === restartAt) log.restart();
      }
      extend(log, view);
      const rows = recordsOf(log).flatMap(
        record => /^rows \d+ (\d+) (\d+)$/.exec(record)?.slice(1).map(Number) ?? [],
      );
      let next = 0;
      for (let i = 0; i < rows.length; i += 2) {
        assert.equal(rows[i], next);
        next += rows[i + 1];
      }
      assert.equal(next, view.table.rowCount);
    }
  });

  it('is mostly about what is gone after many metrics came and went, or a table was compacted again and again', () => {
    const log = new SourceLog();
    const stays = makeCounter('stays');
    const passing = Array.from({ length: 10_000 }, (_, i) => makeCounter(`passes_after_a_while_${i}`).view);
    for (let i = 0; i < 10_000; i += 1000) extend(log, stays.view, ...passing.slice(i, i + 1000));
    extend(log, stays.view);
    assert.equal(log.isMostlyGone, true);
    log.restart();
    extend(log, stays.view);
    assert.equal(log.isMostlyGone, false);
    const gauge = new Gauge({ name: 'g', help: 'g', labelNames: ['a'], registers: [new Registry()] });
    for (let a = 0; a < MANY; a++) gauge.set({ a }, 1);
    extend(log, stays.view, viewOf(gauge));
    for (let a = 0; a < 10 * MANY; a++) gauge.set({ a: `more ${a}` }, 1);
    extend(log, stays.view, viewOf(gauge));
    assert.equal(log.isMostlyGone, true);
  });
});

/** How many steps a generator has taken, one at a time. */
function* stepsOf(steps) {
  while (!steps.next().done) yield 1;
}
