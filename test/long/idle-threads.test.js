'use strict';

// Devices come and go in a thread for hours of its clock. What other threads have of it is shared memory,
// which no heap counts: that of the devices in use, and of a log that begins anew before it is long.

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { WorkerRegistry } = require('../../index');
const { ThreadRecord } = require('../../lib/threads/thread-record');
const { TestThread } = require('../threads/fixtures/start-thread');

/** @type {Set<WeakRef<SharedArrayBuffer>>} all that the process has received */
const received = new Set();
const { add } = ThreadRecord.prototype;
ThreadRecord.prototype.add = function (/** @type {any} */ message) {
  const { chunks = [], memories = [] } = message.parts ?? {};
  for (const memory of [...chunks, ...memories.map(([, each]) => each)]) received.add(new WeakRef(memory));
  add.call(this, message);
};

require('node:v8').setFlagsFromString('--expose-gc');
const collect = require('node:vm').runInNewContext('gc');

const ALIVE = 1000;
const DEVICES = 100_000;
const STEP = 2000;

it(`shared memory of ${DEVICES} devices that come and go in a thread is bounded`, async t => {
  const registry = new WorkerRegistry({ timeout: 60_000, inPlace: true });
  const thread = new TestThread(
    { maxIdleSeconds: 600 },
    require.resolve('../threads/fixtures/expiring-thread.js'),
  );
  t.after(async () => {
    await thread.terminate();
    await registry.shutdown();
  });
  let most = 0;
  for (let from = 0; from < DEVICES; from += STEP) {
    const { result } = await thread.do('churn', { from, count: STEP, alive: ALIVE });
    assert.ok(result.rows <= 4 * ALIVE, `${result.rows} rows`);
    await registry.workerMetrics();
    if (from % (5 * STEP) > 0) continue;
    for (let i = 0; i < 6; i++) {
      await new Promise(setImmediate);
      collect();
    }
    const sizes = Array.from(received, buffer => buffer.deref()?.byteLength ?? 0);
    most = Math.max(
      most,
      sizes.reduce((sum, size) => sum + size, 0),
    );
  }
  t.diagnostic(`${most} bytes at most`);
  // The log of all devices would have 16 MiB.
  assert.ok(most > 0 && most < 6 * 2 ** 20, `${most} bytes`);
});
