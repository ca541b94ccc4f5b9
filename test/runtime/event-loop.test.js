'use strict';

// The delay of the event loop as a histogram, and what the loop has worked and waited.

const assert = require('node:assert');
const { describe, it, beforeEach, afterEach } = require('node:test');
const timers = require('timers');
const fc = require('../fixtures/seeded-fast-check');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { DelayCounts } = require('../../lib/runtime/sampling/delay-counts');
const { DelayProbe } = require('../../lib/runtime/sources/delay-probe');
const { Histogram } = require('../../lib/metric/histogram');
const { Registry } = require('../../lib/registry/registry');
const { replace, turnUntil } = require('./fixtures/default-metrics-runtime');

const DELAY = 'nodejs_eventloop_delay_seconds';

/** Counts per bucket, not cumulative, by bound; and the sum. */
async function contentOf(histogram) {
  const { values } = await histogram.get();
  const counts = {};
  let below = 0;
  for (const { metricName, labels, value } of values) {
    if (!metricName.endsWith('_bucket')) continue;
    counts[labels.le] = value - below;
    below = value;
  }
  return { counts, sum: values.find(({ metricName }) => metricName.endsWith('_sum')).value };
}

function histogramOf(buckets) {
  return new Histogram({ name: 'h', help: 'h', buckets, registers: [new Registry()] });
}

describe('delays', () => {
  it('are counted in the bucket that they belong to, as often as is said', async () => {
    const counts = new DelayCounts([0.001, 0.005]);
    for (const late of [-0.8, 0, 1, 1.5, 9]) counts.add(late, 1);
    counts.add(2, 10);
    const histogram = histogramOf([0.001, 0.005]);
    counts.moveTo(histogram, {});
    const { counts: found, sum } = await contentOf(histogram);
    assert.deepStrictEqual(found, { 0.001: 3, 0.005: 11, '+Inf': 1 });
    assert.ok(Math.abs(sum - 0.0315) < 1e-12);
  });

  it('are in a series what each of them would be', async () => {
    const bounds = fc.uniqueArray(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 8 });
    const lates = fc.array(fc.double({ min: 0, max: 4000, noNaN: true }), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(bounds, fc.integer({ min: 1, max: 50 }), lates, async (list, step, all) => {
        const buckets = list.sort((a, b) => a - b).map(bound => bound / 1000);
        const counts = new DelayCounts(buckets);
        const [histogram, expected] = [histogramOf(buckets), histogramOf(buckets)];
        for (const late of all) {
          counts.addSeries(late, step, Math.floor(late / step) + 1);
          for (let rest = late; rest >= 0; rest -= step) expected.observe(rest / 1000);
        }
        counts.moveTo(histogram, {});
        const [found, wanted] = [await contentOf(histogram), await contentOf(expected)];
        const total = ({ counts }) => Object.values(counts).reduce((a, b) => a + b, 0);
        assert.ok(Math.abs(total(found) - total(wanted)) <= all.length);
        // A delay of exactly a bound may fall on either side, by rounding.
        for (const [le, count] of Object.entries(wanted.counts)) {
          assert.ok(Math.abs(found.counts[le] - count) <= all.length, le);
        }
        assert.ok(Math.abs(found.sum - wanted.sum) < 1e-6 * (1 + wanted.sum));
      }),
    );
  });

  it('are counted in no time, however long the process was stopped', () => {
    const counts = new DelayCounts([0.001, 10]);
    const start = performance.now();
    for (let i = 0; i < 1000; i++) counts.addSeries(3_600_000, 10, 360_000);
    assert.ok(performance.now() - start < 500, 'a thousand times 360,000 probes');
  });

  it('are moved once', async () => {
    const counts = new DelayCounts([1]);
    counts.add(5, 1);
    const histogram = histogramOf([1]);
    counts.moveTo(histogram, {});
    counts.moveTo(histogram, {});
    assert.deepStrictEqual((await contentOf(histogram)).counts, { 1: 1, '+Inf': 0 });
  });
});

/**
 * A loop that does nothing but stall, on a clock of its own.
 *
 * @param {() => {pause: number, length: number}} nextStall milliseconds
 */
class StallingLoop {
  #now = 0;
  #idle = 0;
  #timer;
  #nextStall;
  #seed = 1;

  constructor(nextStall) {
    this.#nextStall = nextStall;
  }

  now = () => this.#now;
  idleTime = () => this.#idle;
  setTimeout = (callback, delay) => (this.#timer = { callback, due: this.#now + delay });
  clearTimeout = () => (this.#timer = undefined);

  random = () => {
    this.#seed = (this.#seed * 48271) % 2147483647;
    return this.#seed / 2147483647;
  };

  /** @returns {{mean: number, over5: number}} of callbacks that become due at any time: milliseconds; share */
  run(milliseconds) {
    let waited = 0;
    let over5 = 0;
    while (this.#now < milliseconds) {
      const { pause, length } = this.#nextStall(this);
      const begin = this.#now + pause;
      while (this.#timer.due <= begin) {
        this.#wait(this.#timer.due);
        this.#timer.callback();
      }
      this.#wait(begin);
      this.#now += length;
      waited += length ** 2 / 2;
      over5 += Math.max(0, length - 5);
      if (this.#timer.due <= this.#now) this.#timer.callback();
    }
    return { mean: waited / this.#now, over5: over5 / this.#now };
  }

  #wait(until) {
    this.#idle += until - this.#now;
    this.#now = until;
  }
}

describe('a probe', () => {
  const periodic = (pause, length) => () => ({ pause, length });
  const random = (pause, length) => loop => ({
    pause: -Math.log(1 - loop.random()) * pause,
    length: -Math.log(1 - loop.random()) * length,
  });
  const programs = {
    'stalls 30 ms each 240': periodic(210, 30),
    'stalls 50 ms each 250': periodic(200, 50),
    'stalls 100 ms a second': periodic(900, 100),
    'stalls 9 ms each 200': periodic(191, 9),
    'stalls a second each 10': periodic(9000, 1000),
    'stalls now and then': random(2000, 60),
    'does nearly nothing': random(500, 0.5),
    'works half of the time': random(10, 10),
  };
  for (const [what, nextStall] of Object.entries(programs)) {
    it(`finds in a program that ${what} how long callbacks wait`, async () => {
      const loop = new StallingLoop(nextStall);
      const [counts, histogram] = [new DelayCounts([0.005]), histogramOf([0.005])];
      const probe = new DelayProbe(20, counts, loop);
      const expected = loop.run(10_000_000);
      probe.stop();
      counts.moveTo(histogram, {});
      const { counts: found, sum } = await contentOf(histogram);
      const probes = found['0.005'] + found['+Inf'];
      const [mean, over5] = [(sum / probes) * 1000, found['+Inf'] / probes];
      assert.ok(
        Math.abs(mean - expected.mean) < 0.15 * expected.mean + 0.01,
        `${mean}, not ${expected.mean}`,
      );
      assert.ok(
        Math.abs(over5 - expected.over5) < 0.15 * expected.over5 + 0.001,
        `${over5}, not ${expected.over5}`,
      );
      console.log(
        what,
        mean.toFixed(3),
        expected.mean.toFixed(3),
        over5.toFixed(4),
        expected.over5.toFixed(4),
      );
    });
  }
});

describe('of a process', () => {
  let register;
  let stop;

  beforeEach(() => {
    register = new Registry();
    stop = () => {};
  });
  afterEach(() => stop());

  const collect = config => (stop = collectDefaultMetrics({ register, ...config }));
  const delay = () => contentOf(register.getSingleMetric(DELAY));
  const total = ({ counts }) => Object.values(counts).reduce((a, b) => a + b);

  function holdUpLoop(milliseconds) {
    const until = performance.now() + milliseconds;
    while (performance.now() < until);
  }

  it('a stall that is known is felt by as many probes as it is long', async () => {
    collect({ runtime: ['eventLoopDelay'], eventLoopMonitoringPrecision: 10 });
    await turnUntil(async () => total(await delay()) > 0);
    const before = await delay();
    const start = performance.now();
    holdUpLoop(600);
    await turnUntil(async () => (await delay()).counts[0.5] > before.counts[0.5]);
    const stalled = performance.now() - start;
    const after = await delay();
    const grown = le => after.counts[le] - before.counts[le];
    // Between 250 and 500 ms late are the 25 probes that would have run in a quarter of a second of the stall, which
    // other programs on the machine can only have made longer.
    assert.ok(Math.abs(grown(0.5) - 25) <= 1, `${grown(0.5)}`);
    assert.ok(Math.abs(grown(0.25) - 15) <= 1, `${grown(0.25)}`);
    const late = grown(1) + grown(2.5) + grown(5) + grown(10);
    assert.ok(late >= 7 && late <= (stalled - 500) / 10 + 2, `${late}`);
  });

  it('probes stand for the time that has passed', async () => {
    collect({ runtime: ['eventLoopDelay'], eventLoopMonitoringPrecision: 10 });
    await turnUntil(async () => total(await delay()) > 0);
    const before = total(await delay());
    const start = performance.now();
    for (let i = 0; i < 10; i++) {
      holdUpLoop(25);
      await new Promise(resolve => setImmediate(resolve));
    }
    await turnUntil(() => performance.now() - start > 400);
    const probes = total(await delay()) - before;
    const passed = (performance.now() - start) / 10;
    assert.ok(probes > 0.6 * passed && probes < 1.15 * passed, `${probes} in the time of ${passed}`);
  });

  it('the interval is that of eventLoopMonitoringPrecision', async () => {
    collect({ runtime: ['eventLoopDelay'], eventLoopMonitoringPrecision: 50 });
    await turnUntil(async () => total(await delay()) > 0);
    const before = total(await delay());
    holdUpLoop(520);
    await turnUntil(async () => total(await delay()) > before + 1);
    const probes = total(await delay()) - before;
    // Nine whole stretches at least; the first probe may have been due before, the last may be due after.
    assert.ok(probes >= 9 && probes <= 16, `${probes}`);
  });

  it('the interval is 20 ms otherwise', async () => {
    collect({ runtime: ['eventLoopDelay'] });
    await turnUntil(async () => total(await delay()) > 0);
    const before = await delay();
    holdUpLoop(600);
    await turnUntil(async () => (await delay()).counts[0.5] > before.counts[0.5]);
    const grown = (await delay()).counts[0.5] - before.counts[0.5];
    assert.ok(grown === 12 || grown === 13, `${grown}`);
  });

  it('a loop at rest is probed seldom, and its probes stand for the time that has passed', async t => {
    const delays = [];
    const { setTimeout: set } = timers;
    replace(t, timers, 'setTimeout', (callback, milliseconds) => {
      delays.push(milliseconds);
      return set(callback, milliseconds);
    });
    const forget = () => {
      for (const file of ['families/event-loop-delay', 'sources/delay-probe'])
        delete require.cache[require.resolve(`../../lib/runtime/${file}`)];
    };
    forget();
    t.after(forget);
    stop = collectDefaultMetrics({ register, runtime: ['eventLoopDelay'] });
    const start = performance.now();
    await new Promise(resolve => set(resolve, 1500));
    const intervals = (performance.now() - start) / 20;
    const counted = total(await delay());
    // One begins later, and of the last stretch nobody can say whether its probe was early or late in it.
    assert.ok(Math.abs(counted - intervals) <= 13, `${counted} of ${intervals}`);
    assert.ok(delays.length < intervals / 2, delays.join());
    const before = delays.length;
    await turnUntil(() => delays.length > before + 20);
    assert.ok(Math.max(...delays.slice(-19)) <= 40, delays.join());
  });

  it('is there from the first scrape on, also with labels and after a reset', async () => {
    collect({ runtime: ['eventLoopDelay'], labels: { worker: 1 } });
    const empty = /^nodejs_eventloop_delay_seconds_count\{worker="1"\} \d+$/m;
    assert.match(await register.metrics(), empty);
    register.resetMetrics();
    assert.match(await register.metrics(), empty);
  });

  it('what was measured last is counted when it stops', async () => {
    collect({ runtime: ['eventLoopDelay'], eventLoopMonitoringPrecision: 10 });
    await turnUntil(async () => total(await delay()) > 0);
    let probes = 0;
    const timer = setInterval(() => probes++, 10);
    await turnUntil(() => probes === 5);
    clearInterval(timer);
    const histogram = register.getSingleMetric(DELAY);
    const { collect: hook } = histogram;
    histogram.collect = undefined;
    const before = total(await delay());
    stop();
    assert.ok(total(await delay()) >= before + 3);
    histogram.collect = hook;
  });

  for (const eventLoopDelayBuckets of [[], [1, 1], [2, 1], ['1'], [NaN], [1, Infinity], 5, '12', {}]) {
    it(`buckets may not be ${JSON.stringify(eventLoopDelayBuckets)}`, () => {
      assert.throws(() => collect({ runtime: ['eventLoopDelay'], eventLoopDelayBuckets }), {
        name: 'TypeError',
        message: /^eventLoopDelayBuckets must be finite numbers in rising order: /,
      });
      assert.deepStrictEqual(register.getMetricsAsArray(), []);
    });
  }

  it('buckets may be chosen', () => {
    collect({ runtime: true, eventLoopDelayBuckets: [0.02, 3] });
    assert.deepStrictEqual(register.getSingleMetric(DELAY).buckets, [0.02, 3]);
  });

  it('buckets are 1 ms to 10 s otherwise', () => {
    collect({ runtime: true, eventLoopDelayBuckets: null });
    const { buckets } = register.getSingleMetric(DELAY);
    assert.deepStrictEqual([buckets[0], buckets.at(-1), buckets.length], [0.001, 10, 13]);
  });

  const secondsOf = async () => {
    const values = [];
    for (const kind of ['active', 'idle']) {
      const counter = register.getSingleMetric(`nodejs_eventloop_${kind}_seconds_total`);
      values.push((await counter.get()).values[0].value);
    }
    return values;
  };

  it('active and idle seconds are those of the runtime, and together the time that has passed', async () => {
    collect({ runtime: ['eventLoopUtilization'] });
    await new Promise(resolve => setTimeout(resolve, 20));
    const reference = performance.eventLoopUtilization();
    const [active, idle] = await secondsOf();
    const after = performance.eventLoopUtilization();
    assert.ok(active >= reference.active / 1e3 && active <= after.active / 1e3);
    assert.ok(idle >= reference.idle / 1e3 - 1e-9 && idle <= after.idle / 1e3 + 1e-9);
    const start = performance.now();
    holdUpLoop(100);
    const [active2, idle2] = await secondsOf();
    const passed = (performance.now() - start) / 1e3;
    assert.ok(active2 - active > 0.099 && active2 - active + (idle2 - idle) < passed + 0.005);
  });

  it('active and idle seconds are zero before the loop has started, and never fall', async t => {
    let now = { active: 0, idle: 0, utilization: 0 };
    replace(t, require('node:perf_hooks'), 'performance', { eventLoopUtilization: () => now });
    collect({ runtime: ['eventLoopUtilization'] });
    assert.deepStrictEqual(await secondsOf(), [0, 0]);
    now = { active: 1500, idle: 500 };
    assert.deepStrictEqual(await secondsOf(), [1.5, 0.5]);
    now = { active: 1499, idle: 700 };
    assert.deepStrictEqual(await secondsOf(), [1.5, 0.7]);
  });
});
