'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, parseText, until } = require('../../fixtures/cluster-harness.js');

const recording = {
  start: ({ require, client, cluster, state }) => {
    const { Recorder } = require('../cluster/processes/fixtures/cluster-recorder');
    state.recorder = new Recorder(client, cluster.worker.id);
    state.compactions = 0;
    require('node:diagnostics_channel').subscribe('prom-client-cluster:section', ({ name }) => {
      if (name === 'worker:compact') state.compactions++;
    });
  },
};

const isQuantile = sample => sample.includes('quantile="');

/** The sums of what live and dead workers recorded. */
function total(books) {
  const sums = new Map();
  for (const [sample, value] of books.flat()) sums.set(sample, (sums.get(sample) ?? 0) + value);
  return sums;
}

/** What remains of a dead worker: all but gauges. */
function lasting(book) {
  return book.filter(([sample]) => !sample.startsWith('connections'));
}

function assertSame(scraped, expected) {
  const wrong = [];
  for (const [sample, value] of scraped) {
    if (!isQuantile(sample) && expected.get(sample) !== value)
      wrong.push([sample, value, expected.get(sample)]);
  }
  for (const sample of expected.keys()) {
    if (!scraped.has(sample)) wrong.push([sample, undefined, expected.get(sample)]);
  }
  assert.deepEqual(wrong, [], 'sample, scraped, recorded');
  assert.ok(expected.size > 20, `only ${expected.size} samples were compared`);
}

/** Scrapes in several loops at once, so many times in each; returns where a total fell. */
function scrapeInLoops(cluster, loops, scrapes) {
  return cluster.run(
    async ({ aggregator }, loops, scrapes) => {
      const fallen = [];
      const loop = async () => {
        let last = 0;
        for (let i = 0; i < scrapes; i++) {
          const text = await aggregator.clusterMetrics();
          let now = 0;
          for (const [, value] of text.matchAll(/^operations_total(?:\{.*\})? (.*)$/gm)) now += Number(value);
          if (now < last) fallen.push([last, now]);
          last = now;
        }
      };
      await Promise.all(Array.from({ length: loops }, loop));
      return fallen;
    },
    loops,
    scrapes,
  );
}

const run = ({ state }) => state.recorder.run();
const pause = ({ state }) => state.recorder.pause();

/** Lets workers record while scrapes overlap, then pauses them and compares. */
class Ledger {
  #cluster;
  /** Books of dead workers. */
  #retired = [];

  constructor(cluster, workers) {
    this.#cluster = cluster;
    this.workers = workers;
  }

  /** @param {() => Promise<unknown>} [meanwhile] */
  async recordAndScrape(meanwhile = async () => {}) {
    await this.#cluster.inWorkers(this.workers, run);
    const [fallen] = await Promise.all([scrapeInLoops(this.#cluster, 3, 3), meanwhile()]);
    assert.deepEqual(fallen, []);
  }

  async compare() {
    const books = await this.#cluster.inWorkers(this.workers, pause);
    const expected = total([...books, ...this.#retired]);
    assertSame(await this.#cluster.scrape(), expected);
    return { books, expected };
  }

  async add() {
    const id = await this.#cluster.fork();
    await this.#cluster.scrape();
    await this.#cluster.inWorker(id, run);
    this.workers.push(id);
  }

  /** A worker exits while others go on: its last numbers count. */
  async letExit(workerId) {
    const book = await this.#cluster.inWorker(workerId, ({ state, process, afterwards }) => {
      afterwards(() => process.exit());
      return state.recorder.pause();
    });
    await this.#cluster.gone(workerId);
    this.#bury(workerId, book);
  }

  /** A worker is killed: its last scraped numbers count, so it must not have recorded since. */
  async kill(workerId, { books }) {
    const book = books[this.workers.indexOf(workerId)];
    await this.#cluster.signal(workerId, 'SIGKILL');
    await this.#cluster.gone(workerId);
    this.#bury(workerId, book);
  }

  #bury(workerId, book) {
    this.workers.splice(this.workers.indexOf(workerId), 1);
    this.#retired.push(lasting(book));
  }
}

const inPlace = { options: { inPlace: true } };
const structuredClones = { settings: { serialization: 'advanced' } };
const ways = {
  'in a thread, with messages as structured clones': structuredClones,
  // test/long/every-variant.test.js runs these, too.
  ...(process.env.EVERY_VARIANT && {
    'in a thread': {},
    'in place': inPlace,
    'in place, with messages as structured clones': { ...inPlace, ...structuredClones },
  }),
};

describe('an aggregate equals the sum of what the workers recorded, to the last bit', () => {
  for (const [way, setup] of Object.entries(ways)) {
    it(`an aggregate is exact while series come and go, workers die, start and compact, ${way}`, async t => {
      const cluster = await startCluster(t, { workers: 3, worker: recording, ...setup });
      const ledger = new Ledger(cluster, [1, 2, 3]);
      // What a worker removes is in sums from the first time that its metrics were read.
      await cluster.scrape();
      await ledger.recordAndScrape();
      await ledger.compare();

      await cluster.inWorkers([1, 2], ({ state }) =>
        state.recorder.setDefaultLabels({ zone: 'a', app: 'shop' }),
      );
      await cluster.inWorker(3, ({ state }) => state.recorder.setDefaultLabels({ zone: 'b' }));
      await ledger.recordAndScrape(() => ledger.letExit(2));
      const before = await ledger.compare();

      await ledger.kill(3, before);
      await cluster.inWorker(1, ({ state }) => state.recorder.gatherCrowd(3000));
      await ledger.recordAndScrape(() => ledger.add());
      await ledger.compare();

      // Worker 1 compacts, has other default labels, and another comes, between the same two scrapes.
      const { compactions } = await cluster.inWorker(1, ({ state }) => {
        state.recorder.scatterCrowd(100);
        state.recorder.setDefaultLabels({ zone: 'c' });
        return { compactions: state.compactions };
      });
      await ledger.add();
      await ledger.compare();
      await ledger.recordAndScrape();
      const { expected } = await ledger.compare();
      const since = (await cluster.inWorker(1, ({ state }) => state.compactions)) - compactions;
      assert.ok(since > 0, 'the table was compacted');

      const texts = await cluster.run(({ aggregator }) =>
        Promise.all(Array.from({ length: 100 }, () => aggregator.clusterMetrics())).then(all => [
          all.length,
          ...new Set(all),
        ]),
      );
      assert.equal(texts[0], 100);
      assert.equal(texts.length, 2, '100 callers at once got the same text');
      assertSame(parseText(texts[1]), expected);
      await until(() => cluster.spooledFiles().length === 0, 'all files are read');
      assert.deepEqual((await cluster.internals()).refused, {});
      await cluster.end();
    });
  }
});
