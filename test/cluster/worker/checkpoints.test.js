'use strict';

// How often a worker writes checkpoints.

const assert = require('node:assert/strict');
const { it } = require('node:test');

const { Counter, Registry } = require('../../..');
const { Checkpoints } = require('../../../lib/cluster/worker/checkpoints');

/** Runs the timer of the checkpoints by hand. `cost`: milliseconds that writing takes. */
function checkpointsByHand(t) {
  const timers = [];
  t.mock.method(globalThis, 'setTimeout', (run, milliseconds) => {
    timers.push({ run, milliseconds });
    return { unref() {} };
  });
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const registry = new Registry();
  const counter = new Counter({ name: 'done_total', help: 'h', registers: [registry] });
  const state = { counter, cost: 0, written: 0, intervals: () => timers.map(timer => timer.milliseconds) };
  const source = { spent: 0, registries: () => [registry] };
  const files = {
    directory: 'somewhere',
    // The capture also writes the file.
    write: async (request, capture) => capture(),
    replace: () => {
      state.written++;
      now += state.cost;
    },
  };
  state.checkpoints = new Checkpoints(source, { id: 1 }, files);
  state.next = () => timers.at(-1).run();
  return state;
}

it('the interval of checkpoints is a second by default, and follows their cost if they take long', async t => {
  const state = checkpointsByHand(t);
  const { checkpoints, counter, intervals, next } = state;
  checkpoints.setInterval(undefined);
  for (const cost of [5, 6, 7, 8, 9, 0.5]) {
    counter.inc();
    state.cost = cost;
    await next();
  }
  assert.equal(state.written, 6);
  assert.deepEqual(intervals(), [1000, 1000, 1000, 1000, 5000, 6000, 1000]);
});

it('single checkpoints that take long, such as the first, do not change the interval', async t => {
  const state = checkpointsByHand(t);
  state.checkpoints.setInterval(undefined);
  for (const cost of [60, 50, 3, 50, 60, 50]) {
    state.counter.inc();
    state.cost = cost;
    await state.next();
  }
  assert.deepEqual(state.intervals(), [1000, 1000, 1000, 1000, 3000, 3000, 3000]);
});

it('the interval of checkpoints is that which the program gives, whatever they cost; 0 for none', async t => {
  const state = checkpointsByHand(t);
  state.checkpoints.setInterval(200);
  state.cost = 5;
  await state.next();
  await state.next();
  assert.equal(state.written, 1, 'nothing has changed before the second');
  assert.deepEqual(state.intervals(), [200, 200, 200]);
  state.checkpoints.setInterval(0);
  assert.equal(state.intervals().length, 3);
});
