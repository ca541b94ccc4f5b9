'use strict';

// Native histograms of threads that count while they are read.

const assert = require('node:assert/strict');
const { after, before, it } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');
const { BroadcastChannel, Worker, receiveMessageOnPort } = require('node:worker_threads');
const { runThrough } = require('../../lib/event-loop/slices');
const { viewOf } = require('../../lib/registry/metric-view');
const { countOf } = require('../../lib/series/merged-buckets');
const { ThreadMirror } = require('../../lib/source/thread-mirror');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { MemberThreads } = require('../../lib/threads/member-threads');
const { inboxOf } = require('../../lib/threads/thread-messages');
const { makeWorker, scrape } = require('../fixtures/unit-scrape');

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
  let mirror = new ThreadMirror();
  const store = new ClusterStore();
  /** @returns {import('../../lib/exposition/live-family').MetricView | undefined} as published up to now */
  const read = () => {
    for (const { join, parts = {} } of receive()) {
      if (join === true) {
        mirror = new ThreadMirror();
        store.forget(1);
      }
      mirror.add(parts);
      store.share(1, parts);
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
  const retired = new MemberThreads();
  retired.ended.add(mirror());
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
