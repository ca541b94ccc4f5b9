'use strict';

// One label name's values, each with an integer id. Label sets are hashed and compared by these ids.
//
// The ids are in a Map by text. In front of it is a direct-mapped cache whose slot depends on the length and
// a few characters of the text: a hit compares one pointer, while Map.get() takes three times as long
// (docs/internals/performance.md, "Recording"). Numbers have a cache of their own and are never keys of the
// Map: V8 hashes numbers without a seed, so a client that chooses them could make all of them collide.
//
// The cache learns which characters to read: if two texts differ only in characters that are not read, one of
// these is read from then on. Every fixed choice is wrong for some texts: the last and the middle characters,
// for example, are the same in '/users/1234/orders' and '/users/1235/orders'.

/** The id of a label that a label set does not have. */
const MISSING = 0;

const FIRST_SLOTS = 32;
const MOST_SLOTS = 2 ** 14;
const SLOTS_PER_VALUE = 16;
const MOST_NUMBERS = 2048;

// After this many misses, a cache is replaced; each later one is replaced after twice as many. The new cache
// fits the number of values, and spreads texts differently: digests are so regular that one of thirty
// multipliers puts a third of a hundred texts into occupied slots. Most metrics are used so rarely that they
// never get a cache.
const FIRST_MISSES = 256;

// The place of a character is a byte: its distance from the end of the text (1 to 127), or 128 + its distance
// from the start. Up to four of them are packed in one integer.
const PLACE_BITS = 8;
const FROM_START = 128;
const DISTANCE = 127;
const FOURTH_PLACE = 24;

// A Map rehashes all of its entries when it grows: the longest call took 4 ms while 100,000 strings were
// added, and 60 ms for a million. So the first Map stops growing here, and later texts are spread over many
// small Maps, with which the longest call took 0.8 ms at 100,000. Benchmark row: new-series/100k-values.
const FIRST_MAP_LIMIT = 16384;
const SEGMENTS = 256;

const LARGEST_CACHED_ID = 2 ** 16 - 1;
/** Shared, and never written to. Two, because in JavaScript a shift by 32 bits does not shift. */
const NO_SLOTS = new Uint16Array(2);
const NO_NUMBERS = new Float64Array(1).fill(NaN);

/**
 * The digest of a text, from which its slot is computed. Texts with the same digest share a slot, which costs
 * time but never correctness.
 *
 * @param {string} text
 * @param {number} places of the characters that are read
 * @returns {number}
 */
function digestOf(text, places) {
  const { length } = text;
  let digest = length;
  for (let rest = places; rest !== 0; rest >>>= PLACE_BITS) {
    const at = (rest & FROM_START) === 0 ? length - (rest & DISTANCE) : rest & DISTANCE;
    digest = Math.imul(digest, 257) + (at >= 0 && at < length ? text.charCodeAt(at) : 0);
  }
  return digest;
}

/**
 * @param {string} text
 * @param {string} other another one of the same length
 * @returns {number} the place of the first character that differs; 0 if its distance does not fit into a
 *   place
 */
function placeOfDifference(text, other) {
  let start = 0;
  while (text[start] === other[start]) start++;
  const end = text.length - start;
  if (start < end) return start <= DISTANCE ? FROM_START | start : 0;
  return end <= DISTANCE ? end : 0;
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

/**
 * @param {unknown} value
 * @returns {boolean} whether it is converted to text by a method, which may belong to the program, or cannot
 *   be converted
 */
function isNotPrimitive(value) {
  const type = typeof value;
  return type === 'object' ? value !== null : type === 'function' || type === 'symbol';
}

class LabelDictionary {
  /** @type {Map<string, number>} */
  #first = new Map();
  /** @type {Map<string, number>[] | undefined} */
  #segments = undefined;
  /** The last number that was found in each slot, and its id. */
  #numbers = NO_NUMBERS;
  #numberIds = NO_SLOTS;
  #misses = 0;
  #mostMisses = FIRST_MISSES;

  constructor() {
    /**
     * Text by id; the text of MISSING is printed if a program has passed undefined.
     *
     * @type {string[]}
     */
    this.values = ['undefined'];
    /** The last id that was found for a text of each slot. */
    this.slots = NO_SLOTS;
    /** The slot of a text is the upper bits of its digest times `multiplier`: what `shift` leaves of 32. */
    this.shift = 31;
    this.multiplier = 1;
    /** Which characters of a text its digest reads. */
    this.places = 0;
  }

  /**
   * @param {unknown} value anything but undefined. 200 and '200' are one value
   * @returns {number} its id, or MISSING if it is new or not a primitive
   */
  find(value) {
    if (typeof value === 'string') {
      const id = this.slots[this.#slotOf(value)];
      return this.values[id] === value && id !== MISSING ? id : this.#findText(value);
    }
    if (typeof value === 'number') {
      const slot = value & (this.#numbers.length - 1);
      if (this.#numbers[slot] === value) return this.#numberIds[slot];
      return this.#findNumber(value);
    }
    // Its toString() may belong to the program and record, so the caller converts it at another time.
    if (isNotPrimitive(value)) return MISSING;
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

  /** @param {string} text */
  #slotOf(text) {
    return Math.imul(digestOf(text, this.places), this.multiplier) >>> this.shift;
  }

  /**
   * @param {string} text
   * @returns {number}
   */
  #findText(text) {
    let id = this.#first.get(text);
    if (id === undefined) {
      id = this.#segments?.[segmentOf(text)].get(text);
      // An unpaired surrogate becomes U+FFFD on a page, so values that differ only in such surrogates are one
      // value.
      if (id === undefined) return text.isWellFormed() ? MISSING : this.#findText(text.toWellFormed());
    }
    if (++this.#misses === this.#mostMisses) this.#replaceCache();
    if (this.slots === NO_SLOTS || id > LARGEST_CACHED_ID) return id;
    const other = this.slots[this.#slotOf(text)];
    if (other !== MISSING) this.#tellApart(text, this.values[other]);
    this.slots[this.#slotOf(text)] = id;
    return id;
  }

  /** @param {number} number */
  #findNumber(number) {
    const id = this.#findText(`${number}`);
    if (id === MISSING || id > LARGEST_CACHED_ID || this.slots === NO_SLOTS) return id;
    const count = Math.min(this.slots.length, MOST_NUMBERS);
    if (this.#numbers.length < count) {
      this.#numberIds = new Uint16Array(count);
      this.#numbers = new Float64Array(count).fill(NaN);
    }
    const slot = number & (this.#numbers.length - 1);
    this.#numbers[slot] = number;
    this.#numberIds[slot] = id;
    return id;
  }

  /**
   * If all characters that are read are the same in two texts, reads one more from now on, and starts again
   * with an empty cache.
   *
   * @param {string} text
   * @param {string} other the text that has its slot
   */
  #tellApart(text, other) {
    if (this.places >>> FOURTH_PLACE !== 0 || text.length !== other.length || text === other) return;
    if (digestOf(text, this.places) !== digestOf(other, this.places)) return;
    const place = placeOfDifference(text, other);
    if (place === 0) return;
    this.places = (this.places << PLACE_BITS) | place;
    this.slots.fill(MISSING);
  }

  /** Starts another cache, empty: it fills again with the values that are in use. */
  #replaceCache() {
    this.#misses = 0;
    this.#mostMisses *= 2;
    let count = Math.max(this.slots.length, FIRST_SLOTS);
    while (count < this.values.length * SLOTS_PER_VALUE && count < MOST_SLOTS) count *= 2;
    this.slots = new Uint16Array(count);
    this.shift = Math.clz32(count - 1);
    this.multiplier = (Math.random() * 2 ** 32) | 1;
  }
}

module.exports = { LabelDictionary, MISSING, isNotPrimitive };
