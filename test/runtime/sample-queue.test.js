'use strict';

// sampleLater() spreads functions over turns of the event loop. The clock is the test's own.

const assert = require('node:assert');
const { it } = require('node:test');
const { sampleLater } = require('../../lib/runtime/sampling/sample-queue');

/** A clock that each sample advances; and the turn of the event loop that each sample ran in. */
function prepare(t) {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  let turn = 0;
  let isWatching = true;
  const watch = () => {
    turn++;
    if (isWatching) setImmediate(watch);
  };
  setImmediate(watch);
  t.after(() => (isWatching = false));
  const ran = [];
  const sample = (name, milliseconds) => () => {
    ran.push([name, turn]);
    now += milliseconds;
  };
  return { ran, sample };
}

it('sampleLater() runs functions in order, each turn until a quarter of a millisecond has passed', async t => {
  const { ran, sample } = prepare(t);
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  await Promise.all(names.map(name => sampleLater(sample(name, name === 'g' ? 3 : 0.1))));
  const shown = ran.map(([name]) => name);
  assert.deepStrictEqual(shown, names);
  const turns = ran.map(([, turn]) => turn);
  const [first, second, third] = new Set(turns);
  assert.deepStrictEqual(turns, [first, first, first, second, second, second, third]);
});
