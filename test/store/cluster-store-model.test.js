'use strict';

// Compares random histories of a cluster with a model that stores every recorded value.

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { Counter, Gauge, Histogram, Summary } = require('../..');
const { joined } = require('../../lib/source/byte-buffers');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { makeWorker, bytesOf, copyOf, textOf, samplesOf, seriesKey } = require('../fixtures/unit-scrape');

const START = 1_700_000_000_000;
const RETIRED_MAX_AGE = 10_000;
const QUANTILES = [0, 0.25, 0.5, 1];
const GAUGE_RULES = ['sum', 'first', 'min', 'max', 'average'];
const LABEL_SETS = [{}, { a: 1 }, { a: 2 }, { b: 'x', a: 1 }, { b: 'd' }, { a: 1, b: 'd' }];
const DEFAULT_LABELS = [{}, { zone: 'z' }, { b: 'd' }];

/** A metric's series in order of first use, with all recorded values. */
class ModelMetric {
  /** @type {Map<string, {labels: object, values: number[]}>} */
  series = new Map();

  record(labels, value) {
    const key = seriesKey('', labels);
    if (!this.series.has(key)) this.series.set(key, { labels, values: [] });
    this.series.get(key).values.push(value);
  }

  /** The current series, with the default labels that they do not have. */
  captured(defaults) {
    return [...this.series.values()].map(({ labels, values }) => ({
      labels: { ...defaults, ...labels },
      values: [...values],
    }));
  }
}

/** A worker: real metrics, and a model of each. */
class TestWorker {
  constructor(id) {
    this.id = id;
    Object.assign(this, makeWorker());
    this.buckets = id % 2 === 0 ? [1, 50, 400] : [10, 50];
    this.defaults = {};
    this.sequence = 0;
    /** The files of its logs, by name. */
    this.logs = new Map();
    /** Snapshots that were written and may still be read, or read again. */
    this.written = [];
    const labelNames = id % 3 === 0 ? ['b', 'c', 'a'] : ['a', 'b'];
    const common = { help: 'x', labelNames, registers: [this.registry] };
    this.metrics = {
      counter: new Counter({ name: 'counter', ...common }),
      histogram: new Histogram({ name: 'histogram', buckets: this.buckets, ...common }),
      summary: new Summary({ name: 'summary', percentiles: QUANTILES, ...common }),
    };
    for (const rule of GAUGE_RULES) {
      this.metrics[rule] = new Gauge({ name: `gauge_${rule}`, aggregator: rule, ...common });
    }
    this.model = Object.fromEntries(Object.keys(this.metrics).map(name => [name, new ModelMetric()]));
  }

  record(name, labels, value) {
    const metric = this.metrics[name];
    if (name === 'counter') metric.inc(labels, value);
    else if (name === 'histogram' || name === 'summary') metric.observe(labels, value);
    else metric.set(labels, value);
    this.model[name].record(labels, value);
  }

  remove(name, labels) {
    this.metrics[name].remove(labels);
    this.model[name].series.delete(seriesKey('', labels));
  }

  reset(name) {
    this.metrics[name].reset();
    // reset() leaves a summary's series, at zero.
    if (name === 'summary') for (const entry of this.model[name].series.values()) entry.values = [];
    else this.model[name].series.clear();
  }

  /** Removes most rows of a table, so that it is compacted. */
  async churn(name) {
    for (let i = 0; i < 1100; i++)
      this.metrics[name][name === 'summary' ? 'observe' : 'inc']({ a: `churn ${i}` }, 1);
    for (let i = 0; i < 1100; i++) this.metrics[name].remove({ a: `churn ${i}` });
    await this.source.prepare(1000);
  }

  /** Creates many series at once; the next flood removes them. */
  flood(name, round) {
    const { series } = this.model[name];
    for (const { labels } of [...series.values()]) if (labels.a > 100) this.remove(name, labels);
    for (let i = 0; i < 1200; i++) this.record(name, { a: 1000 * (round + 1) + i }, 1);
  }

  /** Writes columns, and what the log has not got yet: as files. */
  write() {
    const captured = Object.entries(this.model).map(([name, model]) => [name, model.captured(this.defaults)]);
    const buffer = bytesOf(this.source.capture(this.id, { isLast: true }));
    const { log } = this.source;
    this.logs.set(log.name, joined(log.bytesFrom(0)));
    const snapshot = {
      sequence: ++this.sequence,
      buffer,
      captured: new Map(captured),
      buckets: this.buckets,
    };
    this.written.push(snapshot);
    return snapshot;
  }

  readLog = (name, from, to) => this.logs.get(name).subarray(from, to);
}

/** The model of the primary's state. */
class ModelPrimary {
  /** @type {Map<number, object>} the snapshot that was applied last, by worker */
  last = new Map();
  /**
   * @type {Map<string, Map<string, {labels: object, lists: {values: number[], buckets: number[]}[], lastSeen:
   *   number}>>}
   */
  retired = new Map(['counter', 'histogram', 'summary'].map(name => [name, new Map()]));

  retire(id, now) {
    const snapshot = this.last.get(id);
    this.last.delete(id);
    if (snapshot === undefined) return;
    for (const [name, retired] of this.retired) {
      for (const { labels, values } of snapshot.captured.get(name)) {
        const key = seriesKey('', labels);
        if (!retired.has(key)) retired.set(key, { labels, lists: [] });
        retired.get(key).lists.push({ values, buckets: snapshot.buckets });
        retired.get(key).lastSeen = now;
      }
    }
  }

  /**
   * A metric's series: the values of each worker that has them, by worker id, then the retired
   * values.
   */
  seriesOf(name, now) {
    const series = new Map();
    for (const [, { captured, buckets }] of [...this.last].sort(([a], [b]) => a - b)) {
      for (const { labels, values } of captured.get(name)) {
        const key = seriesKey('', labels);
        if (!series.has(key)) series.set(key, { labels, lists: [] });
        series.get(key).lists.push({ values, buckets });
      }
    }
    for (const [key, { labels, lists }] of this.retired.get(name) ?? []) {
      if (series.has(key)) this.retired.get(name).get(key).lastSeen = now;
      else series.set(key, { labels, lists: [] });
      series.get(key).lists.push(...lists);
    }
    return [...series.values()];
  }

  /** All samples that a scrape must show. Drops retired series that are too old, as a scrape does. */
  scrape(now) {
    const samples = new Map();
    const put = (name, labels, value) => samples.set(seriesKey(name, labels), value);
    for (const { labels, lists } of this.seriesOf('counter', now)) put('counter', labels, total(lists));
    for (const rule of GAUGE_RULES) {
      for (const { labels, lists } of this.seriesOf(rule, now)) {
        put(
          `gauge_${rule}`,
          labels,
          merged(
            rule,
            lists.map(({ values }) => values.at(-1)),
          ),
        );
      }
    }
    const lives = [...this.last.values()].flatMap(({ buckets }) => buckets);
    const ended = [...this.retired.get('histogram').values()].flatMap(({ lists }) => lists);
    const bounds = new Set([...lives, ...ended.flatMap(({ buckets }) => buckets)]);
    for (const { labels, lists } of this.seriesOf('histogram', now)) {
      for (const le of bounds) put('histogram_bucket', { ...labels, le }, upTo(lists, le));
      put('histogram_bucket', { ...labels, le: '+Inf' }, count(lists));
      put('histogram_sum', labels, total(lists));
      put('histogram_count', labels, count(lists));
    }
    for (const { labels, lists } of this.seriesOf('summary', now)) {
      const all = lists.flatMap(({ values }) => values).sort((a, b) => a - b);
      for (const quantile of QUANTILES) put('summary', { ...labels, quantile }, quantileOf(all, quantile));
      put('summary_sum', labels, total(lists));
      put('summary_count', labels, count(lists));
    }
    for (const retired of this.retired.values()) {
      for (const [key, { lastSeen }] of retired) if (lastSeen < now - RETIRED_MAX_AGE) retired.delete(key);
    }
    return samples;
  }
}

function total(lists) {
  return lists.flatMap(({ values }) => values).reduce((sum, value) => sum + value, 0);
}

function count(lists) {
  return lists.reduce((sum, { values }) => sum + values.length, 0);
}

function merged(rule, values) {
  if (rule === 'first') return values[0];
  if (rule === 'min') return Math.min(...values);
  if (rule === 'max') return Math.max(...values);
  const sum = values.reduce((left, right) => left + right);
  return rule === 'sum' ? sum : sum / values.length;
}

/** The cumulative count at a bound: a worker without that bound adds the count of its next lower one. */
function upTo(lists, bound) {
  return lists.reduce((sum, { values, buckets }) => {
    const own = Math.max(-Infinity, ...buckets.filter(other => other <= bound));
    return sum + values.filter(value => value <= own).length;
  }, 0);
}

/** Interpolates linearly between two values, each in the middle of its rank. */
function quantileOf(sorted, quantile) {
  if (sorted.length === 0) return 0;
  const rank = quantile * sorted.length - 0.5;
  const lower = Math.floor(rank);
  if (lower < 0) return sorted[0];
  if (lower >= sorted.length - 1) return sorted.at(-1);
  return sorted[lower] + (rank - lower) * (sorted[lower + 1] - sorted[lower]);
}

/** The cluster under test and its model. */
class Cluster {
  now = START;
  nextId = 1;
  /** Observed values are all different, so the model's quantiles are unambiguous. */
  nextValue = 1;
  alive = [];
  dead = [];
  model = new ModelPrimary();
  store = this.newStore();

  newStore() {
    return new ClusterStore({ retiredMaxAge: RETIRED_MAX_AGE, now: () => this.now });
  }

  join() {
    if (this.alive.length < 5) this.alive.push(new TestWorker(this.nextId++));
  }

  pick(list, number) {
    return list[number % list.length];
  }

  deliver(worker, snapshot) {
    if (this.store.isClosed(worker.id)) return;
    const before = this.model.last.get(worker.id);
    try {
      this.store.apply(worker.id, copyOf(snapshot.buffer), worker.readLog);
    } catch (error) {
      assert.equal(error.code, 'sequence', error.stack);
      assert.ok(snapshot.sequence <= (before?.sequence ?? 0), 'refused as late');
      return;
    }
    assert.ok(snapshot.sequence > (before?.sequence ?? 0), 'applied although it is late');
    this.model.last.set(worker.id, snapshot);
  }

  /** Scrapes a worker: requests a snapshot and applies it. */
  scrape(worker) {
    this.deliver(worker, worker.write());
    assert.strictEqual(
      this.model.last.get(worker.id)?.sequence,
      worker.sequence,
      'the answer was not applied',
    );
    worker.written = [];
  }

  retire(worker, { leavesFile, filesAreRead }) {
    this.alive = this.alive.filter(other => other !== worker);
    this.dead.push(worker);
    if (leavesFile) worker.write();
    if (filesAreRead) for (const snapshot of worker.written) this.deliver(worker, snapshot);
    const isNew = !this.store.isClosed(worker.id);
    this.store.retire(worker.id);
    if (isNew) this.model.retire(worker.id, this.now);
  }

  restart() {
    const bytes = copyOf(this.store.encodeRetired());
    this.store = this.newStore();
    this.store.restoreRetired(bytes);
    this.model.last.clear();
    // Their age counts from now, because live workers have not answered yet.
    for (const retired of this.model.retired.values()) {
      for (const entry of retired.values()) entry.lastSeen = this.now;
    }
  }

  check() {
    const text = textOf(this.store);
    const expected = this.model.scrape(this.now);
    const shown = samplesOf(text);
    for (const [key, value] of expected) {
      const found = shown.get(key);
      const isClose = Math.abs(found - value) <= 1e-9 * Math.abs(value);
      if (found !== value && !isClose) assert.fail(`${key} is ${found}, not ${value}`);
      // All values are sums of whole numbers, except those that are computed by division.
      if (!/average|quantile/.test(key)) assert.strictEqual(found, value, key);
    }
    assert.deepStrictEqual([...shown.keys()].sort(), [...expected.keys()].sort());
    assert.strictEqual(new Set(text.match(/^# TYPE.*/gm)).size, (text.match(/^# TYPE.*/gm) ?? []).length);
  }

  async perform([name, first = 0, second = 0, third = 0]) {
    const worker = this.pick(this.alive, first);
    const metric = this.pick(['counter', 'histogram', 'summary', ...GAUGE_RULES], second);
    const labels = this.pick(LABEL_SETS, third);
    switch (name) {
      case 'join':
        return this.join();
      case 'advance':
        return void (this.now += first * 500);
      case 'check':
        return this.check();
      case 'restart':
        return this.restart();
      case 'scrapeAll':
        for (const one of this.alive) this.scrape(one);
        return this.check();
      case 'deliverLate': {
        const late = this.pick([...this.alive, ...this.dead], first);
        if (late?.written.length > 0) this.deliver(late, this.pick(late.written, second));
        return;
      }
      case 'retireAgain':
        if (this.dead.length > 0)
          assert.strictEqual(this.store.retire(this.pick(this.dead, first).id), false);
        return;
    }
    if (worker === undefined) return;
    switch (name) {
      case 'record':
        return worker.record(metric, labels, this.nextValue++);
      case 'remove':
        return worker.remove(metric, labels);
      case 'reset':
        return worker.reset(metric);
      case 'churn':
        return worker.churn(this.pick(['counter', 'sum', 'summary'], second));
      case 'flood':
        worker.flood(this.pick(['counter', 'sum', 'max'], second), third);
        this.scrape(worker);
        return this.check();
      case 'prepare':
        return worker.source.prepare(1000);
      case 'defaults':
        worker.defaults = this.pick(DEFAULT_LABELS, second);
        return worker.registry.setDefaultLabels(worker.defaults);
      case 'redefine':
        worker.metrics[metric].help = `help ${third}`;
        return;
      case 'write':
        return void worker.write();
      case 'deliver':
        if (worker.written.length > 0) this.deliver(worker, this.pick(worker.written, second));
        return;
      case 'scrape':
        return this.scrape(worker);
      case 'die':
        return this.retire(worker, { leavesFile: second % 2 === 0, filesAreRead: third % 2 === 0 });
      default:
        throw new Error(name);
    }
  }
}

function operation(weight, name, ...ranges) {
  return { weight, arbitrary: fc.tuple(fc.constant(name), ...ranges.map(max => fc.nat({ max }))) };
}

const OPERATIONS = [
  operation(30, 'record', 4, 7, 5),
  operation(4, 'remove', 4, 7, 5),
  operation(2, 'reset', 4, 7),
  operation(1, 'prepare', 4),
  operation(2, 'defaults', 4, 2),
  operation(1, 'redefine', 4, 7, 3),
  operation(5, 'write', 4),
  operation(5, 'deliver', 4, 5),
  operation(3, 'deliverLate', 8, 5),
  operation(5, 'scrape', 4),
  operation(4, 'scrapeAll'),
  operation(5, 'check'),
  operation(4, 'join'),
  operation(3, 'die', 4, 1, 1),
  operation(1, 'retireAgain', 8),
  operation(2, 'restart'),
  operation(4, 'advance', 24),
];

/** These make tables large enough to be compacted, in the worker and in the store. */
const LARGE_OPERATIONS = [operation(3, 'churn', 4, 2), operation(4, 'flood', 4, 2, 2)];

function histories(operations, maxLength = 150) {
  return fc.array(fc.oneof(...operations), { minLength: 20, maxLength, size: 'max' });
}

async function lifeOf(history) {
  const cluster = new Cluster();
  for (let i = 0; i < 3; i++) cluster.join();
  for (const step of history) await cluster.perform(step);
  return cluster;
}

const ORDINARY = histories(OPERATIONS);
const LARGE = histories([...OPERATIONS, ...LARGE_OPERATIONS], 80);

for (const [name, history, numRuns] of [
  ['a random history', ORDINARY, 30],
  ['a random history with thousands of series that come and go', LARGE, 5],
]) {
  test(`ClusterStore: ${name} gives the same page as a model that stores every value, also when all workers have died`, async () => {
    await fc.assert(
      fc.asyncProperty(history, async steps => {
        const cluster = await lifeOf(steps);
        for (const worker of cluster.alive) cluster.scrape(worker);
        for (;;) {
          cluster.check();
          if (cluster.alive.length === 0) break;
          cluster.retire(cluster.pick(cluster.alive, steps.length), { leavesFile: true, filesAreRead: true });
        }
        cluster.restart();
        cluster.check();
      }),
      { numRuns, includeErrorInReport: true },
    );
  });
}
