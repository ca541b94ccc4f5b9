'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const fc = require('../../fixtures/seeded-fast-check.js');

const client = require('../../..');
const { ClusterStore } = require('../../../lib/cluster/store/cluster-store');
const { ChangeDetector } = require('../../../lib/cluster/worker/change-detector');
const { startCluster, until } = require('../../fixtures/cluster-harness.js');
const { BY_HAND } = require('../../fixtures/cluster-chaos-checkpoints.js');

const counting = {
  start: ({ require, client, ...context }) => {
    const { state } = context;
    require('./cluster-chaos-checkpoints').observeCheckpoints(context);
    const [help, labelNames] = ['h', ['route']];
    client.register.setContentType(client.openMetricsContentType);
    state.collected = 0;
    const collect = () => void state.collected++;
    state.metrics = {
      counter: new client.Counter({ name: 'done_total', help, collect }),
      labelled: new client.Counter({ name: 'requests_total', help, labelNames, enableExemplars: true }),
      gauge: new client.Gauge({ name: 'open', help }),
      histogram: new client.Histogram({ name: 'took', help, buckets: [1, 2] }),
      summary: new client.Summary({ name: 'size', help, percentiles: [0.5] }),
    };
    state.record = (times = 1) => state.metrics.counter.inc(times);
  },
};

const record = ({ state }, times) => state.record(times);
const tick = ({ state }) => state.tick();
const welcomed = ({ state }, times) => state.welcomed(times);
const checkpointed = ({ state }) => state.checkpointed();
const counted = samples => samples.get('done_total');

/** @param {number} checkpointInterval milliseconds; BY_HAND where the test makes the time pass */
async function start(t, checkpointInterval, { workers = 1, ...setup } = {}) {
  const options = { checkpointInterval, ...setup.options };
  const cluster = await startCluster(t, { workers, worker: counting, ...setup, options });
  const ids = Array.from({ length: workers }, (_, i) => i + 1);
  await cluster.inWorkers(ids, welcomed);
  return cluster;
}

async function kill(cluster, workerId) {
  await cluster.signal(workerId, 'SIGKILL');
  await cluster.gone(workerId);
}

/** @returns {string[]} last snapshots of workers, finished or not, that are in the spool */
function exitFiles(cluster) {
  return fs.readdirSync(cluster.spool).filter(name => name.includes('-exit-'));
}

/** @returns {{file: string, inode: number, changed: number}} the only one */
function exitFile(cluster) {
  const names = exitFiles(cluster);
  assert.equal(names.length, 1, String(names));
  const file = path.join(cluster.spool, names[0]);
  const { ino, mtimeMs } = fs.statSync(file);
  return { file, inode: ino, changed: mtimeMs };
}

describe('a worker that is killed after a checkpoint', { concurrency: 3 }, () => {
  it('keeps what it had counted, though nobody has scraped', async t => {
    const cluster = await start(t, 100, { workers: 2 });
    await Promise.all([cluster.inWorker(2, checkpointed), cluster.inWorker(2, record, 7)]);
    await cluster.inWorker(1, record);
    await kill(cluster, 2);
    assert.equal(counted(await cluster.scrape()), 8);
    await cluster.end();
  });

  it('keeps just what it had counted until then', async t => {
    const cluster = await start(t, BY_HAND);
    await cluster.inWorker(1, record, 3);
    assert.equal(await cluster.inWorker(1, tick), 1);
    await cluster.inWorker(1, record, 100);
    await kill(cluster, 1);
    assert.equal(counted(await cluster.scrape()), 3);
    await until(() => exitFiles(cluster).length === 0, 'its file is removed');
    await cluster.end();
  });

  it('keeps what was scraped later than that', async t => {
    const cluster = await start(t, BY_HAND);
    await cluster.inWorker(1, record, 3);
    await cluster.inWorker(1, tick);
    await cluster.inWorker(1, record, 4);
    assert.equal(counted(await cluster.scrape()), 7);
    await cluster.inWorker(1, record, 100);
    await kill(cluster, 1);
    assert.equal(counted(await cluster.scrape()), 7);
    await cluster.end();
  });

  it('keeps label sets, buckets and sums of a checkpoint after many scrapes', async t => {
    const cluster = await start(t, BY_HAND);
    const recordAll = ({ state }, route) => {
      state.metrics.labelled.inc({ route }, 2);
      state.metrics.histogram.observe(1.5);
      state.metrics.summary.observe(4);
    };
    for (const route of ['a', 'b', 'c']) {
      await cluster.inWorker(1, recordAll, route);
      await cluster.scrape();
    }
    await cluster.inWorker(1, recordAll, 'd');
    await cluster.inWorker(1, tick);
    await kill(cluster, 1);
    const samples = await cluster.scrape();
    for (const route of ['a', 'b', 'c', 'd']) {
      assert.equal(samples.get(`requests_total{route="${route}"}`), 2, route);
    }
    assert.equal(samples.get('took_bucket{le="2"}'), 4);
    assert.equal(samples.get('took_sum'), 6);
    assert.equal(samples.get('size_count'), 4);
    assert.equal(samples.get('size_sum'), 16);
    await cluster.end();
  });

  it('keeps what it counted after it disconnected', async t => {
    const cluster = await start(t, 100);
    cluster.tellWorker(1, ({ cluster, process, state }) => {
      cluster.worker.once('disconnect', async () => {
        // Otherwise nothing keeps it alive until then.
        const busy = setInterval(() => {}, 1000);
        state.record(5);
        await state.checkpointed();
        process.kill(process.pid, 'SIGKILL');
        clearInterval(busy);
      });
      cluster.worker.disconnect();
    });
    const { signal } = await cluster.gone(1);
    assert.equal(signal, 'SIGKILL');
    assert.equal(counted(await cluster.scrape()), 5);
    await cluster.end();
  });

  it('in the middle of the next one keeps the one before, and nothing of the other is left', async t => {
    const cluster = await start(t, BY_HAND);
    await cluster.inWorker(1, record, 3);
    await cluster.inWorker(1, tick);
    const { file } = exitFile(cluster);
    await cluster.inWorker(1, record, 100);
    cluster.tellWorker(1, ({ require, state }) => {
      const { writevSync } = require('node:fs');
      require('node:fs').writevSync = (descriptor, chunks) => {
        writevSync(descriptor, chunks.slice(0, -1));
        // Until it is killed.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      };
      state.tick();
    });
    await until(
      () => fs.statSync(`${file}.part`, { throwIfNoEntry: false })?.size > 0,
      'there is half of one',
    );
    await cluster.signal(1, 'SIGKILL');
    await cluster.gone(1);
    assert.equal(counted(await cluster.scrape()), 3);
    await until(() => exitFiles(cluster).length === 0, 'both files are removed');
    await cluster.end();
  });
});

describe('a crash loop', { concurrency: 2 }, () => {
  const ends = {
    'of workers that end by themselves': {
      interval: 0,
      lives: 10,
      end: ({ process, state }, times) => state.welcomed().then(() => (state.record(times), process.exit(1))),
    },
    'of workers that are killed after a checkpoint': {
      interval: 100,
      lives: 10,
      end: async ({ process, state }, times) => {
        await state.welcomed();
        const written = state.checkpointed();
        state.record(times);
        await written;
        process.kill(process.pid, 'SIGKILL');
      },
    },
  };
  for (const [whose, { interval, lives, end }] of Object.entries(ends)) {
    it(`${whose}, ${lives} times without a scrape in between, loses no count`, async t => {
      const cluster = await start(t, interval);
      const live = async (_, i) => {
        const id = await cluster.fork();
        cluster.tellWorker(id, end, i + 1);
        await cluster.gone(id);
      };
      // A few at once, as an application has them.
      for (let done = 0; done < lives; done += 5) {
        await Promise.all(Array.from({ length: 5 }, (_, i) => live(_, done + i)));
      }
      assert.equal(counted(await cluster.scrape()), (lives * (lives + 1)) / 2);
      await until(async () => (await cluster.internals()).retired === lives, 'all are among the retired');
      await cluster.end();
    });
  }
});

describe('a checkpoint', { concurrency: 4 }, () => {
  const changes = {
    'one number': ({ state }) => state.metrics.counter.inc(),
    'one number by its last bit': ({ state }) => state.metrics.gauge.set(1 + Number.EPSILON),
    'one number to no number': ({ state }) => state.metrics.gauge.set(NaN),
    'the sign of zero': ({ state }) => state.metrics.gauge.set(-0),
    'a new label set': ({ state }) => state.metrics.labelled.inc({ route: 'new' }, 0),
    'one number of a label set': ({ state }) => state.metrics.labelled.inc({ route: 'new' }),
    'a number of a label set that is held': ({ state }) => state.metrics.labelled.labels('new').inc(),
    'an exemplar': ({ state }) =>
      state.metrics.labelled.inc({ labels: { route: 'new' }, value: 0, exemplarLabels: { trace: 'a' } }),
    'another exemplar': ({ state }) =>
      state.metrics.labelled.inc({ labels: { route: 'new' }, value: 0, exemplarLabels: { trace: 'b' } }),
    'a removed label set': ({ state }) => state.metrics.labelled.remove({ route: 'new' }),
    'a label set that returns with what it had': ({ state }) => {
      state.metrics.labelled.inc({ route: 'new' }, 2);
    },
    'one label set instead of another': ({ state }) => {
      state.metrics.labelled.remove({ route: 'new' });
      state.metrics.labelled.inc({ route: 'other' }, 2);
    },
    'an observation': ({ state }) => state.metrics.histogram.observe(1.5),
    'an observation of nothing': ({ state }) => state.metrics.histogram.observe(0),
    'an observation of a summary': ({ state }) => state.metrics.summary.observe(3),
    'an observation of nothing in a summary': ({ state }) => state.metrics.summary.observe(0),
    // Its quantiles are others.
    'a summary that begins anew, with the same sum': ({ state }) => {
      state.metrics.summary.reset();
      state.metrics.summary.observe(2);
      state.metrics.summary.observe(1);
    },
    'a reset': ({ state }) => state.metrics.labelled.reset(),
    'a default label': ({ client }) => client.register.setDefaultLabels({ zone: 'a' }),
    'the value of a default label': ({ client }) => client.register.setDefaultLabels({ zone: 'b' }),
    'the name of a default label': ({ client }) => client.register.setDefaultLabels({ area: 'b' }),
    'a new metric': ({ client, state }) => {
      state.late = new client.Gauge({ name: 'late', help: 'h' });
    },
    'a metric that leaves': ({ client }) => client.register.removeSingleMetric('late'),
    'another registry': ({ client, state }) => {
      const registers = [new client.Registry()];
      state.second = new client.Counter({ name: 'second_total', help: 'h', registers });
      client.AggregatorRegistry.setRegistries([client.register, ...registers]);
    },
    'one of many numbers': ({ client, state }) => {
      state.many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['number'] });
      for (let number = 0; number < 20_000; number++) state.many.inc({ number });
    },
    'one of these': ({ state }) => state.many.inc({ number: 19_999 }),
  };

  it('is written when anything has changed, and not while nothing does', async t => {
    const cluster = await start(t, BY_HAND);
    assert.equal(await cluster.inWorker(1, tick), 1, 'the first');
    let last = exitFile(cluster);
    for (const [what, change] of Object.entries(changes)) {
      assert.equal(await cluster.inWorker(1, tick), 0, `nothing has changed before ${what}`);
      assert.deepEqual(exitFile(cluster), last, `nothing has changed before ${what}`);
      await cluster.inWorker(1, change);
      assert.equal(await cluster.inWorker(1, tick), 1, what);
      const now = exitFile(cluster);
      assert.equal(now.file, last.file);
      assert.notEqual(now.inode, last.inode, what);
      last = now;
    }
    // Nothing of the kind, but somebody has to ask for it: a scrape is no change, nor is what changed nothing.
    await cluster.scrape();
    await cluster.inWorker(1, ({ state }) => state.metrics.counter.inc(0));
    assert.equal(await cluster.inWorker(1, tick), 0);
    await cluster.end();
  });

  it('has in it all that has changed', async t => {
    const cluster = await start(t, BY_HAND);
    await cluster.inWorker(1, tick);
    const told = [
      'one number',
      'a new label set',
      'one number of a label set',
      'an observation',
      'an observation of a summary',
      'a default label',
    ];
    for (const what of told) {
      await cluster.inWorker(1, changes[what]);
      await cluster.inWorker(1, tick);
    }
    await kill(cluster, 1);
    const samples = await cluster.scrape();
    assert.equal(samples.get('done_total{zone="a"}'), 1);
    assert.equal(samples.get('requests_total{route="new",zone="a"}'), 1);
    assert.equal(samples.get('took_bucket{le="2",zone="a"}'), 1);
    assert.equal(samples.get('size_sum{zone="a"}'), 3);
    assert.equal(samples.get('size{quantile="0.5",zone="a"}'), 3);
    await cluster.end();
  });

  it('replaces the one before as a whole: under one of its two names there is all of it at any time', async t => {
    const cluster = await start(t, BY_HAND);
    await cluster.inWorker(1, ({ client, state }) => {
      state.many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['number'] });
      for (let number = 0; number < 30_000; number++) state.many.inc({ number });
      state.turn = async () => {
        state.many.inc({ number: 29_999 });
        await state.tick();
      };
    });
    await cluster.inWorker(1, tick);
    const { file } = exitFile(cluster);
    let writing = true;
    const written = cluster
      .inWorker(1, async ({ state }) => {
        for (let i = 0; i < 100; i++) await state.turn();
      })
      .finally(() => (writing = false));
    const inodes = new Set();
    let halves = 0;
    while (writing) {
      // Between the two names the new one has the first only. If it has the second by the time that one looks for the
      // first, what is found there may be the half of its successor.
      const found = readSnapshot(file) ?? readSnapshot(`${file}.part`);
      if (found === undefined || !isWhole(found.bytes)) {
        assert.ok(++halves < 3, 'three times there was nothing whole');
        continue;
      }
      halves = 0;
      inodes.add(found.inode);
      await new Promise(setImmediate);
    }
    await written;
    assert.ok(inodes.size > 1, 'the file was replaced meanwhile');
    await cluster.end();
  });

  it('runs no collect hooks', async t => {
    const cluster = await start(t, BY_HAND);
    const collected = ({ state }) => state.collected;
    for (let i = 0; i < 3; i++) {
      await cluster.inWorker(1, record);
      assert.equal(await cluster.inWorker(1, tick), 1);
    }
    assert.equal(await cluster.inWorker(1, collected), 0);
    assert.equal(counted(await cluster.scrape()), 3);
    assert.equal(await cluster.inWorker(1, collected), 1);
    await cluster.end();
  });

  it('keeps no process alive', async t => {
    const cluster = await start(t, 100);
    await cluster.inWorker(1, record, 3);
    await cluster.inWorker(1, ({ cluster, state, afterwards }) => {
      // Nothing else is left to do then.
      afterwards(() => cluster.worker.disconnect());
      return state.checkpoints;
    });
    const { code, signal } = await cluster.gone(1);
    assert.deepEqual({ code, signal }, { code: 0, signal: null });
    assert.equal(counted(await cluster.scrape()), 3);
    await cluster.end();
  });

  it('tells everything after the thread was killed', async t => {
    const cluster = await start(t, BY_HAND, { workers: 2 });
    await cluster.inWorkers([1, 2], ({ state }) => {
      state.record(5);
      state.metrics.labelled.inc({ route: 'a' }, 5);
    });
    // Twice: only then has the worker been told that its label sets are known.
    for (let i = 0; i < 2; i++) assert.equal(counted(await cluster.scrape()), 10);
    await cluster.inWorker(2, tick);
    // Nobody asks it any more, and nothing changes: the checkpoint alone has to tell.
    await cluster.inWorker(2, ({ state }) => void (state.deaf = true));
    const welcomes = await cluster.inWorker(2, ({ state }) => state.welcomes);
    await cluster.run(({ threads }) => threads.at(-1).terminate());
    await cluster.inWorker(2, welcomed, welcomes + 1);
    assert.equal(await cluster.inWorker(2, tick), 1);
    await kill(cluster, 2);
    const samples = await cluster.scrape();
    assert.equal(counted(samples), 10);
    assert.equal(samples.get('requests_total{route="a"}'), 10);
    await cluster.end();
  });

  it('goes on in a new directory', async t => {
    const cluster = await start(t, BY_HAND);
    await cluster.inWorker(1, record, 3);
    await cluster.inWorker(1, tick);
    assert.equal(counted(await cluster.scrape()), 3);
    fs.rmSync(cluster.spool, { recursive: true });
    await cluster.inWorker(1, record, 4);
    // Its own loss must not be the application's.
    assert.equal(await cluster.inWorker(1, tick), 1);
    assert.equal(counted(await cluster.scrape()), 7);
    await cluster.inWorker(1, welcomed, 2);
    await cluster.inWorker(1, record, 5);
    assert.equal(await cluster.inWorker(1, tick), 1);
    await kill(cluster, 1);
    assert.equal(counted(await cluster.scrape()), 12);
    await cluster.end();
  });
});

describe('without checkpoints', () => {
  it('nothing is written before the end', async t => {
    const cluster = await start(t, 0);
    for (let i = 1; i <= 3; i++) {
      await cluster.inWorker(1, record);
      assert.equal(counted(await cluster.scrape()), i);
      assert.deepEqual(exitFiles(cluster), []);
    }
    assert.equal(await cluster.inWorker(1, ({ state }) => state.checkpoints), 0);
    await cluster.inWorker(1, record, 10);
    await kill(cluster, 1);
    assert.equal(counted(await cluster.scrape()), 3);
    await cluster.end();
  });

  it('it is as without the option', async t => {
    const cluster = await start(t, undefined);
    await cluster.inWorker(1, record);
    assert.equal(counted(await cluster.scrape()), 1);
    assert.deepEqual(exitFiles(cluster), []);
    await cluster.end();
  });
});

describe('checkpointInterval', () => {
  for (const value of [-1, NaN, 1, 99.9, '1000', null, true, 1000n, [1000], {}]) {
    const shown = typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? String(value));
    it(`of ${Number.isNaN(value) ? 'NaN' : shown} is refused`, () => {
      assert.throws(() => new client.AggregatorRegistry(undefined, { checkpointInterval: value }), TypeError);
    });
  }

  it('of 0 and of 100 are taken', async () => {
    for (const checkpointInterval of [0, 100]) {
      const registry = new client.AggregatorRegistry(undefined, { checkpointInterval });
      await registry.close();
    }
  });
});

describe('a fingerprint', () => {
  /** What a program may do between two checkpoints; each changes something, or nothing. */
  const LABELS = fc.record({ a: fc.constantFrom('x', 'y', 'z'), b: fc.constantFrom('1', '2') });
  const NUMBER = fc.oneof(fc.integer({ min: 0, max: 4 }), fc.double({ min: 0, max: 1e300, noNaN: true }));
  const TEXT = fc.constantFrom('1', '2', '', '\n', '=', 'a=1', '1\nb=2', '2\na=1');
  const OPERATIONS = fc.oneof(
    fc.record({ what: fc.constant('inc'), labels: LABELS, value: NUMBER }),
    fc.record({ what: fc.constant('set'), labels: LABELS, value: NUMBER }),
    fc.record({ what: fc.constant('observe'), labels: LABELS, value: NUMBER }),
    fc.record({ what: fc.constant('summarize'), labels: LABELS, value: NUMBER }),
    fc.record({ what: fc.constant('exemplar'), labels: LABELS, value: NUMBER, trace: TEXT }),
    fc.record({
      what: fc.constant('remove'),
      labels: LABELS,
      metric: fc.constantFrom('c', 'g', 'h', 's'),
    }),
    fc.record({ what: fc.constant('reset'), metric: fc.constantFrom('c', 'g', 'h', 's') }),
    fc.record({
      what: fc.constant('defaults'),
      defaults: fc.dictionary(fc.constantFrom('a', 'b', 'd'), TEXT),
    }),
    fc.record({ what: fc.constant('renew'), metric: fc.constantFrom('c', 'g', 'h', 's') }),
  );

  const MAKE = {
    c: options => new client.Counter({ ...options, name: 'c_total', enableExemplars: true }),
    g: options => new client.Gauge({ ...options, name: 'g' }),
    h: options =>
      new client.Histogram({ ...options, name: 'h', buckets: [1, 2, 1e200], enableExemplars: true }),
    s: options => new client.Summary({ ...options, name: 's', percentiles: [0.1, 0.9] }),
  };

  class Program {
    registry = new client.Registry(client.openMetricsContentType);
    #metrics = {};

    constructor() {
      for (const name of Object.keys(MAKE)) this.#make(name);
    }

    #make(name) {
      const labelNames = ['a', 'b'];
      this.#metrics[name] = MAKE[name]({ help: 'h', labelNames, registers: [this.registry] });
    }

    perform({ what, labels, value, metric, trace, defaults }) {
      const { c, g, h, s } = this.#metrics;
      switch (what) {
        case 'inc':
          return c.inc(labels, value);
        case 'set':
          return g.set(labels, value);
        case 'observe':
          return h.observe(labels, value);
        case 'summarize':
          return s.observe(labels, value);
        case 'exemplar':
          h.observe({ labels, value, exemplarLabels: { trace } });
          return c.inc({ labels, value, exemplarLabels: { trace } });
        case 'remove':
          return this.#metrics[metric].remove(labels);
        case 'reset':
          return this.#metrics[metric].reset();
        case 'defaults':
          return this.registry.setDefaultLabels(defaults);
        default:
          this.registry.removeSingleMetric(this.#metrics[metric].name);
          return this.#make(metric);
      }
    }

    /** All that a scraper could see, without the time of exemplars. */
    async text() {
      return (await this.registry.metrics()).replace(/(# \{.*\} \S+) \S+$/gm, '$1');
    }
  }

  it('notices any change that a scraper could see, and nothing else while nothing is done', async () => {
    const turns = fc.array(fc.array(OPERATIONS, { minLength: 1, maxLength: 6 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(turns, async turns => {
        const program = new Program();
        const fingerprint = new ChangeDetector();
        assert.equal(await fingerprint.hasChanged([program.registry]), true);
        let before = await program.text();
        for (const operations of turns) {
          for (const operation of operations) program.perform(operation);
          const now = await program.text();
          const noticed = await fingerprint.hasChanged([program.registry]);
          if (now !== before) assert.ok(noticed, `${before}\nbecame\n${now}`);
          assert.equal(await fingerprint.hasChanged([program.registry]), false, 'nothing was done');
          before = now;
        }
      }),
      { numRuns: 60 },
    );
  });

  it('tells numbers apart that are small, round, or the same in other places', async () => {
    const registry = new client.Registry();
    const gauge = new client.Gauge({ name: 'g', help: 'h', labelNames: ['place'], registers: [registry] });
    const fingerprint = new ChangeDetector();
    const values = [0, 1, 2, 3, 4, 8, 0.5, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** -1074, -1, -0, Infinity];
    for (const first of values) {
      for (const second of values) {
        for (const third of values) {
          gauge.set({ place: 0 }, first);
          gauge.set({ place: 1 }, second);
          gauge.set({ place: 2 }, third);
          assert.ok(await fingerprint.hasChanged([registry]), `${[first, second, third]}`);
        }
      }
    }
  });

  it('tells a default label that looks like two from two', async () => {
    const registry = new client.Registry();
    const fingerprint = new ChangeDetector();
    registry.setDefaultLabels({ a: '1\nb=2' });
    await fingerprint.hasChanged([registry]);
    registry.setDefaultLabels({ a: '1', b: '2' });
    assert.equal(await fingerprint.hasChanged([registry]), true);
  });

  it('tells a summary from one that has the same sum and other quantiles', async () => {
    const registry = new client.Registry();
    const summary = new client.Summary({ name: 's', help: 'h', registers: [registry], percentiles: [0.9] });
    const fingerprint = new ChangeDetector();
    for (const value of [1, 5]) summary.observe(value);
    await fingerprint.hasChanged([registry]);
    summary.reset();
    for (const value of [3, 3]) summary.observe(value);
    assert.equal(await fingerprint.hasChanged([registry]), true);
  });

  it('says yes once after it was told to forget', async () => {
    const registry = new client.Registry();
    new client.Counter({ name: 'c', help: 'h', registers: [registry] });
    const fingerprint = new ChangeDetector();
    assert.equal(await fingerprint.hasChanged([registry]), true);
    assert.equal(await fingerprint.hasChanged([registry]), false);
    fingerprint.forget();
    assert.equal(await fingerprint.hasChanged([registry]), true);
    assert.equal(await fingerprint.hasChanged([registry]), false);
  });

  it('leaves the loop to others while it looks at many numbers', async () => {
    const registry = new client.Registry();
    const options = { help: 'h', labelNames: ['number'], registers: [registry] };
    for (let metric = 0; metric < 10; metric++) {
      const counter = new client.Counter({ ...options, name: `c${metric}_total` });
      for (let number = 0; number < 20_000; number++) counter.inc({ number });
    }
    let turns = 0;
    let looking = true;
    const turn = () => looking && (turns++, setImmediate(turn));
    setImmediate(turn);
    await new ChangeDetector().hasChanged([registry]);
    looking = false;
    assert.ok(turns > 1, `${turns} turns`);
  });
});

/** A file of the spool in memory of its own; undefined where there is none. */
function readSnapshot(file) {
  let descriptor;
  try {
    descriptor = fs.openSync(file);
  } catch (error) {
    assert.equal(error.code, 'ENOENT');
    return undefined;
  }
  try {
    const { size, ino } = fs.fstatSync(descriptor);
    const bytes = Buffer.allocUnsafeSlow(size);
    return { bytes: bytes.subarray(0, fs.readSync(descriptor, bytes)), inode: ino };
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Whether a snapshot that a killed worker may have left can be applied. */
function isWhole(bytes) {
  try {
    new ClusterStore().apply(1, bytes);
    return true;
  } catch (error) {
    assert.equal(typeof error.code, 'string', error.stack);
    return false;
  }
}
