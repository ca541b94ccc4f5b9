'use strict';

// Reads the dictionary part of a snapshot (see dictionary-part.js), and checks its structure.

const { layoutFrom } = require('../series/layouts');
const { SnapshotError } = require('./byte-buffers');
const { isValidLabelName } = require('../registry/names');
const { DEFINITION, ROWS, DROPPED } = require('./snapshot-format');

/** @typedef {import('./byte-buffers').ByteReader} ByteReader */

/**
 * @typedef {object} Definition
 * @property {string} name
 * @property {string} help
 * @property {string} type
 * @property {string} aggregator
 * @property {import('../series/layouts').Layout} layout
 * @property {boolean} windowed
 * @property {string[]} labelNames
 */

/**
 * @typedef {object} DictionaryRecord
 * @property {number} metric
 * @property {Definition | undefined} definition
 * @property {boolean} dropped whether the worker dropped the metric for good; its number is not reused
 * @property {number} fromRow
 * @property {number} rows
 * @property {{from: number, values: string[]}[]} values by label
 * @property {number[][]} forms
 * @property {Int32Array} tuples by row: its form, then its value of each label
 */

/** The rows of a metric that is dropped. */
const NO_ROWS = { fromRow: 0, rows: 0, values: [], forms: [], tuples: new Int32Array(0) };

/**
 * @param {ByteReader} reader
 * @param {number} segments how many there are
 * @param {(metric: number) => number | undefined} labelCountOf number of labels of a metric that an earlier
 *   snapshot defined
 * @returns {DictionaryRecord[]}
 * @throws {SnapshotError} if the bytes do not follow the format
 */
function readDictionary(reader, segments, labelCountOf) {
  /** @type {Map<number, number>} */
  const defined = new Map();
  /** @type {DictionaryRecord[]} */
  const records = [];
  for (let left = segments; left > 0; left--) {
    const definition = reader.uint32() === DEFINITION ? readDefinition(reader) : undefined;
    if (definition !== undefined) defined.set(definition.number, definition.labelNames.length);
    const kind = reader.uint32();
    if (kind !== ROWS && kind !== DROPPED) throw new SnapshotError('dictionary', `a record of kind ${kind}`);
    const metric = reader.uint32();
    if (kind === DROPPED) {
      records.push({ metric, definition, dropped: true, ...NO_ROWS });
      continue;
    }
    const labelCount = defined.get(metric) ?? labelCountOf(metric);
    if (labelCount === undefined || (definition !== undefined && definition.number !== metric)) {
      throw new SnapshotError('dictionary', `rows of metric ${metric}, which is not defined`);
    }
    records.push(readRows(reader, metric, labelCount, definition));
  }
  return records;
}

/** @param {ByteReader} reader */
function readDefinition(reader) {
  const number = reader.uint32();
  const [name, help, type, aggregator] = [reader.string(), reader.string(), reader.string(), reader.string()];
  const kind = reader.uint32();
  const layout = layoutFrom(
    kind,
    reader.list(() => reader.float64()),
  );
  if (layout === undefined) throw new SnapshotError('dictionary', `metric ${name} has an unknown layout`);
  const windowed = reader.uint32() === 1;
  const labelNames = reader.list(() => reader.string());
  if (!labelNames.every(isValidLabelName))
    throw new SnapshotError('dictionary', `metric ${name} has an invalid label`);
  return { number, name, help, type, aggregator, layout, windowed, labelNames };
}

/**
 * @param {ByteReader} reader
 * @param {number} metric
 * @param {number} labelCount
 * @param {Definition | undefined} definition
 * @returns {DictionaryRecord}
 */
function readRows(reader, metric, labelCount, definition) {
  const [fromRow, rows] = [reader.uint32(), reader.uint32()];
  if (labelCount === 0) {
    if (fromRow + rows > 1)
      throw new SnapshotError('dictionary', `metric ${metric} has no labels, but ${rows} rows`);
    const tuples = new Int32Array(rows);
    return { metric, definition, dropped: false, fromRow, rows, values: [], forms: [[]], tuples };
  }
  const values = [];
  for (let label = 0; label < labelCount; label++) {
    const from = reader.uint32();
    values.push({ from, values: reader.strings() });
  }
  const forms = reader.list(() => reader.list(() => reader.uint32()));
  if (forms.some(form => form.length > labelCount || form.some(position => position >= labelCount))) {
    throw new SnapshotError('dictionary', `a form of metric ${metric} has a label that it does not have`);
  }
  const tuples = reader.int32Array(rows * (labelCount + 1));
  return { metric, definition, dropped: false, fromRow, rows, values, forms, tuples };
}

module.exports = { readDictionary };
