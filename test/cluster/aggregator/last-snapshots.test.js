'use strict';

// What the aggregator thread keeps of each living worker in the spool: a thread that comes after it shows the same text.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');
const fc = require('../../fixtures/seeded-fast-check');
const client = require('../../..');
const { LastSnapshots } = require('../../../lib/cluster/aggregator/last-snapshots');
const { ClusterStore } = require('../../../lib/cluster/store/cluster-store');
const { Spool } = require('../../../lib/cluster/spool/spool');
const { dictionaryName, lastName, snapshotName } = require('../../../lib/cluster/wire/file-names');
const { makeWorker, bytesOf, copyOf, textOf } = require('../../fixtures/unit-scrape');

const TYPES = {
  counter: client.Counter,
  gauge: client.Gauge,
  histogram: client.Histogram,
  summary: client.Summary,
};
const NAMES = ['a_total', 'b', 'c'];
const LABEL_NAMES = [['x'], ['x', 'y'], ['y'], []];
const MEGABYTE = 1 << 20;

/** @type {Spool} */
let spool;
let place;
let nextId = 1;
before(async () => {
  place = fs.mkdtempSync(path.join(os.tmpdir(), 'last-snapshots-test-'));
  spool = await Spool.open({ directory: place, fallbacks: [], lock: false });
});
after(async () => {
  await spool.close();
  fs.rmSync(place, { recursive: true, force: true });
});

/** One worker's metrics, and the primary's side of it as a thread has it. */
class Life {
  id = nextId++;
  worker = makeWorker();
  requestId = 0;
  #metrics = new Map();
  #value = 1;

  constructor() {
    this.startThread();
  }

  /** A thread that knows nothing, but what the one before has kept. */
  startThread() {
    this.store = new ClusterStore();
    this.last = new LastSnapshots(spool);
    for (const snapshot of this.last.read(this.id)) this.store.apply(this.id, copyOf(snapshot));
  }

  /** Makes a metric; in place of another one of that name, where there is one. */
  define(name, type, labelNames, help) {
    const { registry } = this.worker;
    if (registry.getSingleMetric(name) !== undefined) registry.removeSingleMetric(name);
    const metric = new TYPES[type]({ name, help, labelNames, registers: [registry] });
    this.#metrics.set(name, { metric, labelNames });
  }

  record(name, number) {
    const found = this.#metrics.get(name);
    if (found === undefined) return;
    const { metric, labelNames } = found;
    const labels = Object.fromEntries(labelNames.map(label => [label, `${label} ${number}`]));
    const value = this.#value++;
    if (metric.observe !== undefined) metric.observe(labels, value);
    else metric.inc(labels, value);
  }

  remove(name, number) {
    const { metric, labelNames } = this.#metrics.get(name) ?? {};
    metric?.remove(...labelNames.map(label => `${label} ${number}`));
  }

  reset(name) {
    this.#metrics.get(name)?.metric.reset();
  }

  /** Makes label sets that all go again, and more than stay: its table is compacted. */
  async churn(name, rounds = 1) {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < 1100; i++) this.record(name, 1000 + i);
      for (let i = 0; i < 1100; i++) this.remove(name, 1000 + i);
      await this.worker.source.prepare(1000);
    }
  }

  /** Makes and drops metrics until the worker's journal begins anew. */
  renewJournal() {
    const { registry } = this.worker;
    for (let i = 0; i < 80; i++) new client.Gauge({ name: `gone_${i}`, help: 'h', registers: [registry] });
    this.scrape();
    for (let i = 0; i < 80; i++) registry.removeSingleMetric(`gone_${i}`);
  }

  /** What a scrape does: asks for what is not known, reads the file and keeps it. */
  scrape() {
    const snapshot = bytesOf(
      this.worker.source.capture(this.id, this.store.journalPositionOf(this.id), { isLast: true }),
    );
    const file = snapshotName(this.id, ++this.requestId);
    spool.writeAtomically(file, [snapshot]);
    this.store.apply(this.id, copyOf(snapshot));
    if (this.last.store(this.id, file, snapshot)) this.store.requestFullDictionary(this.id);
  }

  /** A worker's answer that came over IPC, since no file could be written. */
  scrapeWithoutFile() {
    const { source } = this.worker;
    this.store.apply(
      this.id,
      bytesOf(source.capture(this.id, this.store.journalPositionOf(this.id), { isLast: true })),
    );
  }

  /** What a thread shows that comes after this one. */
  textOfNext() {
    const next = new ClusterStore();
    for (const snapshot of new LastSnapshots(spool).read(this.id)) next.apply(this.id, copyOf(snapshot));
    return textOf(next);
  }

  check() {
    assert.strictEqual(this.textOfNext(), textOf(this.store));
  }

  get logBytes() {
    return fs.statSync(path.join(spool.directory, dictionaryName(this.id))).size;
  }

  async perform([name, metric = 0, number = 0, other = 0]) {
    switch (name) {
      case 'define': {
        const [type, labelNames] = [Object.keys(TYPES)[number % 4], LABEL_NAMES[other % 4]];
        return this.define(NAMES[metric], type, labelNames, `help ${other}`);
      }
      case 'record':
        return this.record(NAMES[metric], number);
      case 'remove':
        return this.remove(NAMES[metric], number);
      case 'reset':
        return this.reset(NAMES[metric]);
      case 'churn':
        return this.churn(NAMES[metric]);
      case 'defaults':
        return this.worker.registry.setDefaultLabels([{}, { zone: 'z' }, { x: 'd' }][metric]);
      case 'renewJournal':
        this.renewJournal();
        break;
      case 'startThread':
        this.startThread();
        break;
      case 'distrust':
        this.store.invalidateDictionary(this.id);
        break;
    }
    this.scrape();
    this.check();
  }
}

function operation(weight, name, ...ranges) {
  return { weight, arbitrary: fc.tuple(fc.constant(name), ...ranges.map(max => fc.nat({ max }))) };
}

const OPERATIONS = [
  operation(12, 'scrape'),
  operation(20, 'record', 2, 9),
  operation(5, 'remove', 2, 9),
  operation(6, 'define', 2, 3, 3),
  operation(1, 'reset', 2),
  operation(1, 'churn', 2),
  operation(1, 'defaults', 2),
  operation(1, 'renewJournal'),
  operation(3, 'startThread'),
  operation(1, 'distrust'),
];

describe('what is kept of a worker', () => {
  it('has the next thread show the same text, after any history', async () => {
    const history = fc.array(fc.oneof(...OPERATIONS), { minLength: 10, maxLength: 60, size: 'max' });
    await fc.assert(
      fc.asyncProperty(history, async steps => {
        const life = new Life();
        life.define('a_total', 'counter', ['x'], 'help');
        for (const step of steps) await life.perform(step);
        life.scrape();
        life.check();
        spool.unlinkAllOf(life.id);
      }),
      { numRuns: 25, includeErrorInReport: true },
    );
  });

  it('is two files, whatever it was told', () => {
    const life = new Life();
    life.define('a_total', 'counter', ['x'], 'help');
    for (let number = 0; number < 5; number++) {
      life.record('a_total', number);
      life.scrape();
    }
    const files = fs.readdirSync(spool.directory).filter(name => name.startsWith(`w${life.id}-`));
    assert.deepStrictEqual(files.sort(), [dictionaryName(life.id), lastName(life.id)]);
  });

  it('is not written again where nothing is new but numbers', () => {
    const life = new Life();
    life.define('a_total', 'counter', ['x'], 'help');
    life.record('a_total', 1);
    life.scrape();
    const bytes = life.logBytes;
    for (let i = 0; i < 5; i++) {
      life.record('a_total', 1);
      life.scrape();
      life.check();
    }
    assert.strictEqual(life.logBytes, bytes);
  });

  it('does not grow without end where a table is compacted again and again', async () => {
    const life = new Life();
    life.define('b', 'gauge', ['x', 'y'], 'help');
    life.define('a_total', 'counter', ['x'], 'help');
    life.record('a_total', 1);
    life.scrape();
    let [written, longest, before] = [0, 0, 0];
    for (let i = 0; i < 90; i++) {
      for (let number = 0; number < 1100; number++) life.record('b', 1000 + number);
      life.scrape();
      for (let number = 0; number < 1100; number++) life.remove('b', 1000 + number);
      await life.worker.source.prepare(1000);
      life.scrape();
      const { logBytes } = life;
      written += Math.max(logBytes - before, 0);
      before = logBytes;
      longest = Math.max(longest, logBytes);
    }
    life.check();
    assert.ok(written > 2 * MEGABYTE, `only ${written} bytes were told: too few to need a bound`);
    assert.ok(longest < 1.5 * MEGABYTE, `${longest} bytes`);
  });

  it('is as long as the worker needs after it was told anew', async () => {
    const life = new Life();
    life.define('b', 'gauge', ['x'], 'help');
    for (let number = 0; number < 3; number++) life.record('b', number);
    life.scrape();
    await life.churn('b', 2);
    for (let number = 5000; number < 6000; number++) life.record('b', number);
    life.scrape();
    const long = life.logBytes;
    for (let number = 5000; number < 6000; number++) life.remove('b', number);
    await life.worker.source.prepare(1000);
    life.store.invalidateDictionary(life.id);
    life.scrape();
    assert.ok(life.logBytes < long, `${life.logBytes} bytes of ${long}`);
    life.check();
  });

  it('is whole up to its last piece, where the thread was lost in the middle of writing it', () => {
    const life = new Life();
    life.define('a_total', 'counter', ['x'], 'help');
    life.record('a_total', 1);
    life.scrape();
    const text = textOf(life.store);
    life.record('a_total', 2);
    const whole = life.logBytes;
    life.scrape();
    const log = path.join(spool.directory, dictionaryName(life.id));
    for (const missing of [1, 100]) {
      fs.truncateSync(log, life.logBytes - missing);
      const pieces = new LastSnapshots(spool).read(life.id).slice(0, -1);
      assert.strictEqual(
        pieces.reduce((sum, piece) => sum + piece.length, 0),
        whole,
      );
    }
    assert.notStrictEqual(textOf(life.store), text);
  });

  it('begins anew after an answer that came without a file', () => {
    const life = new Life();
    life.define('a_total', 'counter', ['x'], 'help');
    life.record('a_total', 1);
    life.scrape();
    life.record('a_total', 2);
    life.scrapeWithoutFile();
    for (const number of [3, 4]) {
      life.record('a_total', number);
      life.scrape();
    }
    life.check();
  });

  it('begins anew where it could not be written', t => {
    const life = new Life();
    life.define('a_total', 'counter', ['x'], 'help');
    life.record('a_total', 1);
    life.scrape();
    t.mock.method(spool, 'append', () => {
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    });
    life.record('a_total', 2);
    life.scrape();
    t.mock.restoreAll();
    for (const number of [3, 4]) {
      life.record('a_total', number);
      life.scrape();
    }
    life.check();
  });

  it('is what was scraped last or before, wherever in the writing of it the thread was lost', async t => {
    const life = new Life();
    life.define('a_total', 'counter', ['x'], 'help');
    for (let number = 1; number <= 4; number++) {
      if (number === 4) life.store.invalidateDictionary(life.id);
      const [before, states] = [textOf(life.store), []];
      for (const method of ['append', 'writeAtomically', 'rename']) {
        const { [method]: original } = spool;
        t.mock.method(spool, method, (name, ...rest) => {
          states.push(filesOf(life.id));
          if (method === 'append') {
            const log = Buffer.concat([states[0].get(name), rest[0].subarray(0, 200)]);
            states.push(new Map([...states[0], [name, log]]));
          }
          if (method === 'rename') {
            // The old file goes before the new one takes its name.
            const between = filesOf(life.id);
            between.delete(rest[0]);
            states.push(between);
          }
          original.call(spool, name, ...rest);
          states.push(filesOf(life.id));
        });
      }
      life.record('a_total', number);
      life.scrape();
      t.mock.restoreAll();
      const texts = [before, textOf(life.store)];
      assert.ok(states.length >= 4);
      for (const state of states)
        assert.ok(texts.includes(await textAfterLoss(life.id, state)), `scrape ${number}`);
    }
  });
});

/** All that is in the spool of a worker. */
function filesOf(id) {
  const names = fs.readdirSync(spool.directory).filter(name => name.startsWith(`w${id}-`));
  return new Map(names.map(name => [name, fs.readFileSync(path.join(spool.directory, name))]));
}

/** What the next thread shows that finds these files: what was kept, and an answer that was not. */
async function textAfterLoss(id, files) {
  const found = await Spool.open({ directory: place, fallbacks: [], lock: false });
  for (const [name, bytes] of files) found.writeAtomically(name, [bytes]);
  const store = new ClusterStore();
  const answers = found.filesOfWorker(id).map(name => found.read(name));
  for (const snapshot of [...new LastSnapshots(found).read(id), ...answers]) {
    try {
      store.apply(id, copyOf(snapshot));
    } catch (error) {
      assert.ok(['sequence', 'dictionary-start'].includes(error.code), error.stack);
    }
  }
  await found.close();
  return textOf(store);
}
