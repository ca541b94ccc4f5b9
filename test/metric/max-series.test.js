'use strict';

// `maxSeries`: a limit on the label sets that a metric distinguishes. Those beyond it share one series.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { describe, it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check.js');
const { Counter, Histogram, Summary, Registry } = require('../..');
const { viewOf } = require('../../lib/registry/metric-view');
const { METRIC_CLASSES } = require('../fixtures/metric-types');

const ROOT = path.join(__dirname, '../..');

const OVERFLOW = 'overflow';

/** A metric named m, of its own registry. */
function make(Type, config = {}, registry = new Registry()) {
  const metric = new Type({ name: 'm', help: 'h', labelNames: ['a'], registers: [registry], ...config });
  return { metric, registry };
}

/** The series of a counter or gauge: label values, then the value. */
async function seriesOf(metric) {
  const { values } = await metric.get();
  return values.map(({ labels, value }) => [...Object.values(labels), value]);
}

/** Records 1 for a label set, whatever the type. */
function record(metric, labels) {
  if (metric instanceof Histogram || metric instanceof Summary) metric.observe(labels, 1);
  else metric.inc(labels);
}

describe('maxSeries as an option', () => {
  it('maxSeries is off by default, and where it is undefined, null or Infinity', async () => {
    for (const config of [{}, { maxSeries: undefined }, { maxSeries: null }, { maxSeries: Infinity }]) {
      const { metric } = make(Counter, config);
      for (let a = 0; a < 3000; a++) metric.inc({ a });
      assert.equal((await metric.get()).values.length, 3000);
      assert.equal(metric.overflowCount, 0);
    }
  });

  it('maxSeries that is no positive integer is refused, and nothing is registered', () => {
    for (const Type of METRIC_CLASSES) {
      for (const maxSeries of [0, -1, 1.5, NaN, -Infinity, '5', true, false, '', 5n, {}, [5]]) {
        const registry = new Registry();
        assert.throws(() => make(Type, { maxSeries }, registry), {
          name: 'TypeError',
          message: /^maxSeries must be a positive integer: /,
        });
        assert.deepEqual(registry.getMetricsAsArray(), []);
      }
    }
  });

  it('maxSeries changes nothing for a metric without labels', async () => {
    for (const Type of METRIC_CLASSES) {
      const { metric, registry } = make(Type, { labelNames: [], maxSeries: 1 });
      const { registry: unlimited } = make(Type, { labelNames: [] });
      for (const one of [metric, unlimited.getSingleMetric('m')]) {
        record(one, {});
        one.reset();
        record(one, {});
        record(one, {});
      }
      assert.equal(await registry.metrics(), await unlimited.metrics());
      assert.equal(metric.overflowCount, 0);
    }
  });
});

describe('label sets beyond maxSeries', () => {
  it('label sets beyond maxSeries that were given with an unknown label are still an error, and count nothing', async () => {
    for (const Type of METRIC_CLASSES) {
      const { metric, registry } = make(Type, { maxSeries: 1 });
      record(metric, { a: 'x' });
      const before = await registry.metrics();
      for (const labels of [{ b: 'x' }, { a: 'y', b: 'x' }, { a: 'x', b: 'y' }]) {
        const expected = { message: /^Added label "b" is not included in initial labelset: \[ 'a' \]$/ };
        assert.throws(() => record(metric, labels), expected);
        assert.throws(() => metric.remove(labels), expected);
      }
      assert.equal(metric.overflowCount, 0);
      assert.equal(await registry.metrics(), before);
    }
  });

  it('label sets beyond maxSeries cannot empty the shared series by zero()', async () => {
    const { metric } = make(Histogram, { maxSeries: 1 });
    const countOf = a => metric.hashMap[`a:${a},`]?.count;
    metric.zero({ a: 'x' });
    metric.zero({ a: 'y' });
    assert.deepEqual([countOf('x'), countOf('y'), countOf(OVERFLOW)], [0, undefined, 0]);
    metric.observe({ a: 'x' }, 1);
    metric.observe({ a: 'y' }, 1);
    metric.zero({ a: 'z' });
    assert.deepEqual([countOf('x'), countOf(OVERFLOW)], [1, 1]);
    metric.zero({ a: 'x' });
    metric.zero({ a: OVERFLOW });
    assert.deepEqual([countOf('x'), countOf(OVERFLOW)], [0, 0]);
    metric.zero({ b: 'x' });
    assert.deepEqual([countOf('x'), countOf(OVERFLOW)], [0, 0]);
  });
});

it('the series labelled "overflow" stays what it is when the table is compacted', async () => {
  const { metric, registry } = make(Counter, { maxSeries: 2000 });
  for (let a = 0; a < 2010; a++) metric.inc({ a });
  const child = metric.labels('unseen');
  child.inc();
  for (let a = 0; a < 1500; a++) metric.remove({ a });
  const { epoch } = viewOf(metric).table;
  await registry.metrics();
  assert.ok(viewOf(metric).table.epoch > epoch, 'it was not compacted');
  for (let i = 0; i < 1500; i++) metric.inc({ a: `n${i}` });
  metric.inc({ a: 'one too many' });
  child.inc();
  const series = await seriesOf(metric);
  assert.equal(series.length, 2001);
  assert.deepEqual(series[500], [OVERFLOW, 13]);
  assert.ok(series.every(([a, value]) => value === (a === OVERFLOW ? 13 : 1)));
});

describe('overflowCount', () => {
  it('overflowCount counts a child when it binds, and not with each call', () => {
    const { metric } = make(Counter, { maxSeries: 1 });
    metric.inc({ a: 'x' });
    const child = metric.labels('y');
    assert.equal(metric.overflowCount, 0);
    for (let i = 0; i < 5; i++) child.inc();
    assert.equal(metric.overflowCount, 1);
  });
});

describe('what a label set without a series leaves behind', () => {
  it('a label set without a series leaves nothing in the label index, its dictionaries and forms', () => {
    const { metric } = make(Counter, { labelNames: ['a', 'b'], maxSeries: 2 });
    const sizes = () => {
      const { index, forms, rowCount, pages } = viewOf(metric).table;
      const numbers = pages.reduce((sum, page) => sum + page.length, 0);
      const entries = index.dictionaries.map(({ values }) => values.length);
      return { entries, rows: [index.rowCount, rowCount, numbers], forms: forms.list.length };
    };
    for (const a of ['x', 'y', 'z']) metric.inc({ a, b: a });
    const before = sizes();
    for (let i = 0; i < 1000; i++) {
      metric.inc({ a: `new ${i}`, b: 'x' });
      metric.inc({ b: i, a: i / 3 });
      metric.inc({ b: i % 2 === 0 });
      metric.labels({ a: 'x', b: { toString: () => `object ${i}` } }).inc();
      metric.labels('x', `child ${i}`).inc();
      metric.remove({ a: `new ${i}` });
    }
    assert.deepEqual(sizes(), before);
    assert.equal(metric.overflowCount, 5001);
  });
});

describe('NODE_DEBUG=prom-client-cluster', () => {
  it('NODE_DEBUG names a metric once, at the first label set beyond its limit', () => {
    const program = `
      const { Counter } = require(${JSON.stringify(ROOT)});
      const [first, second, third] = ['first', 'second', 'third'].map(
        name => new Counter({ name, help: 'h', labelNames: ['a'], maxSeries: 2 }));
      for (let a = 0; a < 10; a++) first.inc({ a });
      first.reset();
      for (let a = 0; a < 10; a++) first.inc({ a });
      for (let a = 0; a < 3; a++) second.labels({ a }).inc();
      for (let a = 0; a < 2; a++) third.inc({ a });
    `;
    const { stderr, status } = spawnSync(process.execPath, ['-e', program], {
      env: { ...process.env, NODE_DEBUG: 'prom-client-cluster' },
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    const lines = stderr.split('\n').filter(line => line.includes('overflow'));
    assert.equal(lines.length, 2, stderr);
    assert.match(lines[0], /first has its 2 series/);
    assert.match(lines[1], /second has its 2 series/);
  });
});

describe('any program', () => {
  const VALUES = ['x', 'y', 'z', '1', 1, true, undefined, OVERFLOW];
  const labelSet = fc.record({ a: fc.constantFrom(...VALUES), b: fc.constantFrom('x', OVERFLOW, undefined) });
  const operation = fc.oneof(
    { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom('inc', 'child'), labels: labelSet }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove'), labels: labelSet }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'reset' }) },
  );
  const keyOf = ({ a, b }) => JSON.stringify([a, b].map(value => (value === undefined ? null : `${value}`)));
  const OVERFLOW_KEY = keyOf({ a: OVERFLOW, b: OVERFLOW });

  /** What maxSeries means, as a Map. */
  class Model {
    series = new Map();
    overflowCount = 0;

    constructor(maxSeries) {
      this.maxSeries = maxSeries;
    }

    /** The key under which a label set is recorded. */
    place(key) {
      const others = this.series.size - (this.series.has(OVERFLOW_KEY) ? 1 : 0);
      if (this.series.has(key) || key === OVERFLOW_KEY || others < this.maxSeries) return key;
      this.overflowCount++;
      return OVERFLOW_KEY;
    }

    inc(key) {
      const place = this.place(key);
      this.series.set(place, (this.series.get(place) ?? 0) + 1);
    }
  }

  const limit = fc.integer({ min: 1, max: 6 });
  const programs = fc.array(operation, { maxLength: 60, size: 'max' });

  it('for any program, a metric with maxSeries is an ordered map with a limit', async () => {
    await fc.assert(
      fc.asyncProperty(limit, programs, async (maxSeries, program) => {
        const { metric } = make(Counter, { labelNames: ['a', 'b'], maxSeries });
        const model = new Model(maxSeries);
        const children = new Map();
        for (const { kind, labels } of program) {
          if (kind === 'reset') {
            metric.reset();
            model.series.clear();
          } else if (kind === 'remove') {
            metric.remove(labels);
            model.series.delete(keyOf(labels));
          } else {
            const key = keyOf(labels);
            if (!children.has(key)) children.set(key, metric.labels(labels));
            if (kind === 'inc') metric.inc(labels);
            else children.get(key).inc();
            model.inc(key);
          }
        }
        const { values } = await metric.get();
        const shown = values.map(({ labels, value }) => [keyOf(labels), value]);
        assert.deepEqual(shown, [...model.series]);
        if (program.every(({ kind }) => kind !== 'child')) {
          assert.equal(metric.overflowCount, model.overflowCount);
        } else {
          assert.ok(metric.overflowCount <= model.overflowCount);
        }
      }),
      { numRuns: 500 },
    );
  });
});
