'use strict';

// Tuple of ids -> row: an open-addressing table of row numbers, found by a 32-bit hash of the tuple.

const TUPLE_ROWS_SHIFT = 12;
const TUPLE_ROWS_PER_PAGE = 1 << TUPLE_ROWS_SHIFT;
const TUPLE_ROW_MASK = TUPLE_ROWS_PER_PAGE - 1;
const FIRST_ROWS = 4;
const FIRST_SLOTS = 8;

// A large table moves to its doubled successor a piece at a time: this many old slots with each new row.
// Anything above 2 finishes before the successor is full.
const SLOTS_MOVED_PER_ROW = 16;

const EMPTY = 0;
/** A slot whose row is not found any more. */
const FORGOTTEN = -1;

/**
 * Random odd multipliers, one for each position of a tuple. Label values come from clients: without a seed, a
 * client could choose label sets that all share one slot. The hash is a sum of products and not a chain, so
 * the processor can multiply all ids at the same time.
 *
 * @type {number[]}
 */
const MULTIPLIERS = [];

/**
 * @param {ArrayLike<number>} ids
 * @param {number} from
 * @param {number} count
 * @returns {number} a 32-bit hash
 */
function hashOf(ids, from, count) {
  reserveMultipliers(count);
  let sum = 0;
  for (let i = 0; i < count; i++) sum = (sum + Math.imul(ids[from + i], MULTIPLIERS[i])) | 0;
  return mixed(sum);
}

/** @param {number} width of the tuples */
function reserveMultipliers(width) {
  while (MULTIPLIERS.length < width) MULTIPLIERS.push((Math.random() * 2 ** 32) | 1);
}

/**
 * @param {number} sum of the products of ids and multipliers
 * @returns {number} a 32-bit hash
 */
function mixed(sum) {
  const h = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
  return h ^ (h >>> 13);
}

class TupleTable {
  /** @type {Int32Array} row number + 1, EMPTY or FORGOTTEN */
  #slots = new Int32Array(FIRST_SLOTS);
  /** @type {Int32Array | undefined} the table that is being moved from */
  #oldSlots = undefined;
  #moved = 0;

  /** @param {number} width ids in each tuple */
  constructor(width) {
    this.width = width;
    reserveMultipliers(width);
    /** The tuple of the last look-up. */
    this.ids = new Int32Array(width);
    /** @type {Int32Array[]} the rows' tuples, TUPLE_ROWS_PER_PAGE rows per page (the first page grows) */
    this.tuplePages = [];
    this.rowCount = 0;
  }

  /**
   * Adds the tuple in `this.ids`, which no row has yet.
   *
   * @returns {number} its row
   */
  addTuple() {
    return this.addRow(hashOf(this.ids, 0, this.width));
  }

  /**
   * The id that a row has for the label name at a position.
   *
   * @param {number} row
   * @param {number} position
   * @returns {number}
   */
  idAt(row, position) {
    return this.tuplePages[row >> TUPLE_ROWS_SHIFT][(row & TUPLE_ROW_MASK) * this.width + position];
  }

  /**
   * The row of the tuple in `this.ids`.
   *
   * @param {number} hash
   * @returns {number} the row, or -1
   */
  lookUp(hash) {
    const row = this.#probe(this.#slots, hash);
    return row === -1 && this.#oldSlots !== undefined ? this.#probe(this.#oldSlots, hash) : row;
  }

  /**
   * @param {Int32Array} slots
   * @param {number} hash
   */
  #probe(slots, hash) {
    const { ids, width, tuplePages } = this;
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const row = slots[slot] - 1;
      if (row < 0) {
        if (slots[slot] === EMPTY) return -1;
        continue;
      }
      const page = tuplePages[row >> TUPLE_ROWS_SHIFT];
      const base = (row & TUPLE_ROW_MASK) * width;
      let i = 0;
      while (i < width && page[base + i] === ids[i]) i++;
      if (i === width) return row;
    }
  }

  /**
   * Adds the tuple in `this.ids`, which no row has yet.
   *
   * @param {number} hash
   * @returns {number} its row
   */
  addRow(hash) {
    const row = this.rowCount;
    const { ids, width } = this;
    const page = this.#pageFor(row);
    const base = (row & TUPLE_ROW_MASK) * width;
    // Calling set() takes longer.
    for (let i = 0; i < width; i++) page[base + i] = ids[i];
    if (this.#oldSlots !== undefined) this.#moveSome(this.#oldSlots);
    // Linear probing wants a table that is at most 5/8 full.
    if ((row + 1) * 8 > this.#slots.length * 5) this.#startMove();
    insert(this.#slots, hash, row);
    return this.rowCount++;
  }

  /**
   * Forgets a row: if its tuple is added again, it gets another row.
   *
   * @param {number} row
   */
  forget(row) {
    const page = this.tuplePages[row >> TUPLE_ROWS_SHIFT];
    const hash = hashOf(page, (row & TUPLE_ROW_MASK) * this.width, this.width);
    for (const slots of [this.#slots, this.#oldSlots ?? []]) {
      const mask = slots.length - 1;
      for (let slot = hash & mask; (slots[slot] ?? EMPTY) !== EMPTY; slot = (slot + 1) & mask)
        if (slots[slot] === row + 1) slots[slot] = FORGOTTEN;
    }
  }

  /** @param {number} row */
  #pageFor(row) {
    const number = row >> TUPLE_ROWS_SHIFT;
    let page = this.tuplePages[number];
    const needed = ((row & TUPLE_ROW_MASK) + 1) * this.width;
    if (page === undefined) {
      page = new Int32Array((number === 0 ? FIRST_ROWS : TUPLE_ROWS_PER_PAGE) * this.width);
      this.tuplePages.push(page);
    } else if (page.length < needed) {
      const grown = new Int32Array(page.length * 2);
      grown.set(page);
      page = this.tuplePages[number] = grown;
    }
    return page;
  }

  #startMove() {
    while (this.#oldSlots !== undefined) this.#moveSome(this.#oldSlots);
    // Allocated first, because there may be no memory.
    const slots = new Int32Array(this.#slots.length * 2);
    this.#oldSlots = this.#slots;
    this.#moved = 0;
    this.#slots = slots;
  }

  /** @param {Int32Array} oldSlots */
  #moveSome(oldSlots) {
    const end = Math.min(this.#moved + SLOTS_MOVED_PER_ROW, oldSlots.length);
    for (let slot = this.#moved; slot < end; slot++) {
      const row = oldSlots[slot] - 1;
      if (row < 0) continue;
      const page = this.tuplePages[row >> TUPLE_ROWS_SHIFT];
      insert(this.#slots, hashOf(page, (row & TUPLE_ROW_MASK) * this.width, this.width), row);
    }
    this.#moved = end;
    if (end === oldSlots.length) this.#oldSlots = undefined;
  }
}

/**
 * @param {Int32Array} slots
 * @param {number} hash
 * @param {number} row
 */
function insert(slots, hash, row) {
  const mask = slots.length - 1;
  let slot = hash & mask;
  while (slots[slot] !== EMPTY) slot = (slot + 1) & mask;
  slots[slot] = row + 1;
}

module.exports = { TupleTable, MULTIPLIERS, mixed, hashOf };
