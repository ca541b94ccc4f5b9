'use strict';

// One label name's values, each with a small integer. Integers, not strings, are what label sets are hashed and
// compared by afterwards.

/** The integer of a label that a label set does not have. */
const MISSING = 0;

// A Map rehashes all of its entries when it grows: 1M strings hold the loop for some 40 ms, in the middle of
// somebody's request. So the first Map stops growing here, and what comes later is spread over many small ones.
const FIRST_MAP_LIMIT = 16384;
const SEGMENTS = 256;

/**
 * Which segment a value lives in. Only has to spread usual values (ids, paths, numbers): a bad spread costs the bound
 * on the pause, not correctness.
 *
 * @param {unknown} value
 * @returns {number}
 */
function segmentOf(value) {
  if (typeof value === 'string') {
    const n = value.length;
    if (n === 0) return 0;
    const last = value.charCodeAt(n - 1);
    const before = n > 1 ? value.charCodeAt(n - 2) : 0;
    const third = n > 2 ? value.charCodeAt(n - 3) : 0;
    return (last + before * 10 + third * 100 + n) & (SEGMENTS - 1);
  }
  return typeof value === 'number' ? (value >>> 0) & (SEGMENTS - 1) : 0;
}

class LabelDictionary {
  constructor() {
    /** @type {Map<unknown, number>} */
    this.first = new Map();
    /** @type {Map<unknown, number>[] | undefined} */
    this.segments = undefined;
    /**
     * Value by integer; the one of MISSING is never read.
     *
     * @type {string[]}
     */
    this.values = [''];
  }

  /**
   * The integer of a value, or undefined where it is new.
   *
   * @param {unknown} value anything but undefined
   * @returns {number | undefined}
   */
  find(value) {
    const id = this.first.get(value);
    if (id !== undefined) return id;
    return this.#findSlowly(value);
  }

  /**
   * The integer of a value, a new one if need be. 200 and '200' are one value, under the integer of the string; a
   * primitive that is no string is remembered as an alias of it, an object never is (it would be kept alive, and may
   * print differently next time).
   *
   * @param {unknown} value anything but undefined
   * @returns {number}
   */
  add(value) {
    const known = this.find(value);
    if (known !== undefined) return known;
    const text = `${value}`; // unlike String(), refuses a symbol, as prom-client does
    let id = this.#get(text);
    if (id === undefined) {
      id = this.values.push(text) - 1;
      this.#set(text, id);
    }
    if (typeof value !== 'string' && isPrimitive(value)) this.#set(value, id);
    return id;
  }

  /** @param {unknown} value */
  #findSlowly(value) {
    if (this.segments !== undefined) {
      const id = this.segments[segmentOf(value)].get(value);
      if (id !== undefined) return id;
    }
    return typeof value === 'string' ? undefined : this.#get(`${value}`);
  }

  /** @param {unknown} key */
  #get(key) {
    const id = this.first.get(key);
    return id === undefined && this.segments !== undefined ? this.segments[segmentOf(key)].get(key) : id;
  }

  /**
   * @param {unknown} key
   * @param {number} id
   */
  #set(key, id) {
    if (this.segments !== undefined) {
      this.segments[segmentOf(key)].set(key, id);
    } else {
      this.first.set(key, id);
      if (this.first.size >= FIRST_MAP_LIMIT)
        this.segments = Array.from({ length: SEGMENTS }, () => new Map());
    }
  }
}

/** @param {unknown} value */
function isPrimitive(value) {
  return (typeof value !== 'object' && typeof value !== 'function') || value === null;
}

module.exports = { LabelDictionary, MISSING };
