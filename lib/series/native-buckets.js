'use strict';

// The sparse buckets of a metric's rows. A row has a head, and chunks of 16 buckets, found through a
// directory of each side, positive and negative. Chunks without observations do not exist. Heads,
// directories and chunks are in pages of words, which may be in shared memory: another thread reads them with
// readRow().

const { MIN_SCHEMA, indexOf } = require('./native-index');
const { CHUNK_SHIFT, MOST_CHUNKS, lowered, atSchema, fitting, mergeBuckets } = require('./merged-buckets');
const { growPages, pageShiftOf, pageMaskOf } = require('./number-pages');

/** @typedef {import('./series-table').RowListener} RowListener */

/**
 * The populated buckets of one side, by rising index.
 *
 * @typedef {{indices: number[], counts: number[]}} Side
 */

/**
 * @typedef {object} Buckets
 * @property {number} schema
 * @property {number} zeroThreshold
 * @property {number} zeroCount
 * @property {Side} positive
 * @property {Side} negative
 * @property {number} maxBuckets populated ones: with more, the schema is lowered
 */

/**
 * @typedef {object} BucketMemory
 * @property {Float64Array[]} numbers of heads
 * @property {Int32Array[]} words of heads: the same memory
 * @property {Int32Array[]} pages of directories and chunks
 * @property {number} maxBuckets of a row
 */

// A head in words. Odd while the row changes other than by counting.
const VERSION = 0;
const SCHEMA = 1;
const CHANGES = 2;
const POPULATED = 3;
// Whether some count needs more than 32 bits: chunks are twice as long then, with the high halves in the
// second half.
const IS_WIDE = 4;
// The beginning of each side: where its directory is, or 0; the number of its first chunk; how many chunks it
// has entries for.
const POSITIVE = 5;
const NEGATIVE = 8;
const PLACE = 0;
const FIRST = 1;
const LENGTH = 2;
// A head in numbers.
const ZERO_THRESHOLD = 6;
const ZERO_COUNT = 7;
const HEAD_NUMBERS = 8;
const WORDS_OF_NUMBER = 2;
const HEAD_WORDS = HEAD_NUMBERS * WORDS_OF_NUMBER;

const HEAD_SHIFT = pageShiftOf(HEAD_NUMBERS);
const HEAD_MASK = pageMaskOf(HEAD_SHIFT);

const CHUNK = 1 << CHUNK_SHIFT;

// A place is the number of a page, and an offset in it.
const PAGE_SHIFT = 14;
const PAGE_MASK = pageMaskOf(PAGE_SHIFT);
const FIRST_PAGE = 128;
/** No place. */
const NONE = 0;

const TWO_32 = 2 ** 32;
const ATTEMPTS = 100;

/**
 * A metric's buckets by row.
 *
 * @implements {RowListener}
 */
class NativeBuckets {
  /** @type {Float64Array[]} */
  #numbers = [];
  /** @type {Int32Array[]} the same memory */
  #words = [];
  /** @type {Int32Array[]} */
  #pages = [];
  /** How much of the last page is in use. */
  #end = 0;
  /** @type {number[]} by size: the first free place, whose first word is the next */
  #free = [];

  /**
   * @param {object} options
   * @param {number} options.schema of rows that have not been coarsened
   * @param {number} options.zeroThreshold 0 or above
   * @param {number} options.maxBuckets populated ones of a row: with more its schema is lowered
   */
  constructor({ schema, zeroThreshold, maxBuckets }) {
    this.schema = schema;
    this.zeroThreshold = zeroThreshold;
    this.maxBuckets = maxBuckets;
  }

  /**
   * Counts a value.
   *
   * @param {number} row that was started
   * @param {number} value finite
   */
  add(row, value) {
    const words = this.#words[row >> HEAD_SHIFT];
    const numbers = this.#numbers[row >> HEAD_SHIFT];
    const first = (row & HEAD_MASK) * HEAD_NUMBERS;
    const head = first * WORDS_OF_NUMBER;
    words[head + CHANGES]++;
    const size = value < 0 ? -value : value;
    if (size <= numbers[first + ZERO_THRESHOLD]) {
      numbers[first + ZERO_COUNT]++;
      return;
    }
    const index = indexOf(size, words[head + SCHEMA]);
    const side = head + (value < 0 ? NEGATIVE : POSITIVE);
    const chunk = (index >> CHUNK_SHIFT) - words[side + FIRST];
    if (chunk >>> 0 < words[side + LENGTH]) {
      const directory = words[side + PLACE];
      const place = this.#pages[directory >> PAGE_SHIFT][(directory & PAGE_MASK) + chunk];
      const page = this.#pages[place >> PAGE_SHIFT];
      const slot = (place & PAGE_MASK) + (index & (CHUNK - 1));
      const count = page[slot] + 1;
      // Neither the first of its bucket, as it is in a missing chunk, nor one that needs more than 32 bits.
      if (count >>> 0 > 1) {
        page[slot] = count;
        return;
      }
    }
    this.#addCount(row, value < 0 ? NEGATIVE : POSITIVE, index, 1);
  }

  /**
   * @param {number} row
   * @returns {Buckets} populated ones only
   */
  read(row) {
    if (!this.#isStarted(row)) return this.#empty();
    return /** @type {Buckets} */ (readRow(this.memory, row));
  }

  /** @returns {BucketMemory} */
  get memory() {
    return { numbers: this.#numbers, words: this.#words, pages: this.#pages, maxBuckets: this.maxBuckets };
  }

  /**
   * The buckets as they are now, to be read later.
   *
   * @returns {(row: number) => Buckets}
   */
  captured() {
    const copy = new NativeBuckets(this);
    copy.#numbers = this.#numbers.map(page => page.slice());
    copy.#words = copy.#numbers.map(wordsOf);
    copy.#pages = this.#pages.map(page => page.slice());
    return row => copy.read(row);
  }

  /**
   * Rises with each change of a row.
   *
   * @param {number} row
   */
  changesOf(row) {
    return this.#isStarted(row) ? this.#words[row >> HEAD_SHIFT][headOf(row) + CHANGES] : 0;
  }

  /**
   * Adds what another row has, see mergeBuckets().
   *
   * @param {number} row
   * @param {Buckets} that
   */
  merge(row, that) {
    this.#start(row);
    this.#rewrite(row, mergeBuckets([this.read(row), that]));
  }

  /**
   * @param {number} row
   * @param {Buckets} buckets
   */
  #addAll(row, { schema, zeroCount, positive, negative }) {
    this.#numbers[row >> HEAD_SHIFT][numberOf(row) + ZERO_COUNT] += zeroCount;
    this.#addSide(row, POSITIVE, positive, schema);
    this.#addSide(row, NEGATIVE, negative, schema);
    this.#words[row >> HEAD_SHIFT][headOf(row) + CHANGES]++;
  }

  /**
   * A row without counts, and with the schema and zero threshold of the options.
   *
   * @param {number} row
   */
  clear(row) {
    this.#start(row);
    this.#rewrite(row, this.#empty());
  }

  /** @param {number} row */
  rowStarted(row) {
    this.clear(row);
  }

  /** @returns {import('./series-table').RowMove} */
  startMove() {
    const target = new NativeBuckets(this);
    return {
      copy: (old, row) => target.#copyRow(row, this, old),
      finish: () => {
        this.#numbers = target.#numbers;
        this.#words = target.#words;
        this.#pages = target.#pages;
        this.#end = target.#end;
        this.#free = target.#free;
      },
    };
  }

  /**
   * @param {number} row
   * @param {NativeBuckets} from
   * @param {number} old
   */
  #copyRow(row, from, old) {
    this.#start(row);
    const words = this.#words[row >> HEAD_SHIFT];
    const head = headOf(row);
    const start = headOf(old);
    words.set(from.#words[old >> HEAD_SHIFT].subarray(start, start + HEAD_WORDS), head);
    const size = chunkSize(words[head + IS_WIDE]);
    for (const side of [head + POSITIVE, head + NEGATIVE]) {
      if (words[side + PLACE] === 0) continue;
      const directory = (words[side + PLACE] = this.#copy(from, words[side + PLACE], words[side + LENGTH]));
      const page = this.#pages[directory >> PAGE_SHIFT];
      const offset = directory & PAGE_MASK;
      for (let i = offset; i < offset + words[side + LENGTH]; i++)
        if (page[i] !== 0) page[i] = this.#copy(from, page[i], size);
    }
  }

  /**
   * @param {NativeBuckets} from
   * @param {number} place
   * @param {number} size
   * @returns {number} the place of the copy
   */
  #copy(from, place, size) {
    const copy = this.#allocate(size);
    const offset = place & PAGE_MASK;
    const words = from.#pages[place >> PAGE_SHIFT].subarray(offset, offset + size);
    this.#pages[copy >> PAGE_SHIFT].set(words, copy & PAGE_MASK);
    return copy;
  }

  /**
   * @param {number} row
   * @param {number} side
   * @param {Side} buckets
   * @param {number} schema of the indices
   */
  #addSide(row, side, { indices, counts }, schema) {
    for (let i = 0; i < indices.length; i++) {
      // Adding may lower the schema.
      this.#addCount(row, side, lowered(indices[i], schema - this.#schemaOf(row)), counts[i]);
    }
  }

  /**
   * @param {number} row
   * @param {number} side
   * @param {number} index at the row's schema
   * @param {number} count
   */
  #addCount(row, side, index, count) {
    const schema = this.#schemaOf(row);
    const place = this.#placeOf(row, side, index);
    if (place === NONE) {
      this.#lower(row);
      this.#addCount(row, side, lowered(index, schema - this.#schemaOf(row)), count);
      return;
    }
    const head = this.#words[row >> HEAD_SHIFT];
    const at = headOf(row);
    const page = this.#pages[place >> PAGE_SHIFT];
    const slot = place & PAGE_MASK;
    const isWide = head[at + IS_WIDE];
    const before = (page[slot] >>> 0) + (isWide === 0 ? 0 : (page[slot + CHUNK] >>> 0) * TWO_32);
    const total = before + count;
    if (total >= TWO_32 && isWide === 0) {
      this.#rewrite(row, this.read(row), true);
      this.#addCount(row, side, index, count);
      return;
    }
    page[slot] = total;
    if (isWide !== 0) page[slot + CHUNK] = total / TWO_32;
    if (before > 0) return;
    head[at + POPULATED]++;
    if (head[at + POPULATED] > this.maxBuckets && schema > MIN_SCHEMA) this.#lower(row);
  }

  /** @param {number} row whose schema is lowered by one, or by more if that leaves too many buckets */
  #lower(row) {
    const buckets = this.read(row);
    this.#rewrite(row, fitting(atSchema(buckets, buckets.schema - 1)));
  }

  /**
   * @param {number} row
   * @param {Buckets} buckets what the row has from now on
   * @param {boolean} [isWide]
   */
  #rewrite(row, buckets, isWide = isLarge(buckets.positive) || isLarge(buckets.negative)) {
    const words = this.#words[row >> HEAD_SHIFT];
    const head = headOf(row);
    beginChange(words, head);
    for (const side of [head + POSITIVE, head + NEGATIVE]) this.#freeSide(words, head, side);
    words[head + SCHEMA] = buckets.schema;
    words[head + POPULATED] = 0;
    words[head + IS_WIDE] = isWide ? 1 : 0;
    const numbers = this.#numbers[row >> HEAD_SHIFT];
    numbers[numberOf(row) + ZERO_THRESHOLD] = buckets.zeroThreshold;
    numbers[numberOf(row) + ZERO_COUNT] = 0;
    this.#addAll(row, buckets);
    endChange(words, head);
  }

  /**
   * @param {Int32Array} words
   * @param {number} head
   * @param {number} side
   */
  #freeSide(words, head, side) {
    const directory = words[side + PLACE];
    const length = words[side + LENGTH];
    words[side + PLACE] = words[side + FIRST] = words[side + LENGTH] = 0;
    if (length === 0) return;
    const page = this.#pages[directory >> PAGE_SHIFT];
    const offset = directory & PAGE_MASK;
    const size = chunkSize(words[head + IS_WIDE]);
    for (let i = offset; i < offset + length; i++) if (page[i] !== 0) this.#release(page[i], size);
    this.#release(directory, length);
  }

  /**
   * The place of a bucket, for which space is made.
   *
   * @param {number} row
   * @param {number} side
   * @param {number} index
   * @returns {number} NONE if its side would have too many chunks
   */
  #placeOf(row, side, index) {
    const words = this.#words[row >> HEAD_SHIFT];
    const head = headOf(row);
    const at = head + side;
    const number = index >> CHUNK_SHIFT;
    if ((number - words[at + FIRST]) >>> 0 >= words[at + LENGTH] && !this.#extend(words, head, at, number))
      return NONE;
    const directory = words[at + PLACE];
    const page = this.#pages[directory >> PAGE_SHIFT];
    const entry = (directory & PAGE_MASK) + number - words[at + FIRST];
    if (page[entry] === 0) page[entry] = this.#allocate(chunkSize(words[head + IS_WIDE]));
    return page[entry] + (index & (CHUNK - 1));
  }

  /**
   * Makes space for a chunk in the directory of a side.
   *
   * @param {Int32Array} words
   * @param {number} head
   * @param {number} side
   * @param {number} number of the chunk
   * @returns {boolean} false if that would be too many chunks
   */
  #extend(words, head, side, number) {
    const { [side + PLACE]: old, [side + FIRST]: oldFirst, [side + LENGTH]: oldLength } = words;
    const page = this.#pages[old >> PAGE_SHIFT];
    const offset = old & PAGE_MASK;
    let [low, high] = [number, number];
    for (let i = 0; i < oldLength; i++) {
      if (page[offset + i] === 0) continue;
      low = Math.min(low, oldFirst + i);
      high = Math.max(high, oldFirst + i);
    }
    const span = high - low + 1;
    if (span > MOST_CHUNKS) return false;
    let length = Math.max(oldLength, CHUNK);
    while (length < span) length *= 2;
    const place = this.#allocate(length);
    const first = low - ((length - span) >> 1);
    for (let i = 0; i < oldLength; i++) {
      const chunk = page[offset + i];
      if (chunk !== 0) this.#pages[place >> PAGE_SHIFT][(place & PAGE_MASK) + oldFirst + i - first] = chunk;
    }
    beginChange(words, head);
    words[side + PLACE] = place;
    words[side + FIRST] = first;
    words[side + LENGTH] = length;
    if (oldLength > 0) this.#release(old, oldLength);
    endChange(words, head);
    return true;
  }

  /**
   * @param {number} size a power of two
   * @returns {number} the place of that many zeros
   */
  #allocate(size) {
    const free = this.#free[size];
    if (free > 0) {
      const page = this.#pages[free >> PAGE_SHIFT];
      const offset = free & PAGE_MASK;
      this.#free[size] = page[offset];
      page.fill(0, offset, offset + size);
      return free;
    }
    const last = this.#pages.at(-1);
    if (last === undefined || this.#end + size > last.length) {
      const doubled = Math.min((last?.length ?? FIRST_PAGE / 2) * 2, 1 << PAGE_SHIFT);
      // The first chunk of the first page is that of buckets which have none: all zeros.
      this.#end = last === undefined ? CHUNK : 0;
      this.#pages.push(new Int32Array(Math.max(doubled, size)));
    }
    const place = ((this.#pages.length - 1) << PAGE_SHIFT) + this.#end;
    this.#end += size;
    return place;
  }

  /**
   * @param {number} place
   * @param {number} size
   */
  #release(place, size) {
    this.#pages[place >> PAGE_SHIFT][place & PAGE_MASK] = this.#free[size] ?? 0;
    this.#free[size] = place;
  }

  /** @param {number} row */
  #schemaOf(row) {
    return this.#words[row >> HEAD_SHIFT][headOf(row) + SCHEMA];
  }

  /** @returns {Buckets} */
  #empty() {
    const { schema, zeroThreshold, maxBuckets } = this;
    const positive = { indices: [], counts: [] };
    const negative = { indices: [], counts: [] };
    return { schema, zeroThreshold, zeroCount: 0, positive, negative, maxBuckets };
  }

  /** @param {number} row */
  #isStarted(row) {
    return headOf(row) < (this.#words[row >> HEAD_SHIFT]?.length ?? 0);
  }

  /** @param {number} row has a head afterwards */
  #start(row) {
    while (!this.#isStarted(row)) {
      const numbers = this.#numbers;
      const full = Math.max(numbers.length - 1, 0);
      const rows = (full << HEAD_SHIFT) + (numbers[full]?.length ?? 0) / HEAD_NUMBERS;
      growPages(numbers, rows, HEAD_NUMBERS, HEAD_SHIFT);
      const last = numbers.length - 1;
      this.#words[last] = wordsOf(numbers[last]);
      for (let at = (rows & HEAD_MASK) * HEAD_NUMBERS; at < numbers[last].length; at += HEAD_NUMBERS) {
        this.#words[last][at * WORDS_OF_NUMBER + SCHEMA] = this.schema;
        numbers[last][at + ZERO_THRESHOLD] = this.zeroThreshold;
      }
    }
  }
}

/**
 * @param {BucketMemory} memory
 * @param {number} row
 * @returns {Buckets | undefined} undefined if another thread has changed the row at each attempt
 */
function readRow({ numbers, words: allWords, pages, maxBuckets }, row) {
  const words = allWords[row >> HEAD_SHIFT];
  const head = headOf(row);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const version = Atomics.load(words, head + VERSION);
    if (version % 2 !== 0) continue;
    const page = numbers[row >> HEAD_SHIFT];
    const buckets = {
      schema: words[head + SCHEMA],
      zeroThreshold: page[numberOf(row) + ZERO_THRESHOLD],
      zeroCount: page[numberOf(row) + ZERO_COUNT],
      positive: readSide(pages, words, head, head + POSITIVE),
      negative: readSide(pages, words, head, head + NEGATIVE),
      maxBuckets,
    };
    // Unlike a load, this is not done before the reads above, on any processor.
    if (Atomics.add(words, head + VERSION, 0) === version) return buckets;
  }
  return undefined;
}

/**
 * @param {Int32Array[]} pages
 * @param {Int32Array} words
 * @param {number} head
 * @param {number} side
 * @returns {Side} anything if the row is being changed
 */
function readSide(pages, words, head, side) {
  /** @type {Side} */
  const { indices, counts } = { indices: [], counts: [] };
  const isWide = words[head + IS_WIDE] !== 0;
  const { [side + PLACE]: directory, [side + FIRST]: first, [side + LENGTH]: length } = words;
  for (let chunk = 0; chunk < length; chunk++) {
    const place = pages[directory >> PAGE_SHIFT]?.[(directory & PAGE_MASK) + chunk];
    const page = place && pages[place >> PAGE_SHIFT];
    if (!page) continue;
    const start = place & PAGE_MASK;
    for (let i = 0; i < CHUNK; i++) {
      let count = page[start + i] >>> 0;
      if (isWide) count += (page[start + CHUNK + i] >>> 0) * TWO_32;
      if (count === 0) continue;
      indices.push(((first + chunk) << CHUNK_SHIFT) + i);
      counts.push(count);
    }
  }
  return { indices, counts };
}

/**
 * @param {Int32Array} words
 * @param {number} head
 */
function beginChange(words, head) {
  Atomics.store(words, head + VERSION, words[head + VERSION] + 1);
  // ARM may show what is written after a store before it, but not before a load that follows the store.
  Atomics.load(words, head + VERSION);
}

/**
 * @param {Int32Array} words
 * @param {number} head
 */
function endChange(words, head) {
  Atomics.store(words, head + VERSION, words[head + VERSION] + 1);
}

/** @param {Float64Array} numbers */
function wordsOf({ buffer, byteOffset, length }) {
  return new Int32Array(buffer, byteOffset, length * WORDS_OF_NUMBER);
}

/** @param {number} row */
function numberOf(row) {
  return (row & HEAD_MASK) * HEAD_NUMBERS;
}

/** @param {number} row */
function headOf(row) {
  return (row & HEAD_MASK) * HEAD_WORDS;
}

/** @param {number} isWide */
function chunkSize(isWide) {
  return isWide === 0 ? CHUNK : 2 * CHUNK;
}

/** @param {Side} side */
function isLarge({ counts }) {
  return counts.some(count => count >= TWO_32);
}

module.exports = { NativeBuckets, readRow };
