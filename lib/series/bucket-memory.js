'use strict';

// The memory layout of sparse buckets, and how any thread reads them. A row has a head, and chunks of 16
// buckets that are found through two directories: one for the positive side, one for the negative side.
// Chunks without observations do not exist.

const { CHUNK_SHIFT } = require('./merged-buckets');
const { pageMaskOf } = require('./number-pages');

/** @typedef {import('./merged-buckets').Buckets} Buckets */
/** @typedef {import('./merged-buckets').Side} Side */

/**
 * @typedef {object} BucketMemory
 * @property {Int32Array[]} heads pages of heads
 * @property {Int32Array[]} pages of directories and chunks
 * @property {number} zeroThreshold of all rows
 * @property {number} maxBuckets of a row
 */

/**
 * The head of a row, or its replacement that is being built: words from `at` on.
 *
 * @typedef {{words: Int32Array, at: number}} Head
 */

// Fields of a head, in words. The version is odd while the head is replaced, so a reader in another thread
// reads again. Apart from counting, nothing is changed in place, because a thread may be terminated at any
// moment.
const VERSION = 0;
const SCHEMA = 1;
const CHANGES = 2;
const POPULATED = 3;
// Whether some count needs more than 32 bits. Chunks are then twice as long, with the upper 32 bits of the
// counts in the second half.
const IS_WIDE = 4;
// The first field of each side. A side has the place of its directory (or 0), the number of its first chunk,
// and the number of entries.
const POSITIVE = 5;
const NEGATIVE = 8;
const PLACE = 0;
const FIRST = 1;
const LENGTH = 2;
// The place of the checksum of the words that change only when a head is replaced, see isWhole().
const CHECK = 11;
// The lower 32 bits of the zero bucket's count; the next word has the upper ones.
const ZERO_COUNT = 12;
const HEAD_WORDS = 14;

/** A page has 2 to the power of this heads: about 128 KB. */
const HEAD_SHIFT = 11;
const HEAD_MASK = pageMaskOf(HEAD_SHIFT);

const CHUNK = 1 << CHUNK_SHIFT;

// A place is the number of a page, and an offset in it.
const PAGE_SHIFT = 14;
const PAGE_MASK = pageMaskOf(PAGE_SHIFT);
/** No place. */
const NONE = 0;

/** Kinds of pages. */
const HEADS = 0;
const CHUNKS = 1;

const TWO_32 = 2 ** 32;
const ATTEMPTS = 100;

/**
 * @param {BucketMemory} memory in which another thread may record
 * @param {number} row
 * @returns {Buckets | undefined} undefined if the row was replaced during each attempt, or if some of its
 *   memory is not there yet
 */
function readRow(memory, row) {
  const page = row >> HEAD_SHIFT;
  const head = { words: memory.heads[page], at: headOf(row) };
  if (!(head.at < head.words?.length)) return undefined;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const version = Atomics.load(head.words, head.at + VERSION);
    if (version % 2 !== 0) continue;
    const buckets = readIfThere(memory, head);
    // Unlike a load, no processor moves this before the reads above.
    if (Atomics.add(head.words, head.at + VERSION, 0) === version) return buckets;
  }
  // A thread was terminated between the two stores of the version: the head is still the old one, or already
  // the new one.
  const version = Atomics.load(head.words, head.at + VERSION);
  if (!isWhole(head)) return undefined;
  const buckets = readIfThere(memory, head);
  return Atomics.add(head.words, head.at + VERSION, 0) === version ? buckets : undefined;
}

/**
 * @param {Head} head
 * @returns {boolean} whether it is one head, and not a mixture of two
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
 * @param {BucketMemory} memory
 * @param {Head} head
 * @returns {Buckets | undefined} undefined if some of its memory is not there; garbage if the row is being
 *   replaced
 */
function readIfThere({ pages, zeroThreshold, maxBuckets }, { words, at }) {
  const positive = readSide(pages, words, at, at + POSITIVE);
  const negative = readSide(pages, words, at, at + NEGATIVE);
  if (positive === undefined || negative === undefined) return undefined;
  const zeroCount = (words[at + ZERO_COUNT] >>> 0) + words[at + ZERO_COUNT + 1] * TWO_32;
  return { schema: words[at + SCHEMA], zeroThreshold, zeroCount, positive, negative, maxBuckets };
}

/**
 * @param {BucketMemory} memory in which only this thread records
 * @param {Head} head
 * @returns {Buckets}
 */
function readHead(memory, head) {
  return /** @type {Buckets} */ (readIfThere(memory, head));
}

/**
 * @param {Int32Array[]} pages
 * @param {Int32Array} words
 * @param {number} head
 * @param {number} side
 * @returns {Side | undefined} undefined if a page is not there
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
  if (directory === undefined) return undefined;
  for (let chunk = 0; chunk < length; chunk++) {
    const place = directory[offset + chunk];
    if (place === NONE) continue;
    const page = pages[place >> PAGE_SHIFT];
    if (page === undefined) return undefined;
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
 * @param {Int32Array[]} heads
 * @param {number} row
 * @returns {number} rises with each change of the row; -1 if its memory is not there
 */
function changesOfRow(heads, row) {
  return heads[row >> HEAD_SHIFT]?.[headOf(row) + CHANGES] ?? -1;
}

/** @param {number} row */
function headOf(row) {
  return (row & HEAD_MASK) * HEAD_WORDS;
}

/** @param {number} isWide */
function chunkSize(isWide) {
  return isWide === 0 ? CHUNK : 2 * CHUNK;
}

module.exports = {
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
  readRow,
  checkOf,
  readHead,
  changesOfRow,
  headOf,
  chunkSize,
};
