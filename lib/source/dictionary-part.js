'use strict';

// Encodes what precedes the numbers of a snapshot: digests, and the dictionary part, which has the metrics,
// label values and label sets that the reader does not have. It can be encoded before the snapshot, a piece
// at a time, because the label set of a row does not change within its table's epoch, and a digest may be
// slightly older than its numbers.

const { KINDS, kindOf } = require('../series/layouts');
const { ByteWriter } = require('./byte-buffers');
const { HEADER_BYTES, DEFINITION, ROWS, DROPPED } = require('./snapshot-format');

/** Rows that are encoded at once. This takes 0.05 ms. */
const ROWS_PER_PIECE = 512;

/** Numbers of digests that are written at once. This takes 0.05 ms. */
const NUMBERS_PER_PIECE = 16384;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./series-journal').Segment} Segment */
/** @typedef {import('./series-journal').JournalMetric} JournalMetric */

class DictionaryPart {
  #writer = new ByteWriter(16384, HEADER_BYTES);
  /** @type {Map<import('./extras').ExtraBlock, number>} offsets in the file */
  #blocks = new Map();

  /**
   * @param {number} epoch of the journal
   * @param {number} start position in the journal
   */
  constructor(epoch, start) {
    this.epoch = epoch;
    this.start = start;
    /** The position up to which the journal is encoded. */
    this.end = start;
    this.segments = 0;
    /** The position in the file at which the part begins: digests precede it. */
    this.offset = HEADER_BYTES;
  }

  /** The position in the file at which the part ends. */
  get length() {
    return this.#writer.length;
  }

  /** @returns {readonly Uint8Array[]} the chunks that no longer change */
  get completeChunks() {
    return this.#writer.completeChunks;
  }

  /**
   * Adds blocks of digests, before anything else. They must not change any more.
   *
   * @param {Iterable<import('./extras').ExtraBlock>} blocks each of one chunk of numbers
   * @returns {Generator<void>} yields after each piece
   */
  *addBlocks(blocks) {
    for (const block of blocks) {
      this.#blocks.set(block, this.length);
      const numbers = /** @type {Float64Array} */ (block.chunks[0]);
      for (let from = 0; from < numbers.length; from += NUMBERS_PER_PIECE) {
        this.#writer.append(numbers.subarray(from, from + NUMBERS_PER_PIECE));
        this.offset = this.length;
        yield;
      }
    }
  }

  /**
   * @param {import('./extras').ExtraBlock} block
   * @returns {number | undefined} its offset in the file, if it was added
   */
  offsetOf(block) {
    return this.#blocks.get(block);
  }

  /**
   * Encodes the next segments. Between two pieces the program may record, and tables may be compacted.
   *
   * @param {readonly Segment[]} segments
   * @param {number} end position in the journal after the last one
   * @returns {Generator<void>} yields after each piece
   */
  *add(segments, end) {
    for (const segment of segments) {
      yield* writeSegment(this.#writer, segment);
      this.segments++;
      yield;
    }
    this.end = end;
  }

  /** @returns {Uint8Array[]} what follows the header; complete chunks are the same objects each time */
  chunks() {
    return this.#writer.chunks();
  }
}

/**
 * @param {ByteWriter} writer
 * @param {Segment} segment
 * @returns {Generator<void>} yields after each piece
 */
function* writeSegment(writer, segment) {
  const { metric, defines, drops, fromRow, toRow } = segment;
  const { index } = metric.view.table;
  // The label sets come last in the segment but are read first: what is read later may belong to a later
  // epoch.
  const labelSets = drops ? undefined : yield* labelSetsOf(segment);
  if (defines) writeDefinition(writer, metric);
  else writer.uint32(0);
  writer.uint32(drops ? DROPPED : ROWS);
  writer.uint32(metric.number);
  if (drops) return;
  writer.uint32(labelSets === undefined ? 0 : fromRow);
  writer.uint32(labelSets === undefined ? 0 : toRow - fromRow);
  if (metric.labelNames.length === 0) return;
  // Without rows, there are no values either: those of the table may be of a later epoch.
  const sets = index === undefined ? undefined : labelSets;
  for (let label = 0; label < metric.labelNames.length; label++) {
    const [from, to] = sets === undefined ? [1, 1] : [segment.fromValues[label], segment.toValues[label]];
    writer.uint32(from);
    yield* writer.stringsInPieces(index?.dictionaries[label]?.values ?? [], from, to);
  }
  const { forms, tuples } = sets ?? { forms: [], tuples: [] };
  writer.list(forms, ({ positions }) => writer.list(positions, position => writer.uint32(position)));
  writer.align(4);
  for (const piece of tuples) {
    writer.append(piece);
    yield;
  }
}

/**
 * Reads the label sets of a segment: per row its form, then its integer for each label; and the forms, as
 * they were when the last row was read. A label name that the program adds later brings forms that the
 * definition does not know.
 *
 * @param {Segment} segment
 * @returns {Generator<void, {tuples: Int32Array[], forms: readonly {positions: readonly number[]}[]}
 *   | undefined>} undefined if the rows have been renumbered: the journal then drops the metric. Yields after
 *   each piece.
 */
function* labelSetsOf({ metric, fromRow, toRow }) {
  const { table } = metric.view;
  if (table.epoch !== metric.tableEpoch) return undefined;
  const { index } = table;
  let forms = table.forms.list.slice();
  /** @type {Int32Array[]} */
  const tuples = [];
  if (index === undefined) return { tuples, forms };
  for (let from = fromRow; from < toRow; from += ROWS_PER_PIECE) {
    if (table.epoch !== metric.tableEpoch) return undefined;
    const to = Math.min(from + ROWS_PER_PIECE, toRow);
    const piece = new Int32Array((to - from) * (index.width + 1));
    let at = 0;
    for (let row = from; row < to; row++) {
      piece[at++] = table.formOf(row);
      for (let label = 0; label < index.width; label++) piece[at++] = index.idAt(row, label);
    }
    tuples.push(piece);
    forms = table.forms.list.slice();
    yield;
  }
  return { tuples, forms };
}

/**
 * @param {ByteWriter} writer
 * @param {JournalMetric} metric
 */
function writeDefinition(writer, { number, labelNames, view }) {
  const { name, help, type, aggregator, layout } = view;
  writer.uint32(DEFINITION);
  writer.uint32(number);
  for (const text of [name, help, type, aggregator]) writer.string(String(text));
  writer.uint32(KINDS.indexOf(kindOf(layout)));
  writer.list([...layout.marks], mark => writer.float64(Number(mark)));
  writer.uint32(view.windowed ? 1 : 0);
  writer.list(labelNames, labelName => writer.string(labelName));
}

module.exports = { DictionaryPart };
