'use strict';

// Runs in a thread that has joined. The digests of a summary in shared memory, where the thread that serves
// the page reads them at any time, even if this one never returns to its event loop.
//
// A place is a sequence of float64 numbers: its state, the head of two lists of centroids (length, and when
// they leave the window), a buffer of the latest values, and the two lists. One list is visible while the
// other one is written. An observation only writes its value; free slots of the buffer contain NaN. A merge
// writes the other list. Then it makes that list visible and hides the buffer in one step (the state is odd
// then), empties the buffer, and makes it visible again. So a thread may be terminated at any moment: each
// value is either in the buffer or in the list.

const { MAX_BUFFERED } = require('../metric/observations');
const { HEAD, WORDS_OF_NUMBER, listOf } = require('../source/mirror-digest');
const { debug } = require('../options/debug-log');

const NUMBER_BYTES = 8;
const FIRST_BLOCK = 128;
const LARGEST_BLOCK = 32_768;
/** If there are many label sets, most of them have few observations. */
const FIRST_BUFFER = 8;
const GROWTH = 8;
/** The number of centroids grows with the logarithm of the observations. */
const SPARE_CENTROIDS = 1.5;
const NO_NUMBERS = new Float64Array(0);

/** @typedef {import('../metric/observations').Observations} Observations */
/** @typedef {import('../metric/observations').SharedPlace} SharedPlace */
/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('../source/mirror-digest').Block} Block */

/** @type {WeakMap<SeriesTable, SharedDigests>} the latest of each table */
const latest = new WeakMap();

/** @implements {SharedPlace} */
class DigestPlace {
  #digests;
  #state = 0;
  /** @type {Observations | undefined} */
  #owner = undefined;
  /** At what time it leaves the window. */
  leaves = Infinity;
  /** @type {Block | undefined} undefined if nothing was observed */
  block = undefined;
  offset = 0;
  bufferLength = 0;
  listLength = 0;
  limit = 1;

  /**
   * @param {SharedDigests} digests
   * @param {number} row
   * @param {number} slice of the window
   */
  constructor(digests, row, slice) {
    this.#digests = digests;
    this.row = row;
    this.slice = slice;
  }

  get buffer() {
    return this.block === undefined ? NO_NUMBERS : this.block.numbers;
  }

  get first() {
    return this.block === undefined ? 0 : this.offset + HEAD;
  }

  get end() {
    return this.first + this.bufferLength;
  }

  /**
   * @param {Observations} owner
   * @param {number} limit
   */
  take(owner, limit) {
    // Readers in this thread may still use the former owner.
    if (this.#owner !== undefined) this.#owner.leave();
    this.#owner = owner;
    this.limit = limit;
    return this.block !== undefined;
  }

  /**
   * @param {Float64Array} merged
   * @param {ArrayLike<number>} values
   */
  write(merged, values) {
    const isMoved = values.length > 0 || merged.length > this.listLength || this.block === undefined;
    if (isMoved && !this.#move(merged.length, values.length)) {
      this.#owner = undefined;
      return undefined;
    }
    const { offset, first, end } = this;
    const { numbers, words } = /** @type {Block} */ (this.block);
    const list = 1 - listOf(this.#state);
    const head = offset + 1 + list * 2;
    const start = end + list * this.listLength;
    numbers[head] = merged.length;
    numbers[head + 1] = this.leaves;
    // Skipped for a new label set, where calling set() and subarray() would take a fifth of the time.
    let shared = merged;
    if (merged.length > 0) {
      numbers.set(merged, start);
      shared = numbers.subarray(start, start + merged.length);
    }
    if (!isMoved) {
      Atomics.store(words, offset * WORDS_OF_NUMBER, this.#state + 1);
      // On ARM, writes after a store may become visible before that store, but not before a load that follows
      // it. Otherwise a reader could see the empty buffer together with the former list.
      Atomics.load(words, offset * WORDS_OF_NUMBER);
    }
    const { length } = values;
    for (let i = 0; i < length; i++) numbers[first + i] = values[i];
    for (let i = first + length; i < end; i++) numbers[i] = NaN;
    this.#state = (this.#state + 2) | 0;
    Atomics.store(words, offset * WORDS_OF_NUMBER, this.#state);
    if (isMoved) this.#digests.publish(this);
    return shared;
  }

  /**
   * @param {number} centroids numbers
   * @param {number} values
   * @returns {boolean} whether there is enough memory
   */
  #move(centroids, values) {
    let bufferLength = Math.max(this.bufferLength, FIRST_BUFFER);
    while (bufferLength <= values) bufferLength *= GROWTH;
    bufferLength = Math.min(bufferLength, this.limit, MAX_BUFFERED);
    const listLength = centroids > this.listLength ? Math.ceil(centroids * SPARE_CENTROIDS) : this.listLength;
    const size = HEAD + bufferLength + 2 * listLength;
    const found = this.#digests.allocate(size);
    if (found === undefined) return false;
    this.block = found.block;
    this.offset = found.offset;
    this.bufferLength = bufferLength;
    this.listLength = listLength;
    return true;
  }
}

/** The digests of a table until its rows get new numbers. */
class SharedDigests {
  #table;
  #epoch;
  #used = 0;
  /** @type {Block | undefined} the latest one */
  #block = undefined;
  /** @type {DigestPlace[][]} by slice and row */
  #places = [];

  /**
   * @param {SeriesTable} table
   * @returns {SharedDigests} the same object for all publishers of the table
   */
  static of(table) {
    let digests = latest.get(table);
    if (digests === undefined || digests.#epoch !== table.epoch)
      latest.set(table, (digests = new SharedDigests(table)));
    return digests;
  }

  /** @param {SeriesTable} table */
  constructor(table) {
    this.#table = table;
    this.#epoch = table.epoch;
  }

  /**
   * @param {number} row
   * @param {number} slice of the window
   */
  placeOf(row, slice) {
    const places = (this.#places[slice] ??= []);
    return (places[row] ??= new DigestPlace(this, row, slice));
  }

  /** @returns {DigestPlace[]} places with observations */
  get published() {
    return this.#places.flat().filter(({ block }) => block !== undefined);
  }

  /** @param {DigestPlace} place */
  publish(place) {
    for (const follower of this.#table.followers) follower.digestPlaced?.(place, this);
  }

  /**
   * @param {number} size numbers
   * @returns {{block: Block, offset: number} | undefined} undefined if there is no memory, because the
   *   application is recording and must not see an error
   */
  allocate(size) {
    let block = this.#block;
    if (block === undefined || this.#used + size > block.numbers.length) {
      const next = Math.min(block === undefined ? FIRST_BLOCK : block.numbers.length * 2, LARGEST_BLOCK);
      try {
        const memory = new SharedArrayBuffer(Math.max(next, size) * NUMBER_BYTES);
        this.#block = block = { numbers: new Float64Array(memory), words: new Int32Array(memory) };
        this.#used = 0;
      } catch (error) {
        debug('there is no memory for a digest: %O', error);
        return undefined;
      }
    }
    const offset = this.#used;
    this.#used += size;
    return { block, offset };
  }
}

module.exports = { SharedDigests, DigestPlace };
