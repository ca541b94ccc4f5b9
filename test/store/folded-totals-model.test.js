'use strict';

// Compares random histories of rows that end, workers that die and threads that are lost with a model that
// stores every value, and that no thread is lost for.

const { test } = require('node:test');
const assert = require('node:assert');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { METRIC_TYPES } = require('../fixtures/metric-types');
const { EndingWorker } = require('../fixtures/ending-worker');
const { randomFrom } = require('../../benchmarks/shared/random');
const { effort } = require('../fixtures/seeded-fast-check');
const { bytesOf, copyOf, textOf, samplesOf, seriesKey } = require('../fixtures/unit-scrape');

const START = 1_700_000_000_000;
const MINUTE = 60_000;
const MAX_AGE = 60 * MINUTE;
const MAX_IDLE = 5 * MINUTE;
const LABELS = ['x', 'y', 'z'];
const STEPS = 120;

/** What a page has to show, by label: lists of values. */
class Books {
  /** @type {Map<number, Map<string, number[]>>} by worker that lives: what its last columns had */
  live = new Map();
  /** @type {Map<string, {values: number[], seen: number}>} of dead workers */
  dead = new Map();
  /** @type {Map<string, number[]>} of rows that have ended */
  folded = new Map();
  #taken = new Map();
  /** Labels that programs have removed since the last page or save. */
  #removed = new Set();

  constructor(maxIdle) {
    this.maxIdle = maxIdle;
  }

  #fold(label, values) {
    this.folded.set(label, [...(this.folded.get(label) ?? []), ...values]);
  }

  #foldDead(label) {
    this.#fold(label, this.dead.get(label)?.values ?? []);
    this.dead.delete(label);
  }

  deliver(id, { live, ended }) {
    this.live.set(id, live);
    for (const { batch, label, values, isRemoved } of ended) {
      if (batch <= (this.#taken.get(id) ?? 0)) continue;
      this.#taken.set(id, batch);
      if (isRemoved) this.#removed.add(label);
      this.#fold(label, values);
    }
  }

  retire(id, now) {
    for (const [label, values] of this.live.get(id) ?? [])
      this.dead.set(label, { values: [...(this.dead.get(label)?.values ?? []), ...values], seen: now });
    this.live.delete(id);
  }

  /** What has been removed takes with it what workers had counted that are dead by now. */
  settle() {
    for (const label of this.#removed) this.#foldDead(label);
    this.#removed.clear();
  }

  /**
   * Ages count from now on, but of idle series only those of workers that are retired again.
   *
   * @param {number} now
   * @param {Set<string>} again labels of these workers
   */
  restore(now, again) {
    for (const [label, entry] of this.dead) if (this.maxIdle === 0 || again.has(label)) entry.seen = now;
  }

  page(now, isComplete) {
    this.settle();
    const lists = new Map();
    for (const [, live] of [...this.live].sort(([a], [b]) => a - b))
      for (const [label, values] of live) lists.set(label, [...(lists.get(label) ?? []), ...values]);
    for (const [label, entry] of this.dead) {
      if (this.maxIdle === 0 && lists.has(label)) entry.seen = now;
      if (this.maxIdle > 0 && entry.seen < now - this.maxIdle) this.#foldDead(label);
    }
    for (const [label, { values, seen }] of this.dead) {
      lists.set(label, [...(lists.get(label) ?? []), ...values]);
      // This page is the last one to show it.
      if (seen < now - MAX_AGE) this.dead.delete(label);
    }
    for (const [label, values] of this.folded) {
      if (lists.has(label)) lists.get(label).push(...values);
      else if (isComplete) this.folded.delete(label);
    }
    return lists;
  }
}

class History {
  now = START;
  #workers = new Map();
  #nextId = 1;
  #value = 1;
  #log = [];
  /** @type {Map<number, {bytes: Buffer, captured: object}>} the last columns of each worker */
  #files = new Map();
  /** Dead workers that no saved totals include. */
  #unsaved = new Set();
  /** Workers that a page may have shown, and those of which this thread has something. */
  #shown = new Set();
  #known = new Set();
  #saved = undefined;
  #store = this.#newStore();

  constructor(seed, type, maxIdle) {
    this.random = randomFrom(seed);
    this.name = `${type.name}, ${maxIdle} idle, seed ${seed}`;
    this.type = type;
    this.maxIdle = maxIdle;
    this.books = new Books(maxIdle);
    for (let i = 0; i < 2; i++) this.#join();
  }

  #newStore() {
    return new ClusterStore({ now: () => this.now, retiredMaxAge: MAX_AGE });
  }

  #pick(list) {
    return list[Math.floor(this.random() * list.length)];
  }

  #join() {
    const worker = new EndingWorker(this.#nextId++, { type: this.type, maxIdleSeconds: this.maxIdle / 1000 });
    this.#workers.set(worker.id, worker);
  }

  #capture(worker) {
    const captured = {
      live: new Map(Array.from(worker.values, ([label, values]) => [label, [...values]])),
      ended: worker.offered,
    };
    this.#files.set(worker.id, {
      bytes: bytesOf(worker.source.captureWithLog(worker.id, undefined, { isLast: true })),
      captured,
    });
  }

  #deliver(id) {
    const { bytes, captured } = this.#files.get(id);
    try {
      this.#store.apply(id, copyOf(bytes));
    } catch (error) {
      // Nothing has been captured since.
      assert.strictEqual(error.code, 'sequence');
    }
    this.books.deliver(id, captured);
    this.#shown.add(id);
    this.#known.add(id);
  }

  #save() {
    this.books.settle();
    this.#saved = copyOf(this.#store.encodeRetired());
    this.#store.noteSaved();
    for (const id of this.#unsaved) this.#files.delete(id);
    this.#unsaved.clear();
  }

  #retire(id) {
    this.#store.retire(id);
    this.#shown.delete(id);
    this.#known.delete(id);
  }

  #check() {
    const isComplete = [...this.#shown].every(id => this.#known.has(id));
    const shown = [...this.#shown];
    const samples = samplesOf(textOf({ merge: custom => this.#store.merge(custom, shown) }));
    const lists = this.books.page(this.now, isComplete);
    // A page that lacks a worker is not delivered.
    if (isComplete) {
      const expected = [...lists].flatMap(([a, values]) =>
        this.type
          .samples(values)
          .map(([suffix, label, value]) => [seriesKey(`m${suffix}`, { a, ...label }), value]),
      );
      assert.deepStrictEqual(new Map([...samples].sort()), new Map(expected.sort()));
    }
    if (this.#store.isUnsaved) this.#save();
  }

  #perform(step) {
    const worker = this.#pick([...this.#workers.values()]);
    const label = this.#pick(LABELS);
    switch (step) {
      case 'join':
        if (this.#workers.size < 4) this.#join();
        return;
      case 'advance':
        return void (this.now += Math.floor(this.random() * 7) * MINUTE);
      case 'page':
        for (const id of this.#workers.keys()) {
          if (this.random() < 0.2) continue; // it hangs
          this.#capture(this.#workers.get(id));
          this.#deliver(id);
        }
        return this.#check();
      case 'tell':
        for (const [id, batch] of this.#store.savedBatches) this.#workers.get(id)?.acknowledge(batch);
        return;
      case 'save':
        return this.#save();
      case 'lose': {
        const hasFiles = this.random() < 0.7;
        this.#store = this.#newStore();
        if (this.#saved !== undefined) this.#store.restoreRetired(copyOf(this.#saved));
        const again = [...this.#unsaved].flatMap(id => [...this.#files.get(id).captured.live.keys()]);
        this.books.restore(this.now, new Set(again));
        if (!hasFiles) this.#known.clear();
        for (const id of this.#files.keys()) if (hasFiles || this.#unsaved.has(id)) this.#deliver(id);
        for (const id of this.#unsaved) this.#retire(id);
        for (const id of this.#unsaved) this.books.live.delete(id);
        return;
      }
    }
    if (worker === undefined) return;
    switch (step) {
      case 'record':
        return worker.record(this.#value++ % 10, label);
      case 'end':
        return worker.endRow(label, this.random() < 0.3);
      case 'checkpoint':
        return this.#capture(worker);
      case 'die':
        if (this.random() < 0.5 || !this.#files.has(worker.id)) this.#capture(worker);
        this.#deliver(worker.id);
        this.#retire(worker.id);
        this.books.retire(worker.id, this.now);
        this.#workers.delete(worker.id);
        this.#unsaved.add(worker.id);
    }
  }

  run() {
    const weights = {
      record: 30,
      end: 12,
      page: 14,
      checkpoint: 4,
      tell: 6,
      save: 3,
      lose: 4,
      die: 3,
      join: 4,
    };
    const steps = Object.entries({ ...weights, advance: 5 }).flatMap(([step, weight]) =>
      Array(weight).fill(step),
    );
    try {
      for (let i = 0; i < STEPS; i++) {
        const step = this.#pick(steps);
        this.#log.push(step);
        this.#perform(step);
      }
      for (const worker of this.#workers.values()) for (const label of LABELS) worker.endRow(label, false);
      for (const worker of this.#workers.values()) this.#capture(worker);
      for (const id of this.#workers.keys()) this.#deliver(id);
      for (const later of [0, MAX_AGE + 1, MAX_AGE + 1, 1]) {
        this.now += later;
        this.#check();
      }
      assert.strictEqual(this.#store.state().failures.length, 0);
      assert.strictEqual(this.books.page(this.now, true).size, 0);
    } catch (error) {
      throw new Error(`${this.name} after ${this.#log.join(', ')}: ${error.message}`, { cause: error });
    }
  }
}

for (const type of METRIC_TYPES.filter(({ lasts }) => lasts))
  for (const maxIdle of [0, MAX_IDLE])
    test(`folded totals: a random history is that of a model: ${type.name}, ${maxIdle} ms idle`, () => {
      for (let seed = 1; seed <= 60 * effort; seed++) new History(seed, type, maxIdle).run();
    });
