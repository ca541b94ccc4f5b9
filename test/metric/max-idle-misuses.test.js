'use strict';

// `maxIdleSeconds` in programs that do what nobody expects: hooks that hang, clocks that are missing, metrics
// that go while a sweep is under way, labels that record.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { Counter, Gauge, Registry } = require('../..');
const { MovedClock } = require('../fixtures/idle-clock');
const { Program } = require('../fixtures/program');

const IDLE = 600;
/** So long that whatever is idle has left. */
const LONG = IDLE * 1.2;

/** @returns {Promise<string[]>} the samples of a page */
const linesOf = async registry => (await registry.metrics()).split('\n').filter(line => /^[^#]/.test(line));

function make(Type, config = {}, registry = new Registry()) {
  const options = { name: 'm', help: 'h', labelNames: ['a'], maxIdleSeconds: IDLE, registers: [registry] };
  return new Type({ ...options, ...config });
}

describe('maxIdleSeconds, misused', () => {
  it('series expire although a hook hangs, and nobody scrapes any more', async t => {
    const clock = new MovedClock(t);
    const registry = new Registry();
    let end = () => {};
    const hanging = make(Counter, { collect: () => new Promise(resolve => (end = resolve)) }, registry);
    const other = make(Counter);
    registry.metrics().catch(() => {});
    for (let round = 0; round < 4; round++) {
      for (let a = 0; a < 1000; a++)
        for (const metric of [hanging, other]) metric.inc({ a: `${round}-${a}` });
      await clock.move(LONG);
    }
    // What was recorded until it hung for that long may be the hook's.
    assert.deepEqual([hanging.seriesCount, other.seriesCount], [1000, 1000]);
    end();
  });

  it('a hook that is called long after another one has hung keeps what it records', async t => {
    const clock = new MovedClock(t);
    const registry = new Registry();
    let end = () => {};
    make(Counter, { name: 'hanging', collect: () => new Promise(resolve => (end = resolve)) }, registry);
    const gauge = make(Gauge, { collect: () => gauge.set({ a: 'hook' }, 1) });
    registry.metrics().catch(() => {});
    await clock.move(LONG);
    await gauge.get();
    await clock.move(LONG);
    assert.equal(gauge.seriesCount, 1);
    end();
  });

  it('numbers as small or large as there are do what they say, with one warning', async () => {
    const source = `
      const { Counter, register } = require(${JSON.stringify(require.resolve('../..'))});
      const sizes = [5e-324, 1e-9, 119.9, 120, Number.MAX_VALUE];
      const counters = sizes.map((maxIdleSeconds, i) =>
        new Counter({ name: 'c' + i, help: 'h', labelNames: ['a'], maxIdleSeconds }));
      const { setTimeout: later } = require('timers/promises');
      (async () => {
        for (const counter of counters) for (let a = 0; a < 1000; a++) counter.inc({ a });
        while (counters[0].seriesCount + counters[1].seriesCount > 0) await later(1);
        console.log(counters.map(({ seriesCount }) => seriesCount).join());
      })();`;
    const program = new Program(['-e', source]);
    assert.equal(await program.ended(), 0, program.errors);
    assert.equal(program.output.trim(), '0,0,1000,1000,1000');
    const warnings = program.errors.match(
      /PROM_CLIENT_CLUSTER_OPTIONS\] Warning: maxIdleSeconds of .* is shorter than/g,
    );
    assert.equal(warnings?.length, 1, program.errors);
  });

  for (const [what, before] of [
    ['nothing else', ''],
    [
      'fake timers',
      `require('node:test').mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });`,
    ],
    ['no performance', 'delete globalThis.performance;'],
    ['a clock that stands still', 'performance.now = () => 0;'],
  ]) {
    it(`a process with idle series and ${what} ends by itself`, async () => {
      const source = `
        ${before}
        const { Counter, register } = require(${JSON.stringify(require.resolve('../..'))});
        const counter = new Counter({ name: 'c', help: 'h', labelNames: ['a'], maxIdleSeconds: 600 });
        counter.inc({ a: 1 });
        register.metrics().then(page => console.log(page.split('\\n')[2]));`;
      const program = new Program(['-e', source]);
      assert.equal(await program.ended(), 0, program.errors);
      assert.equal(program.output.trim(), 'c{a="1"} 1');
      // Node.js warns of its own fake timers.
      assert.doesNotMatch(program.errors, /PROM_CLIENT|Error:/);
    });
  }

  it('labels of any kind expire, although reading them records', async t => {
    const clock = new MovedClock(t);
    const registry = new Registry();
    const metric = make(Counter, { labelNames: ['a', 'b'] }, registry);
    const recording = { toString: () => (metric.inc({ a: 'inner' }), 'outer') };
    const values = [recording, NaN, -0, 0n, null, undefined, '\ud800', '__proto__', [1, 2], '"\n\\'];
    const count = () => values.forEach((a, i) => metric.inc({ a, b: values[values.length - 1 - i] }));
    count();
    const first = await linesOf(registry);
    await clock.move(LONG);
    assert.deepEqual(await linesOf(registry), []);
    count();
    assert.deepEqual(await linesOf(registry), first);
    metric.labelNames.push('c');
    metric.inc({ c: 'later' });
    await clock.move(LONG);
    assert.deepEqual([metric.seriesCount, await linesOf(registry)], [0, []]);
  });
});
