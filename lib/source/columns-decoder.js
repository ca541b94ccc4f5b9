'use strict';

// Reads the columns of a source. Their structure is checked before any part is used.

const { ByteReader, SnapshotError } = require('./byte-buffers');
const { hasChecksum, NO_CHECKSUM } = require('./checksum');
const { EXTRAS } = require('./extras');
const { readFailures } = require('./failure-counts');
const { isValidLabelName } = require('../registry/names');
const {
  MAGIC,
  END_MARK,
  BYTE_ORDER,
  VERSION,
  HEADER_BYTES,
  END_BYTES,
  INCARNATION_BYTES,
  LOG_NAME_BYTES,
  TABLE_ENTRY,
  JSON_ENTRY,
} = require('./source-format');

/** @type {import('./extras').RowExtras} */
const NO_EXTRAS = Object.freeze({});

/**
 * A part of the file.
 *
 * @typedef {{start: number, end: number}} Part
 */

/**
 * @typedef {object} TableEntry
 * @property {number} defaults
 * @property {number} metric
 * @property {import('./extras').Ended | undefined} ended if these rows have ended
 * @property {number} rowCount
 * @property {Part} numbers
 * @property {Int32Array | undefined} order undefined if all rows are live and in order
 * @property {{kind: number, count: number, part: Part}[]} extras
 */

/** @typedef {{defaults: number, json: any}} JsonEntry */

/**
 * @typedef {object} ColumnsHeader
 * @property {number} workerId
 * @property {string} incarnation
 * @property {number} sequence
 * @property {number} capturedAt milliseconds since the epoch
 * @property {string} log name of the log, hex
 * @property {number} logBytes how long the log was
 * @property {number} logChecksum of the log's first `logBytes` bytes
 * @property {boolean} isLast whether the process has recorded nothing after these columns
 * @property {number} bytes of the columns
 * @property {{numbersStart: number, columnsStart: number, checksum: number}} parts
 */

/**
 * @typedef {object} Columns
 * @property {[string, string][][]} defaultLabels
 * @property {import('./failure-counts').Failure[]} failures
 * @property {(TableEntry | JsonEntry)[]} entries
 * @property {Buffer} buffer
 */

/**
 * Reads the header, and checks that the columns are complete.
 *
 * @param {Buffer} buffer whose memory starts at a multiple of 8; more may follow the columns
 * @returns {ColumnsHeader}
 * @throws {SnapshotError} if the bytes do not follow the format
 */
function readHeader(buffer) {
  if (buffer.length < HEADER_BYTES + END_BYTES)
    throw new SnapshotError('length', `${buffer.length} bytes are too few`);
  // A worker that is killed while it writes leaves columns without a header, which is written last.
  if (buffer.readDoubleLE(0) === 0) throw new SnapshotError('length', 'the header is missing');
  if (buffer.compare(MAGIC, 0, 8, 0, 8) !== 0) throw new SnapshotError('magic', 'these are no columns');
  const header = new ByteReader(buffer, 8, HEADER_BYTES);
  checkWriter(header);
  const [incarnation, log] = [header.hex(INCARNATION_BYTES), header.hex(LOG_NAME_BYTES)];
  const [workerId, logChecksum, checksum] = [header.uint32(), header.uint32(), header.uint32()];
  const [sequence, capturedAt, logBytes, numbersStart, bytes, columnsStart] = Array.from({ length: 6 }, () =>
    header.float64(),
  );
  const isLast = header.uint32() === 1;
  const endStart = bytes - END_BYTES;
  // NaN fails all of these comparisons.
  const offsets = [HEADER_BYTES, numbersStart, columnsStart, endStart, buffer.length - END_BYTES];
  const isInOrder = offsets.every((each, i) => i === 0 || each >= offsets[i - 1]);
  if (!isInOrder) throw new SnapshotError('length', `${buffer.length} bytes, not ${bytes}`);
  if ([numbersStart, columnsStart, bytes].some(each => each % 8 !== 0))
    throw new SnapshotError('length', 'the offsets of the parts are invalid');
  if (
    buffer.compare(END_MARK, 0, 8, endStart + 8, bytes) !== 0 ||
    new ByteReader(buffer, endStart, bytes).float64() !== sequence
  ) {
    throw new SnapshotError('end-mark', 'the end mark is missing');
  }
  const parts = { numbersStart, columnsStart, checksum };
  return { workerId, incarnation, sequence, capturedAt, log, logBytes, logChecksum, isLast, bytes, parts };
}

/**
 * @param {ByteReader} header at the byte order
 * @throws {SnapshotError} if another release or another kind of machine has written the header
 */
function checkWriter(header) {
  if (header.uint32() !== BYTE_ORDER)
    throw new SnapshotError('byte-order', 'written in the other byte order');
  const version = header.uint32();
  if (version !== VERSION)
    throw new SnapshotError('version', `format version ${version}, expected ${VERSION}`);
}

/**
 * Reads the columns, and checks every length.
 *
 * @param {Buffer} buffer
 * @param {ColumnsHeader} header of it
 * @returns {Columns}
 * @throws {SnapshotError} if the bytes do not follow the format
 */
function decodeColumns(buffer, { bytes, parts: { numbersStart, columnsStart, checksum } }) {
  if (!hasChecksum(buffer.subarray(numbersStart, columnsStart), NO_CHECKSUM, checksum))
    throw new SnapshotError('checksum', 'the number part is damaged');
  const reader = new ByteReader(buffer, numbersStart, columnsStart);
  const parts = new PartReader(reader, columnsStart, bytes - END_BYTES);
  const defaultLabels = reader.list(() => reader.labels());
  const failures = readFailures(reader);
  const entries = reader.list(() => readEntry(reader, parts));
  if (!defaultLabels.every(labels => labels.every(([name]) => isValidLabelName(name))))
    throw new SnapshotError('numbers', 'a default label has an invalid name');
  if (entries.some(entry => entry.defaults >= defaultLabels.length)) {
    throw new SnapshotError('numbers', 'a metric refers to default labels that do not exist');
  }
  return { defaultLabels, failures, entries, buffer };
}

/**
 * Reads where parts are. Each begins behind the one before: if parts could overlap, a short snapshot could
 * contain the same million numbers a million times.
 */
class PartReader {
  #reader;
  #columnsStart;
  #end;
  /** Where the last part of the columns ends, and the last block that was written ahead. */
  #last;
  #lastAhead = HEADER_BYTES;

  /**
   * @param {ByteReader} reader of the number part
   * @param {number} columnsStart
   * @param {number} end of the columns
   */
  constructor(reader, columnsStart, end) {
    this.#reader = reader;
    this.#columnsStart = columnsStart;
    this.#end = end;
    this.#last = columnsStart;
  }

  /**
   * @returns {Part}
   * @throws {SnapshotError} if it is not behind those before it, or reaches past the end
   */
  next() {
    const [offset, bytes] = [this.#reader.float64(), this.#reader.float64()];
    const isAhead = offset < 0;
    const start = isAhead ? -offset : this.#columnsStart + offset;
    const end = start + bytes;
    const isInOrder = start >= (isAhead ? this.#lastAhead : this.#last) && bytes >= 0;
    if (!(isInOrder && end <= (isAhead ? this.#columnsStart : this.#end)))
      throw new SnapshotError('length', `${bytes} bytes at ${offset} are no part of the columns`);
    if (isAhead) this.#lastAhead = end;
    else this.#last = end;
    return { start, end };
  }
}

/**
 * @param {ByteReader} reader
 * @param {PartReader} parts
 * @returns {TableEntry | JsonEntry}
 */
function readEntry(reader, parts) {
  const kind = reader.uint32();
  const defaults = reader.uint32();
  if (kind === JSON_ENTRY) return { defaults, json: parseJson(reader.string()) };
  if (kind !== TABLE_ENTRY) throw new SnapshotError('numbers', `an entry of kind ${kind}`);
  const metric = reader.uint32();
  const ended = readEnded(reader.uint32());
  const [rowCount, liveCount, dense] = [reader.uint32(), reader.uint32(), reader.uint32()];
  const numbers = parts.next();
  const order = dense === 1 ? undefined : readOrder(reader.buffer, parts.next(), liveCount, rowCount);
  if (dense === 1 && liveCount !== rowCount)
    throw new SnapshotError('numbers', 'all rows should be live, but some are not');
  /** @type {TableEntry['extras']} */
  const extras = [];
  let before = -1;
  for (let left = reader.count(); left > 0; left--) {
    const [extra, count] = [reader.uint32(), reader.uint32()];
    if (!(extra in EXTRAS && extra > before)) throw new SnapshotError('numbers', `extras of kind ${extra}`);
    extras.push({ kind: extra, count, part: parts.next() });
    before = extra;
  }
  return { defaults, metric, ended, rowCount, numbers, order, extras };
}

/**
 * @param {number} number
 * @returns {import('./extras').Ended | undefined}
 */
function readEnded(number) {
  return number === 0 ? undefined : { batch: number >>> 1, isRemoved: number % 2 === 1 };
}

/**
 * A BigInt stays text: it may be a label value, with more digits than a number has.
 *
 * @param {string} _key
 * @param {any} value
 */
function readSpecial(_key, value) {
  const text = value?.$number;
  if (typeof text !== 'string' || Object.keys(value).length > 1) return value;
  return /^-?\d+$/.test(text) ? text : Number(text);
}

/** @param {string} text */
function parseJson(text) {
  try {
    return JSON.parse(text, readSpecial);
  } catch {
    throw new SnapshotError('numbers', 'a metric as JSON cannot be read');
  }
}

/**
 * @param {Buffer} buffer
 * @param {Part} part
 * @param {number} liveCount
 * @param {number} rowCount
 */
function readOrder(buffer, { start, end }, liveCount, rowCount) {
  const order = new ByteReader(buffer, start, end).int32Array(liveCount);
  for (let i = 0; i < order.length; i++) {
    if (order[i] < 0 || order[i] >= rowCount)
      throw new SnapshotError('numbers', `row ${order[i]} of ${rowCount}`);
  }
  return order;
}

/**
 * Returns a table's numbers without copying them.
 *
 * @param {Columns} all
 * @param {TableEntry} entry
 * @param {number} width numbers per row
 * @returns {Float64Array}
 * @throws {SnapshotError} if there are fewer
 */
function columnsOf({ buffer }, { numbers: { start, end }, rowCount }, width) {
  return new ByteReader(buffer, start, end).float64Array(rowCount * width);
}

/**
 * Returns what a table's rows have besides their columns.
 *
 * @param {Columns} all
 * @param {TableEntry} entry
 * @returns {import('./extras').RowExtras}
 * @throws {SnapshotError} if they reach past the end
 */
function extrasOf({ buffer }, { extras, rowCount }) {
  if (extras.length === 0) return NO_EXTRAS;
  /** @type {import('./extras').RowExtras} */
  const decoded = {};
  for (const { kind, count, part } of extras) {
    const { name, decode } = EXTRAS[kind];
    decoded[name] = decode(
      () => new ByteReader(buffer, part.start, part.end),
      count,
      rowCount,
      decoded[name],
    );
  }
  return decoded;
}

module.exports = { readHeader, checkWriter, decodeColumns, columnsOf, extrasOf, parseJson };
