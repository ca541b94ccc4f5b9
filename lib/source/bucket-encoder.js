'use strict';

// Runs in any process that records. Encodes the buckets of its native histograms. A block of all rows is made
// ahead of the capture, in slices; a row is encoded again only if it has changed. The capture adds a second
// block with the rows that have changed since then. So the capture is exact, and takes only the time for
// these rows.

const { BucketWriter, blockOf } = require('./bucket-rows');
const { BUCKETS, LATER_BUCKETS } = require('./source-format');
const { runThrough } = require('../event-loop/slices');

const ROWS_PER_STEP = 32;

/** Unlike counts of changes, versions are unique, even for rows that return and metrics registered again. */
let nextVersion = 1;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('../series/merged-buckets').Buckets} Buckets */
/** @typedef {import('./bucket-rows').EncodedRow} EncodedRow */
/** @typedef {import('./extras').ExtraBlock} ExtraBlock */

/**
 * The last encodings of a table's rows, and those in the block.
 *
 * @typedef {object} TableRows
 * @property {number} epoch of the table
 * @property {(EncodedRow | undefined)[]} rows
 * @property {readonly (EncodedRow | undefined)[]} inBlock
 * @property {ExtraBlock | undefined} block
 * @property {BucketWriter} writer
 */

/** @typedef {import('./extras').ExtraEncoder} ExtraEncoder */

/** @implements {ExtraEncoder} */
class BucketEncoder {
  /** @type {WeakMap<SeriesTable, TableRows>} */
  #tables = new WeakMap();

  /**
   * Encodes the rows that have changed.
   *
   * @param {MetricView} view of a native histogram
   * @param {boolean} [isAhead] whether blocks can still be written ahead of the capture
   * @returns {Generator<void>} yields where a slice may end
   */
  *encodeChanged(view, isAhead = false) {
    const encoded = this.#rowsOf(view.table);
    const later = yield* encodeLater(encoded, view);
    if (isAhead && later.length > 0) yield* makeBlock(encoded, view);
  }

  /**
   * @param {MetricView} view of a native histogram
   * @returns {ExtraBlock | undefined} as encodeChanged() has made it
   */
  aheadOf({ table }) {
    return this.#rowsOf(table).block;
  }

  /**
   * @param {MetricView} view of a native histogram
   * @returns {ExtraBlock[]} that block, and one of the rows that have changed since
   */
  blocksOf(view) {
    const encoded = this.#rowsOf(view.table);
    const later = runThrough(encodeLater(encoded, view));
    const blocks = encoded.block === undefined ? [] : [encoded.block];
    if (later.length > 0) blocks.push(runThrough(blockOf(LATER_BUCKETS, later, encoded.rows)));
    return blocks;
  }

  /**
   * @param {SeriesTable} table
   * @returns {TableRows} empty if the rows have been renumbered since then
   */
  #rowsOf(table) {
    const { epoch } = table;
    let encoded = this.#tables.get(table);
    if (encoded?.epoch !== epoch) {
      encoded = { epoch, rows: [], inBlock: [], block: undefined, writer: new BucketWriter() };
      this.#tables.set(table, encoded);
    }
    return encoded;
  }
}

/**
 * Encodes the rows that have changed.
 *
 * @param {TableRows} encoded
 * @param {MetricView} view of a native histogram
 * @returns {Generator<void, number[]>} the live rows whose current state is not in the block. Yields where a
 *   slice may end
 */
function* encodeLater({ epoch, rows, inBlock, writer }, view) {
  const { table } = view;
  const buckets = /** @type {import('./extras').SourceBuckets} */ (view.buckets);
  /** @type {number[]} */
  const later = [];
  for (let row = 0; row < table.rowCount && table.epoch === epoch; row++) {
    if (!table.isLive(row)) continue;
    const changes = buckets.changesOf(row);
    if (changes === undefined) {
      rows[row] = undefined;
    } else if (rows[row]?.changes !== changes) {
      const bytes = writer.add(/** @type {Buckets} */ (buckets.read(row)));
      rows[row] = { changes, version: nextVersion++, bytes };
    }
    if (rows[row] !== inBlock[row]) later.push(row);
    if ((row + 1) % ROWS_PER_STEP === 0) yield;
  }
  return later;
}

/**
 * Makes a block from the last encodings of all rows.
 *
 * @param {TableRows} encoded
 * @param {MetricView} view
 * @returns {Generator<void>} yields where a slice may end
 */
function* makeBlock(encoded, { table }) {
  /** @type {number[]} */
  const rows = [];
  for (let row = 0; row < encoded.rows.length; row++)
    if (encoded.rows[row] !== undefined && table.isLive(row)) rows.push(row);
  /** @type {EncodedRow[]} */
  const copies = [];
  encoded.block = yield* blockOf(BUCKETS, rows, encoded.rows, copies);
  encoded.inBlock = copies;
  // Keeps the copies in the block and frees the originals, except for rows that were encoded again meanwhile.
  copies.forEach((copy, row) => {
    if (copy.version === encoded.rows[row]?.version) encoded.rows[row] = copy;
  });
  encoded.writer = new BucketWriter();
}

module.exports = { BucketEncoder };
