'use strict';

// What is measured of the cost of default metrics: that lanes are what they say, that comparisons are between neighbours,
// and that an interval is one.

const assert = require('node:assert');
const { before, describe, it } = require('node:test');
const { isOverheadWanted } = require('../../benchmarks/runtime-overhead/overhead');
const { LANES, orderOf } = require('../../benchmarks/runtime-overhead/lanes');
const { measureOverhead, stepsOf } = require('../../benchmarks/runtime-overhead/measurement');
const { intervalOfMedian } = require('../../benchmarks/runtime-overhead/paired-interval');
const { threadTimes, usedBetween } = require('../../benchmarks/runtime-overhead/processor-time');
const { reportOf } = require('../../benchmarks/runtime-overhead/report');

const KEYS = LANES.map(({ key }) => key);

describe('the overhead benchmark', { skip: process.platform !== 'linux' && 'reads /proc' }, () => {
  const told = [];
  const settings = { clusters: 1, seconds: 0.2 };
  let cluster;

  before(async () => {
    const progress = {
      begin: () => told.push(['begin']),
      repetition: (done, of) => told.push([done, of]),
      end: () => told.push(['end']),
    };
    [cluster] = await measureOverhead({ ...settings, progress });
  });

  it('tells each step of its plan, and each lane and window in it', () => {
    const windows = [6, 6, 6, 6];
    assert.deepStrictEqual(
      told,
      [3, ...windows, 3].flatMap(count => [
        ['begin'],
        ...Array.from({ length: count }, (_, done) => [done, count]),
        ['end'],
      ]),
    );
    const steps = stepsOf(settings);
    assert.strictEqual(steps.length, windows.length + 2);
    for (const { seconds } of steps) assert.ok(seconds > 0);
  });

  it('measures each lane once in every block', () => {
    for (const kind of ['fixed', 'saturated', 'idle', 'resting']) {
      const blocks = groupByBlock(cluster[kind]);
      assert.ok(blocks.size >= 2, kind);
      for (const windows of blocks.values()) {
        assert.deepStrictEqual(windows.map(({ lane }) => lane).sort(), [...KEYS].sort());
      }
    }
  });

  it('has the same requests answered at the fixed rate in all lanes, and none without load', () => {
    const answered = new Set(cluster.fixed.map(window => window.answered));
    assert.strictEqual(answered.size, 1);
    assert.ok([...answered][0] > 0);
    for (const { answered } of cluster.saturated) assert.ok(answered > 0);
    for (const { answered } of [...cluster.idle, ...cluster.resting]) assert.strictEqual(answered, 0);
  });

  it('sees CPU in every window, and more under load', () => {
    for (const { cpu } of [...cluster.idle, ...cluster.fixed, ...cluster.saturated]) assert.ok(cpu > 0);
    const most = windows => Math.max(...windows.map(({ cpu }) => cpu));
    assert.ok(most(cluster.saturated) > most(cluster.idle));
  });

  it('has hooks in the lanes that collect, and records of collections where the runtime is among it', () => {
    for (const { lane, hooks, collections, capture } of cluster.sections) {
      assert.strictEqual(hooks > 0, lane !== 'none', `${lane} ${hooks}`);
      assert.strictEqual(collections > 0, lane === 'runtime', `${lane} ${collections}`);
      assert.ok(capture > 0);
    }
    for (const { hooks } of cluster.firstSections) assert.ok(hooks > 0);
  });

  it('is reported in full', () => {
    const report = reportOf([cluster]);
    for (const { title } of LANES) assert.ok(report.includes(`| ${title} `), title);
    assert.ok(!/NaN|undefined|Infinity/.test(report), report);
  });
});

function groupByBlock(windows) {
  const blocks = new Map();
  for (const window of windows) blocks.set(window.block, [...(blocks.get(window.block) ?? []), window]);
  return blocks;
}

describe('the plan of the overhead benchmark', () => {
  it('names cluster and kind of windows, and takes longer with longer windows', () => {
    const total = seconds => stepsOf({ clusters: 3, seconds }).reduce((sum, step) => sum + step.seconds, 0);
    const titles = stepsOf({ clusters: 3, seconds: 1 }).map(({ title }) => title);
    assert.strictEqual(titles[0], 'overhead, cluster 1 of 3, warm-up');
    assert.strictEqual(titles.at(-2), 'overhead, cluster 3 of 3, resting');
    // Three clusters, four kinds, two blocks of three lanes.
    assert.ok(Math.abs(total(2) - total(1) - 72) < 1e-6);
  });
});

describe('the order of lanes', () => {
  it('has each lane in each place equally often, and before each other one', () => {
    const orders = Array.from({ length: 6 }, (_, block) => orderOf(block));
    assert.strictEqual(new Set(orders.map(String)).size, 6);
    for (const order of orders) assert.deepStrictEqual([...order].sort(), [...KEYS].sort());
  });
});

describe('the interval of a median', () => {
  it('is that of the sign test', () => {
    // From tables of the binomial distribution: 1 - 2 * P(X <= k) for p = 1/2.
    const upTo = count => Array.from({ length: count }, (_, index) => index + 1);
    const { median, low, high, confidence } = intervalOfMedian(upTo(6));
    assert.deepStrictEqual([median, low, high, confidence], [3.5, 1, 6, 0.96875]);
    const wider = intervalOfMedian(upTo(16).reverse());
    assert.deepStrictEqual([wider.median, wider.low, wider.high], [8.5, 4, 13]);
    assert.ok(Math.abs(wider.confidence - 0.9787) < 1e-4, `${wider.confidence}`);
  });

  it('is all that there is where there is little, and says how far it can be trusted', () => {
    assert.deepStrictEqual(intervalOfMedian([3, 1, 2]), { median: 2, low: 1, high: 3, confidence: 0.75 });
  });
});

describe('the CPU of processes', { skip: process.platform !== 'linux' && 'reads /proc' }, () => {
  it('is what their threads have used between two readings', () => {
    const before = new Map(Object.entries({ 1: 10, 2: 20 }));
    assert.strictEqual(usedBetween(before, new Map(Object.entries({ 1: 15, 2: 20, 3: 4 }))), 9);
    assert.throws(() => usedBetween(before, new Map(Object.entries({ 1: 15 }))), /thread 2 has ended/);
    assert.ok(threadTimes([process.pid]).get(String(process.pid)) > 0);
  });
});

describe('the overhead benchmark as a part of npm run bench', () => {
  it('is measured where everything is, or it is asked for, and never in short', () => {
    assert.ok(isOverheadWanted({ short: false }));
    assert.ok(isOverheadWanted({ short: false, only: ['inc', 'runtime-over'] }));
    assert.ok(!isOverheadWanted({ short: false, only: ['inc'] }));
    assert.ok(!isOverheadWanted({ short: false, clients: ['prom-client'] }));
    assert.ok(!isOverheadWanted({ short: true }));
  });
});
