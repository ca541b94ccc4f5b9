'use strict';

// What a reader has seen after any number of records: a thread that is terminated publishes no more of them.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');
const v8 = require('node:v8');
const vm = require('node:vm');
const { BroadcastChannel, receiveMessageOnPort } = require('node:worker_threads');
const { Counter, Gauge, Registry } = require('../../index');
const { viewOf } = require('../../lib/registry/metric-view');
const { inboxOf } = require('../../lib/threads/thread-messages');
const { ThreadMirror } = require('../../lib/threads/thread-mirror');
const { ThreadPublisher } = require('../../lib/threads/thread-publisher');

/** @param {ThreadMirror} mirror */
function sumOf(mirror) {
  let sum = 0;
  for (const metric of mirror.registries.flatMap(registry => registry.getMetricsAsArray())) {
    const { table } = /** @type {any} */ (viewOf(metric));
    for (const row of table.liveRows()) sum += table.pageOf(row)[table.offsetOf(row)];
  }
  return sum;
}

describe('the metrics of a thread as its reader sees them', () => {
  /** @type {any} */
  let inbox;
  /** @type {Registry[]} */
  let registries;
  /** @type {any} */
  let counter;
  /** @type {ThreadPublisher | undefined} */
  let publisher;
  /** @type {ThreadMirror | undefined} */
  let mirror;

  beforeEach(() => {
    inbox = new BroadcastChannel(inboxOf(''));
    registries = [new Registry()];
    counter = new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'], registers: registries });
  });

  afterEach(() => {
    publisher?.close();
    inbox.close();
  });

  /**
   * @param {number} from
   * @param {number} to
   */
  function inc(from, to) {
    for (let i = from; i < to; i++) counter.inc({ kind: `kind${i}` });
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  function remove(from, to) {
    for (let i = from; i < to; i++) counter.remove({ kind: `kind${i}` });
  }

  const publish = () => (publisher = new ThreadPublisher(() => registries));

  /** Reads what was published, a few records at a time, and returns the sum after each time. */
  function read() {
    for (let received; (received = receiveMessageOnPort(inbox)) !== undefined;) {
      const { join, chunk, memory, memoryNumber } = received.message;
      if (join !== undefined) mirror = new ThreadMirror(join, () => undefined);
      if (chunk !== undefined) mirror?.addChunk(chunk);
      if (memory !== undefined) mirror?.addMemory(memoryNumber, memory);
    }
    const published = /** @type {ThreadMirror} */ (mirror);
    const sums = [sumOf(published)];
    const steps = published.read();
    for (let isLast = false; !isLast; sums.push(sumOf(published))) isLast = steps.next().done === true;
    return sums;
  }

  it('no count falls while a table whose rows are renumbered is published again', () => {
    publish();
    inc(0, 4000);
    remove(0, 3000);
    assert.equal(read().at(-1), 1000);
    const { epoch } = viewOf(counter).table;
    inc(4000, 8000);
    assert.equal(viewOf(counter).table.epoch, epoch + 1);
    const sums = read();
    assert.equal(sums.at(-1), 5000);
    assert.ok(sums.length > 20);
    sums.forEach((sum, i) => assert.ok(!(sum < sums[i - 1]), `${sum} after ${sums[i - 1]}`));
  });

  it('a label set that was removed before the thread took part is not shown', () => {
    inc(0, 900);
    remove(0, 800);
    publish();
    const sums = read();
    assert.equal(sums.at(-1), 100);
    for (const sum of sums) assert.ok(sum <= 100, String(sums));
  });

  it('a metric that is removed and registered again is published again', () => {
    publish();
    inc(0, 3);
    assert.equal(read().at(-1), 3);
    registries[0].removeSingleMetric('jobs_total');
    registries[0].registerMetric(counter);
    inc(0, 2);
    assert.equal(read().at(-1), 5);
  });

  it('a metric in two registries is published for both, and what follows it too', () => {
    registries.push(new Registry());
    registries[1].registerMetric(counter);
    publish();
    inc(0, 3);
    new Gauge({ name: 'busy', help: 'h', registers: registries }).set(1);
    assert.equal(read().at(-1), 8);
  });

  it('the memory of a table that was compacted is released, also if the metric is in two registries', async () => {
    registries.push(new Registry());
    registries[1].registerMetric(counter);
    publish();
    inc(0, 4000);
    remove(0, 3000);
    // Now the table is about to be compacted.
    inc(4000, 4100);
    const { epoch } = viewOf(counter).table;
    const page = new WeakRef(viewOf(counter).table.pages[0]);
    inc(4100, 8000);
    assert.equal(viewOf(counter).table.epoch, epoch + 1);
    assert.notEqual(viewOf(counter).table.pages[0], page.deref());
    await turn();
    v8.setFlagsFromString('--expose-gc');
    vm.runInNewContext('gc')();
    assert.equal(page.deref(), undefined);
  });
});
