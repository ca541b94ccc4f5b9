'use strict';

// The benchmark of the cost of default metrics: a short run of it, its plan and its statistics.

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
  const reported = [];
  const settings = { clusters: 1, seconds: 0.2 };
  let cluster;

  before(async () => {
    const progress = {
      begin: () => reported.push(['begin']),
      repetition: (done, of) => reported.push([done, of]),
      end: () => reported.push(['end']),
    };
    [cluster] = await measureOverhead({ ...settings, progress });
  });

  it('progress is reported for each step, lane and window of the plan', () => {
    const windows = [6, 6, 6, 6];
    assert.deepStrictEqual(
      reported,
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

  it('every block has each lane once', () => {
    for (const kind of ['fixed', 'saturated', 'idle', 'resting']) {
      const blocks = groupByBlock(cluster[kind]);
      assert.ok(blocks.size >= 2, kind);
      for (const windows of blocks.values()) {
        assert.deepStrictEqual(windows.map(({ lane }) => lane).sort(), [...KEYS].sort());
      }
    }
  });

  it('all lanes answer the same number of requests at the fixed rate, and none without load', () => {
    const answered = new Set(cluster.fixed.map(window => window.answered));
    assert.strictEqual(answered.size, 1);
    assert.ok([...answered][0] > 0);
    for (const { answered } of cluster.saturated) assert.ok(answered > 0);
    for (const { answered } of [...cluster.idle, ...cluster.resting]) assert.strictEqual(answered, 0);
  });

  it('windows have CPU time, and those under load have more of it', () => {
    for (const { cpu } of [...cluster.idle, ...cluster.fixed, ...cluster.saturated]) assert.ok(cpu > 0);
    const total = windows => windows.reduce((sum, { cpu }) => sum + cpu, 0);
    assert.ok(total(cluster.saturated) > total(cluster.resting));
  });

  it('lanes with default metrics run collect hooks; those with runtime metrics record garbage collections', () => {
    // The time of a section that waited for a processor can be 0.
    const has = (sections, name) => sections.some(times => times[name] > 0);
    for (const lane of KEYS) {
      const sections = cluster.sections.filter(each => each.lane === lane);
      assert.strictEqual(has(sections, 'hooks'), lane !== 'none', lane);
      assert.strictEqual(has(sections, 'collections'), lane === 'runtime', lane);
      assert.ok(has(sections, 'capture'), lane);
    }
    assert.ok(has(cluster.firstSections, 'hooks'));
  });

  it('the report has every lane and no NaN', () => {
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
  it('steps name the cluster and the kind of windows, and take longer with longer windows', () => {
    const total = seconds => stepsOf({ clusters: 3, seconds }).reduce((sum, step) => sum + step.seconds, 0);
    const titles = stepsOf({ clusters: 3, seconds: 1 }).map(({ title }) => title);
    assert.strictEqual(titles[0], 'overhead, cluster 1 of 3, warm-up');
    assert.strictEqual(titles.at(-2), 'overhead, cluster 3 of 3, resting');
    // Three clusters, four kinds, two blocks of three lanes.
    assert.ok(Math.abs(total(2) - total(1) - 72) < 1e-6);
  });
});

describe('the order of lanes', () => {
  it('six blocks have all six orders of the lanes', () => {
    const orders = Array.from({ length: 6 }, (_, block) => orderOf(block));
    assert.strictEqual(new Set(orders.map(String)).size, 6);
    for (const order of orders) assert.deepStrictEqual([...order].sort(), [...KEYS].sort());
  });
});

describe('the interval of a median', () => {
  it('the interval is that of the sign test', () => {
    // From tables of the binomial distribution: 1 - 2 * P(X <= k) for p = 1/2.
    const upTo = count => Array.from({ length: count }, (_, index) => index + 1);
    const { median, low, high, confidence } = intervalOfMedian(upTo(6));
    assert.deepStrictEqual([median, low, high, confidence], [3.5, 1, 6, 0.96875]);
    const wider = intervalOfMedian(upTo(16).reverse());
    assert.deepStrictEqual([wider.median, wider.low, wider.high], [8.5, 4, 13]);
    assert.ok(Math.abs(wider.confidence - 0.9787) < 1e-4, `${wider.confidence}`);
  });

  it('the interval of few values is their range, with its confidence', () => {
    assert.deepStrictEqual(intervalOfMedian([3, 1, 2]), { median: 2, low: 1, high: 3, confidence: 0.75 });
  });
});

describe('the CPU of processes', { skip: process.platform !== 'linux' && 'reads /proc' }, () => {
  it('CPU time is the sum over threads between two readings', () => {
    const before = new Map(Object.entries({ 1: 10, 2: 20 }));
    assert.strictEqual(usedBetween(before, new Map(Object.entries({ 1: 15, 2: 20, 3: 4 }))), 9);
    assert.throws(() => usedBetween(before, new Map(Object.entries({ 1: 15 }))), /thread 2 has ended/);
    assert.ok(threadTimes([process.pid]).get(String(process.pid)) > 0);
  });
});

describe('the overhead benchmark as a part of npm run bench', () => {
  it('the overhead is measured in a full run or if --only names it, never with --short', () => {
    assert.ok(isOverheadWanted({ short: false }));
    assert.ok(isOverheadWanted({ short: false, only: ['inc', 'runtime-over'] }));
    assert.ok(!isOverheadWanted({ short: false, only: ['inc'] }));
    assert.ok(!isOverheadWanted({ short: false, clients: ['prom-client'] }));
    assert.ok(!isOverheadWanted({ short: true }));
  });
});
