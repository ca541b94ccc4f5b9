'use strict';

const assert = require('node:assert/strict');
const { beforeEach, describe, it } = require('node:test');
const { Counter, Gauge, Registry } = require('../../..');
const { ClusterStore } = require('../../../lib/store/cluster-store');
const { OwnSource, OWN_ID } = require('../../../lib/cluster/primary/own-source');
const { samplesOf, seriesKey, textOf } = require('../../fixtures/unit-scrape');

let release;
/** @type {Promise<void>} */
let collecting;
let registry;
let captured;
let own;
beforeEach(() => {
  registry = new Registry();
  let started;
  collecting = new Promise(resolve => (started = resolve));
  const collect = () => {
    started();
    return new Promise(resolve => (release = resolve));
  };
  new Gauge({ name: 'slow', help: 'h', registers: [registry], collect });
  const isCaptured = new Promise(resolve => (captured = resolve));
  own = new OwnSource(() => [registry], captured);
  own.isCaptured = isCaptured;
});

/** After `release = undefined`. */
async function hookStarted() {
  while (release === undefined) await new Promise(resolve => setImmediate(resolve));
}

describe("the primary's own registries", () => {
  it("the primary's own registries are captured once for scrapes that overlap; the later scrape waits, because the capture ends after its call", async () => {
    assert.equal(own.ask(5000), 5000);
    assert.equal(own.ask(300), 300);
    await collecting;
    release();
    assert.ok((await own.isCaptured).length > 0);
  });

  it("the primary's own registries with a hook that hangs delay only one scrape up to its timeout", async () => {
    own.ask(600_000);
    assert.equal(own.ask(1000), 1000);
    own.timeOut(1000);
    assert.equal(own.ask(1000), 0);
    assert.equal(own.ask(5000), 5000, 'a scrape with a longer timeout waits');
    await collecting;
    release();
    await own.isCaptured;
    release = undefined;
    assert.equal(own.ask(1000), 1000);
    // Otherwise its hook may start in the next test, and replace what releases the one of that.
    await hookStarted();
  });

  for (const [what, change] of [
    ['removes a label set', counter => counter.remove({ l: 'b' })],
    ['removes a metric', counter => registry.removeSingleMetric(counter.name)],
    ['resets a metric', counter => counter.reset()],
  ]) {
    it(`the primary's own registries never go back if the aggregator is lost while a hook hangs and the program ${what}`, async () => {
      const options = { help: 'h', labelNames: ['l'], registers: [registry] };
      const removed = new Counter({ name: 'removed_total', ...options });
      const counter = new Counter({ name: 'counted_total', ...options });
      const hooked = new Gauge({ name: 'hooked', help: 'h', registers: [registry], collect() {} });
      for (const l of ['a', 'b']) for (const each of [removed, counter]) each.inc({ l }, 10);
      const store = new ClusterStore();
      const waiting = [];
      own = new OwnSource(
        () => [registry],
        bytes => {
          store.apply(OWN_ID, bytes);
          waiting.shift()();
        },
      );
      const shown = () => new Promise(resolve => waiting.push(() => resolve(samplesOf(textOf(store)))));
      own.ask(600_000);
      await collecting;
      change(removed);
      counter.remove({ l: 'b' });
      counter.inc({ l: 'a' }, 100);
      own.startAgain();
      own.ask(300);
      const withoutHooks = await shown();
      // What is recorded after the capture without hooks is shown, also by a metric whose hook has ended.
      counter.inc({ l: 'a' }, 1000);
      hooked.set(5);
      release();
      const withHooks = await shown();
      const key = seriesKey('counted_total', { l: 'a' });
      assert.equal(withoutHooks.get(key), 110);
      assert.deepEqual(withHooks, new Map([...withoutHooks, [key, 1110], [seriesKey('hooked', {}), 5]]));

      // What was recorded after the capture without hooks, and is reset before the end of the hook, is shown.
      release = undefined;
      own.ask(600_000);
      await hookStarted();
      own.startAgain();
      own.ask(300);
      assert.equal((await shown()).get(key), 1110);
      counter.inc({ l: 'a' }, 10_000);
      change(removed);
      counter.reset();
      release();
      assert.equal((await shown()).get(key), 11_110);
      counter.inc({ l: 'a' }, 1110);

      // The next capture has again what the program resets while hooks are waited for.
      release = undefined;
      own.ask(600_000);
      await hookStarted();
      counter.reset();
      release();
      assert.equal((await shown()).get(key), 1110);
    });
  }
});
