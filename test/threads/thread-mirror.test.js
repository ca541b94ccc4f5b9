'use strict';

// What a reader has seen after any number of records: a thread that is terminated publishes no more of them.

const assert = require('node:assert/strict');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');
const v8 = require('node:v8');
const vm = require('node:vm');
const { BroadcastChannel, receiveMessageOnPort } = require('node:worker_threads');
const { Counter, Gauge, Registry, Summary } = require('../../index');
const { viewOf, DEFAULT_LABELS } = require('../../lib/registry/metric-view');
const { inboxOf, channelOf } = require('../../lib/threads/thread-messages');
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
  /** @type {string} its id */
  let thread;

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

  /** @param {any} message of the thread */
  function apply(message) {
    const { join, chunk, memory, memoryNumber, extras } = message;
    thread = message.thread;
    if (join !== undefined) mirror = new ThreadMirror(join, () => undefined);
    if (chunk !== undefined) mirror?.addChunk(chunk);
    if (memory !== undefined) mirror?.addMemory(memoryNumber, memory);
    if (extras !== undefined) mirror?.addExtras(message);
  }

  /** Reads what was published, a few records at a time, and returns the sum after each time. */
  function read() {
    for (let received; (received = receiveMessageOnPort(inbox)) !== undefined;) apply(received.message);
    const published = /** @type {ThreadMirror} */ (mirror);
    const sums = [sumOf(published)];
    const steps = published.read();
    for (let isLast = false; !isLast; sums.push(sumOf(published))) isLast = steps.next().done === true;
    return sums;
  }

  /** Has the hooks run, and counts what is sent because of that. */
  async function extrasOf() {
    const counts = { digests: 0, exemplars: 0 };
    /** @type {any[]} */
    const messages = [];
    // Those that were sent before.
    read();
    await new Promise(resolve => {
      inbox.onmessage = (/** @type {any} */ { data }) => {
        messages.push(data);
        if (data.answer !== undefined) resolve(undefined);
      };
      const own = new BroadcastChannel(channelOf(thread));
      own.postMessage({ request: 1 });
      own.close();
    });
    inbox.onmessage = null;
    for (const { extras } of messages) {
      if (extras === undefined) continue;
      assert.ok(extras.digests.length + extras.exemplars.length <= 64);
      counts.digests += extras.digests.length;
      counts.exemplars += extras.exemplars.length;
    }
    messages.forEach(apply);
    return counts;
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

  it('a default label that was made invalid in place is left out, and the others are shown', () => {
    const labels = { a: 'x' };
    registries[0].setDefaultLabels(labels);
    publish();
    inc(0, 1);
    Object.assign(labels, { 'bad-name': 'x', odd: { toString: null }, b: 'y' });
    inc(1, 2);
    registries[0].removeSingleMetric('any change');
    assert.equal(read().at(-1), 2);
    const [{ [DEFAULT_LABELS]: shown }] = /** @type {any} */ (mirror).registries;
    assert.deepEqual(shown, { a: 'x', b: 'y' });
  });

  it('a label set has its values, whichever of them are new', () => {
    const options = { name: 'requests_total', help: 'h', labelNames: ['a', 'b', 'c'], registers: registries };
    const requests = new Counter(options);
    const before = { a: 'first', b: '', c: 'x'.repeat(100) };
    requests.inc(before);
    publish();
    const sets = [
      { a: 'new', b: 'é', c: 'new' },
      { a: 'new', b: 'new', c: 'new' },
      { a: '', c: 'y'.repeat(100) },
      { b: 'new' },
      {},
      { a: 'new', b: 'é', c: '' },
    ];
    for (const labels of sets) requests.inc(labels);
    requests.remove(sets[1]);
    requests.inc(sets[1]);
    read();
    const [, view] = /** @type {ThreadMirror} */ (mirror).registries[0].getMetricsAsArray().map(viewOf);
    const { table } = /** @type {any} */ (view);
    const [new1, new2, ...rest] = sets;
    assert.deepEqual(
      Array.from(table.liveRows(), row => table.labelsOf(row)),
      [before, new1, ...rest, new2],
    );
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

  it('digests and exemplars are sent in parts, and those that have not changed once', async () => {
    registries[0].setFormats(['text', 'openmetrics']);
    const options = { help: 'h', labelNames: ['kind'], registers: registries };
    const traced = new Counter({ name: 'traced_total', enableExemplars: true, ...options });
    const sizes = new Summary({ name: 'sizes', ...options });
    const trace = (/** @type {number} */ i, /** @type {string} */ id) => {
      traced.inc({ labels: { kind: `kind${i}` }, value: 1, exemplarLabels: { id } });
      sizes.observe({ kind: `kind${i}` }, i);
    };
    publish();
    for (let i = 0; i < 200; i++) trace(i, `first ${i}`);
    assert.deepEqual(await extrasOf(), { digests: 200, exemplars: 200 });
    assert.deepEqual(await extrasOf(), { digests: 0, exemplars: 0 });
    trace(7, 'second');
    traced.remove({ kind: 'kind8' });
    traced.inc({ kind: 'kind8' });
    assert.deepEqual(await extrasOf(), { digests: 1, exemplars: 1 });
    read();
    const metrics = /** @type {ThreadMirror} */ (mirror).registries[0].getMetricsAsArray().map(viewOf);
    const [view, { table, digestOf }] = metrics.slice(1);
    const idOf = (/** @type {number} */ row) => view.exemplars.at(row, 0)?.labelSet.id;
    assert.deepEqual([6, 7, 8, 199].map(idOf), ['first 6', 'second', undefined, 'first 199']);
    assert.deepEqual([...digestOf(7).slices()[0].centroids()], [7, 2]);
    assert.equal(table.liveCount, 200);
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
