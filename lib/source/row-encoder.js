'use strict';

// Runs in any process that records. Encodes what rows have in blocks: the digests of summaries, the buckets
// of native histograms. A block of all rows is made ahead of the capture, in slices; a row is encoded again
// only if it has changed. The capture adds a second block with the rows that have changed since then, so it
// takes only the time for these rows.

const { blockOf } = require('./row-blocks');
const { runThrough } = require('../event-loop/slices');

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('../series/series-table').SeriesTable} SeriesTable */
/** @typedef {import('./extras').ExtraBlock} ExtraBlock */

/**
 * How one kind of rows is encoded.
 *
 * @template Rows
 * @template {import('./row-blocks').EncodedRow} Row
 * @typedef {object} RowKind
 * @property {number} ahead kind of the block of all rows
 * @property {number} later kind of the block of rows that have changed since
 * @property {number} rowsPerStep a power of two
 * @property {(view: MetricView) => Rows | undefined} rowsOf undefined if the metric has no such rows
 * @property {(rows: Rows, row: number, encoded: Row, isExact: boolean) => boolean} [isCurrent] whether the
 *   row has not changed since it was encoded; unless `isExact`, whether it was not reset since. Without this
 *   function a row has changed if its changesOf() has, and captures have all that was recorded before them:
 *   with the call, a capture of 10,000 native rows takes a tenth longer
 * @property {(rows: Rows, row: number) => Row | undefined} encode undefined if the row has nothing
 */

/**
 * The last encodings of a table's rows, and those in the block.
 *
 * @typedef {object} TableRows
 * @property {number} epoch of the table
 * @property {any[]} rows
 * @property {readonly any[]} inBlock
 * @property {ExtraBlock | undefined} block
 * @property {boolean} areInBlock whether the block has the last encodings of all live rows
 * @property {Pick<SeriesTable, 'rowCount' | 'liveCount' | 'changes' | 'resets'> | undefined} table as it was
 *   before the rows were last encoded ahead
 */

/** @implements {ExtraEncoder} */
class RowEncoder {
  /** @type {WeakMap<SeriesTable, TableRows>} */
  #tables = new WeakMap();
  #kind;

  /** @param {RowKind<any, any>} kind */
  constructor(kind) {
    this.#kind = kind;
  }

  /**
   * Encodes the rows that have changed.
   *
   * @param {MetricView} view
   * @param {boolean} isAhead whether blocks can still be written ahead of the capture
   * @returns {Generator<void>} yields where a slice may end
   */
  *encodeChanged(view, isAhead) {
    const source = this.#kind.rowsOf(view);
    if (source === undefined) return;
    const { table } = view;
    const encoded = this.#rowsOf(table);
    const { rowCount, liveCount, changes, resets } = table;
    const later = yield* this.#encodeLater(encoded, table, source, true);
    encoded.table = { rowCount, liveCount, changes, resets };
    if (isAhead && later.length > 0) yield* this.#makeBlock(encoded, table);
  }

  /**
   * @param {MetricView} view
   * @returns {ExtraBlock | undefined} the block of all rows, as encodeChanged() has made it
   */
  aheadOf({ table }) {
    return this.#tables.get(table)?.block;
  }

  /**
   * @param {MetricView} view
   * @param {boolean} isExact
   * @returns {ExtraBlock[]} that block, and one of the rows that have changed since
   */
  blocksOf(view, isExact) {
    const kind = this.#kind;
    const source = kind.rowsOf(view);
    if (source === undefined) return [];
    const { table } = view;
    const encoded = this.#rowsOf(table);
    const blocks = encoded.block === undefined ? [] : [encoded.block];
    const mustBeExact = isExact || kind.isCurrent === undefined;
    // Looking at each row of a thousand summaries with 20 label sets would take 10 ms.
    if (!mustBeExact && encoded.areInBlock && unchangedRows(encoded, table) === table.rowCount) return blocks;
    const later = runThrough(this.#encodeLater(encoded, table, source, mustBeExact));
    if (later.length > 0) blocks.push(runThrough(blockOf(kind.later, later, encoded.rows)));
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
      encoded = { epoch, rows: [], inBlock: [], block: undefined, areInBlock: false, table: undefined };
      this.#tables.set(table, encoded);
    }
    return encoded;
  }

  /**
   * Encodes the rows that have changed.
   *
   * @param {TableRows} encoded
   * @param {SeriesTable} table
   * @param {any} source of the rows
   * @param {boolean} isExact
   * @returns {Generator<void, number[]>} the live rows whose current state is not in the block. Yields where
   *   a slice may end
   */
  *#encodeLater(encoded, table, source, isExact) {
    const { isCurrent, encode, rowsPerStep } = this.#kind;
    const lastOfStep = rowsPerStep - 1;
    const { epoch, rows, inBlock } = encoded;
    const unchanged = isExact ? 0 : unchangedRows(encoded, table);
    /** @type {number[]} */
    const later = [];
    for (let row = 0; row < table.rowCount && table.epoch === epoch; row++) {
      if (!table.isLive(row)) continue;
      const last = rows[row];
      const isOld =
        last === undefined ||
        (isCurrent === undefined
          ? last.changes !== source.changesOf(row)
          : row >= unchanged && !isCurrent(source, row, last, isExact));
      if (isOld) rows[row] = encode(source, row);
      if (rows[row] !== inBlock[row]) later.push(row);
      if ((row & lastOfStep) === lastOfStep) yield;
    }
    encoded.areInBlock = later.length === 0;
    return later;
  }

  /**
   * Makes a block from the last encodings of all rows.
   *
   * @param {TableRows} encoded
   * @param {SeriesTable} table
   * @returns {Generator<void>} yields where a slice may end
   */
  *#makeBlock(encoded, table) {
    /** @type {number[]} */
    const rows = [];
    /** @type {any[]} */
    const inBlock = [];
    for (let row = 0; row < encoded.rows.length; row++) {
      if (encoded.rows[row] === undefined || !table.isLive(row)) continue;
      rows.push(row);
      inBlock[row] = encoded.rows[row];
    }
    encoded.block = yield* blockOf(this.#kind.ahead, rows, inBlock, true);
    encoded.inBlock = inBlock;
    // A capture may have encoded some of them again meanwhile.
    encoded.areInBlock = rows.every(row => encoded.rows[row] === inBlock[row]);
  }
}

/**
 * @param {TableRows} encoded
 * @param {SeriesTable} table
 * @returns {number} how many of the first rows were not removed, reset or replaced since they were encoded;
 *   0 if any of them was
 */
function unchangedRows({ table: before }, table) {
  // Removing a row changes `changes`, but its return does not. `resets` is NaN if another thread resets rows.
  const isUnchanged =
    before !== undefined &&
    before.changes === table.changes &&
    before.resets === table.resets &&
    before.rowCount - before.liveCount === table.rowCount - table.liveCount;
  return isUnchanged ? before.rowCount : 0;
}

/** @typedef {import('./extras').ExtraEncoder} ExtraEncoder */

module.exports = { RowEncoder };
