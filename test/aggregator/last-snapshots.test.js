'use strict';

// The snapshots of living workers that the aggregator thread retains: from them, the next thread shows the
// same text.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, describe, it } = require('node:test');
const fc = require('../fixtures/seeded-fast-check');
const client = require('../..');
const { LastSnapshots } = require('../../lib/aggregator/last-snapshots');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { Spool } = require('../../lib/spool/spool');
const { dictionaryName, lastName, snapshotName } = require('../../lib/spool/file-names');
const { makeWorker, bytesOf, copyOf, textOf } = require('../fixtures/unit-scrape');

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

/** One worker's metrics, and the aggregator's state of that worker. */
class ScrapedWorker {
  id = nextId++;
  program = makeWorker();
  requestId = 0;
  #metrics = new Map();
  #value = 1;

  constructor() {
    this.startThread();
  }

  /** Starts a new thread, which has only what the earlier one has retained. */
  startThread() {
    this.store = new ClusterStore();
    this.last = new LastSnapshots(spool);
    for (const snapshot of this.last.read(this.id)) this.store.apply(this.id, copyOf(snapshot));
  }

  /** Creates a metric, and replaces an existing one of that name. */
  define(name, type, labelNames, help) {
    const { registry } = this.program;
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

  /** Adds and removes more label sets than the metric has otherwise, so that its table is compacted. */
  async churn(name, rounds = 1) {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < 1100; i++) this.record(name, 1000 + i);
      for (let i = 0; i < 1100; i++) this.remove(name, 1000 + i);
      await this.program.source.prepare(1000);
    }
  }

  /** Creates and drops metrics until the worker's journal begins a new epoch. */
  renewJournal() {
    const { registry } = this.program;
    for (let i = 0; i < 80; i++) new client.Gauge({ name: `gone_${i}`, help: 'h', registers: [registry] });
    this.scrape();
    for (let i = 0; i < 80; i++) registry.removeSingleMetric(`gone_${i}`);
  }

  /** Requests what the store does not have, then reads and retains the file, as a scrape does. */
  scrape() {
    const snapshot = bytesOf(
      this.program.source.capture(this.id, this.store.worker(this.id)?.journalPosition, { isLast: true }),
    );
    const file = snapshotName(this.id, ++this.requestId);
    spool.writeAtomically(file, [snapshot]);
    this.store.apply(this.id, copyOf(snapshot));
    if (this.last.store(this.id, snapshot, file)) this.store.worker(this.id)?.requestFullDictionary();
  }

  /** Applies an answer over IPC, as if no file could be written. */
  scrapeWithoutFile() {
    const { source } = this.program;
    this.store.apply(
      this.id,
      bytesOf(source.capture(this.id, this.store.worker(this.id)?.journalPosition, { isLast: true })),
    );
  }

  /** The text of the next thread. */
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
        return this.program.registry.setDefaultLabels([{}, { zone: 'z' }, { x: 'd' }][metric]);
      case 'renewJournal':
        this.renewJournal();
        break;
      case 'startThread':
        this.startThread();
        break;
      case 'invalidate':
        this.store.worker(this.id)?.invalidateDictionary();
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
  operation(1, 'invalidate'),
];

describe('the retained snapshots of a worker', () => {
  it('the retained snapshots of a worker give the next thread the same text, after any history', async () => {
    const history = fc.array(fc.oneof(...OPERATIONS), { minLength: 10, maxLength: 60, size: 'max' });
    await fc.assert(
      fc.asyncProperty(history, async steps => {
        const worker = new ScrapedWorker();
        worker.define('a_total', 'counter', ['x'], 'help');
        for (const step of steps) await worker.perform(step);
        worker.scrape();
        worker.check();
        spool.unlinkAllOf(worker.id);
      }),
      { numRuns: 15, includeErrorInReport: true },
    );
  });

  it('the retained snapshots of a worker are two files, however many snapshots there were', () => {
    const worker = new ScrapedWorker();
    worker.define('a_total', 'counter', ['x'], 'help');
    for (let number = 0; number < 5; number++) {
      worker.record('a_total', number);
      worker.scrape();
    }
    const files = fs.readdirSync(spool.directory).filter(name => name.startsWith(`w${worker.id}-`));
    assert.deepStrictEqual(files.sort(), [dictionaryName(worker.id), lastName(worker.id)]);
  });

  it('the dictionary of retained snapshots is not written again if only numbers change', () => {
    const worker = new ScrapedWorker();
    worker.define('a_total', 'counter', ['x'], 'help');
    worker.record('a_total', 1);
    worker.scrape();
    const bytes = worker.logBytes;
    for (let i = 0; i < 5; i++) {
      worker.record('a_total', 1);
      worker.scrape();
      worker.check();
    }
    assert.strictEqual(worker.logBytes, bytes);
  });

  it('the dictionary of retained snapshots has a bounded length if a table is compacted again and again', async () => {
    const worker = new ScrapedWorker();
    worker.define('b', 'gauge', ['x', 'y'], 'help');
    worker.define('a_total', 'counter', ['x'], 'help');
    worker.record('a_total', 1);
    worker.scrape();
    let [written, longest, before] = [0, 0, 0];
    for (let i = 0; i < 90; i++) {
      for (let number = 0; number < 1100; number++) worker.record('b', 1000 + number);
      worker.scrape();
      for (let number = 0; number < 1100; number++) worker.remove('b', 1000 + number);
      await worker.program.source.prepare(1000);
      worker.scrape();
      const { logBytes } = worker;
      written += Math.max(logBytes - before, 0);
      before = logBytes;
      longest = Math.max(longest, logBytes);
    }
    worker.check();
    assert.ok(written > 2 * MEGABYTE, `only ${written} bytes were written, too few to need a bound`);
    assert.ok(longest < 1.5 * MEGABYTE, `${longest} bytes`);
  });

  it('the dictionary of retained snapshots is shorter after the worker has sent its full dictionary again', async () => {
    const worker = new ScrapedWorker();
    worker.define('b', 'gauge', ['x'], 'help');
    for (let number = 0; number < 3; number++) worker.record('b', number);
    worker.scrape();
    await worker.churn('b', 2);
    for (let number = 5000; number < 6000; number++) worker.record('b', number);
    worker.scrape();
    const long = worker.logBytes;
    for (let number = 5000; number < 6000; number++) worker.remove('b', number);
    await worker.program.source.prepare(1000);
    worker.store.worker(worker.id)?.invalidateDictionary();
    worker.scrape();
    assert.ok(worker.logBytes < long, `${worker.logBytes} bytes of ${long}`);
    worker.check();
  });

  it('the dictionary of retained snapshots is read up to its last complete piece if the thread was lost while writing it', () => {
    const worker = new ScrapedWorker();
    worker.define('a_total', 'counter', ['x'], 'help');
    worker.record('a_total', 1);
    worker.scrape();
    const text = textOf(worker.store);
    worker.record('a_total', 2);
    const whole = worker.logBytes;
    worker.scrape();
    const log = path.join(spool.directory, dictionaryName(worker.id));
    for (const missing of [1, 100]) {
      fs.truncateSync(log, worker.logBytes - missing);
      const pieces = new LastSnapshots(spool).read(worker.id).slice(0, -1);
      assert.strictEqual(
        pieces.reduce((sum, piece) => sum + piece.length, 0),
        whole,
      );
    }
    assert.notStrictEqual(textOf(worker.store), text);
  });

  it('the retained snapshots of a worker are written again from the start after an answer over IPC', () => {
    const worker = new ScrapedWorker();
    worker.define('a_total', 'counter', ['x'], 'help');
    worker.record('a_total', 1);
    worker.scrape();
    worker.record('a_total', 2);
    worker.scrapeWithoutFile();
    for (const number of [3, 4]) {
      worker.record('a_total', number);
      worker.scrape();
    }
    worker.check();
  });

  it('the retained snapshots of a worker are written again from the start after a write error', t => {
    const worker = new ScrapedWorker();
    worker.define('a_total', 'counter', ['x'], 'help');
    worker.record('a_total', 1);
    worker.scrape();
    t.mock.method(spool, 'append', () => {
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    });
    worker.record('a_total', 2);
    worker.scrape();
    t.mock.restoreAll();
    for (const number of [3, 4]) {
      worker.record('a_total', number);
      worker.scrape();
    }
    worker.check();
  });

  it('retained snapshots give the text of the last scrape or the one before it, wherever the thread was lost while writing', async t => {
    const worker = new ScrapedWorker();
    worker.define('a_total', 'counter', ['x'], 'help');
    for (let number = 1; number <= 4; number++) {
      if (number === 4) worker.store.worker(worker.id)?.invalidateDictionary();
      const [before, states] = [textOf(worker.store), []];
      for (const method of ['append', 'writeAtomically', 'rename']) {
        const { [method]: original } = spool;
        t.mock.method(spool, method, (name, ...rest) => {
          states.push(filesOf(worker.id));
          if (method === 'append') {
            const log = Buffer.concat([states[0].get(name), rest[0].subarray(0, 200)]);
            states.push(new Map([...states[0], [name, log]]));
          }
          if (method === 'rename') {
            // The old file is removed before the new one gets its name.
            const between = filesOf(worker.id);
            between.delete(rest[0]);
            states.push(between);
          }
          original.call(spool, name, ...rest);
          states.push(filesOf(worker.id));
        });
      }
      worker.record('a_total', number);
      worker.scrape();
      t.mock.restoreAll();
      const texts = [before, textOf(worker.store)];
      assert.ok(states.length >= 4);
      for (const state of states)
        assert.ok(texts.includes(await textAfterLoss(worker.id, state)), `scrape ${number}`);
    }
  });
});

/** The worker's files in the spool, by name. */
function filesOf(id) {
  const names = fs.readdirSync(spool.directory).filter(name => name.startsWith(`w${id}-`));
  return new Map(names.map(name => [name, fs.readFileSync(path.join(spool.directory, name))]));
}

/**
 * The text of the next thread if it finds these files: retained snapshots, and perhaps an answer that is not
 * yet retained.
 */
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
