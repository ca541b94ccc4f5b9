'use strict';

// Native histograms of threads that count while they are read.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { after, before, it } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');
const { BroadcastChannel, Worker, receiveMessageOnPort } = require('node:worker_threads');
const { runThrough } = require('../../lib/event-loop/slices');
const { viewOf } = require('../../lib/registry/metric-view');
const { countOf, mergeBuckets } = require('../../lib/series/merged-buckets');
const { NativeBuckets } = require('../../lib/series/native-buckets');
const { BucketRows, BucketWriter } = require('../../lib/source/bucket-rows');
const { ByteReader } = require('../../lib/source/byte-buffers');
const { ThreadMirror } = require('../../lib/source/thread-mirror');
const { MirrorBuckets } = require('../../lib/source/mirror-buckets');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { EndedThreads } = require('../../lib/threads/ended-threads');
const { inboxOf } = require('../../lib/threads/thread-messages');
const { makeWorker, scrape } = require('../fixtures/unit-scrape');
const { randomFrom } = require('../../benchmarks/shared/random');

const ROOT = require.resolve('../../index');
const OPTIONS = {
  ...{ name: 'seconds', help: 'h', labelNames: ['kind'], buckets: [] },
  ...{ nativeHistogramBucketFactor: 1.002, nativeHistogramZeroThreshold: 0.001 },
  nativeHistogramMaxBucketNumber: 12,
};

const BEGIN = `
  const { parentPort, workerData: { shared, options, root } } = require('node:worker_threads');
  const { Histogram, Registry, WorkerRegistry } = require(root);
  const { viewOf } = require(require('node:path').join(root, '../lib/registry/metric-view'));
  const registers = [new Registry()];
  WorkerRegistry.setRegistries(registers[0]);
  const seconds = new Histogram({ ...options, registers });
  new WorkerRegistry();`;

/**
 * Two rows by turns, of which one gets the memory that the other one has no use for any more. Each is
 * coarsened ten times, and begins anew. `shared`: for each, how often it has begun (twice: an odd number
 * while it does), and its count.
 */
const COARSENS = `${BEGIN}
  for (let i = 0; i < 400_000; i++) {
    const row = i % 2;
    const kind = String(row);
    const round = (i >> 1) + row * 100;
    const part = (round % 200) / 200;
    if (part === 0) {
      Atomics.add(shared, row * 2, 1);
      seconds.zero({ kind });
      Atomics.store(shared, row * 2 + 1, 0);
      Atomics.add(shared, row * 2, 1);
    }
    const size = i % 7 === 0 ? 0.0001 : 2 ** (part ** 3 * 40 * ((i * 0.618) % 1));
    seconds.observe({ kind }, round % 3 === 0 ? -size : size);
    Atomics.add(shared, row * 2 + 1, 1);
  }
  const { table, buckets } = viewOf(seconds);
  parentPort.postMessage(Array.from(table.liveRows(), row => [table.labelsOf(row).kind, buckets.read(row)]));
  setInterval(() => {}, 1e6);`;

/** Rows that come, are coarsened at once, and go. `shared`: how many have come, the count of others. */
const COMES_AND_GOES = `${BEGIN}
  for (let row = 0; ; row++) {
    const kind = String(row);
    Atomics.store(shared, 0, row);
    for (const value of [1, -1e-2, 1e-1, 1e6]) {
      seconds.observe({ kind }, value);
      Atomics.add(shared, 1, 1);
    }
    if (row % 3 !== 1) continue;
    Atomics.sub(shared, 1, 4);
    seconds.remove({ kind });
  }`;

/** @type {any} */
let inbox;
/** @type {any[]} that an event has delivered */
const messages = [];

before(() => {
  inbox = new BroadcastChannel(inboxOf(''));
  inbox.onmessage = (/** @type {any} */ { data }) => messages.push(data);
});
after(() => inbox.close());

function receive() {
  for (let received; (received = receiveMessageOnPort(inbox)) !== undefined;) messages.push(received.message);
  return messages.splice(0);
}

/**
 * @param {string} program
 * @param {object} [options]
 */
function startThread(program, options) {
  receive();
  const shared = new Int32Array(new SharedArrayBuffer(16));
  const workerData = { shared, options: { ...OPTIONS, ...options }, root: ROOT };
  const thread = new Worker(program, { eval: true, workerData });
  // A thread that publishes everything anew is shown as before until it has done so.
  let [mirror, next] = [new ThreadMirror(), new ThreadMirror()];
  const store = new ClusterStore();
  /** @returns {import('../../lib/exposition/live-family').MetricView | undefined} as published up to now */
  const read = () => {
    for (const { join, chunk, memory, memoryNumber, published } of receive()) {
      const chunks = [join, chunk].filter(each => each !== undefined);
      const parts = { chunks, memories: memory === undefined ? [] : [[memoryNumber, memory]] };
      if (join !== undefined) {
        next = new ThreadMirror();
        store.forget(1);
      }
      next.add(/** @type {any} */ (parts));
      store.share(1, /** @type {any} */ (parts));
      if (published === true) mirror = next;
    }
    runThrough(mirror.read());
    const [metric] = mirror.registries.flatMap(registry => registry.getMetricsAsArray());
    return metric && viewOf(metric);
  };
  return { shared, thread, mirror: () => mirror, read, store };
}

/** @param {any} view @returns {[kind: string, buckets: any][]} */
function rowsOf({ table, buckets }) {
  return Array.from(table.liveRows(), row => [table.labelsOf(row).kind, buckets.read(row)]);
}

it('a row is read whole while its thread coarsens it, and bucket by bucket when that has ended', async () => {
  const { shared, thread, mirror, read, store } = startThread(COARSENS);
  /** @type {any} */
  let end;
  thread.once('message', own => (end = own));
  let [fresh, old] = [0, 0];
  const schemas = new Set();
  /** @type {any[]} by row */
  const last = [];
  for (; end === undefined; await turn()) {
    const view = read();
    if ((view?.table.rowCount ?? 0) < 2) continue;
    for (let i = 0; i < 1000; i++) {
      const row = i % 2;
      const [begun, recorded] = [Atomics.load(shared, row * 2), Atomics.load(shared, row * 2 + 1)];
      const before = last[row];
      const buckets = (last[row] = view?.buckets?.read(row));
      const most = Atomics.load(shared, row * 2 + 1) + 1;
      if (begun % 2 === 1 || Atomics.load(shared, row * 2) !== begun || buckets === undefined) continue;
      const count = countOf(buckets);
      if (count >= recorded && count <= most) fresh++;
      // What was read before, because the row could not be read again.
      else if (buckets === before) old++;
      else assert.fail(`${count} of ${recorded} to ${most}`);
      schemas.add(buckets.schema);
    }
  }
  assert.ok(fresh > 1000 && old < fresh && schemas.size > 5, `${fresh}, ${old}, ${schemas.size}`);
  assert.deepEqual(rowsOf(read()), end);
  runThrough(store.readThreads());
  const shown = (of = store) => {
    const [{ view: family }] = /** @type {any[]} */ (runThrough(of.merge(new Set())));
    return Array.from(family.rows(), row => [
      new Map(family.labels(row, false)).get('kind'),
      family.bucketsAt(row),
    ]);
  };
  assert.deepEqual(shown(), end);
  // As a member of a cluster sends it.
  const primary = new ClusterStore();
  scrape(makeWorker(mirror().registries), primary, 1);
  assert.deepEqual(shown(primary), end);
  await thread.terminate();
  store.retire(1);
  assert.deepEqual(shown(), end);
  const retired = new EndedThreads();
  retired.add(mirror());
  runThrough(retired.merge());
  assert.deepEqual(rowsOf(viewOf(retired.registries[0].getMetricsAsArray()[0])), end);
});

it('a thread that is terminated in the middle of a change loses no observation that it has counted', async () => {
  for (let i = 1; i <= 5; i++) {
    const { shared, thread, read } = startThread(COMES_AND_GOES, { nativeHistogramMaxBucketNumber: 1 });
    while (Atomics.load(shared, 0) < 100 * i) await turn();
    await thread.terminate();
    const rows = rowsOf(read());
    const count = rows.reduce((sum, [, buckets]) => sum + countOf(buckets), 0);
    // What is counted and not noted yet, or noted as removed before it was.
    assert.ok([0, 1, 4].includes(count - shared[1]), `${count} of ${shared[1]}`);
  }
});

it('pages of buckets that are not valid are not read', () => {
  const memory = new SharedArrayBuffer(64);
  const [numbers, words] = [new Float64Array(memory), new Int32Array(memory)];
  const chunks = new SharedArrayBuffer(1024);
  const places = new Int32Array(chunks);
  const make = () => {
    const buckets = new MirrorBuckets('160');
    buckets.setPage(0, 0, memory);
    buckets.setPage(1, 0, chunks);
    return buckets;
  };
  // Schema 3, a directory of 16 places at 16, a chunk at 32.
  words.set([0, 3, 1, 1, 0, 16, -2, 16]);
  [places[16], places[32]] = [32, 7];
  const valid = { schema: 3, zeroThreshold: 0, zeroCount: 0, maxBuckets: 160 };
  const sides = { positive: { indices: [-32], counts: [7] }, negative: { indices: [], counts: [] } };
  assert.deepEqual(make().read(0), { ...valid, ...sides });
  for (const [place, value] of [[0, 1], [1, 9], [1, -5], [5, 1e9], [5, -1], [6, 1e6], [6, 2000], [6, -2000], [7, 1e6], [7, -1]]) {
    const before = words[place];
    words[place] = value;
    assert.equal(make().read(0), undefined, `${value} at ${place}`);
    words[place] = before;
  } // prettier-ignore
  for (const [place, value] of [[6, -1], [6, NaN], [6, Infinity], [7, -1], [7, 0.5], [7, NaN]]) {
    numbers[place] = value;
    assert.equal(make().read(0), undefined, `${value} at ${place}`);
    numbers[place] = 0;
  } // prettier-ignore
  places[16] = 1e9;
  assert.equal(make().read(0), undefined);
  assert.equal(make().read(1), undefined);
  for (const [kind, number, length] of [[2, 0, 64], [0, 2, 64], [1, 2, 64], [0, 0, 32], [1, 0, 64], [1, 1, 63]])
    assert.throws(() => make().setPage(kind, number, new SharedArrayBuffer(length)), RangeError); // prettier-ignore
  for (const most of [undefined, null, 0, 'x', -1]) assert.throws(() => new MirrorBuckets(most), RangeError);
});

const DOUBLES = [NaN, 1e300, -1, 0.5, Infinity, 2 ** 60];

/** Memory of rows on both sides of zero, one with counts of more than 32 bits, as a thread would have it. */
function sharedBuckets() {
  const buckets = new NativeBuckets({ schema: 3, zeroThreshold: 2 ** -128, maxBuckets: 160 });
  const rows = [[3, 3], [1, 2, 3, 1e9], [-1, 5, -7, 0], [1e-9, 0.1]]; // prettier-ignore
  rows.forEach((values, row) => {
    buckets.rowStarted(row);
    for (const value of values) buckets.add(row, value);
    if (row > 0) return;
    const [page] = buckets.memory.pages;
    page[page.lastIndexOf(2)] = -1;
    buckets.add(row, 3);
  });
  return buckets.pagesByKind.flatMap((pages, kind) =>
    pages.map((page, number) => {
      const memory = new SharedArrayBuffer(page.byteLength);
      new Uint8Array(memory).set(new Uint8Array(page.buffer));
      return { kind, number, memory };
    }),
  );
}

/** Reads all rows, and checks that what is read can be merged and written. */
function readGarbage(pages) {
  const mirror = new MirrorBuckets(160);
  for (const { kind, number, memory } of pages) mirror.setPage(kind, number, memory);
  let read = 0;
  for (let row = 0; row < 6; row++) {
    const buckets = mirror.changesOf(row) === undefined ? undefined : mirror.read(row);
    if (buckets === undefined) continue;
    read++;
    const bytes = new BucketWriter().add(buckets);
    const block = new Uint8Array(16 + bytes.length);
    new Int32Array(block.buffer, 12, 1)[0] = bytes.length;
    block.set(bytes, 16);
    const reader = new ByteReader(Buffer.from(block.buffer), 0, block.length);
    assert.deepEqual(new BucketRows(reader, 1, 1).read(0), buckets);
    mergeBuckets([buckets, { ...buckets, zeroThreshold: 1 }]);
  }
  return read;
}

it('garbage in the memory of a thread is read as nothing or as valid buckets, also while it changes', async t => {
  const random = randomFrom(29);
  const integer = below => Math.floor(random() * below);
  const values = [
    () => integer(2 ** 32) | 0,
    ...[() => integer(64), () => integer(2 ** 15), () => -integer(64), () => integer(2) * 2 ** 31 - 1],
  ];
  const scribble = pages => {
    const { kind, memory } = pages[random() < 0.5 ? 0 : integer(pages.length)];
    const words = new Int32Array(memory);
    if (kind === 0 && random() < 0.1)
      new Float64Array(memory)[integer(40)] = DOUBLES[integer(DOUBLES.length)];
    else words[integer(Math.min(words.length, 64))] = values[integer(values.length)]();
  };
  assert.equal(readGarbage(sharedBuckets()), 4);
  let [read, missing] = [0, 0];
  for (let i = 0; i < 1000; i++) {
    const pages = sharedBuckets();
    for (let n = integer(8); n >= 0; n--) scribble(pages);
    const found = readGarbage(pages);
    read += found;
    if (found < 4) missing++;
  }
  assert.ok(read > 1000 && missing > 300, `${read} rows read, ${missing} times not all`);

  const pages = sharedBuckets();
  const scribbler = new Worker(
    `const { workerData: pages, parentPort } = require('node:worker_threads');
    const all = pages.map(({ memory }) => ({ words: new Int32Array(memory), valid: new Int32Array(memory).slice() }));
    parentPort.postMessage('begun');
    for (let i = 0; ; i++) {
      const { words, valid } = all[i % all.length];
      const at = Math.floor(Math.random() * Math.min(words.length, 64));
      words[at] = Math.random() * 2 ** 32;
      for (let j = 0; j < 20; j++) words[at] = valid[at];
    }`,
    { eval: true, workerData: pages },
  );
  t.after(() => scribbler.terminate());
  await once(scribbler, 'message');
  for (let i = 0; i < 1000; i++) readGarbage(pages);
});
