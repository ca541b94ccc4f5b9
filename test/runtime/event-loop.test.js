'use strict';

// eventLoopDelay and eventLoopUtilization: how long callbacks wait for the event loop, and how long it is
// active.

const assert = require('node:assert');
const { describe, it, beforeEach, afterEach } = require('node:test');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { DelayProbe } = require('../../lib/runtime/sources/delay-probe');
const { Registry } = require('../../lib/registry/registry');
const { holdUpLoop, replace, turnUntil } = require('./fixtures/default-metrics-runtime');

const DELAY = 'nodejs_eventloop_delay_seconds';

/** A simulated event loop with stalls, and the clock of its probe. Times are milliseconds. */
class SimulatedLoop {
  #now = 0;
  #idle = 0;
  #timer;
  #nextStall;
  #seed = 1;
  /** How often a timer was set. */
  timersSet = 0;

  /** @param {(loop: SimulatedLoop) => {pause: number, length: number}} nextStall */
  constructor(nextStall) {
    this.#nextStall = nextStall;
  }

  now = () => this.#now;
  idleTime = () => this.#idle;
  setTimeout = (callback, delay) => {
    this.timersSet++;
    return (this.#timer = { callback, due: this.#now + delay });
  };
  clearTimeout = () => (this.#timer = undefined);

  random = () => {
    this.#seed = (this.#seed * 48271) % 2147483647;
    return this.#seed / 2147483647;
  };

  /**
   * Runs pauses and stalls.
   *
   * @param {number} milliseconds how long at least
   * @returns {{mean: number, over5: number}} of callbacks that become due at any time: mean delay; share of
   *   those that wait for more than 5 ms
   */
  run(milliseconds) {
    const end = this.#now + milliseconds;
    const start = this.#now;
    let waited = 0;
    let over5 = 0;
    while (this.#now < end) {
      const { pause, length } = this.#nextStall(this);
      const begin = this.#now + pause;
      while (this.#timer.due <= begin) {
        this.#idleUntil(this.#timer.due);
        this.#timer.callback();
      }
      this.#idleUntil(begin);
      this.#now += length;
      waited += length ** 2 / 2;
      over5 += Math.max(0, length - 5);
      if (this.#timer.due <= this.#now) this.#timer.callback();
    }
    return { mean: waited / (this.#now - start), over5: over5 / (this.#now - start) };
  }

  #idleUntil(time) {
    this.#idle += time - this.#now;
    this.#now = time;
  }
}

/** Collects what a probe records. */
class Recorder {
  total = 0;
  sum = 0;
  calls = 0;
  /** Counts of delays by the largest of these bounds that they exceed. */
  over = { 5: 0, 250: 0, 500: 0 };

  record = (delay, count) => {
    assert.ok(delay >= 0, `a delay of ${delay}`);
    this.calls++;
    this.total += count;
    this.sum += delay * count;
    for (const bound of [500, 250, 5]) {
      if (delay <= bound) continue;
      this.over[bound] += count;
      break;
    }
  };
}

describe('DelayProbe', () => {
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
    'is nearly idle': random(500, 0.5),
    'is busy half of the time': random(10, 10),
  };
  for (const [what, nextStall] of Object.entries(programs)) {
    it(`DelayProbe measures how long callbacks wait in a program that ${what}`, () => {
      const loop = new SimulatedLoop(nextStall);
      const recorder = new Recorder();
      const probe = new DelayProbe(20, recorder.record, loop);
      const expected = loop.run(4_000_000);
      probe.stop();
      const mean = recorder.sum / recorder.total;
      const over5 = (recorder.over[5] + recorder.over[250] + recorder.over[500]) / recorder.total;
      assert.ok(
        Math.abs(mean - expected.mean) < 0.15 * expected.mean + 0.01,
        `${mean}, not ${expected.mean}`,
      );
      assert.ok(
        Math.abs(over5 - expected.over5) < 0.15 * expected.over5 + 0.001,
        `${over5}, not ${expected.over5}`,
      );
    });
  }

  /** A loop that is busy, idle or blocked as the test says. */
  function loopWithPhases() {
    const phases = {
      busy: { pause: 3, length: 2 },
      idle: { pause: 20, length: 0.1 },
      blocked: { pause: 0, length: 0 },
    };
    let phase = phases.busy;
    const loop = new SimulatedLoop(() => phase);
    return {
      loop,
      run(name, milliseconds) {
        phase = phases[name];
        phases.blocked.length = milliseconds;
        loop.run(milliseconds);
      },
    };
  }

  it('DelayProbe counts a stall as often as probes would have run during it', () => {
    const { loop, run } = loopWithPhases();
    const recorder = new Recorder();
    const probe = new DelayProbe(10, recorder.record, loop);
    run('busy', 1000);
    assert.deepStrictEqual(recorder.over, { 5: 0, 250: 0, 500: 0 });
    run('blocked', 600);
    probe.stop();
    const { 5: short, 250: medium, 500: long } = recorder.over;
    assert.ok(Math.abs(short - 25) <= 2, `${short} of 5 to 250 ms`);
    assert.ok(Math.abs(medium - 25) <= 1, `${medium} of 250 to 500 ms`);
    assert.ok(Math.abs(long - 10) <= 1, `${long} of 500 to 600 ms`);
  });

  it('DelayProbe probes an idle loop a tenth as often, and counts each probe ten times', () => {
    const { loop, run } = loopWithPhases();
    const recorder = new Recorder();
    const probe = new DelayProbe(20, recorder.record, loop);
    run('idle', 100_000);
    assert.ok(Math.abs(recorder.total - 5000) <= 11, `${recorder.total} counts`);
    assert.ok(Math.abs(loop.timersSet - 500) <= 11, `${loop.timersSet} probes`);
    run('busy', 100_000);
    probe.stop();
    assert.ok(Math.abs(recorder.total - 10_000) <= 11, `${recorder.total} counts`);
    const probes = loop.timersSet - 500;
    assert.ok(probes > 4000 && probes <= 5011, `${probes} probes of a busy loop`);
  });
});

describe('eventLoopDelay', () => {
  let register;
  let stop;

  beforeEach(() => {
    register = new Registry();
    stop = () => {};
  });
  afterEach(() => stop());

  const collect = config =>
    (stop = collectDefaultMetrics({ register, runtime: ['eventLoopDelay'], ...config }));

  /** How many delays were longer than `bound` seconds, one of the buckets; default: all. */
  async function countOver(bound = 0) {
    const { values } = await register.getSingleMetric(DELAY).get();
    const total = values.find(({ metricName }) => metricName.endsWith('_count')).value;
    const below = values.find(({ labels }) => labels.le === bound)?.value ?? 0;
    return total - below;
  }

  for (const [config, interval] of [
    [{}, 20],
    [{ eventLoopMonitoringPrecision: 10 }, 10],
    [{ eventLoopMonitoringPrecision: 50 }, 50],
  ]) {
    it(`eventLoopDelay counts once per ${interval} ms with ${JSON.stringify(config)}`, async () => {
      const start = performance.now();
      collect(config);
      await turnUntil(async () => (await countOver()) > 0);
      const before = await countOver();
      holdUpLoop(600);
      await turnUntil(async () => (await countOver()) - before >= 600 / interval - 1);
      const total = await countOver();
      // An idle loop is counted up to ten intervals ahead.
      const passed = (performance.now() - start) / interval;
      assert.ok(total <= passed + 11, `${total} in ${passed} intervals`);
    });
  }

  it('eventLoopDelay exposes a zero before the first probe, also with labels', async () => {
    const zero = /^nodejs_eventloop_delay_seconds_count\{worker="1"\} 0$/m;
    collect({ labels: { worker: 1 } });
    assert.match(await register.metrics(), zero);
  });

  it('eventLoopDelay takes the buckets of eventLoopDelayBuckets, by default from 1 ms to 10 s', () => {
    collect({ runtime: true, eventLoopDelayBuckets: [0.02, 3] });
    assert.deepStrictEqual(register.getSingleMetric(DELAY).buckets, [0.02, 3]);
    register.clear();
    collect({ runtime: true, eventLoopDelayBuckets: null });
    const { buckets } = register.getSingleMetric(DELAY);
    assert.deepStrictEqual([buckets[0], buckets.at(-1), buckets.length], [0.001, 10, 13]);
  });
});

describe('eventLoopUtilization', () => {
  let register;
  let stop;

  beforeEach(() => (register = new Registry()));
  afterEach(() => stop());

  const collect = () => (stop = collectDefaultMetrics({ register, runtime: ['eventLoopUtilization'] }));
  const secondsOf = async () => {
    const values = [];
    for (const kind of ['active', 'idle']) {
      const counter = register.getSingleMetric(`nodejs_eventloop_${kind}_seconds_total`);
      values.push((await counter.get()).values[0].value);
    }
    return values;
  };

  it("eventLoopUtilization has the runtime's active and idle seconds", async () => {
    collect();
    while (performance.eventLoopUtilization().idle === 0)
      await new Promise(resolve => setTimeout(resolve, 1));
    const before = performance.eventLoopUtilization();
    const [active, idle] = await secondsOf();
    const after = performance.eventLoopUtilization();
    assert.ok(active > 0);
    assert.ok(active >= before.active / 1e3 - 1e-9 && active <= after.active / 1e3 + 1e-9);
    assert.ok(idle >= before.idle / 1e3 - 1e-9 && idle <= after.idle / 1e3 + 1e-9);
    holdUpLoop(100);
    assert.ok((await secondsOf())[0] - active > 0.099);
  });

  it('eventLoopUtilization is zero before the loop has started, and never falls', async t => {
    let now = { active: 0, idle: 0, utilization: 0 };
    replace(t, require('node:perf_hooks'), 'performance', { eventLoopUtilization: () => now });
    collect();
    assert.deepStrictEqual(await secondsOf(), [0, 0]);
    now = { active: 1500, idle: 500 };
    assert.deepStrictEqual(await secondsOf(), [1.5, 0.5]);
    now = { active: 1499, idle: 700 };
    assert.deepStrictEqual(await secondsOf(), [1.5, 0.7]);
  });
});
