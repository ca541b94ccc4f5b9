'use strict';

// Rows that have ended in a process that lives: what of them is in sums, and when it leaves.

const { test } = require('node:test');
const assert = require('node:assert');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { viewOf, VIEW } = require('../../lib/registry/metric-view');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const { makeWorker, scrape, copyOf, textOf, samplesOf, seriesKey } = require('../fixtures/unit-scrape');

const START = 1_700_000_000_000;
const MINUTE = 60_000;
const MAX_IDLE = 5 * MINUTE;
const MAX_AGE = 60 * MINUTE;

const [COUNTER] = METRIC_TYPES;

/**
 * A worker of which rows end: by hand, so that the test says when each batch is offered.
 *
 * @param {object} [options] of the metric
 */
class EndingWorker {
  #options;
  #batches = [];
  #live;
  #last = 0;

  constructor(id, { type = COUNTER, maxIdleSeconds = 0, ...options } = {}) {
    this.id = id;
    this.type = type;
    this.#options = { name: 'm', help: 'x', labelNames: ['a'], ...options };
    this.maxIdleSeconds = maxIdleSeconds;
    Object.assign(this, makeWorker());
    this.#live = this.#make();
    this.registry.getMetricsAsArray = () => [this.#live, ...this.#batches];
  }

  #make(ended) {
    const metric = this.type.make({ ...this.#options, registers: [] });
    const read = metric[VIEW].bind(metric);
    metric[VIEW] = () => ({ ...read(), maxIdleSeconds: this.maxIdleSeconds, ended });
    return metric;
  }

  record(value, a = 'x') {
    this.type.record(this.#live, { a }, value);
  }

  /** Ends a row that has counted these values, and offers it as a batch. */
  end(values, { a = 'x', isRemoved = false } = {}) {
    this.#live.remove({ a });
    const ended = this.#make({ batch: ++this.#last, isRemoved });
    for (const value of values) this.type.record(ended, { a }, value);
    this.#batches.push(ended);
  }

  acknowledge(saved) {
    this.#batches = this.#batches.filter(batch => viewOf(batch).ended.batch > saved);
  }
}

class Cluster {
  clock = { now: START };
  workers = new Map();
  options = { now: () => this.clock.now, retiredMaxAge: MAX_AGE };
  store = new ClusterStore(this.options);
  saved = undefined;

  join(...workers) {
    for (const worker of workers) this.workers.set(worker.id, worker);
    return workers;
  }

  /** All that can answer, or these. */
  scrape(ids = [...this.workers.keys()]) {
    for (const id of ids) scrape(this.workers.get(id), this.store, id);
  }

  die(id) {
    this.store.retire(id);
    this.workers.delete(id);
  }

  get samples() {
    const shown = [...this.workers.keys()];
    return samplesOf(textOf({ merge: custom => this.store.merge(custom, shown) }));
  }

  /** The sum of a counter, or undefined. */
  sum(a = 'x') {
    return this.samples.get(seriesKey('m', { a }));
  }

  save() {
    this.saved = copyOf(this.store.encodeRetired());
    this.store.noteSaved();
    for (const [id, batch] of this.store.savedBatches) this.workers.get(id)?.acknowledge(batch);
  }

  /** The next thread has what was saved, and nothing of a worker. */
  loseThread() {
    this.store = new ClusterStore(this.options);
    if (this.saved !== undefined) this.store.restoreRetired(copyOf(this.saved));
  }
}

/** Two workers with one series: 5 and 3. */
function pair(options) {
  const cluster = new Cluster();
  const [a, b] = cluster.join(new EndingWorker(1, options), new EndingWorker(2, options));
  a.record(5);
  b.record(3);
  cluster.scrape();
  return { cluster, a, b };
}

for (const isRemoved of [false, true])
  test(`a row that ${isRemoved ? 'is removed' : 'expires'} in one worker stays in the sum while another has it`, () => {
    const { cluster, a, b } = pair({ maxIdleSeconds: MAX_IDLE / 1000 });
    assert.strictEqual(cluster.sum(), 8);
    a.end([5], { isRemoved });
    cluster.scrape();
    assert.strictEqual(cluster.sum(), 8);
    b.record(1);
    cluster.scrape();
    cluster.clock.now += 100 * MAX_AGE;
    assert.strictEqual(cluster.sum(), 9);
    b.end([4], { isRemoved });
    cluster.scrape();
    assert.strictEqual(cluster.samples.size, 0, 'it leaves at once');
    a.record(1);
    cluster.scrape();
    assert.strictEqual(cluster.sum(), 1, 'it starts at zero');
  });
