'use strict';

// Counts the observations of a metric's rows in sparse buckets. Apart from counting, nothing is changed in
// place: another thread may read the row, and this thread may be terminated, at any moment.

const { MIN_SCHEMA, indexOf } = require('./native-index');
const { CHUNK_SHIFT, MOST_CHUNKS, lowered, atSchema, fitting } = require('./merged-buckets');
const { CapturedBuckets } = require('./captured-buckets');
const {
  VERSION,
  SCHEMA,
  CHANGES,
  POPULATED,
  IS_WIDE,
  POSITIVE,
  NEGATIVE,
  PLACE,
  FIRST,
  LENGTH,
  CHECK,
  ZERO_COUNT,
  HEAD_WORDS,
  HEAD_SHIFT,
  HEAD_MASK,
  CHUNK,
  PAGE_SHIFT,
  PAGE_MASK,
  NONE,
  HEADS,
  CHUNKS,
  TWO_32,
  checkOf,
  readHead,
  changesOfRow,
  headOf,
  chunkSize,
} = require('./bucket-memory');

/** @typedef {import('./merged-buckets').Buckets} Buckets */
/** @typedef {import('./merged-buckets').Side} Side */
/** @typedef {import('./bucket-memory').BucketMemory} BucketMemory */
/** @typedef {import('./bucket-memory').Head} Head */
/** @typedef {import('./series-table').RowListener} RowListener */
/** @typedef {import('./series-table').SeriesTable} SeriesTable */

const FIRST_HEADS = 4;
const FIRST_PAGE = 128;

/**
 * A metric's buckets by row.
 *
 * @implements {RowListener}
 */
class NativeBuckets {
  /** @type {Int32Array[]} */
  #heads = [];
  /** @type {Int32Array[]} */
  #pages = [];
  /** How much of the last page is in use. */
  #end = 0;
  /** @type {number[]} by size: the first free place; its first word is the next free place */
  #free = [];
  #isShared = false;
  /** @type {WeakRef<CapturedBuckets>[] | undefined} that may still be read; undefined if there are none */
  #captures = undefined;
  /** @type {SeriesTable | undefined} the followers of this table are told about new pages */
  #table = undefined;

  /**
   * @param {object} options
   * @param {number} options.schema of rows that have not been coarsened
   * @param {number} options.zeroThreshold 0 or above
   * @param {number} options.maxBuckets maximum number of populated buckets of a row: with more, its schema is
   *   lowered
   */
  constructor({ schema, zeroThreshold, maxBuckets }) {
    this.schema = schema;
    this.zeroThreshold = zeroThreshold;
    this.maxBuckets = maxBuckets;
  }

  /** @returns {NativeBuckets} with the same options, and without rows */
  empty() {
    return new NativeBuckets(this);
  }

  /**
   * Counts a value.
   *
   * @param {number} row that was started
   * @param {number} value finite
   */
  add(row, value) {
    const isCaptured = this.#captures !== undefined;
    if (isCaptured) this.#keep(HEADS, row >> HEAD_SHIFT);
    const words = this.#heads[row >> HEAD_SHIFT];
    const head = (row & HEAD_MASK) * HEAD_WORDS;
    const size = value < 0 ? -value : value;
    if (size <= this.zeroThreshold) {
      const low = head + ZERO_COUNT;
      if (words[low] === -1) storeWide(words, head, words, low, low + 1, (words[low + 1] + 1) * TWO_32);
      else words[low]++;
      words[head + CHANGES]++;
      return;
    }
    const index = indexOf(size, words[head + SCHEMA]);
    const side = head + (value < 0 ? NEGATIVE : POSITIVE);
    const chunk = (index >> CHUNK_SHIFT) - words[side + FIRST];
    if (chunk >>> 0 < words[side + LENGTH] && !isCaptured) {
      const directory = words[side + PLACE];
      const place = this.#pages[directory >> PAGE_SHIFT][(directory & PAGE_MASK) + chunk];
      const page = this.#pages[place >> PAGE_SHIFT];
      const slot = (place & PAGE_MASK) + (index & (CHUNK - 1));
      const count = page[slot] + 1;
      // The fast path: the bucket already has a count, so its chunk exists, and the new count fits into 32
      // bits.
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
    return this.#isStarted(row) ? readHead(this.memory, this.#headOf(row)) : this.#noBuckets();
  }

  /** @returns {BucketMemory} */
  get memory() {
    const { zeroThreshold, maxBuckets } = this;
    return { heads: this.#heads, pages: this.#pages, zeroThreshold, maxBuckets };
  }

  get pagesByKind() {
    return [this.#heads, this.#pages];
  }

  /** The size of its memory. */
  get byteLength() {
    return this.pagesByKind.flat().reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /**
   * Moves the pages to shared memory. Later pages are created there, and the table's followers are told about
   * them.
   *
   * @param {SeriesTable} table
   */
  share(table) {
    this.#table = table;
    if (this.#isShared) return;
    this.#isShared = true;
    this.#heads = this.#heads.map(sharedCopyOf);
    this.#pages = this.#pages.map(sharedCopyOf);
  }

  /**
   * Captures the buckets as they are now, to be read later.
   *
   * @returns {CapturedBuckets} the reader sets `isOver` when it does not need the capture any more
   */
  captured() {
    const capture = new CapturedBuckets(this.memory);
    // Weak, because not every reader finishes.
    this.#captures = [...(this.#captures ?? []), new WeakRef(capture)];
    return capture;
  }

  /**
   * To be called before a page changes.
   *
   * @param {number} kind
   * @param {number} number of the page
   */
  #keep(kind, number) {
    if (this.#captures === undefined) return;
    const page = this.pagesByKind[kind][number];
    const captures = this.#captures.filter(capture => capture.deref()?.isOver === false);
    for (const capture of captures) capture.deref()?.keep(kind, page, number);
    this.#captures = captures.length === 0 ? undefined : captures;
  }

  /**
   * @param {number} place
   * @returns {Int32Array} its page, which is about to change
   */
  #changingPage(place) {
    this.#keep(CHUNKS, place >> PAGE_SHIFT);
    return this.#pages[place >> PAGE_SHIFT];
  }

  /**
   * Rises with each change of a row.
   *
   * @param {number} row
   */
  changesOf(row) {
    return changesOfRow(this.#heads, row);
  }

  /**
   * A row without counts, and with the schema and zero threshold of the options.
   *
   * @param {number} row
   */
  clear(row) {
    this.#start(row);
    const head = this.#headOf(row);
    const { words, at } = head;
    // A new row already is in this state: writing it would take most of the time of a new label set.
    const isNew =
      words[at + POPULATED] === 0 &&
      words[at + SCHEMA] === this.schema &&
      words[at + ZERO_COUNT] === 0 &&
      words[at + ZERO_COUNT + 1] === 0;
    if (isNew) return;
    this.#keep(HEADS, row >> HEAD_SHIFT);
    this.#rewrite(head, this.#noBuckets());
  }

  /** @param {number} row */
  rowStarted(row) {
    this.clear(row);
  }

  /** @returns {import('./series-table').RowMove} */
  startMove() {
    const target = this.empty();
    target.#isShared = this.#isShared;
    return {
      copy: (old, row) => target.copyRow(row, this, old),
      finish: () => {
        // Perhaps they were shared since the move began.
        this.#isShared = target.#isShared;
        this.#heads = target.#heads;
        this.#pages = target.#pages;
        this.#end = target.#end;
        this.#free = target.#free;
      },
    };
  }

  /**
   * Copies the words of a row: sweeps and compactions do this for many rows, and reading them would create
   * objects for the garbage collector.
   *
   * @param {number} row
   * @param {NativeBuckets} from with the same options
   * @param {number} old its row
   */
  copyRow(row, from, old) {
    // The row may already have a copy of an earlier state.
    this.clear(row);
    const words = this.#heads[row >> HEAD_SHIFT];
    const head = headOf(row);
    const start = headOf(old);
    words.set(from.#heads[old >> HEAD_SHIFT].subarray(start, start + HEAD_WORDS), head);
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
    const page = this.#changingPage(place);
    const slot = place & PAGE_MASK;
    const isWide = words[at + IS_WIDE] !== 0;
    const before = (page[slot] >>> 0) + (isWide ? (page[slot + CHUNK] >>> 0) * TWO_32 : 0);
    const total = before + count;
    if (total >= TWO_32 && !isWide) {
      this.#rewrite(head, readHead(this.memory, head), true);
      this.#addCount(head, side, index, count);
      return;
    }
    if (isWide) storeWide(words, at, page, slot, slot + CHUNK, total);
    else page[slot] = total;
    if (before > 0) return;
    words[at + POPULATED]++;
    if (words[at + POPULATED] > this.maxBuckets && schema > MIN_SCHEMA) this.#lower(head);
  }

  /** @param {Head} head its schema is lowered by one, or by more if there are still too many buckets */
  #lower(head) {
    const buckets = readHead(this.memory, head);
    this.#rewrite(head, fitting(atSchema(buckets, buckets.schema - 1)));
  }

  /**
   * @param {Head} head
   * @param {Buckets} buckets its new content: no more than fit
   * @param {boolean} [isWide]
   */
  #rewrite(head, buckets, isWide = isLarge(buckets.positive) || isLarge(buckets.negative)) {
    const next = { words: new Int32Array(HEAD_WORDS), at: 0 };
    next.words[SCHEMA] = buckets.schema;
    next.words[IS_WIDE] = isWide ? 1 : 0;
    next.words[ZERO_COUNT] = buckets.zeroCount;
    next.words[ZERO_COUNT + 1] = buckets.zeroCount / TWO_32;
    for (const side of [POSITIVE, NEGATIVE]) {
      const { indices, counts } = side === POSITIVE ? buckets.positive : buckets.negative;
      for (let i = 0; i < indices.length; i++) this.#addCount(next, side, indices[i], counts[i]);
    }
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
   * Returns the place of a bucket, and creates its chunk if needed.
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
    const page = this.#changingPage(directory);
    const entry = (directory & PAGE_MASK) + number - words[at + FIRST];
    // Atomic, so that a reader sees an empty chunk, and not what its memory contained before.
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
    // Not destructured with computed keys: V8 optimises and deoptimises that repeatedly, which takes 10 times
    // as long.
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
      // The first chunk of the first page stays zero: it is read in place of missing chunks.
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
    this.#changingPage(place)[place & PAGE_MASK] = this.#free[size] ?? 0;
    this.#free[size] = place;
  }

  /**
   * @param {number} row
   * @returns {Head}
   */
  #headOf(row) {
    return { words: this.#heads[row >> HEAD_SHIFT], at: headOf(row) };
  }

  /**
   * @param {number} kind
   * @param {number} number of a new page
   */
  #tell(kind, number) {
    if (this.#table === undefined) return;
    for (const follower of this.#table.followers) follower.bucketsPlaced?.(kind, number);
  }

  /** @returns {Buckets} */
  #noBuckets() {
    const { schema, zeroThreshold, maxBuckets } = this;
    const positive = { indices: [], counts: [] };
    const negative = { indices: [], counts: [] };
    return { schema, zeroThreshold, zeroCount: 0, positive, negative, maxBuckets };
  }

  /** @param {number} row */
  #isStarted(row) {
    return headOf(row) < (this.#heads[row >> HEAD_SHIFT]?.length ?? 0);
  }

  /** @param {number} row has a head afterwards */
  #start(row) {
    const heads = this.#heads;
    while (!this.#isStarted(row)) {
      const last = heads.at(-1);
      const isFull = last === undefined || last.length === HEAD_WORDS << HEAD_SHIFT;
      const before = isFull ? 0 : last.length;
      const length = before * 2 || HEAD_WORDS * (last === undefined ? FIRST_HEADS : 1 << HEAD_SHIFT);
      const words = new Int32Array(length);
      if (!isFull) words.set(last);
      for (let at = before; at < length; at += HEAD_WORDS) {
        words[at + SCHEMA] = this.schema;
        words[at + CHECK] = checkOf(words, at);
      }
      const number = isFull ? heads.length : heads.length - 1;
      heads[number] = this.#isShared ? sharedCopyOf(words) : words;
      this.#tell(HEADS, number);
    }
  }
}

/**
 * Replaces a head. A thread may be terminated between the two stores, but not within set(). Of threads that
 * did nothing else, 1 in 100 was.
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
  // On ARM, writes after a store may become visible before that store, but not before a load that follows it.
  Atomics.load(words, at + VERSION);
  words.set(next, at);
  Atomics.store(words, at + VERSION, version + 2);
}

/**
 * The same for the two halves of a count.
 *
 * @param {Int32Array} words of the head
 * @param {number} at
 * @param {Int32Array} page
 * @param {number} low place of the lower half
 * @param {number} high
 * @param {number} count
 */
function storeWide(words, at, page, low, high, count) {
  const version = words[at + VERSION];
  Atomics.store(words, at + VERSION, version + 1);
  Atomics.load(words, at + VERSION);
  page[low] = count;
  page[high] = count / TWO_32;
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
 * @param {Int32Array} page
 * @returns {Int32Array} a copy in shared memory; the page itself if there is no memory, because the
 *   application must be able to record
 */
function sharedCopyOf(page) {
  try {
    const copy = new Int32Array(new SharedArrayBuffer(page.byteLength));
    copy.set(page);
    return copy;
  } catch {
    return page;
  }
}

/** @param {Side} side */
function isLarge({ counts }) {
  return counts.some(count => count >= TWO_32);
}

module.exports = { NativeBuckets };
