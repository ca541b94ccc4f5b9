'use strict';

const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { LabelIndex } = require('../../lib/series/label-index');
const { Counter, Gauge, Registry, Summary } = require('../..');
const { viewOf } = require('../../lib/registry/metric-view');
const { makeWorker, bytesOf, snapshotAhead, textOf, samplesOf } = require('../fixtures/unit-scrape');

/** @returns {boolean} whether the rows have new numbers */
function compactTable(table) {
  const { epoch } = table;
  const steps = table.compactionSteps();
  while (!steps.next().done);
  return table.epoch !== epoch;
}

const WORKER = 1;
// Three steps of the encoding of a log.
const MANY = 1300;

/** A worker with a counter of many label sets. */
function workerWithMany() {
  const worker = makeWorker();
  const labelNames = ['a', 'b'];
  const counter = new Counter({ name: 'many', help: 'many', labelNames, registers: [worker.registry] });
  for (let i = 0; i < MANY; i++) counter.inc({ a: `value ${i}`, b: i % 7 });
  return { ...worker, counter };
}

/** Encodes the log ahead, calls `meanwhile` once during that, then captures and applies the source. */
async function captureWith({
  source,
  store,
  meanwhile = () => {},
  position = store.worker(WORKER)?.position,
}) {
  let called = false;
  const call = () => {
    if (!called) meanwhile();
    called = true;
  };
  source.startLogFor(position);
  const buffer = await source.prepare(undefined, {
    onProgress: call,
    capture: ahead => {
      call();
      return bytesOf(source.captureWithLog(WORKER, position, { ahead }));
    },
  });
  store.apply(WORKER, buffer);
  return buffer.length;
}

async function assertShows(store, registry) {
  const [text, expected] = [textOf(store), await registry.metrics()];
  // Equal pages have equal samples, which take much longer to compare.
  if (text !== expected) assert.deepStrictEqual(samplesOf(text), samplesOf(expected));
}

/** Makes a table renumber its rows. */
function compact(metric) {
  const { table } = viewOf(metric);
  for (let i = 0; i < 2000; i++) metric.inc({ a: `passing ${i}` });
  const live = [...table.liveRows()].length;
  for (let i = 0; i < 2000 && live - i > 2; i++) metric.remove({ a: `passing ${i}` });
  return compactTable(table);
}

const DIGESTS = 2000;

/** A worker with a summary of many label sets, in two registries. */
function workerWithDigests() {
  const worker = makeWorker([new Registry(), new Registry()]);
  const options = { name: 'seconds', help: 'S', labelNames: ['a'], percentiles: [0.5] };
  const summary = new Summary({ ...options, registers: worker.registries });
  for (let a = 0; a < DIGESTS; a++) summary.observe({ a }, a);
  return { ...worker, summary };
}

for (const [change, act] of [
  ['nothing', () => {}],
  ['an observation', summary => summary.observe({ a: 7 }, 7)],
  ['a new label set', summary => summary.observe({ a: 'new' }, 3)],
  ['a removed one', summary => summary.remove({ a: 7 })],
  ['one that was removed and came back', summary => (summary.remove({ a: 7 }), summary.observe({ a: 7 }, 3))],
  ['a reset', summary => summary.reset()],
]) {
  test(`Source: a page is right after ${change} between the encoding of digests and the capture`, async () => {
    const { source, summary, registries } = workerWithDigests();
    registries[1].setDefaultLabels({ second: 'yes' });
    await source.prepare(1000, {
      capture: ahead => {
        act(summary);
        const store = new ClusterStore();
        store.apply(WORKER, bytesOf(source.captureWithLog(WORKER, undefined, { ahead })));
        const shown = samplesOf(textOf(store));
        return Promise.all(registries.map(registry => registry.metrics())).then(pages => {
          const expected = new Map(pages.flatMap(page => [...samplesOf(page)]));
          assert.deepStrictEqual(shown, expected);
        });
      },
    });
  });
}

test('Source: a capture has no digests to write that were encoded ahead, nor those of a metric that waits for hooks', async () => {
  const { source, registries, summary } = workerWithDigests();
  registries.pop();
  let isAsync = false;
  const collect = () => (isAsync ? new Promise(resolve => setImmediate(resolve)) : undefined);
  new Gauge({ name: 'g', help: 'g', registers: registries, collect });
  const columnsOf = async () => {
    const bytes = await snapshotAhead({ source }, WORKER, undefined);
    return bytes.readDoubleLE(88) - bytes.readDoubleLE(96);
  };
  const least = DIGESTS * 16;
  for (isAsync of [false, true]) {
    const length = await columnsOf();
    assert.ok(length >= least && length < least + 1000, `${length}`);
    summary.observe({ a: 1 }, 5);
  }
});

test('Source: a capture does not encode again the label sets that were encoded ahead', async t => {
  const { source, counter, registry } = workerWithMany();
  const store = new ClusterStore();
  await source.prepare(undefined, {
    capture: ahead => {
      for (let i = 0; i < 10; i++) counter.inc({ a: 'later', b: i });
      const read = t.mock.method(LabelIndex.prototype, 'idAt');
      const snapshot = source.captureWithLog(WORKER, undefined, { ahead });
      assert.strictEqual(read.mock.callCount(), 10 * 2);
      t.mock.restoreAll();
      store.apply(WORKER, bytesOf(snapshot));
    },
  });
  await assertShows(store, registry);
});

test('Source: readers at any position have all label sets after random changes during encoding', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ inc: fc.tuple(fc.nat(2), fc.nat(40)) }) },
    { weight: 2, arbitrary: fc.record({ remove: fc.tuple(fc.nat(2), fc.nat(40)) }) },
    { weight: 1, arbitrary: fc.record({ compact: fc.nat(2) }) },
    { weight: 1, arbitrary: fc.record({ redefine: fc.nat(2) }) },
    { weight: 1, arbitrary: fc.record({ absent: fc.nat(2) }) },
    { weight: 2, arbitrary: fc.record({ capture: fc.nat(2) }) },
  );
  const round = fc.record({
    reader: fc.nat(2),
    forget: fc.boolean(),
    steps: fc.array(step, { maxLength: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(round, { maxLength: 8 }), async rounds => {
      const { source, registry } = makeWorker();
      const make = name => new Counter({ name, help: name, labelNames: ['a', 'b'], registers: [registry] });
      const counters = ['x', 'y', 'z'].map(make);
      const stores = counters.map(() => new ClusterStore());
      let changes = 0;
      const perform = ({ inc, remove, compact: sparse, redefine, absent, capture }) => {
        changes++;
        if (inc) counters[inc[0]].inc(changes % 2 ? { a: inc[1], b: 'b' } : { b: 'b', a: inc[1] });
        if (remove) counters[remove[0]].remove({ a: remove[1], b: 'b' });
        if (sparse !== undefined) compact(counters[sparse]);
        if (redefine !== undefined) counters[redefine].help = `help ${changes}`;
        if (absent !== undefined) {
          const { name } = counters[absent];
          if (registry.getSingleMetric(name)) registry.removeSingleMetric(name);
          else registry.registerMetric(counters[absent]);
        }
        if (capture !== undefined) source.captureWithLog(WORKER, stores[capture].worker(WORKER)?.position);
      };
      for (const { reader, forget, steps } of rounds) {
        if (forget) stores[reader] = new ClusterStore();
        const left = [...steps];
        const position = stores[reader].worker(WORKER)?.position;
        source.startLogFor(position);
        const ahead = await source.prepare(undefined, {
          onProgress: () => left.length > 0 && perform(left.shift()),
          capture: blocks => blocks,
        });
        left.forEach(perform);
        stores[reader].apply(WORKER, bytesOf(source.captureWithLog(WORKER, position, { ahead })));
        await assertShows(stores[reader], registry);
      }
    }),
    { numRuns: 60 },
  );
});

for (const name of [5, undefined, null, Symbol('name'), { toString: null }, 'x'.repeat(1e6)]) {
  test(`Source: if get() of a custom metric object fails, it is counted and no other metric is affected (name: ${typeof name})`, async () => {
    const { source, registry, counter } = workerWithMany();
    const get = async () => {
      throw { toString: null };
    };
    const metric = { name: 'odd', get };
    registry.registerMetric(metric);
    metric.name = name;
    await source.prepare(1000);
    counter.inc({ a: 'new', b: 'new' });
    const store = new ClusterStore();
    store.apply(WORKER, bytesOf(source.captureWithLog(WORKER, undefined)));
    assert.strictEqual(samplesOf(textOf(store)).size, MANY + 1);
    const [{ stage, count }] = store.state().failures;
    assert.deepStrictEqual([stage, count], ['collect', 1]);
  });
}

for (const bytes of [1e300, NaN, -1, '5', 16n]) {
  test(`Source: after a request with the invalid position ${String(bytes)}, everything is sent, and later requests work`, async () => {
    const { source, registry, counter } = workerWithMany();
    const store = new ClusterStore();
    await captureWith({ source, store });
    for (let i = 0; i < 3; i++) {
      counter.inc({ a: 'new', b: `${i}` });
      await captureWith({ source, store });
      const whole = new ClusterStore();
      await captureWith({ source, store: whole, position: { ...store.worker(WORKER)?.position, bytes } });
      await assertShows(whole, registry);
    }
    await captureWith({ source, store });
    counter.inc({ a: 'new', b: 'last' });
    assert.ok((await captureWith({ source, store })) < MANY * 10, 'only the new series');
    await assertShows(store, registry);
  });
}

test('a label name that is added at any step of the encoding leaves a snapshot that can be read', async () => {
  for (let step = 1, steps = Infinity; step <= steps; step++) {
    const { source, counter } = workerWithMany();
    const store = new ClusterStore();
    let count = 0;
    const bytes = await source.prepare(undefined, {
      onProgress: () => {
        if (++count !== step) return;
        counter.labelNames.push('added');
        counter.inc({ a: 'new', added: 'x' });
      },
      capture: ahead => bytesOf(source.captureWithLog(WORKER, undefined, { ahead })),
    });
    steps = count;
    store.apply(WORKER, bytes);
    const { size } = samplesOf(textOf(store));
    assert.strictEqual(size, MANY + (step <= steps ? 1 : 0), `step ${step} of ${steps}`);
  }
});

test('Source: a capture after an asynchronous hook shows what has been reset, added, removed or compacted meanwhile', async () => {
  for (const meanwhile of [
    counter => counter.reset(),
    counter => counter.inc({ a: 'new', b: 'new' }),
    counter => counter.remove({ a: 'value 5', b: 5 }),
    counter => {
      for (let i = 0; i < MANY - 10; i++) counter.remove({ a: `value ${i}`, b: i % 7 });
      assert.ok(compactTable(viewOf(counter).table));
    },
  ]) {
    const { source, counter, registry } = workerWithMany();
    const collect = async () => {
      await null;
      meanwhile(counter);
      registry.removeSingleMetric('g');
    };
    new Gauge({ name: 'g', help: 'g', registers: [registry], collect });
    const store = new ClusterStore();
    await source.prepare(1000, {
      capture: ahead => store.apply(WORKER, bytesOf(source.captureWithLog(WORKER, undefined, { ahead }))),
    });
    await assertShows(store, registry);
  }
});

test('Source: a metric whose properties cannot be read costs itself only, and is counted', async () => {
  const { registry, source } = makeWorker();
  const store = new ClusterStore();
  const registers = [registry];
  new Counter({ name: 'good_total', help: 'h', registers }).inc();
  const makeOdd = name => new Gauge({ name, help: 'h', registers });
  const failing = () => {
    throw new Error('it cannot be read');
  };
  makeOdd('help').help = { toString: null };
  makeOdd('aggregator').aggregator = { toString: failing };
  Object.defineProperty(makeOdd('hook'), 'collect', { get: failing });
  let isReady = false;
  registry.registerMetric(
    new Proxy({ name: 'proxy', get() {} }, { get: (target, key) => (isReady ? failing() : target[key]) }),
  );
  isReady = true;
  const snapshot = await source.prepare(1000, {
    capture: ahead => bytesOf(source.captureWithLog(WORKER, undefined, { ahead })),
  });
  store.apply(WORKER, snapshot);
  assert.deepStrictEqual([...samplesOf(textOf(store)).keys()], ['good_total []']);
  assert.deepStrictEqual(store.state().failures, [{ stage: 'capture', metric: '', count: 4 }]);
});

test('Source: under NODE_DEBUG, an error that cannot be printed costs its metric only', () => {
  const program = `
    const { Counter, Gauge, Registry } = require('./index');
    const { Source } = require('./lib/source/source');
    const { metricsResponse } = require('./index');
    const registry = new Registry();
    const failing = () => { throw new Error('it cannot be printed'); };
    const odd = Object.defineProperties(new Error(), { stack: { get: failing }, toString: { value: failing } });
    odd[Symbol.for('nodejs.util.inspect.custom')] = failing;
    const collect = () => { throw odd; };
    new Counter({ name: 'good_total', help: 'h', registers: [registry] }).inc();
    new Gauge({ name: 'odd', help: 'h', registers: [registry], collect });
    const source = new Source(() => [registry]);
    const capture = ahead => source.captureWithLog(1, undefined, { ahead }).bytes > 0;
    const request = new Request('http://localhost/metrics');
    source.prepare(1000, { capture })
      .then(() => metricsResponse(registry, request, { onError() {} }))
      .then(({ status }) => console.log(status));`;
  const env = { ...process.env, NODE_DEBUG: 'prom-client-cluster' };
  const cwd = path.join(__dirname, '../..');
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', program], { env, cwd });
  assert.deepStrictEqual([status, String(stdout)], [0, '500\n'], String(stderr));
  assert.match(String(stderr), /failed: %O \(with a value that cannot be printed\)/);
});

test('Source: a default label that was made invalid in place costs itself only, and is counted', async () => {
  const { registry, source } = makeWorker();
  const store = new ClusterStore();
  const labels = { a: 'x' };
  registry.setDefaultLabels(labels);
  new Counter({ name: 'good_total', help: 'h', registers: [registry] }).inc();
  await captureWith({ source, store });
  Object.assign(labels, { 'bad-name': 'x', odd: { toString: null } });
  await captureWith({ source, store });
  assert.deepStrictEqual([...samplesOf(textOf(store)).keys()], ['good_total [["a","x"]]']);
  assert.deepStrictEqual(store.state().failures, [{ stage: 'capture', metric: '', count: 2 }]);
});

test('Source: failures of more metrics than are counted by name are counted together', async () => {
  const { source } = makeWorker();
  const store = new ClusterStore();
  for (let i = 0; i < 1100; i++) source.countFailure('collect', `metric_${i}`, 'it failed');
  source.countFailure('collect', 'metric_5', 'it failed');
  source.countFailure('other', 'of a name', 'it failed');
  await captureWith({ source, store });
  const { failures } = store.state();
  assert.deepStrictEqual(failures.at(-1), { stage: 'other', metric: '', count: 101 });
  assert.strictEqual(failures.find(({ metric }) => metric === 'metric_5').count, 2);
  assert.strictEqual(failures.length, 1001);
});

test("Source: the first failure of a metric's collect hook is a process warning with its error", async t => {
  const warnings = [];
  t.mock.method(process, 'emitWarning', (text, { code }) => warnings.push([text, code]));
  const { source, registry } = makeWorker();
  const errors = { broken_a: new Error('no database.'), broken_b: undefined };
  for (const [name, error] of Object.entries(errors)) {
    const collect = () => Promise.reject(error);
    new Gauge({ name, help: 'h', registers: [registry], collect });
  }
  await source.prepare(1000);
  await source.prepare(1000);
  const text = (name, reason) =>
    `The collect hook of the metric ${name} has failed: ${reason}. The page shows its last values. Later failures are counted, without another warning`;
  assert.deepStrictEqual(warnings, [
    [text('broken_a', 'no database'), 'PROM_CLIENT_CLUSTER_COLLECT'],
    [text('broken_b', 'undefined'), 'PROM_CLIENT_CLUSTER_COLLECT'],
  ]);
});
