'use strict';

// What a reader has seen after any number of records: a thread that is terminated publishes no more of them.

const assert = require('node:assert/strict');
const { createHook } = require('node:async_hooks');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { setImmediate: turn, setTimeout: delay } = require('node:timers/promises');
const v8 = require('node:v8');
const vm = require('node:vm');
const { BroadcastChannel, receiveMessageOnPort } = require('node:worker_threads');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../../index');
const { runThrough } = require('../../lib/event-loop/slices');
const { centroidsOf } = require('../../lib/metric/observations');
const { viewOf, DEFAULT_LABELS } = require('../../lib/registry/metric-view');
const { channelOf, inboxOf } = require('../../lib/threads/thread-messages');
const { countOf } = require('../../lib/series/merged-buckets');
const { ThreadMirror } = require('../../lib/source/thread-mirror');
const { ThreadPublisher } = require('../../lib/threads/thread-publisher');

/** @param {number} seed @returns {() => number} 0 to 1 */
function randomOf(seed) {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** @param {import('node:test').TestContext} t */
function refuseMemory(t) {
  const { SharedArrayBuffer: original } = globalThis;
  t.after(() => (globalThis.SharedArrayBuffer = original));
  globalThis.SharedArrayBuffer = /** @type {any} */ (
    class {
      constructor() {
        throw new RangeError('Array buffer allocation failed');
      }
    }
  );
}

/**
 * Collects garbage until something is released. A collection that has begun before may keep it, and so may a
 * compilation in the background, which takes its time on a busy machine.
 *
 * @param {() => boolean} isReleased
 */
async function collectGarbage(isReleased) {
  v8.setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  for (let i = 0; i < 200; i++) {
    // What a WeakRef has returned lives until the end of the turn.
    await (i < 5 ? turn() : delay(50));
    gc();
    if (isReleased()) return;
  }
}

/** @param {ThreadMirror} mirror */
function sumOf(mirror) {
  let sum = 0;
  for (const metric of mirror.registries.flatMap(registry => registry.getMetricsAsArray())) {
    const table = viewOf(metric)?.table;
    // None of a custom metric object.
    if (table === undefined) continue;
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
  /** @type {WeakRef<SharedArrayBuffer>[]} that the reader has got */
  let memories;
  /** @type {Map<number, string>} names of the metrics with hooks, by number */
  let hooked;

  beforeEach(() => {
    inbox = new BroadcastChannel(inboxOf(''));
    registries = [new Registry()];
    memories = [];
    hooked = new Map();
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

  /** A counter with exemplars. */
  function traced() {
    const [registry] = registries;
    registry.setFormats(['text', 'openmetrics']);
    const options = { help: 'h', labelNames: ['kind'], enableExemplars: true, registers: registries };
    return registry.getSingleMetric('traced_total') ?? new Counter({ name: 'traced_total', ...options });
  }

  const publish = () => (publisher = new ThreadPublisher(() => registries));

  /** @param {any} message of the thread */
  function apply(message) {
    const { join, parts = {}, hooks = [], unhook } = message;
    if (join === true) mirror = new ThreadMirror();
    mirror?.add(parts);
    for (const [number, name] of hooks) hooked.set(number, name);
    hooked.delete(unhook);
    for (const [, memory] of parts.memories ?? []) memories.push(new WeakRef(memory));
  }

  function receive() {
    const messages = [];
    for (let received; (received = receiveMessageOnPort(inbox)) !== undefined;)
      messages.push(received.message);
    messages.forEach(apply);
    return messages;
  }

  /** Reads what was published, a few records at a time, and returns the sum after each time. */
  function read() {
    receive();
    const published = /** @type {ThreadMirror} */ (mirror);
    const sums = [sumOf(published)];
    const steps = published.read();
    for (let isLast = false; !isLast; sums.push(sumOf(published))) isLast = steps.next().done === true;
    return sums;
  }

  /** @param {string} name @returns {any} what the reader has of a metric */
  function mirrored(name) {
    const metrics = /** @type {ThreadMirror} */ (mirror).registries.flatMap(registry =>
      registry.getMetricsAsArray(),
    );
    return viewOf(metrics.find(metric => metric.name === name));
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

  it('numbers whose memory is missing are not read from other memory', () => {
    publish();
    inc(0, 3);
    new Counter({ name: 'other_total', help: 'h', labelNames: ['kind'], registers: registries }).inc(
      { kind: 'a' },
      7,
    );
    for (let received, isFirst = true; (received = receiveMessageOnPort(inbox)) !== undefined;) {
      const { message } = received;
      const isLeftOut = isFirst && message.parts?.memories?.length > 0;
      isFirst &&= !isLeftOut;
      apply(isLeftOut ? {} : message);
    }
    assert.deepEqual(read(), [0, 0]);
  });

  it('a thread that cannot publish everything again leaves, and what it had published stays', t => {
    publish();
    inc(0, 3);
    assert.equal(read().at(-1), 3);
    refuseMemory(t);
    publisher?.open();
    assert.deepEqual(
      receive().map(({ join, left }) => [join, left]),
      [[undefined, true]],
    );
    assert.equal(read().at(-1), 3);
  });

  it('reading ends while the thread publishes faster than it is read', () => {
    publish();
    inc(0, 1000);
    assert.equal(read().at(-1), 1000);
    inc(1000, 2000);
    const published = /** @type {ThreadMirror} */ (mirror);
    receive();
    let next = 2000;
    for (const steps = published.read(); !steps.next().done; receive()) {
      inc(next, (next += 200));
      assert.ok(next < 6000, 'it goes on');
    }
    assert.ok(sumOf(published) >= 2000);
    assert.equal(read().at(-1), next);
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

  it('a label set has the second in which it began to count', t => {
    t.mock.timers.enable({ apis: ['Date'], now: 1e12 });
    const options = { name: 'seconds', help: 'h', labelNames: ['kind'], buckets: [], registers: registries };
    const seconds = new Histogram(options);
    const observe = (/** @type {string[]} */ ...kinds) => kinds.forEach(kind => seconds.observe({ kind }, 1));
    const starts = () => {
      read();
      const { table } = mirrored('seconds');
      return Array.from(table.liveRows(), row => table.startAt(row) - 1e9);
    };
    observe('a', 'b');
    publish();
    const shown = [starts()];
    const far = 2 ** 31;
    for (const change of [
      () => observe('b', 'c'),
      () => seconds.remove({ kind: 'b' }),
      () => observe('a', 'b'),
      () => seconds.zero({ kind: 'c' }),
      () => publisher?.open(),
      () => (t.mock.timers.setTime((far + 1e9) * 1000), seconds.reset(), observe('a')),
    ]) {
      t.mock.timers.tick(1000);
      change();
      shown.push(starts());
    }
    assert.deepEqual(shown, [[0, 0], [0, 0, 1], [0, 1], [0, 1, 3], [0, 4, 3], [0, 4, 3], [far]]);
    new Gauge({ name: 'busy', help: 'h', registers: registries }).set(1);
    read();
    assert.equal(mirrored('busy').table.starts, undefined);
  });

  it('what a custom metric object had is shown until it has something else, even if all is published again', async () => {
    let value = 1;
    const get = async () => ({ name: 'custom', help: 'h', type: 'gauge', values: [{ value, labels: {} }] });
    registries[0].registerMetric(/** @type {any} */ ({ name: 'custom', get }));
    publish();
    const shown = () => {
      read();
      const [, custom] = /** @type {ThreadMirror} */ (mirror).registries[0].getMetricsAsArray();
      return custom.json.values[0].value;
    };
    for (value of [1, 1, 2]) {
      const [{ thread }] = receive();
      const hub = new BroadcastChannel(channelOf(thread));
      hub.postMessage({ request: 'of a scrape' });
      const isAnswer = (/** @type {any} */ { answer }) => answer !== undefined;
      while (!receive().some(isAnswer)) await turn();
      hub.close();
      assert.equal(shown(), value);
      publisher?.open();
    }
    assert.equal(shown(), 2);
  });

  it('a metric in two registries is published for both, and what follows it too', () => {
    registries.push(new Registry());
    registries[1].registerMetric(counter);
    publish();
    inc(0, 3);
    new Gauge({ name: 'busy', help: 'h', registers: registries }).set(1);
    assert.equal(read().at(-1), 8);
  });

  for (const [kind, options] of /** @type {[string, any][]} */ ([
    ['all observations', {}],
    ['few buffered observations', { compressCount: 3 }],
    ['a sliding window', { maxAgeSeconds: 60, ageBuckets: 3 }],
  ]))
    it(`a digest of ${kind} is that of the thread at any time`, t => {
      t.mock.timers.enable({ apis: ['Date'], now: 1e12 });
      // In two registries, one of which is published later.
      registries.push(new Registry());
      const given = { name: 'sizes', help: 'h', labelNames: ['kind'], registers: registries, ...options };
      const sizes = new Summary(given);
      const random = randomOf(7);
      const one = (/** @type {number} */ of) => ({ kind: `kind${Math.floor(random() * of)}` });
      const later = registries.pop();
      const observe = (/** @type {number} */ count, /** @type {number} */ of) => {
        for (let i = 0; i < count; i++) sizes.observe(one(of), random());
      };
      const renumber = () => {
        for (let row = 0; row < 1100; row++) sizes.observe({ kind: `many${row}` }, row);
        for (let row = 0; row < 1090; row++) sizes.remove({ kind: `many${row}` });
        runThrough(/** @type {any} */ (viewOf(sizes)).table.compactionSteps());
      };
      observe(700, 2);
      publish();
      read();
      const [started, version] = [mirrored('sizes').digestOf(0), mirrored('sizes').digestOf(0).version];
      const steps = [
        () => observe(1, 5),
        () => observe(30, 5),
        () => observe(600, 2),
        () => sizes.remove(one(5)),
        () => sizes.reset(),
        () => t.mock.timers.tick(random() * 40_000),
        () => sizes.get(),
      ];
      for (let i = 0; i < 40; i++) {
        if (i === 15 && later !== undefined) {
          registries.push(later);
          publisher?.sync();
        }
        steps[Math.floor(random() * steps.length)]();
        if (i === 25) renumber();
        read();
        const own = /** @type {any} */ (viewOf(sizes));
        for (const row of own.table.liveRows()) {
          const shown = mirrored('sizes').digestOf(row).slices();
          assert.deepEqual(centroidsOf(shown), centroidsOf(own.digestOf(row).slices()), `step ${i}`);
        }
      }
      assert.ok(started !== mirrored('sizes').digestOf(0) || started.version > version);
      assert.ok(viewOf(sizes)?.table.epoch, 'rows have got new numbers');
    });

  it('zero() of a histogram drops its exemplars from the page', () => {
    registries[0].setFormats(['text', 'openmetrics']);
    const options = { help: 'h', labelNames: ['kind'], buckets: [1], registers: registries };
    const traced = new Histogram({ name: 'seconds', enableExemplars: true, ...options });
    publish();
    const observe = (/** @type {string} */ kind, /** @type {string} */ id) =>
      traced.observe({ labels: { kind }, value: 0.5, exemplarLabels: { id } });
    const shown = () => {
      read();
      const { exemplars } = mirrored('seconds');
      return Array.from(exemplars.slots(), ({ row, slot }) => [row, slot.exemplar.labelSet.id]);
    };
    observe('a', 'first');
    observe('b', 'second');
    const before = shown();
    traced.zero({ kind: 'a' });
    const after = shown();
    observe('a', 'third');
    assert.deepEqual(
      [before, after, shown()],
      [
        [[0, 'first'], [1, 'second']], // prettier-ignore
        [[1, 'second']],
        [[0, 'third'], [1, 'second']], // prettier-ignore
      ],
    );
  });

  it('what was observed is not lost if there is no shared memory for it', t => {
    const sizes = new Summary({ name: 'sizes', help: 'h', registers: registries });
    publish();
    for (let i = 0; i < 8; i++) sizes.observe(1);
    refuseMemory(t);
    for (let i = 0; i < 1000; i++) sizes.observe(1);
    const { digestOf } = /** @type {any} */ (viewOf(sizes));
    assert.deepEqual([...centroidsOf(digestOf(0).slices())], [1, 1008]);
    read();
    const { table, digestOf: shown } = mirrored('sizes');
    assert.equal(table.pageOf(0)[1], 1008);
    const [mean, count] = centroidsOf(shown(0).slices());
    assert.ok(mean === 1 && count >= 8 && count <= 1008);
  });

  it('buckets for which there is no shared memory are counted all the same, in the thread', t => {
    const options = { name: 'seconds', help: 'h', buckets: [], nativeHistogramBucketFactor: 1.01 };
    const seconds = new Histogram({ ...options, registers: registries });
    publish();
    for (let i = 1; i <= 8; i++) seconds.observe(i);
    read();
    const counts = () => [viewOf(seconds), mirrored('seconds')].map(view => countOf(view.buckets.read(0)));
    assert.deepEqual(counts(), [8, 8]);
    refuseMemory(t);
    for (let i = 1; i <= 1000; i++) seconds.observe(1.1 ** i);
    read();
    const [all, shown] = counts();
    assert.ok(all === 1008 && shown >= 8 && shown < 1008, `${all} and ${shown}`);
  });

  it('an exemplar is published if none was within a second, and the first of each label set', t => {
    t.mock.timers.enable({ apis: ['Date'], now: 1e12 });
    registries[0].setFormats(['text', 'openmetrics']);
    const options = { help: 'h', labelNames: ['kind'], registers: registries };
    const traced = new Counter({ name: 'traced_total', enableExemplars: true, ...options });
    const trace = (/** @type {string} */ kind, /** @type {string} */ id) =>
      traced.inc({ labels: { kind }, value: 1, exemplarLabels: { id } });
    const idOf = (/** @type {number} */ row) => {
      read();
      return mirrored('traced_total').exemplars.at(row, 0)?.labelSet.id;
    };
    trace('a', 'before');
    publish();
    assert.equal(idOf(0), 'before');
    trace('a', 'first');
    assert.equal(idOf(0), 'first');
    t.mock.timers.tick(999);
    trace('a', 'second');
    trace('b', 'first');
    assert.deepEqual([0, 1].map(idOf), ['first', 'first']);
    t.mock.timers.tick(1);
    trace('a', 'third');
    assert.equal(idOf(0), 'third');
    traced.remove({ kind: 'a' });
    // In another row: the numbers of the former one may not have been read.
    traced.inc({ kind: 'a' });
    assert.deepEqual([0, 2].map(idOf), [undefined, undefined]);
    trace('a', 'fourth');
    assert.equal(idOf(2), 'fourth');
    t.mock.timers.setTime(1e11);
    trace('a', 'after the clock went back');
    assert.equal(idOf(2), 'after the clock went back');
  });

  it('a hook, a help text, an aggregator and a get() that a metric gets after its registration are published', async () => {
    publish();
    counter.inc({ kind: 'a' }, 3);
    const late = new Gauge({ name: 'late', help: 'h', registers: registries });
    const replaced = new Gauge({ name: 'replaced', help: 'h', registers: registries });
    read();
    await turn();
    counter.help = 'jobs that were done';
    counter.collect = () => counter.inc({ kind: 'hooked' });
    late.aggregator = 'max';
    replaced.get = async () => ({
      name: 'replaced',
      help: 'h',
      type: 'gauge',
      aggregator: 'sum',
      values: [],
    });
    const another = new Gauge({ name: 'another', help: 'h', registers: registries });
    another.collect = () => another.set(1);
    read();
    // Not turn(): messages that nobody listens to are lost then.
    await undefined;
    read();
    assert.deepEqual(
      [mirrored('jobs_total').help, mirrored('late').aggregator],
      ['jobs that were done', 'max'],
    );
    assert.equal(mirrored('replaced'), undefined);
    const shown = mirror?.registries[0].getMetricsAsArray().map(({ name }) => name);
    assert.deepEqual(shown?.sort(), ['another', 'jobs_total', 'late', 'replaced']);
    // That of a custom metric object is its get().
    assert.deepEqual([...hooked.values()].sort(), ['another', 'jobs_total', 'replaced']);
    counter.inc({ kind: 'a' }, 2);
    const { table } = mirrored('jobs_total');
    assert.equal(table.pageOf(0)[table.offsetOf(0)], 5);
  });

  it('a registry that has left is released, and shown again if it joins again', async () => {
    const [first] = registries;
    publish();
    inc(0, 1);
    registries.length = 0;
    /** @type {WeakRef<Registry>[]} */
    const others = [];
    for (let i = 0; i < 100; i++) {
      const other = new Registry();
      other.setDefaultLabels({ number: String(i) });
      new Counter({ name: 'other_total', help: 'h', registers: [other] }).inc(i);
      others.push(new WeakRef(other));
      registries[0] = other;
      publisher?.sync();
    }
    read();
    assert.deepEqual([sumOf(/** @type {ThreadMirror} */ (mirror)), mirror?.registries.length], [99, 1]);
    registries = [first];
    publisher?.sync();
    inc(1, 4);
    assert.equal(read().at(-1), 4);
    // The last one may be on the stack.
    const isReleased = () => others.filter(other => other.deref() !== undefined).length <= 1;
    await collectGarbage(isReleased);
    assert.ok(isReleased());
  });

  it('the memory of metrics that were removed is released, also of those without labels', async () => {
    publish();
    const [registry] = registries;
    const options = { help: 'h', registers: registries };
    const buckets = Array.from({ length: 100 }, (_, i) => i);
    for (let i = 0; i < 600; i++) {
      registry.clear();
      new Counter({ name: 'small_total', ...options }).inc();
      new Histogram({ name: 'small', ...options }).observe(1);
      if (i % 10 === 0) new Histogram({ name: 'large', buckets, ...options }).observe(1);
      if (i % 10 === 5) new Counter({ name: 'labelled_total', labelNames: ['kind'], ...options }).inc();
    }
    read();
    const shown = ['small_total', 'small'].map(name => mirrored(name).table.pageOf(0).indexOf(1));
    assert.deepEqual(shown, [0, 7]);
    const sent = memories.length;
    const left = () => memories.filter(memory => memory.deref() !== undefined).length;
    await collectGarbage(() => left() < 5);
    assert.ok(sent > 100 && left() < 5, `${left()} of ${sent} are left`);
  });

  it('the memory of a table that was compacted is released, even if the metric is in two registries', async () => {
    registries.push(new Registry());
    registries[1].registerMetric(counter);
    publish();
    inc(0, 4000);
    remove(0, 3000);
    // Now the table is about to be compacted.
    inc(4000, 4100);
    const { epoch } = viewOf(counter).table;
    // In functions of their own: this one keeps what it has used while it waits.
    const firstPage = () => viewOf(counter).table.pages[0];
    const page = (() => new WeakRef(firstPage()))();
    const isReplaced = () => firstPage() !== page.deref();
    inc(4100, 8000);
    assert.equal(viewOf(counter).table.epoch, epoch + 1);
    assert.ok(isReplaced());
    await collectGarbage(() => page.deref() === undefined);
    assert.ok(page.deref() === undefined);
  });

  for (const [what, change] of /** @type {[string, (round: number) => void][]} */ ([
    ['label sets come and go', () => (counter.reset(), inc(0, 500))],
    [
      'exemplars are replaced',
      round => {
        for (let i = 0; i < 500; i++)
          traced().inc({ labels: { kind: `kind${i}` }, value: 1, exemplarLabels: { id: `${round}` } });
      },
    ],
    [
      'metrics come and go',
      () => {
        registries[0].removeSingleMetric('passing');
        const buckets = Array.from({ length: 1000 }, (_, i) => i);
        const options = { name: 'passing', help: 'h', labelNames: ['a'], buckets, registers: registries };
        new Histogram(options).observe({ a: 'b' }, 1);
      },
    ],
    [
      'sparse buckets come and go',
      round => {
        const options = { name: 'native', help: 'h', labelNames: ['kind'], registers: registries };
        const native =
          registries[0].getSingleMetric('native') ??
          new Histogram({ ...options, buckets: [], nativeHistogramBucketFactor: 1.1 });
        /** @type {any} */ (native).reset();
        for (let i = 0; i < 400; i++)
          /** @type {any} */ (native).observe({ kind: `${i % 40} ${round}` }, 2 ** ((i * 7 + round) % 40));
      },
    ],
  ]))
    it(`what a thread has sent is bounded while ${what}, even if it never returns to its event loop`, t => {
      t.mock.timers.enable({ apis: ['Date'], now: 1e12 });
      publish();
      inc(0, 500);
      let [joins, bytes, most] = [0, 0, 0];
      for (let round = 0; round < 800; round++) {
        t.mock.timers.tick(1000);
        change(round);
        for (let received; (received = receiveMessageOnPort(inbox)) !== undefined;) {
          const { join, parts: { chunks = [], memories: sent = [] } = {} } = received.message;
          if (join === true) [joins, bytes] = [joins + 1, 0];
          for (const memory of [...chunks, ...sent.map(([, each]) => each)])
            most = Math.max(most, (bytes += memory.byteLength));
          apply(received.message);
        }
      }
      assert.ok(joins > 1 && most < 8 * 2 ** 20, `${joins} times, ${most} bytes at most`);
      const all = read().at(-1);
      assert.equal(sumOf(/** @type {ThreadMirror} */ (mirror)), all);
      assert.equal(mirrored('jobs_total').table.liveCount, 500);
    });

  it('opens one channel for all that it publishes in one turn, before the hub listens', async () => {
    // With so many numbers, a table shares no memory with others.
    const options = { help: 'h', labelNames: ['kind'], buckets: Array.from({ length: 20 }, (_, i) => i) };
    for (let i = 0; i < 200; i++)
      new Histogram({ name: `more${i}`, ...options, registers: registries }).observe({ kind: 'a' }, 0);
    let channels = 0;
    const hook = createHook({
      init: (_, type) => void (channels += Number(type === 'MESSAGEPORT')),
    }).enable();
    publish();
    hook.disable();
    receive();
    assert.ok(memories.length >= 200, `${memories.length} memories`);
    // Those that it listens on, and this one. A closed channel collects messages until the turn has ended.
    assert.ok(channels <= 3, `${channels} channels`);
    // In a later turn again.
    await turn();
    inc(0, 100);
    assert.equal(read().at(-1), 300);
  });
});
