'use strict';

// What a reader has seen after any number of records: a thread that is terminated publishes no more of them.

const assert = require('node:assert/strict');
const { it } = require('node:test');
const { BroadcastChannel, receiveMessageOnPort } = require('node:worker_threads');
const { Counter, Registry } = require('../../index');
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

it('no count falls while a table whose rows are renumbered is published again', t => {
  const inbox = new BroadcastChannel(inboxOf(''));
  const registry = new Registry();
  const counter = new Counter({ name: 'jobs_total', help: 'h', labelNames: ['kind'], registers: [registry] });
  const publisher = new ThreadPublisher(() => [registry]);
  t.after(() => {
    publisher.close();
    inbox.close();
  });
  /** @type {ThreadMirror | undefined} */
  let mirror;
  /** Reads what was published, a few records at a time, with the sum after each time. */
  const read = () => {
    for (;;) {
      const { message } = receiveMessageOnPort(/** @type {any} */ (inbox)) ?? {};
      if (message === undefined) break;
      if (message.join !== undefined) mirror = new ThreadMirror(message.join, () => undefined);
      if (message.chunk !== undefined) mirror?.addChunk(message.chunk);
      if (message.memory !== undefined) mirror?.addMemory(message.memoryNumber, message.memory);
    }
    const published = /** @type {ThreadMirror} */ (mirror);
    const sums = [sumOf(published)];
    const steps = published.read();
    for (let isLast = false; !isLast; sums.push(sumOf(published))) isLast = steps.next().done === true;
    return sums;
  };

  for (let i = 0; i < 4000; i++) counter.inc({ kind: `kind${i}` });
  for (let i = 0; i < 3000; i++) counter.remove({ kind: `kind${i}` });
  assert.equal(read().at(-1), 1000);
  const { epoch } = viewOf(counter).table;
  for (let i = 4000; i < 8000; i++) counter.inc({ kind: `kind${i}` });
  assert.equal(viewOf(counter).table.epoch, epoch + 1);
  const sums = read();
  assert.equal(sums.at(-1), 5000);
  assert.ok(sums.length > 20);
  sums.forEach((sum, i) => assert.ok(!(sum < sums[i - 1]), `${sum} after ${sums[i - 1]}`));
});
