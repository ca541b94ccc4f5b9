'use strict';

// Reads one snapshot of a worker, and checks its structure before any of it is used.

const { ByteReader, SnapshotError } = require('./byte-buffers');
const { readDictionary } = require('./dictionary-decoder');
const { decodeExemplars } = require('./exemplars');
const { readFailures } = require('./failure-counts');
const { isValidLabelName } = require('../../registry/names');
const {
  MAGIC,
  END_MARK,
  BYTE_ORDER,
  VERSION,
  HEADER_BYTES,
  END_BYTES,
  INCARNATION_BYTES,
  TABLE_ENTRY,
  JSON_ENTRY,
} = require('./snapshot-format');

/**
 * @typedef {object} TableEntry
 * @property {number} defaults
 * @property {number} metric
 * @property {number} rowCount
 * @property {number} columnsStart
 * @property {Int32Array | undefined} order undefined if all rows are live and in order
 * @property {number | undefined} digestsStart
 * @property {number} exemplarCount
 * @property {number} exemplarsStart
 */

/** @typedef {{defaults: number, json: any}} JsonEntry */

/**
 * @typedef {object} SnapshotHeader
 * @property {number} workerId
 * @property {string} incarnation
 * @property {number} epoch
 * @property {number} sequence
 * @property {number} capturedAt milliseconds since the epoch
 * @property {number} dictionaryStart
 * @property {number} dictionaryEnd
 */

/**
 * @typedef {object} SnapshotParts
 * @property {import('./dictionary-decoder').DictionaryRecord[]} dictionary
 * @property {[string, string][][]} defaultLabels
 * @property {import('./failure-counts').Failure[]} failures
 * @property {(TableEntry | JsonEntry)[]} entries
 * @property {ByteReader} columns
 * @property {number} bytes
 */

/** @typedef {SnapshotHeader & SnapshotParts} Snapshot */

/**
 * Reads a snapshot, and checks every length.
 *
 * @param {Buffer} buffer whose memory starts at a multiple of 8
 * @param {(metric: number) => number | undefined} labelCountOf number of labels of a metric that an earlier
 *   snapshot defined
 * @param {(header: SnapshotHeader) => void} checkHeader may throw; called before the dictionary is read,
 *   because the dictionary may continue one that the reader does not have
 * @returns {Snapshot}
 * @throws {SnapshotError} if the bytes do not follow the format
 */
function decodeSnapshot(buffer, labelCountOf, checkHeader) {
  if (buffer.length < HEADER_BYTES + END_BYTES)
    throw new SnapshotError('length', `${buffer.length} bytes are too few`);
  if (buffer.compare(MAGIC, 0, 8, 0, 8) !== 0) throw new SnapshotError('magic', 'this is not a snapshot');
  const header = new ByteReader(buffer, 8, HEADER_BYTES);
  if (header.uint32() !== BYTE_ORDER)
    throw new SnapshotError('byte-order', 'written in the other byte order');
  const version = header.uint32();
  if (version !== VERSION)
    throw new SnapshotError('version', `format version ${version}, expected ${VERSION}`);
  const incarnation = buffer.toString('hex', header.position, header.position + INCARNATION_BYTES);
  header.position += INCARNATION_BYTES;
  const [workerId, epoch] = [header.uint32(), header.uint32()];
  const [sequence, capturedAt, dictionaryStart, dictionaryEnd, numbersStart, columnsStart, bytes] =
    Array.from({ length: 7 }, () => header.float64());
  const endStart = buffer.length - END_BYTES;
  if (bytes !== buffer.length) throw new SnapshotError('length', `${buffer.length} bytes, not ${bytes}`);
  if (
    buffer.compare(END_MARK, 0, 8, endStart + 8) !== 0 ||
    new ByteReader(buffer, endStart, buffer.length).float64() !== sequence
  ) {
    throw new SnapshotError('end-mark', 'the end mark is missing');
  }
  const inOrder = HEADER_BYTES <= numbersStart && numbersStart <= columnsStart && columnsStart <= endStart;
  if (!inOrder || numbersStart % 8 !== 0 || columnsStart % 8 !== 0 || !(dictionaryStart <= dictionaryEnd)) {
    throw new SnapshotError('length', 'the offsets of the parts are invalid');
  }

  const identity = { workerId, incarnation, epoch, sequence, capturedAt, dictionaryStart, dictionaryEnd };
  checkHeader(identity);

  const columns = new ByteReader(buffer, columnsStart, endStart);
  const dictionary = readDictionary(new ByteReader(buffer, HEADER_BYTES, numbersStart), labelCountOf);
  const numbers = readNumbers(new ByteReader(buffer, numbersStart, columnsStart), columns);
  return { ...identity, dictionary, ...numbers, columns, bytes };
}

/**
 * @param {ByteReader} reader
 * @param {ByteReader} columns
 */
function readNumbers(reader, columns) {
  const defaultLabels = reader.list(() => reader.labels());
  const failures = readFailures(reader);
  const entries = reader.list(() => readEntry(reader, columns));
  if (!defaultLabels.every(labels => labels.every(([name]) => isValidLabelName(name))))
    throw new SnapshotError('numbers', 'a default label has an invalid name');
  if (entries.some(entry => entry.defaults >= defaultLabels.length)) {
    throw new SnapshotError('numbers', 'a metric refers to default labels that do not exist');
  }
  return { defaultLabels, failures, entries };
}

/**
 * @param {ByteReader} reader
 * @param {ByteReader} columns
 * @returns {TableEntry | JsonEntry}
 */
function readEntry(reader, columns) {
  const kind = reader.uint32();
  const defaults = reader.uint32();
  if (kind === JSON_ENTRY) return { defaults, json: parseJson(reader.string()) };
  if (kind !== TABLE_ENTRY) throw new SnapshotError('numbers', `an entry of kind ${kind}`);
  const [metric, rowCount, liveCount, dense] = [
    reader.uint32(),
    reader.uint32(),
    reader.uint32(),
    reader.uint32(),
  ];
  const columnsStart = reader.float64();
  const order = dense === 1 ? undefined : readOrder(viewAt(columns, reader.float64()), liveCount, rowCount);
  if (dense === 1 && liveCount !== rowCount)
    throw new SnapshotError('numbers', 'all rows should be live, but some are not');
  const digestsStart = reader.uint32() === 1 ? reader.float64() : undefined;
  const exemplarCount = reader.uint32();
  const exemplarsStart = exemplarCount > 0 ? reader.float64() : 0;
  return {
    defaults,
    metric,
    rowCount,
    columnsStart,
    order,
    digestsStart,
    exemplarCount,
    exemplarsStart,
  };
}

/**
 * @param {string} _key
 * @param {any} value
 */
function readNonFinite(_key, value) {
  const text = value?.$number;
  return typeof text === 'string' && Object.keys(value).length === 1 ? Number(text) : value;
}

/** @param {string} text */
function parseJson(text) {
  try {
    return JSON.parse(text, readNonFinite);
  } catch {
    throw new SnapshotError('numbers', 'a metric as JSON cannot be read');
  }
}

/**
 * A reader at an offset in the columns.
 *
 * @param {ByteReader} columns
 * @param {number} offset
 */
function viewAt(columns, offset) {
  if (!(offset >= 0)) throw new SnapshotError('length', `${offset} is not the offset of a column`);
  return new ByteReader(columns.buffer, columns.position + offset, columns.end);
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
 * A table's numbers, without a copy.
 *
 * @param {Snapshot} snapshot
 * @param {TableEntry} entry
 * @param {number} width numbers per row
 * @returns {Float64Array}
 * @throws {SnapshotError} if there are fewer
 */
function columnsOf(snapshot, entry, width) {
  return viewAt(snapshot.columns, entry.columnsStart).float64Array(entry.rowCount * width);
}

/**
 * A summary's digests, without a copy.
 *
 * @param {Snapshot} snapshot
 * @param {TableEntry} entry
 * @returns {((row: number) => {version: number, centroids: Float64Array}) | undefined} undefined if there are
 *   none
 * @throws {SnapshotError} if they reach past the end
 */
function digestsOf(snapshot, { digestsStart, rowCount }) {
  if (digestsStart === undefined) return undefined;
  const reader = viewAt(snapshot.columns, digestsStart);
  const index = reader.float64Array(rowCount * 2);
  /** @type {Float64Array[]} */
  const centroids = [];
  for (let row = 0; row < rowCount; row++) {
    const count = index[row * 2];
    if (!(count >= 0)) throw new SnapshotError('numbers', `a digest of ${count} centroids`);
    centroids.push(reader.float64Array(count * 2));
  }
  return row => ({ version: index[row * 2 + 1], centroids: centroids[row] });
}

/**
 * A metric's exemplars. They are decoded when they are shown.
 *
 * @param {Snapshot} snapshot
 * @param {TableEntry} entry
 * @returns {(() => import('./exemplars').PlacedExemplar[]) | undefined} throws a SnapshotError if they reach
 *   past the end; undefined if there are none
 */
function exemplarsOf(snapshot, { exemplarCount, exemplarsStart }) {
  if (exemplarCount === 0) return undefined;
  return () => decodeExemplars(viewAt(snapshot.columns, exemplarsStart), exemplarCount);
}

module.exports = { decodeSnapshot, columnsOf, digestsOf, exemplarsOf };
