'use strict';

// Extras: what rows have besides their columns. A snapshot has a block of each kind for each metric that has
// it. A new kind is added here; source.js chooses its encoder, and store/cluster-family.js merges it.

const { RowBlock } = require('./row-blocks');
const { digestReader } = require('./digest-rows');
const { decodeExemplars } = require('./exemplars');
const { DIGESTS, LATER_DIGESTS, EXEMPLARS, BUCKETS, LATER_BUCKETS } = require('./source-format');

/** @typedef {import('./byte-buffers').ByteReader} ByteReader */

/**
 * The extras of a source, by kind.
 *
 * @typedef {object} RowExtras
 * @property {(row: number) => import('../store/family-quantiles').SourceDigest} [digestOf] of a summary
 * @property {() => import('./exemplars').PlacedExemplar[]} [exemplars] with rows and columns of the source;
 *   throws a SnapshotError if they reach past the end
 * @property {SourceBuckets} [buckets] of a native histogram
 */

/**
 * The sparse buckets of rows. Both functions return undefined for a row without them.
 *
 * @typedef {object} SourceBuckets
 * @property {(row: number) => import('../series/merged-buckets').Buckets | undefined} read
 * @property {(row: number) => number | undefined} changesOf another number after each change of the row
 */

/**
 * Marks a table of ended rows: the number of their batch, from 1 on, and whether the program has removed
 * them; otherwise they have expired.
 *
 * @typedef {{batch: number, isRemoved: boolean}} Ended
 */

/**
 * A block: its kind, how many parts it has, as its kind counts them, and its bytes, a multiple of 8. A metric
 * has them by rising kind.
 *
 * @typedef {{kind: number, count: number, chunks: ArrayBufferView[]}} ExtraBlock
 */

/** @typedef {import('../exposition/live-family').MetricView} MetricView */

/**
 * @typedef {object} ExtraEncoder
 * @property {(view: MetricView, isAhead: boolean) => Generator<void>} encodeChanged encodes what has changed;
 *   `isAhead` if blocks can still be written ahead of the capture. Yields where a slice may end
 * @property {(view: MetricView, isExact: boolean) => ExtraBlock[]} blocksOf as encoded; `isExact` if what
 *   has changed since must be in them, however long that takes
 * @property {(view: MetricView) => ExtraBlock | undefined} [aheadOf] a block of a single chunk that can be
 *   written ahead of the capture: blocksOf() gives the same block or another one
 */

/**
 * @typedef {object} ExtraKind
 * @property {keyof RowExtras} name
 * @property {(open: () => ByteReader, count: number, rowCount: number, before: any) => any} decode without a
 *   copy; `open` gives a reader at the beginning, `before` is what an earlier kind of that name has decoded
 */

/** @type {Readonly<Record<number, ExtraKind>>} */
const EXTRAS = {
  [DIGESTS]: { name: 'digestOf', decode: readDigests },
  [LATER_DIGESTS]: { name: 'digestOf', decode: readDigests },
  // Exemplars are decoded only when they are shown.
  [EXEMPLARS]: { name: 'exemplars', decode: (open, count) => () => decodeExemplars(open(), count) },
  [BUCKETS]: { name: 'buckets', decode: readBuckets },
  [LATER_BUCKETS]: { name: 'buckets', decode: readBuckets },
};

const NO_DIGEST = { version: 0, centroids: new Float64Array(0) };

/**
 * @param {() => ByteReader} open
 * @param {number} count
 * @param {number} rowCount
 * @param {RowExtras['digestOf']} earlier
 * @returns {NonNullable<RowExtras['digestOf']>}
 * @throws {SnapshotError} if they are not valid
 */
function readDigests(open, count, rowCount, earlier) {
  const block = new RowBlock(open(), count, rowCount, digestReader);
  return row => {
    const version = block.versionOf(row);
    if (version === undefined) return earlier?.(row) ?? NO_DIGEST;
    return { version, centroids: /** @type {Float64Array} */ (block.read(row)) };
  };
}

/**
 * @param {() => ByteReader} open
 * @param {number} count
 * @param {number} rowCount
 * @param {SourceBuckets | undefined} earlier
 * @returns {SourceBuckets}
 * @throws {SnapshotError} if they are not valid
 */
function readBuckets(open, count, rowCount, earlier) {
  // Loaded on first use: programs without native histograms do not need this file.
  const { BucketReader } = require('./bucket-rows');
  const block = new RowBlock(open(), count, rowCount, bytes => new BucketReader(bytes));
  return {
    read: row => block.read(row) ?? earlier?.read(row),
    changesOf: row => block.versionOf(row) ?? earlier?.changesOf(row),
  };
}

/** @typedef {import('./byte-buffers').SnapshotError} SnapshotError */

module.exports = { EXTRAS };
