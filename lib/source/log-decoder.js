'use strict';

// Reads records of a log (see source-log.js), and checks their structure.

const { layoutFrom } = require('../series/layouts');
const { ByteReader, SnapshotError } = require('./byte-buffers');
const { checkWriter } = require('./columns-decoder');
const { isValidLabelName } = require('../registry/names');
const {
  LOG_MAGIC,
  LOG_HEADER_BYTES,
  LOG_NAME_BYTES,
  DEFINE,
  ROWS,
  DROP,
  STARTS,
} = require('./source-format');

/**
 * @typedef {object} Definition
 * @property {string} name
 * @property {string} help
 * @property {string} type
 * @property {string} aggregator
 * @property {import('../series/layouts').Layout} layout
 * @property {boolean} windowed
 * @property {number} maxIdleSeconds after which an unused row expires; 0 for never
 * @property {string[]} labelNames
 */

/**
 * Rows of a metric that follow those before them.
 *
 * @typedef {object} RowsRecord
 * @property {number} metric
 * @property {number} fromRow
 * @property {number} rows
 * @property {{from: number, values: string[]}[]} values by label
 * @property {number[][]} forms
 * @property {Int32Array} tuples by row: its form, then its value of each label
 * @property {Int32Array} starts see RowStarts; one number if all these rows have the same start, none if they
 *   have no start
 */

/**
 * Rows that have started again.
 *
 * @typedef {{metric: number, restarted: Int32Array, starts: Int32Array}} StartsRecord
 */

/**
 * `dropped`: the metric is gone, and its number is not used again.
 *
 * @typedef {{metric: number, definition: Definition} | {metric: number, dropped: true} | RowsRecord |
 *   StartsRecord} LogRecord
 */

/**
 * @param {Buffer} bytes of a log, from its start or from the end of a record
 * @param {string | undefined} name of the log, if the bytes are from its start
 * @param {(metric: number) => number | undefined} labelCountOf number of labels of a metric that an earlier
 *   part of the log defines
 * @returns {LogRecord[]}
 * @throws {SnapshotError} if the bytes do not follow the format
 */
function decodeLog(bytes, name, labelCountOf) {
  const reader = new ByteReader(bytes, 0, bytes.length);
  if (name !== undefined) readLogHeader(reader, name);
  /** @type {Map<number, number>} */
  const defined = new Map();
  /** @type {LogRecord[]} */
  const records = [];
  for (; reader.position < reader.end; reader.align(8)) {
    const kind = reader.uint32();
    const metric = reader.uint32();
    if (kind === DEFINE) {
      const definition = readDefinition(reader);
      defined.set(metric, definition.labelNames.length);
      records.push({ metric, definition });
    } else if (kind === DROP) {
      records.push({ metric, dropped: true });
    } else if (kind === ROWS) {
      const labelCount = defined.get(metric) ?? labelCountOf(metric);
      if (labelCount === undefined)
        throw new SnapshotError('log', `rows of metric ${metric}, which is not defined`);
      records.push(readRows(reader, metric, labelCount));
    } else if (kind === STARTS) {
      const count = reader.uint32();
      records.push({ metric, restarted: reader.int32Array(count), starts: reader.int32Array(count) });
    } else {
      throw new SnapshotError('log', `a record of kind ${kind}`);
    }
  }
  return records;
}

/**
 * @param {ByteReader} reader
 * @param {string} name
 */
function readLogHeader(reader, name) {
  const { buffer } = reader;
  if (buffer.length < LOG_HEADER_BYTES || buffer.compare(LOG_MAGIC, 0, 8, 0, 8) !== 0)
    throw new SnapshotError('log', 'this is no log');
  reader.position = LOG_MAGIC.length;
  checkWriter(reader);
  if (reader.hex(LOG_NAME_BYTES) !== name) throw new SnapshotError('log', 'another log has this name');
  reader.position = LOG_HEADER_BYTES;
}

/**
 * @param {ByteReader} reader
 * @returns {Definition}
 */
function readDefinition(reader) {
  const [name, help, type, aggregator] = [reader.string(), reader.string(), reader.string(), reader.string()];
  const kind = reader.uint32();
  const layout = layoutFrom(
    kind,
    reader.list(() => reader.float64()),
  );
  if (layout === undefined) throw new SnapshotError('log', `metric ${name} has an unknown layout`);
  const windowed = reader.uint32() === 1;
  const maxIdleSeconds = reader.float64();
  if (!(maxIdleSeconds >= 0)) throw new SnapshotError('log', `${maxIdleSeconds} is no time to be idle`);
  const labelNames = reader.list(() => reader.string());
  if (!labelNames.every(isValidLabelName))
    throw new SnapshotError('log', `metric ${name} has an invalid label`);
  return { name, help, type, aggregator, layout, windowed, maxIdleSeconds, labelNames };
}

/**
 * @param {ByteReader} reader
 * @param {number} metric
 * @param {number} labelCount
 * @returns {RowsRecord}
 */
function readRows(reader, metric, labelCount) {
  const [fromRow, rows] = [reader.uint32(), reader.uint32()];
  if (labelCount === 0) {
    if (fromRow + rows > 1)
      throw new SnapshotError('log', `metric ${metric} has no labels, but ${rows} rows`);
    const tuples = new Int32Array(rows);
    return { metric, fromRow, rows, values: [], forms: [[]], tuples, starts: readStarts(reader, rows) };
  }
  const values = [];
  for (let label = 0; label < labelCount; label++) {
    const from = reader.uint32();
    values.push({ from, values: reader.strings() });
  }
  const forms = reader.list(() => reader.list(() => reader.uint32()));
  if (forms.some(form => form.length > labelCount || form.some(position => position >= labelCount))) {
    throw new SnapshotError('log', `a form of metric ${metric} has a label that it does not have`);
  }
  const tuples = reader.int32Array(rows * (labelCount + 1));
  return { metric, fromRow, rows, values, forms, tuples, starts: readStarts(reader, rows) };
}

/**
 * @param {ByteReader} reader
 * @param {number} rows
 * @returns {Int32Array}
 */
function readStarts(reader, rows) {
  const count = reader.uint32();
  if (count > 1 && count !== rows) throw new SnapshotError('log', `${count} starts of ${rows} rows`);
  return reader.int32Array(count);
}

module.exports = { decodeLog };
