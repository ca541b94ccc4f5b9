'use strict';

// Writes a snapshot of a source's columns: header, blocks written ahead, number part, columns, end mark.

const { ByteWriter } = require('./byte-buffers');
const { checksumOf, NO_CHECKSUM } = require('./checksum');
const { writeFailures } = require('./failure-counts');
const {
  MAGIC,
  END_MARK,
  BYTE_ORDER,
  VERSION,
  HEADER_BYTES,
  END_BYTES,
  TABLE_ENTRY,
  JSON_ENTRY,
} = require('./source-format');

/** @typedef {import('../exposition/live-family').MetricView} MetricView */
/** @typedef {import('./source-log').SourceLog} SourceLog */
/** @typedef {import('./blocks-ahead').BlocksAhead} BlocksAhead */
/** @typedef {import('./extras').ExtraBlock} ExtraBlock */

/** @type {readonly ExtraBlock[]} */
const NO_BLOCKS = Object.freeze([]);

/**
 * A captured metric: one of this library with its table, or the JSON of a custom metric object.
 *
 * @typedef {object} CaptureEntry
 * @property {number} defaults index of its registry's default labels
 * @property {MetricView} [view]
 * @property {readonly ExtraBlock[]} [extras] of the view
 * @property {string} [json] from stringifyJson()
 */

/**
 * @typedef {Pick<import('../series/series-table').SeriesTable,
 *   'rowCount' | 'liveCount' | 'live' | 'pages' | 'width'>} TableNumbers
 */

/**
 * @typedef {object} Capture
 * @property {number} workerId
 * @property {string} incarnation hex, 16 bytes
 * @property {number} sequence
 * @property {number} capturedAt milliseconds since 1970
 * @property {Record<string, unknown>[]} defaultLabels
 * @property {CaptureEntry[]} entries
 * @property {import('./failure-counts').Failure[]} failures
 * @property {boolean} [isLast] whether the process records nothing after this capture
 */

/** @typedef {{chunks: Uint8Array[], bytes: number}} EncodedColumns */

/**
 * Encodes a capture. Columns are not copied: the chunks are valid until the next number is recorded.
 *
 * @param {Capture} capture
 * @param {SourceLog} log has all metrics of the capture, and their rows
 * @param {BlocksAhead} ahead
 * @returns {EncodedColumns} the first chunk is the header, the next ones are those of `ahead`
 */
function encodeColumns(capture, log, ahead) {
  const head = new ByteWriter(4096, ahead.length);
  head.align(8);
  const numbersStart = head.length;
  const columns = new ByteWriter(16384);
  writeNumbers(head, columns, capture, log, ahead);
  head.align(8);
  columns.align(8);
  const columnsStart = head.length;
  const bytes = columnsStart + columns.length + END_BYTES;
  const checksum = head.chunksFrom(numbersStart).reduce((sum, chunk) => checksumOf(chunk, sum), NO_CHECKSUM);
  const header = encodeHeader(capture, log, { numbersStart, columnsStart, bytes, checksum });
  const end = new ByteWriter(END_BYTES);
  end.float64(capture.sequence);
  end.bytes(END_MARK);
  const chunks = [header, ...ahead.chunks(), ...head.chunks(), ...columns.chunks(), end.finish()];
  return { chunks, bytes };
}

/**
 * @param {Capture} capture
 * @param {SourceLog} log
 * @param {{numbersStart: number, columnsStart: number, bytes: number, checksum: number}} parts
 */
function encodeHeader(capture, log, { numbersStart, columnsStart, bytes, checksum }) {
  const header = new ByteWriter(HEADER_BYTES);
  header.bytes(MAGIC);
  header.uint32(BYTE_ORDER);
  header.uint32(VERSION);
  header.bytes(Buffer.from(capture.incarnation, 'hex'));
  header.bytes(Buffer.from(log.name, 'hex'));
  for (const value of [capture.workerId, log.checksum, checksum]) header.uint32(value);
  for (const value of [capture.sequence, capture.capturedAt, log.length]) header.float64(value);
  for (const value of [numbersStart, bytes, columnsStart]) header.float64(value);
  header.uint32(capture.isLast ? 1 : 0);
  header.bytes(new Uint8Array(HEADER_BYTES - header.length));
  return header.finish();
}

/**
 * @param {ByteWriter} writer
 * @param {ByteWriter} columns
 * @param {Capture} capture
 * @param {SourceLog} log
 * @param {BlocksAhead} ahead
 */
function writeNumbers(writer, columns, capture, log, ahead) {
  let last = 0;
  /** @param {ExtraBlock} block */
  const aheadOf = block => {
    const offset = ahead.offsetOf(block);
    // The offsets must rise, which they would not for a metric that is in two registries.
    return offset !== undefined && offset > last ? (last = offset) : undefined;
  };
  writer.list(capture.defaultLabels, labels => writer.labels(labels));
  writeFailures(writer, capture.failures);
  writer.list(capture.entries, entry => {
    const { view, extras = NO_BLOCKS } = entry;
    writer.uint32(view === undefined ? JSON_ENTRY : TABLE_ENTRY);
    writer.uint32(entry.defaults);
    if (view === undefined) {
      writer.string(entry.json ?? 'null');
    } else {
      writer.uint32(log.numberOf(view));
      writer.uint32(endedNumber(view.ended));
      writeColumns(writer, columns, view.numbers ?? view.table);
      writeExtras(writer, columns, extras, aheadOf);
    }
  });
}

/** @param {MetricView['ended']} ended */
function endedNumber(ended) {
  return ended === undefined ? 0 : ended.batch * 2 + (ended.isRemoved ? 1 : 0);
}

/**
 * @param {ByteWriter} writer
 * @param {ByteWriter} columns
 * @param {TableNumbers} numbers
 */
function writeColumns(writer, columns, { rowCount, liveCount, live, pages, width }) {
  writer.uint32(rowCount);
  writer.uint32(liveCount);
  writer.uint32(live === undefined ? 1 : 0);
  let left = rowCount * width * 8;
  writePart(writer, columns, left);
  for (const page of pages) {
    const bytes = Math.min(left, page.byteLength);
    columns.append(page, bytes);
    left -= bytes;
  }
  if (live !== undefined) {
    writePart(writer, columns, liveCount * 4);
    columns.append(live.rows());
  }
}

/**
 * @param {ByteWriter} writer
 * @param {ByteWriter} columns
 * @param {readonly ExtraBlock[]} blocks
 * @param {(block: ExtraBlock) => number | undefined} aheadOf offset of a block in the file, if it was written
 *   ahead
 */
function writeExtras(writer, columns, blocks, aheadOf) {
  writer.list(blocks, block => {
    writer.uint32(block.kind);
    writer.uint32(block.count);
    const bytes = block.chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const ahead = aheadOf(block);
    if (ahead === undefined) {
      writePart(writer, columns, bytes);
      for (const chunk of block.chunks) columns.append(chunk);
    } else {
      writer.float64(-ahead);
      writer.float64(bytes);
    }
  });
}

/**
 * Writes where the next part of the columns begins, and how long it is.
 *
 * @param {ByteWriter} writer
 * @param {ByteWriter} columns
 * @param {number} bytes
 */
function writePart(writer, columns, bytes) {
  columns.align(8);
  writer.float64(columns.length);
  writer.float64(bytes);
}

/**
 * A metric's get() as JSON. NaN, infinities and BigInt, which JSON does not have, become objects.
 *
 * @param {unknown} metric
 * @returns {string}
 * @throws {TypeError} if JSON cannot represent it
 */
function stringifyJson(metric) {
  return JSON.stringify(metric, (_key, value) => {
    const isSpecial = typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value));
    return isSpecial ? { $number: String(value) } : value;
  });
}

module.exports = { stringifyJson, encodeColumns };
