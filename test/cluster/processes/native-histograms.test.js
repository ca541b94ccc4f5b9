'use strict';

// Native histograms of real workers, compared with one process that has observed all values.

const assert = require('node:assert/strict');
const { it } = require('node:test');
const client = require('../../../index');
const { bucketsIn } = require('../../../lib/series/native-json');
const { randomFrom } = require('../../../benchmarks/shared/random');
const { startCluster, until } = require('../../fixtures/cluster-harness');
const { detectsReset } = require('../../fixtures/native-reference');
const { familiesOf } = require('../../fixtures/protobuf-page');
const { seed } = require('../../fixtures/seeded-fast-check');

const PROTOBUF = client.Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE;
const OPTIONS = { name: 'n', help: 'h', buckets: [1], nativeHistogramMaxBucketNumber: 40 };

/** @param {Buffer} page @returns {Map<string, any>} the buckets of each series */
function bucketsOf(page) {
  const [{ metric }] = familiesOf(page).filter(({ name }) => name === 'n');
  return new Map(
    metric.map(({ labels, histogram }) => {
      const { count, schema, zeroThreshold, zeroCount, ...sides } = histogram;
      const { positiveSpan = [], positiveDelta = [], negativeSpan = [], negativeDelta = [] } = sides;
      const [positiveSpans, positiveDeltas] = [positiveSpan, positiveDelta];
      const [negativeSpans, negativeDeltas] = [negativeSpan, negativeDelta];
      const buckets = bucketsIn({
        ...{ schema, zeroThreshold, zeroCount },
        ...{ positiveSpans, positiveDeltas, negativeSpans, negativeDeltas },
      });
      const counts = [...buckets.positive.counts, ...buckets.negative.counts];
      const expected = counts.reduce((sum, each) => sum + each, zeroCount);
      assert.equal(count, expected);
      return [labels.a, buckets];
    }),
  );
}

/** A cluster, what one process has that observes the same, and the last page. */
class Observed {
  #random = randomFrom(seed);
  #last = new Map();

  constructor(cluster, nativeHistogramBucketFactor) {
    this.cluster = cluster;
    const registers = [new client.Registry(PROTOBUF)];
    const native = { ...OPTIONS, nativeHistogramBucketFactor, labelNames: ['a'], registers };
    this.one = new client.Histogram(native);
    this.registry = registers[0];
  }

  /** A worker observes values of so many octaves. */
  async observe(id, count, octaves, a = `${id % 2}`) {
    const values = Array.from({ length: count }, () => {
      const value = 2 ** ((this.#random() - 0.5) * octaves) * (this.#random() < 0.2 ? -1 : 1);
      return this.#random() < 0.05 ? 0 : value;
    });
    await this.cluster.inWorker(
      id,
      ({ state }, a, values) => values.forEach(value => state.histogram.observe({ a }, value)),
      a,
      values,
    );
    for (const value of values) this.one.observe({ a }, value);
  }

  /** That the page has all that was observed, without a reset since the last one. */
  async compare(isExact = true) {
    const text = await this.cluster.run(async ({ aggregator }, contentType) => {
      const page = await aggregator.clusterMetricsBytes({ contentType });
      return page.toString('base64');
    }, PROTOBUF);
    const page = bucketsOf(Buffer.from(text, 'base64'));
    const expected = bucketsOf(await this.registry.metrics());
    if (isExact) assert.deepEqual(page, expected, `seed ${seed}`);
    for (const [a, buckets] of page) {
      assert.equal(countOf(buckets), countOf(expected.get(a)), `seed ${seed}`);
      const before = this.#last.get(a);
      if (before !== undefined) assert.equal(detectsReset(before, buckets), false, `seed ${seed}`);
    }
    this.#last = page;
    return page;
  }
}

function countOf({ zeroCount, positive, negative }) {
  return [...positive.counts, ...negative.counts].reduce((sum, count) => sum + count, zeroCount);
}

/** @param {object} options of a worker's histogram */
function workerWith(options) {
  return {
    program: { ...OPTIONS, ...options },
    start: ({ client, program, state }) => {
      state.histogram = new client.Histogram({ ...program.program, labelNames: ['a'] });
    },
  };
}

it('a cluster has each bucket that one process has, while workers coarsen, are killed and replaced', async t => {
  const worker = workerWith({ nativeHistogramBucketFactor: 1.01 });
  const cluster = await startCluster(t, { options: { checkpointInterval: 100 }, worker });
  const observed = new Observed(cluster, 1.01);
  for (const id of [await cluster.fork(), await cluster.fork(), await cluster.fork()])
    await observed.observe(id, 30, 1);
  // Worker 1 has values that are so far apart that its buckets become wider, and so do those of the page.
  const fine = (await observed.compare()).get('1').schema;
  await observed.observe(1, 200, 40);
  assert.ok((await observed.compare()).get('1').schema < fine);

  // Worker 2 is killed: its last checkpoint counts. One is removed when the next one is complete.
  const checkpoints = () => cluster.keptFiles(2).filter(name => name.includes('-r0-'));
  await until(() => checkpoints().length > 0, 'there is a checkpoint');
  await observed.observe(2, 50, 3);
  const before = checkpoints();
  await until(() => !checkpoints().some(name => before.includes(name)), 'there is a later checkpoint');
  await cluster.killWorker(2);
  await cluster.allRetired();
  await observed.compare();
  // Another one takes its place, and the aggregator is lost.
  await observed.observe(await cluster.fork(), 20, 2);
  await cluster.run(({ threads }) => threads.at(-1).terminate());
  await observed.compare();
  for (const id of [1, 3, 4]) await cluster.endWorker(id, ({ process }) => process.exit());
  await cluster.allRetired();
  await observed.compare();
  await cluster.end();
});

it('no observation is lost, and no page shows a reset, when workers with other options take over', async t => {
  const cluster = await startCluster(t, { worker: workerWith({ nativeHistogramBucketFactor: 1.5 }) });
  const observed = new Observed(cluster, 1.1);
  await observed.observe(await cluster.fork(), 50, 8, 'x');
  await observed.compare(false);
  let id = 1;
  for (const options of [
    { nativeHistogramBucketFactor: 1.1 },
    { nativeHistogramBucketFactor: 1.1, nativeHistogramZeroThreshold: 0.3 },
    { nativeHistogramBucketFactor: 1.5, nativeHistogramMaxBucketNumber: 8 },
    { nativeHistogramBucketFactor: 1.1 },
  ]) {
    const next = await cluster.fork(workerWith(options));
    await observed.observe(next, 50, 8, 'x');
    await observed.compare(false);
    await cluster.endWorker(id, ({ process }) => process.exit());
    await cluster.allRetired();
    await observed.compare(false);
    id = next;
  }
  await cluster.end();
});

it('a worker with a classic histogram of that name is a conflict, which is counted', async t => {
  const cluster = await startCluster(t, { worker: workerWith({ nativeHistogramBucketFactor: 1.1 }) });
  const observed = new Observed(cluster, 1.1);
  await observed.observe(await cluster.fork(), 5, 3, 'x');
  const classic = await cluster.fork(workerWith({}));
  await cluster.inWorker(classic, ({ state }) => state.histogram.observe({ a: 'x' }, 1));
  await observed.compare();
  const page = await cluster.scrape({ selfMetrics: true });
  assert.ok(page.get('prom_client_cluster_conflicts_total') > 0);
  await cluster.end();
});
