'use strict';

// What the load generator has recorded, and whether a page shows exactly that.

const { BOUNDS, runBatch, epochOf } = require('./load.js');

/** The numbers of one worker after some number of batches. */
class Book {
  /** @type {Map<number, {version: number, value: number}>} by label set */
  #sets = new Map();
  /** @type {Map<string, number>} samples of the histogram */
  #samples = new Map();
  #onRemoved;

  /**
   * @param {number} firstEpoch
   * @param {(sample: string, value: number) => void} onRemoved called with what a label set had that is gone
   */
  constructor(firstEpoch, onRemoved) {
    this.firstEpoch = firstEpoch;
    this.#onRemoved = onRemoved;
    this.batches = 0;
  }

  get epoch() {
    return epochOf(this.firstEpoch, this.batches);
  }

  /** @param {number} batches as many as a page shows */
  advanceTo(batches) {
    const sink = {
      replace: set => {
        const removed = this.#sets.get(set);
        if (removed !== undefined) this.#onRemoved(sampleOf(set, removed.version), removed.value);
        this.#sets.delete(set);
      },
      count: (set, version, amount) => {
        this.#sets.set(set, { version, value: (this.#sets.get(set)?.value ?? 0) + amount });
      },
      observe: (route, value) => this.#observe(`route="r${route}"`, value),
    };
    while (this.batches < batches) runBatch(this.firstEpoch, this.batches++, sink);
  }

  /** @returns {Generator<[sample: string, value: number]>} */
  *samples() {
    for (const [set, { version, value }] of this.#sets) {
      yield [sampleOf(set, version), value];
    }
    yield* this.#samples;
  }

  #observe(labels, value) {
    const add = (sample, amount) => this.#samples.set(sample, (this.#samples.get(sample) ?? 0) + amount);
    for (const bound of BOUNDS) {
      add(`soak_duration_seconds_bucket{le="${bound}",${labels}}`, value <= bound ? 1 : 0);
    }
    add(`soak_duration_seconds_bucket{le="+Inf",${labels}}`, 1);
    add(`soak_duration_seconds_sum{${labels}}`, value);
    add(`soak_duration_seconds_count{${labels}}`, 1);
  }
}

/** The books of all workers that ever were. */
class Books {
  /** @type {Map<number, Book>} by worker; those of dead workers whose last numbers may still arrive, too */
  #books = new Map();
  /** @type {Map<string, number>} samples of the dead */
  #dead = new Map();
  /** @type {Map<string, number>} of samples that living workers have removed: they stay while others do */
  #removed = new Map();
  /** Checks so far, and those that found something. */
  checked = 0;
  /** @type {string[]} */
  differences = [];

  /** @returns {number} for a worker that starts now */
  get epoch() {
    return Math.max(0, ...Array.from(this.#books.values(), ({ epoch }) => epoch));
  }

  /** @param {number} worker */
  open(worker) {
    this.#books.set(worker, new Book(this.epoch, (sample, value) => add(this.#removed, sample, value)));
    return this.#books.get(worker).firstEpoch;
  }

  /** @param {number} worker that is dead, and whose last numbers the page shows */
  close(worker) {
    for (const [sample, value] of this.#books.get(worker)?.samples() ?? []) {
      add(this.#dead, sample, value);
    }
    this.#books.delete(worker);
  }

  /**
   * Compares a page with the books: each sample has exactly the number that all workers recorded, and none is
   * missing. Only series that no live worker has may leave, as a whole, after `retiredMaxAge`.
   *
   * @param {string} page
   * @returns {{recorded: number, shown: number}} requests by the books and by the page
   */
  check(page) {
    const shown = samplesOf(page);
    for (const [worker, book] of this.#books) {
      const batches = shown.get(`soak_batches_total{worker="${worker}"}`) ?? 0;
      if (batches < book.batches)
        this.#differ(`worker ${worker} fell from ${book.batches} batches to ${batches}`);
      book.advanceTo(batches);
    }
    const expected = new Map(this.#dead);
    for (const [sample, value] of this.#removed) add(expected, sample, value);
    const required = new Set();
    for (const book of this.#books.values()) {
      for (const [sample, value] of book.samples()) {
        required.add(sample);
        add(expected, sample, value);
      }
    }
    let total = 0;
    let shownTotal = 0;
    for (const [sample, value] of expected) {
      const seen = shown.get(sample);
      // Dropped; a new thread may show it again for some time.
      if (seen === undefined && !required.has(sample)) continue;
      // Being removed: it leaves when the last worker has dropped it, with what dead workers had counted.
      if (this.#removed.has(sample) && (seen === undefined || seen <= value)) continue;
      if (seen !== value) this.#differ(`${sample} is ${seen}, recorded were ${value}`);
      if (sample.startsWith('soak_requests_total')) {
        total += value;
        shownTotal += seen ?? 0;
      }
    }
    for (const sample of shown.keys()) {
      if (!sample.startsWith('soak_batches') && !expected.has(sample))
        this.#differ(`${sample} was never recorded`);
    }
    this.checked += expected.size;
    return { recorded: total, shown: shownTotal };
  }

  /** @param {string} text */
  #differ(text) {
    this.differences.push(text);
  }
}

/**
 * @param {number} set
 * @param {number} version
 */
function sampleOf(set, version) {
  return `soak_requests_total{set="s${set}",version="v${version}"}`;
}

/**
 * @param {Map<string, number>} map
 * @param {string} sample
 * @param {number} value
 */
function add(map, sample, value) {
  map.set(sample, (map.get(sample) ?? 0) + value);
}

/**
 * @param {string} page
 * @returns {Map<string, number>} samples of the load, by name and labels
 */
function samplesOf(page) {
  const samples = new Map();
  for (const [, sample, value] of page.matchAll(/^(soak_\S+\{[^}]*\}) (\S+)$/gm))
    samples.set(sample, Number(value));
  return samples;
}

module.exports = { Books };
