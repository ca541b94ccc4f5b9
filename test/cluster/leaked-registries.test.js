'use strict';

// Registries that earlier test files of a test runner have left behind in the process, as under Jest.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { EventEmitter } = require('node:events');
const path = require('node:path');
const { describe, it } = require('node:test');
const { promisify } = require('node:util');
const { listenTo, stopListening } = require('../../lib/event-loop/listeners');

const PROGRAM = path.join(__dirname, 'fixtures/leaked-registries.js');

/** @param {string} scenario */
async function resultOf(scenario) {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', PROGRAM, scenario]);
  return JSON.parse(stdout);
}

describe('listeners of emitters that test files share', () => {
  const event = 'fork';
  const listener = () => {};

  it('raise the limit above which Node.js warns for each copy but the first, and lower it again', () => {
    const emitter = new EventEmitter();
    emitter.setMaxListeners(1);
    const others = [() => {}, () => {}];
    for (let i = 0; i < 2; i++) {
      listenTo(emitter, event, listener);
      assert.deepEqual([emitter.getMaxListeners(), emitter.listenerCount(event)], [1, 1]);
      for (const other of others) listenTo(emitter, event, other);
      assert.deepEqual([emitter.getMaxListeners(), emitter.listenerCount(event)], [3, 3]);
      for (let times = 0; times < 2; times++) stopListening(emitter, event, listener);
      assert.deepEqual([emitter.getMaxListeners(), emitter.listenerCount(event)], [2, 2]);
      for (const other of others) stopListening(emitter, event, other);
      assert.deepEqual([emitter.getMaxListeners(), emitter.listenerCount(event)], [1, 0]);
    }
  });

  it('of one copy leave an emitter the default limit, which the program may change later', t => {
    const { defaultMaxListeners } = EventEmitter;
    t.after(() => (EventEmitter.defaultMaxListeners = defaultMaxListeners));
    const emitter = new EventEmitter();
    for (const limit of [20, 30]) {
      listenTo(emitter, event, listener);
      EventEmitter.defaultMaxListeners = limit;
      assert.equal(emitter.getMaxListeners(), limit);
      stopListening(emitter, event, listener);
      assert.equal(emitter.getMaxListeners(), limit);
    }
  });

  it('leave no limit as it is', () => {
    const emitter = new EventEmitter();
    emitter.setMaxListeners(0);
    for (let i = 0; i < 2; i++) listenTo(emitter, event, listener);
    for (let i = 0; i < 2; i++) stopListening(emitter, event, listener);
    assert.equal(emitter.getMaxListeners(), 0);
  });

  it('need no more than on() and removeListener(), as a mock of the cluster module may have', () => {
    const calls = [];
    const add =
      name =>
      (...args) =>
        void calls.push([name, ...args]);
    const mock = /** @type {any} */ ({ on: add('on'), removeListener: add('removeListener') });
    listenTo(mock, event, listener);
    stopListening(mock, event, listener);
    assert.deepEqual(calls, [
      ['on', event, listener],
      ['removeListener', event, listener],
    ]);
  });
});

describe('registries that earlier test files have left behind', () => {
  it('an AggregatorRegistry that is collected as garbage changes nothing', async () => {
    assert.deepEqual(await resultOf('collected'), { requiredLate: [], warnings: [] });
  });

  it('do nothing when a thread joins', async () => {
    // The thread, and the aggregator of the last test file.
    const started = 2;
    assert.deepEqual(await resultOf('threads'), { counted: 5, started, requiredLate: [], warnings: [] });
  });

  it('do nothing when a worker starts', async () => {
    assert.deepEqual(await resultOf('workers'), { counted: 5, requiredLate: [], warnings: [] });
  });
});
