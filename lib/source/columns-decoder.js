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
 * A part of the file, as offsets from the start of the columns; negative for blocks before the columns.
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
 * @property {ByteReader} columns
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
  const columns = new ByteReader(buffer, columnsStart, bytes - END_BYTES);
  const numbers = readNumbers(new ByteReader(buffer, numbersStart, columnsStart), columns, numbersStart);
  return { ...numbers, columns };
}

/**
 * @param {ByteReader} reader
 * @param {ByteReader} columns
 * @param {number} aheadEnd end of the blocks that were written ahead
 */
function readNumbers(reader, columns, aheadEnd) {
  const defaultLabels = reader.list(() => reader.labels());
  const failures = readFailures(reader);
  /** @type {Part[]} */
  const parts = [];
  /** @type {Part[]} */
  const ahead = [];
  const read = reader.list(() => readEntry(reader, parts, ahead));
  setEnds(parts, columns.end - columns.position);
  setEnds(ahead, aheadEnd);
  for (const part of ahead) {
    part.start -= columns.position;
    part.end -= columns.position;
  }
  const entries = read.map(entry => ('json' in entry ? entry : withOrder(entry, columns)));
  if (!defaultLabels.every(labels => labels.every(([name]) => isValidLabelName(name))))
    throw new SnapshotError('numbers', 'a default label has an invalid name');
  if (entries.some(entry => entry.defaults >= defaultLabels.length)) {
    throw new SnapshotError('numbers', 'a metric refers to default labels that do not exist');
  }
  return { defaultLabels, failures, entries };
}

/**
 * Sets the end of each part to the start of the next one. If parts could overlap, a short snapshot could
 * contain the same million numbers a million times.
 *
 * @param {Part[]} parts in the order of the entries
 * @param {number} length of the whole
 * @throws {SnapshotError} if they are not in that order
 */
function setEnds(parts, length) {
  let end = length;
  for (let i = parts.length - 1; i >= 0; i--) {
    const { start } = parts[i];
    if (!(start >= 0 && start <= end))
      throw new SnapshotError('length', `${start} is not the offset of a column that ends at ${end}`);
    parts[i].end = end;
    end = start;
  }
}

/**
 * @typedef {Omit<TableEntry, 'order'> & {liveCount: number, order: Part | undefined}} ReadEntry its order is
 *   not read yet
 */

/**
 * @param {ByteReader} reader
 * @param {Part[]} parts of the columns; those of the entry are added
 * @param {Part[]} ahead the same for blocks that were written ahead, as offsets in the file
 * @returns {ReadEntry | JsonEntry}
 */
function readEntry(reader, parts, ahead) {
  const kind = reader.uint32();
  const defaults = reader.uint32();
  if (kind === JSON_ENTRY) return { defaults, json: parseJson(reader.string()) };
  if (kind !== TABLE_ENTRY) throw new SnapshotError('numbers', `an entry of kind ${kind}`);
  const readPart = () => {
    const offset = reader.float64();
    const part = { start: Math.abs(offset), end: 0 };
    (offset < 0 ? ahead : parts).push(part);
    return part;
  };
  const metric = reader.uint32();
  const ended = readEnded(reader.uint32());
  const [rowCount, liveCount, dense] = [reader.uint32(), reader.uint32(), reader.uint32()];
  const numbers = readPart();
  const order = dense === 1 ? undefined : readPart();
  if (dense === 1 && liveCount !== rowCount)
    throw new SnapshotError('numbers', 'all rows should be live, but some are not');
  /** @type {TableEntry['extras']} */
  const extras = [];
  let before = -1;
  for (let left = reader.count(); left > 0; left--) {
    const [extra, count] = [reader.uint32(), reader.uint32()];
    if (!(extra in EXTRAS && extra > before)) throw new SnapshotError('numbers', `extras of kind ${extra}`);
    extras.push({ kind: extra, count, part: readPart() });
    before = extra;
  }
  return { defaults, metric, ended, rowCount, liveCount, numbers, order, extras };
}

/**
 * @param {number} number
 * @returns {import('./extras').Ended | undefined}
 */
function readEnded(number) {
  return number === 0 ? undefined : { batch: number >>> 1, isRemoved: number % 2 === 1 };
}

/**
 * Lists the properties, because `...entry` takes twice as long.
 *
 * @param {ReadEntry} entry
 * @param {ByteReader} columns
 * @returns {TableEntry}
 */
function withOrder(entry, columns) {
  const { defaults, metric, ended, rowCount, liveCount, numbers, extras } = entry;
  const order = entry.order && readOrder(readerOf(columns, entry.order), liveCount, rowCount);
  return { defaults, metric, ended, rowCount, numbers, order, extras };
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
 * @param {ByteReader} columns
 * @param {Part} part
 */
function readerOf({ buffer, position }, { start, end }) {
  return new ByteReader(buffer, position + start, position + end);
}

/**
 * @param {ByteReader} reader
 * @param {number} liveCount
 * @param {number} rowCount
 */
function readOrder(reader, liveCount, rowCount) {
  const order = reader.int32Array(liveCount);
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
function columnsOf({ columns }, entry, width) {
  return readerOf(columns, entry.numbers).float64Array(entry.rowCount * width);
}

/**
 * Returns what a table's rows have besides their columns.
 *
 * @param {Columns} all
 * @param {TableEntry} entry
 * @returns {import('./extras').RowExtras}
 * @throws {SnapshotError} if they reach past the end
 */
function extrasOf({ columns }, { extras, rowCount }) {
  if (extras.length === 0) return NO_EXTRAS;
  /** @type {import('./extras').RowExtras} */
  const decoded = {};
  for (const { kind, count, part } of extras) {
    const { name, decode } = EXTRAS[kind];
    decoded[name] = decode(() => readerOf(columns, part), count, rowCount, decoded[name]);
  }
  return decoded;
}

module.exports = { readHeader, checkWriter, decodeColumns, columnsOf, extrasOf, parseJson };
