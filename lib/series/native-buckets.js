'use strict';

// The sparse buckets of a metric's rows. A row has a head, and chunks of 16 buckets, found through a
// directory of each side, positive and negative. Chunks without observations do not exist. Heads,
// directories and chunks are in pages of words, which may be in shared memory: another thread reads them with
// readRow().

const { MIN_SCHEMA, MAX_SCHEMA, indexOf } = require('./native-index');
const { CHUNK_SHIFT, MOST_CHUNKS, lowered, atSchema, fitting, mergeBuckets } = require('./merged-buckets');
const { growPages, pageShiftOf, pageMaskOf } = require('./number-pages');

/** @typedef {import('./series-table').RowListener} RowListener */
/** @typedef {import('./series-table').SeriesTable} SeriesTable */

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

/**
 * The head of a row, or one that is about to become it: words from `at` on, and the same memory as numbers.
 *
 * @typedef {{words: Int32Array, numbers: Float64Array, at: number}} Head
 */

// A head in words. Odd while it is replaced: what a row has is never changed in place other than by counting,
// so that a reader in another thread reads again, and a thread may be terminated at any moment.
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
// Of the words of a head that only its replacement changes, see isWhole().
const CHECK = 11;
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

/** Kinds of pages. */
const HEADS = 0;
const CHUNKS = 1;

/** Of a directory: it grows by doubling. */
const MOST_LENGTH = 2 * MOST_CHUNKS;
/** Far more than the first chunk of any schema. */
const MOST_FIRST = 2 ** 16;

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
  #isShared = false;
  /** @type {SeriesTable | undefined} whose followers get new pages */
  #table = undefined;

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
    const size = value < 0 ? -value : value;
    if (size <= numbers[first + ZERO_THRESHOLD]) {
      numbers[first + ZERO_COUNT]++;
      words[head + CHANGES]++;
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
        words[head + CHANGES]++;
        return;
      }
    }
    const rowHead = this.#headOf(row);
    this.#addCount(rowHead, value < 0 ? NEGATIVE : POSITIVE, index, 1);
    rowHead.words[rowHead.at + CHANGES]++;
  }

  /**
   * @param {number} row
   * @returns {Buckets} populated ones only
   */
  read(row) {
    return this.#isStarted(row) ? readHead(this.memory, this.#headOf(row)) : this.#empty();
  }

  /** @returns {BucketMemory} */
  get memory() {
    return { numbers: this.#numbers, words: this.#words, pages: this.#pages, maxBuckets: this.maxBuckets };
  }

  /** @returns {(Float64Array | Int32Array)[][]} */
  get pagesByKind() {
    return [this.#numbers, this.#pages];
  }

  /** Of its memory. */
  get byteLength() {
    return this.pagesByKind.flat().reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /**
   * Moves the pages to shared memory, now and from now on. The followers of the table get each later one.
   *
   * @param {SeriesTable} table
   */
  share(table) {
    this.#table = table;
    if (this.#isShared) return;
    this.#isShared = true;
    this.#numbers.forEach((_, number) => this.#setNumbers(number));
    this.#pages = this.#pages.map(page => sharedCopyOf(page));
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
    return changesOfRow(this.memory, row);
  }

  /**
   * Adds what another row has, see mergeBuckets().
   *
   * @param {number} row
   * @param {Buckets} that
   */
  merge(row, that) {
    this.#start(row);
    this.#rewrite(this.#headOf(row), mergeBuckets([this.read(row), that]));
  }

  /**
   * @param {Head} head
   * @param {Buckets} buckets
   */
  #addAll(head, { schema, zeroCount, positive, negative }) {
    head.numbers[head.at / WORDS_OF_NUMBER + ZERO_COUNT] += zeroCount;
    this.#addSide(head, POSITIVE, positive, schema);
    this.#addSide(head, NEGATIVE, negative, schema);
  }

  /**
   * A row without counts, and with the schema and zero threshold of the options.
   *
   * @param {number} row
   */
  clear(row) {
    this.#start(row);
    const { words, numbers, at } = this.#headOf(row);
    const isEmpty = words[at + POPULATED] === 0 && numbers[at / WORDS_OF_NUMBER + ZERO_COUNT] === 0;
    // A new row is so: to write it takes most of the time of a new label set.
    const hasOptions =
      words[at + SCHEMA] === this.schema &&
      numbers[at / WORDS_OF_NUMBER + ZERO_THRESHOLD] === this.zeroThreshold;
    if (isEmpty && hasOptions) return;
    this.#rewrite(this.#headOf(row), this.#empty());
  }

  /** @param {number} row */
  rowStarted(row) {
    this.clear(row);
  }

  /** @returns {import('./series-table').RowMove} */
  startMove() {
    const target = new NativeBuckets(this);
    target.#isShared = this.#isShared;
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
    words[head + CHECK] = checkOf(words, head);
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
   * @param {Head} head
   * @param {number} side
   * @param {Side} buckets
   * @param {number} schema of the indices
   */
  #addSide(head, side, { indices, counts }, schema) {
    for (let i = 0; i < indices.length; i++) {
      // Adding may lower the schema.
      this.#addCount(head, side, lowered(indices[i], schema - head.words[head.at + SCHEMA]), counts[i]);
    }
  }

  /**
   * @param {Head} head
   * @param {number} side
   * @param {number} index at the head's schema
   * @param {number} count
   */
  #addCount(head, side, index, count) {
    const { words, at } = head;
    const schema = words[at + SCHEMA];
    const place = this.#placeOf(head, side, index);
    if (place === NONE) {
      this.#lower(head);
      this.#addCount(head, side, lowered(index, schema - words[at + SCHEMA]), count);
      return;
    }
    const page = this.#pages[place >> PAGE_SHIFT];
    const slot = place & PAGE_MASK;
    const isWide = words[at + IS_WIDE] !== 0;
    const before = (page[slot] >>> 0) + (isWide ? (page[slot + CHUNK] >>> 0) * TWO_32 : 0);
    const total = before + count;
    if (total >= TWO_32 && !isWide) {
      this.#rewrite(head, readHead(this.memory, head), true);
      this.#addCount(head, side, index, count);
      return;
    }
    if (isWide) storeWide(head, page, slot, total);
    else page[slot] = total;
    if (before > 0) return;
    words[at + POPULATED]++;
    if (words[at + POPULATED] > this.maxBuckets && schema > MIN_SCHEMA) this.#lower(head);
  }

  /** @param {Head} head whose schema is lowered by one, or by more if that leaves too many buckets */
  #lower(head) {
    const buckets = readHead(this.memory, head);
    this.#rewrite(head, fitting(atSchema(buckets, buckets.schema - 1)));
  }

  /**
   * @param {Head} head
   * @param {Buckets} buckets what it has from now on
   * @param {boolean} [isWide]
   */
  #rewrite(head, buckets, isWide = isLarge(buckets.positive) || isLarge(buckets.negative)) {
    const numbers = new Float64Array(HEAD_NUMBERS);
    const next = { words: wordsOf(numbers), numbers, at: 0 };
    next.words[SCHEMA] = buckets.schema;
    next.words[IS_WIDE] = isWide ? 1 : 0;
    numbers[ZERO_THRESHOLD] = buckets.zeroThreshold;
    this.#addAll(next, buckets);
    const old = copyOf(head);
    replaceHead(head, next.words);
    this.#freeSide(old, POSITIVE);
    this.#freeSide(old, NEGATIVE);
  }

  /**
   * @param {Int32Array} words of a head that was replaced
   * @param {number} side
   */
  #freeSide(words, side) {
    const directory = words[side + PLACE];
    const length = words[side + LENGTH];
    if (length === 0) return;
    const page = this.#pages[directory >> PAGE_SHIFT];
    const offset = directory & PAGE_MASK;
    const size = chunkSize(words[IS_WIDE]);
    for (let i = offset; i < offset + length; i++) if (page[i] !== 0) this.#release(page[i], size);
    this.#release(directory, length);
  }

  /**
   * The place of a bucket, for which space is made.
   *
   * @param {Head} head
   * @param {number} side
   * @param {number} index
   * @returns {number} NONE if its side would have too many chunks
   */
  #placeOf(head, side, index) {
    const { words } = head;
    const at = head.at + side;
    const number = index >> CHUNK_SHIFT;
    if ((number - words[at + FIRST]) >>> 0 >= words[at + LENGTH] && !this.#extend(head, side, number))
      return NONE;
    const directory = words[at + PLACE];
    const page = this.#pages[directory >> PAGE_SHIFT];
    const entry = (directory & PAGE_MASK) + number - words[at + FIRST];
    // A reader sees the chunk when it is empty, not what its memory had before.
    if (page[entry] === 0) Atomics.store(page, entry, this.#allocate(chunkSize(words[head.at + IS_WIDE])));
    return page[entry] + (index & (CHUNK - 1));
  }

  /**
   * Makes space for a chunk in the directory of a side.
   *
   * @param {Head} head
   * @param {number} side
   * @param {number} number of the chunk
   * @returns {boolean} false if that would be too many chunks
   */
  #extend(head, side, number) {
    const next = copyOf(head);
    // Not by one pattern with computed keys, which V8 optimises in vain, again and again: 10 times as long.
    const old = next[side + PLACE];
    const oldFirst = next[side + FIRST];
    const oldLength = next[side + LENGTH];
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
    next[side + PLACE] = place;
    next[side + FIRST] = first;
    next[side + LENGTH] = length;
    replaceHead(head, next);
    if (oldLength > 0) this.#release(old, oldLength);
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
      const page = new Int32Array(Math.max(doubled, this.#end + size));
      this.#pages.push(this.#isShared ? sharedCopyOf(page) : page);
      this.#tell(CHUNKS, this.#pages.length - 1);
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

  /**
   * @param {number} row
   * @returns {Head}
   */
  #headOf(row) {
    const page = row >> HEAD_SHIFT;
    return { words: this.#words[page], numbers: this.#numbers[page], at: headOf(row) };
  }

  /** @param {number} number of a page of heads that was replaced */
  #setNumbers(number) {
    if (this.#isShared) this.#numbers[number] = sharedCopyOf(this.#numbers[number]);
    this.#words[number] = wordsOf(this.#numbers[number]);
  }

  /**
   * @param {number} kind
   * @param {number} number of a new page
   */
  #tell(kind, number) {
    if (this.#table === undefined) return;
    for (const follower of this.#table.followers) follower.bucketsPlaced(kind, number);
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
      this.#setNumbers(last);
      for (let at = (rows & HEAD_MASK) * HEAD_NUMBERS; at < numbers[last].length; at += HEAD_NUMBERS) {
        const words = this.#words[last].subarray(at * WORDS_OF_NUMBER);
        words[SCHEMA] = this.schema;
        words[CHECK] = checkOf(words, 0);
        numbers[last][at + ZERO_THRESHOLD] = this.zeroThreshold;
      }
      this.#tell(HEADS, last);
    }
  }
}

/**
 * @param {BucketMemory} memory in which another thread may record
 * @param {number} row
 * @returns {Buckets | undefined} undefined if the row has been replaced at each attempt, if some of its
 *   memory is not there yet, or if it is not valid
 */
function readRow(memory, row) {
  const page = row >> HEAD_SHIFT;
  const head = { words: memory.words[page], numbers: memory.numbers[page], at: headOf(row) };
  if (!(head.at < head.words?.length)) return undefined;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const version = Atomics.load(head.words, head.at + VERSION);
    if (version % 2 !== 0) continue;
    const buckets = isReadable(memory.pages, head) ? readHead(memory, head) : undefined;
    // Unlike a load, this is not done before the reads above, on any processor.
    if (Atomics.add(head.words, head.at + VERSION, 0) === version) return buckets;
  }
  // A thread was terminated between the two stores: the head is still the old one, or already the new one.
  const version = Atomics.load(head.words, head.at + VERSION);
  if (!isWhole(head) || !isReadable(memory.pages, head)) return undefined;
  const buckets = readHead(memory, head);
  return Atomics.add(head.words, head.at + VERSION, 0) === version ? buckets : undefined;
}

/**
 * @param {Head} head
 * @returns {boolean} whether it is one head, and not a part of each of two
 */
function isWhole({ words, at }) {
  return words[at + CHECK] === checkOf(words, at);
}

/**
 * @param {Int32Array} words
 * @param {number} at
 */
function checkOf(words, at) {
  let check = words[at + SCHEMA];
  for (let i = at + IS_WIDE; i < at + CHECK; i++) check = (check * 31 + words[i]) | 0;
  return check;
}

/**
 * @param {Int32Array[]} pages
 * @param {Head} head
 * @returns {boolean} whether it is valid, and its memory is there
 */
function isReadable(pages, { words, numbers, at }) {
  const number = at / WORDS_OF_NUMBER;
  const schema = words[at + SCHEMA];
  const threshold = numbers[number + ZERO_THRESHOLD];
  const zeros = numbers[number + ZERO_COUNT];
  if (!(schema >= MIN_SCHEMA && schema <= MAX_SCHEMA && threshold >= 0 && threshold < Infinity)) return false;
  if (!(Number.isInteger(zeros) && zeros >= 0)) return false;
  const size = chunkSize(words[at + IS_WIDE]);
  return (
    isReadableSide(pages, words, at + POSITIVE, size) && isReadableSide(pages, words, at + NEGATIVE, size)
  );
}

/**
 * @param {Int32Array[]} pages
 * @param {Int32Array} words
 * @param {number} side
 * @param {number} size of a chunk
 * @returns {boolean}
 */
function isReadableSide(pages, words, side, size) {
  const length = words[side + LENGTH];
  if (length === 0) return true;
  const directory = words[side + PLACE];
  const isPossible = length > 0 && length <= MOST_LENGTH && Math.abs(words[side + FIRST]) <= MOST_FIRST;
  if (!isPossible || !isPlace(pages, directory, length)) return false;
  const page = pages[directory >> PAGE_SHIFT];
  const offset = directory & PAGE_MASK;
  for (let i = offset; i < offset + length; i++)
    if (page[i] !== NONE && !isPlace(pages, page[i], size)) return false;
  return true;
}

/**
 * @param {Int32Array[]} pages
 * @param {number} place
 * @param {number} size
 * @returns {boolean} whether it is there
 */
function isPlace(pages, place, size) {
  const page = pages[place >> PAGE_SHIFT];
  return page !== undefined && (place & PAGE_MASK) + size <= page.length;
}

/**
 * @param {BucketMemory} memory
 * @param {Head} head
 * @returns {Buckets}
 */
function readHead({ pages, maxBuckets }, { words, numbers, at }) {
  return {
    schema: words[at + SCHEMA],
    zeroThreshold: numbers[at / WORDS_OF_NUMBER + ZERO_THRESHOLD],
    zeroCount: numbers[at / WORDS_OF_NUMBER + ZERO_COUNT],
    positive: readSide(pages, words, at, at + POSITIVE),
    negative: readSide(pages, words, at, at + NEGATIVE),
    maxBuckets,
  };
}

/**
 * @param {Int32Array[]} pages
 * @param {Int32Array} words
 * @param {number} head
 * @param {number} side
 * @returns {Side} anything if the row is being replaced
 */
function readSide(pages, words, head, side) {
  /** @type {Side} */
  const { indices, counts } = { indices: [], counts: [] };
  const length = words[side + LENGTH];
  if (length === 0) return { indices, counts };
  const isWide = words[head + IS_WIDE] !== 0;
  const first = words[side + FIRST] << CHUNK_SHIFT;
  const directory = pages[words[side + PLACE] >> PAGE_SHIFT];
  const offset = words[side + PLACE] & PAGE_MASK;
  // Pages are missing only while another thread replaces the row: what is read is discarded.
  if (directory === undefined) return { indices, counts };
  for (let chunk = 0; chunk < length; chunk++) {
    const place = directory[offset + chunk];
    if (place === NONE) continue;
    const page = pages[place >> PAGE_SHIFT];
    if (page === undefined) continue;
    const start = place & PAGE_MASK;
    const index = first + (chunk << CHUNK_SHIFT);
    for (let i = 0; i < CHUNK; i++) {
      const low = page[start + i];
      if (isWide) {
        const count = (low >>> 0) + (page[start + CHUNK + i] >>> 0) * TWO_32;
        if (count === 0) continue;
        indices.push(index + i);
        counts.push(count);
      } else if (low !== 0) {
        indices.push(index + i);
        counts.push(low >>> 0);
      }
    }
  }
  return { indices, counts };
}

/**
 * @param {BucketMemory} memory
 * @param {number} row
 * @returns {number} rises with each change of the row; -1 if its memory is not there
 */
function changesOfRow({ words }, row) {
  return words[row >> HEAD_SHIFT]?.[headOf(row) + CHANGES] ?? -1;
}

/**
 * A thread may be terminated between the two stores, but not within set().
 *
 * @param {Head} head
 * @param {Int32Array} next
 */
function replaceHead({ words, at }, next) {
  const version = words[at + VERSION];
  next[VERSION] = version + 1;
  next[CHANGES] = words[at + CHANGES] + 1;
  next[CHECK] = checkOf(next, 0);
  Atomics.store(words, at + VERSION, version + 1);
  // ARM may show what is written after a store before it, but not before a load that follows the store.
  Atomics.load(words, at + VERSION);
  words.set(next, at);
  Atomics.store(words, at + VERSION, version + 2);
}

/**
 * The same for the two halves of a count.
 *
 * @param {Head} head
 * @param {Int32Array} page
 * @param {number} slot
 * @param {number} count
 */
function storeWide({ words, at }, page, slot, count) {
  const version = words[at + VERSION];
  Atomics.store(words, at + VERSION, version + 1);
  Atomics.load(words, at + VERSION);
  page[slot] = count;
  page[slot + CHUNK] = count / TWO_32;
  Atomics.store(words, at + VERSION, version + 2);
}

/**
 * @param {Head} head
 * @returns {Int32Array}
 */
function copyOf({ words, at }) {
  return words.slice(at, at + HEAD_WORDS);
}

/**
 * @template {Float64Array | Int32Array} T
 * @param {T} page
 * @returns {T} in shared memory. The page itself if there is none: the application records at this moment
 */
function sharedCopyOf(page) {
  try {
    const Pages = /** @type {any} */ (page.constructor);
    const copy = new Pages(new SharedArrayBuffer(page.byteLength));
    copy.set(page);
    return copy;
  } catch {
    return page;
  }
}

/** @param {Float64Array} numbers */
function wordsOf({ buffer, byteOffset, length }) {
  return new Int32Array(buffer, byteOffset, length * WORDS_OF_NUMBER);
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

module.exports = { HEADS, CHUNKS, NativeBuckets, readRow, changesOfRow };
