'use strict';

// One label name's values, each with an integer id. Label sets are hashed and compared by these ids.
//
// The ids are in a Map by text. In front of it is a direct-mapped cache whose slot depends on the length and
// four characters of the text: a hit compares one pointer, while Map.get() takes three times as long
// (docs/performance.md, "Recording"). Numbers have a cache of their own and are never keys of the Map: V8
// hashes numbers without a seed, so a client that chooses them could make all of them collide.

/** The id of a label that a label set does not have. */
const MISSING = 0;

const FIRST_SLOTS = 32;
const MOST_SLOTS = 2048;

// A cache that misses this often is replaced by a larger one, or by one of the same size that spreads texts
// in another way: of five values two share a slot in one of seven caches, and then each look-up of these two
// asks the Map. Most metrics are used so rarely that they never get a cache.
const MISSES_PER_CACHE = 256;
const MOST_CACHES_OF_ONE_SIZE = 16;

// A Map rehashes all of its entries when it grows: the longest call took 4 ms while 100,000 strings were
// added, and 60 ms for a million. So the first Map stops growing here, and later texts are spread over many
// small Maps, with which the longest call took 0.8 ms at 100,000. Benchmark row: new-series/100k-values.
const FIRST_MAP_LIMIT = 16384;
const SEGMENTS = 256;

const LARGEST_CACHED_ID = 2 ** 16 - 1;
/** Shared, and never written to. Two, because a shift by 32 bits is none in JavaScript. */
const NO_SLOTS = new Uint16Array(2);
const NO_NUMBERS = new Float64Array(1).fill(NaN);

/**
 * What the slot of a text is computed from. Texts that have it in common share a slot: that costs time, never
 * correctness.
 *
 * @param {string} text not empty
 * @returns {number}
 */
function digestOf(text) {
  const n = text.length;
  const ends = (text.charCodeAt(0) << 24) ^ text.charCodeAt(n - 1);
  const before = n > 1 ? text.charCodeAt(n - 2) : 0;
  return ends ^ (text.charCodeAt(n >> 1) << 16) ^ (before << 8) ^ (n << 13);
}

/**
 * @param {string} text
 * @returns {number} the segment of a text. A bad spread costs a longer pause while a Map grows, never
 *   correctness
 */
function segmentOf(text) {
  const n = text.length;
  const last = n > 0 ? text.charCodeAt(n - 1) : 0;
  const before = n > 1 ? text.charCodeAt(n - 2) : 0;
  const third = n > 2 ? text.charCodeAt(n - 3) : 0;
  return (last + before * 10 + third * 100 + n) & (SEGMENTS - 1);
}

class LabelDictionary {
  /** @type {Map<string, number>} */
  #first = new Map();
  /** @type {Map<string, number>[] | undefined} */
  #segments = undefined;
  /** The number that was found last in each slot, and its id. */
  #numbers = NO_NUMBERS;
  #numberIds = NO_SLOTS;
  #missesLeft = MISSES_PER_CACHE;
  #cachesLeft = MOST_CACHES_OF_ONE_SIZE;

  constructor() {
    /**
     * Text by id; that of MISSING is never read.
     *
     * @type {string[]}
     */
    this.values = [''];
    /** The id that was found last for a text of each slot. */
    this.slots = NO_SLOTS;
    /** The slot of a text is the upper bits of its digest times `multiplier`: what `shift` leaves of 32. */
    this.shift = 31;
    this.multiplier = 1;
  }

  /**
   * @param {unknown} value anything but undefined. 200 and '200' are one value
   * @returns {number} its id, or MISSING if it is new
   * @throws {TypeError} for a symbol, as prom-client does
   */
  find(value) {
    if (typeof value === 'string') {
      const id = this.slots[Math.imul(digestOf(value), this.multiplier) >>> this.shift];
      return this.values[id] === value && id !== MISSING ? id : this.#findText(value);
    }
    if (typeof value === 'number') {
      const slot = value & (this.#numbers.length - 1);
      if (this.#numbers[slot] === value) return this.#numberIds[slot];
      return this.#findNumber(value);
    }
    return this.#findText(`${value}`);
  }

  /**
   * @param {unknown} value anything but undefined
   * @returns {number} its id, a new one if need be
   * @throws {TypeError} for a symbol
   */
  add(value) {
    const id = this.find(value);
    return id === MISSING ? this.addText(`${value}`) : id;
  }

  /**
   * @param {string} text that has no id yet
   * @returns {number} its id
   */
  addText(text) {
    const wellFormed = text.toWellFormed();
    const id = this.values.push(wellFormed) - 1;
    if (this.#segments !== undefined) {
      this.#segments[segmentOf(wellFormed)].set(wellFormed, id);
    } else {
      this.#first.set(wellFormed, id);
      if (id >= FIRST_MAP_LIMIT) this.#segments = Array.from({ length: SEGMENTS }, () => new Map());
    }
    return id;
  }

  /**
   * @param {string} text
   * @returns {number}
   */
  #findText(text) {
    let id = this.#first.get(text);
    if (id === undefined) {
      id = this.#segments?.[segmentOf(text)].get(text);
      // Half of a surrogate pair is U+FFFD on a page, so values that differ in such halves only are one value.
      if (id === undefined) return text.isWellFormed() ? MISSING : this.#findText(text.toWellFormed());
    }
    if (--this.#missesLeft === 0) this.#replaceCache();
    if (this.slots !== NO_SLOTS && id <= LARGEST_CACHED_ID) {
      this.slots[Math.imul(digestOf(text), this.multiplier) >>> this.shift] = id;
    }
    return id;
  }

  /** @param {number} number */
  #findNumber(number) {
    const id = this.#findText(`${number}`);
    if (id === MISSING || id > LARGEST_CACHED_ID || this.slots === NO_SLOTS) return id;
    if (this.#numbers.length < this.slots.length) {
      this.#numbers = new Float64Array(this.slots.length).fill(NaN);
      this.#numberIds = new Uint16Array(this.slots.length);
    }
    const slot = number & (this.#numbers.length - 1);
    this.#numbers[slot] = number;
    this.#numberIds[slot] = id;
    return id;
  }

  /** Starts another cache, empty: it fills again with the values that are in use. */
  #replaceCache() {
    const { length } = this.slots;
    let wanted = FIRST_SLOTS;
    while (wanted < this.values.length * 8 && wanted < MOST_SLOTS) wanted *= 2;
    if (wanted > length) this.#cachesLeft = MOST_CACHES_OF_ONE_SIZE;
    if (this.#cachesLeft-- === 0) {
      this.#missesLeft = Math.max(wanted, MISSES_PER_CACHE) * 64;
      this.#cachesLeft = 0;
      return;
    }
    this.slots = new Uint16Array(Math.max(wanted, length));
    this.shift = Math.clz32(this.slots.length - 1);
    this.multiplier = (Math.random() * 2 ** 32) | 1;
    this.#missesLeft = MISSES_PER_CACHE;
  }
}

module.exports = { LabelDictionary, MISSING };
