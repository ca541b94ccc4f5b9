'use strict';

// Default metrics of several registries that are added up: two of one copy of the package, or those of two
// copies in one thread.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const path = require('node:path');
const { afterEach, it } = require('node:test');
const { Worker } = require('node:worker_threads');
const client = require('../..');
const { copyPackage, parseText, until } = require('../fixtures/cluster-harness');

const { AggregatorRegistry, Counter, Registry, WorkerRegistry, collectDefaultMetrics, register } = client;

const LIMIT = 'nodejs_heap_limit_bytes';

afterEach(() => {
  AggregatorRegistry.setRegistries(register);
  register.clear();
});

/**
 * @param {Registry[]} registries
 * @returns {Promise<Record<'sum' | 'alone', Map<string, number>>>} the samples of all, and of the first alone
 */
async function added(...registries) {
  AggregatorRegistry.setRegistries(registries);
  const aggregator = new AggregatorRegistry();
  const sum = parseText(await aggregator.clusterMetrics());
  await aggregator.close();
  return { sum, alone: parseText(await registries[0].metrics()) };
}

/** @param {object} [options] of collectDefaultMetrics() */
function withDefaultMetrics(options) {
  const registry = new Registry();
  return { registry, stop: collectDefaultMetrics({ register: registry, runtime: ['heap'], ...options }) };
}

it('default metrics of two registries of one copy are those of one, and other metrics are added up', async () => {
  const registries = [withDefaultMetrics(), withDefaultMetrics()].map(({ registry }) => registry);
  for (const registry of registries)
    new Counter({ name: 'done_total', help: 'h', registers: [registry] }).inc(2);
  const { sum, alone } = await added(...registries);
  assert.ok(sum.get(LIMIT) > 0);
  for (const name of [LIMIT, 'process_max_fds']) assert.equal(sum.get(name), alone.get(name), name);
  assert.equal(sum.get('done_total'), 4);
});

it('default metrics with other labels or another prefix are shown beside each other', async () => {
  const [plain, labelled, prefixed, defaults] = [
    withDefaultMetrics(),
    withDefaultMetrics({ labels: { app: 'a' } }),
    withDefaultMetrics({ prefix: 'own_' }),
    withDefaultMetrics(),
  ].map(({ registry }) => registry);
  defaults.setDefaultLabels({ app: 'b' });
  const { sum, alone } = await added(plain, labelled, prefixed, defaults);
  const limit = alone.get(LIMIT);
  for (const key of [LIMIT, `${LIMIT}{app="a"}`, `own_${LIMIT}`, `${LIMIT}{app="b"}`])
    assert.equal(sum.get(key), limit, key);
});

it('default metrics that were stopped make room for those that are updated', async () => {
  const [first, second] = [withDefaultMetrics(), withDefaultMetrics()];
  await first.registry.metrics();
  first.registry.getSingleMetric(LIMIT).set(1);
  first.stop();
  const { sum } = await added(first.registry, second.registry);
  assert.equal(sum.get(LIMIT), parseText(await second.registry.metrics()).get(LIMIT));
});

it('default metrics of two copies in a thread are those of one', async t => {
  const copy = copyPackage(t);
  const registry = new WorkerRegistry();
  t.after(() => registry.shutdown());
  const code = `
    const { parentPort } = require('node:worker_threads');
    const clients = ${JSON.stringify([path.join(__dirname, '../..'), copy])}.map(require);
    new clients[0].WorkerRegistry();
    new clients[1].WorkerRegistry();
    clients[0].collectDefaultMetrics({ runtime: ['heap'] });
    const stop = clients[1].collectDefaultMetrics({ runtime: ['heap'] });
    stop();
    clients[1].register.getSingleMetric('${LIMIT}').set(1);
    parentPort.on('message', () => clients[0].register.clear());
    clients[0].register.metrics().then(page => parentPort.postMessage(page));`;
  const thread = new Worker(code, { eval: true });
  t.after(() => thread.terminate());
  const [own] = await once(thread, 'message');
  const limit = parseText(own).get(LIMIT);
  const shown = async () => parseText(await registry.workerMetrics()).get(LIMIT);
  await until(async () => (await shown()) !== undefined, 'the thread is shown');
  assert.equal(await shown(), limit);
  thread.postMessage('clear the first one');
  await until(async () => (await shown()) === 1, 'the other copy is shown');
});
