'use strict';

// Writes and reads the file of the retired totals, which survive the aggregator thread in it. It has the same
// building blocks as a snapshot; docs/internals/snapshot-format.md describes it.

const { ByteWriter, ByteReader, SnapshotError } = require('../source/byte-buffers');
const { writeFailures, readFailures } = require('../source/failure-counts');
const { widthOf, layoutFrom } = require('../series/layouts');

const MAGIC = Buffer.from('PCCRETD\x01', 'latin1');
const VERSION = 2;

const MANY_LABEL_NAMES = 64;

/** @typedef {import('./cluster-family').ClusterFamily} ClusterFamily */
/** @typedef {import('../source/dictionary-decoder').Definition} Definition */

/**
 * @param {ClusterFamily[]} families
 * @param {Iterable<number>} closed ids of the retired workers
 * @param {import('../source/failure-counts').Failure[]} failures in these workers
 * @returns {Buffer}
 */
function encodeRetired(families, closed, failures) {
  const writer = new ByteWriter(65536);
  writer.bytes(MAGIC);
  writer.uint32(VERSION);
  writer.list([...closed], id => writer.uint32(id));
  writeFailures(writer, failures);
  const parts = families.flatMap(family => partsOf(family).map(rows => ({ family, rows })));
  writer.list(parts, ({ family, rows }) => writeFamily(writer, family, rows));
  writer.align(8);
  writer.bytes(MAGIC);
  return writer.finish();
}

/**
 * The format has an integer for each row and label name. A family with many label names, most of which a row
 * does not have, is written in parts: one for each set of label names.
 *
 * @param {ClusterFamily} family
 * @returns {number[][]} rows of each part
 */
function partsOf({ rows: { index }, retired }) {
  const rows = [...retired.rows()];
  if (index.names.length <= MANY_LABEL_NAMES) return [rows];
  /** @type {Map<string, number[]>} */
  const parts = new Map();
  for (const row of rows) {
    /** @type {number[]} */
    const labels = [];
    index.eachLabel(row, label => labels.push(label));
    const part = parts.get(labels.join());
    if (part === undefined) parts.set(labels.join(), [row]);
    else part.push(row);
  }
  return [...parts.values()];
}

/**
 * @param {ByteWriter} writer
 * @param {ClusterFamily} family
 * @param {number[]} rows
 */
function writeFamily(writer, { definition, rows: { index }, retired }, rows) {
  const { name, help, type, aggregator, layout } = definition;
  for (const text of [name, help, type, aggregator, layout.kind]) writer.string(text);
  writer.uint32(definition.windowed ? 1 : 0);
  writer.list(retired.layout.marks, number => writer.float64(number));
  const labels = labelsIn(index, rows);
  writer.list(labels, ({ label, values }) => {
    writer.string(index.names[label]);
    writer.strings(['', ...Array.from(values.keys(), id => index.values[label][id])]);
  });
  writer.uint32(rows.length);
  const ids = new Int32Array(index.names.length);
  for (const row of rows) {
    for (const { label } of labels) ids[label] = 0;
    index.eachLabel(row, (label, id) => (ids[label] = id));
    for (const { label, values } of labels) writer.uint32(values.get(ids[label]) ?? 0);
    writer.float64(retired.lastSeenAt(row));
    for (let column = 0; column < retired.width; column++) {
      writer.float64(retired.sumAt(row, column));
      writer.float64(retired.errorAt(row, column));
    }
    const digest = retired.digestOf(row) ?? new Float64Array(0);
    writer.uint32(digest.length);
    for (const number of digest) writer.float64(number);
  }
}

/**
 * @param {import('./family-index').FamilyIndex} index
 * @param {number[]} rows
 * @returns {{label: number, values: Map<number, number>}[]} the labels that any of the rows has, and which of
 *   their values, numbered from 1
 */
function labelsIn(index, rows) {
  /** @type {Map<number, Map<number, number>>} */
  const labels = new Map();
  for (const row of rows) {
    index.eachLabel(row, (label, id) => {
      let values = labels.get(label);
      if (values === undefined) labels.set(label, (values = new Map()));
      if (!values.has(id)) values.set(id, values.size + 1);
    });
  }
  return Array.from(labels, ([label, values]) => ({ label, values })).sort((a, b) => a.label - b.label);
}

/**
 * @typedef {object} RetiredRow
 * @property {string[]} names
 * @property {string[]} values
 * @property {number[]} numbers sum and error term by column
 * @property {Float64Array} digest
 */

/**
 * @param {Buffer} buffer whose memory starts at a multiple of 8
 * @param {(definition: Definition) => ClusterFamily} familyOf
 * @param {number} now milliseconds, by the store's clock
 * @returns {{closed: number[], failures: import('../source/failure-counts').Failure[]}} ids of the retired
 *   workers, and their failures
 * @throws {SnapshotError} if the bytes are invalid; then nothing is restored
 */
function decodeRetired(buffer, familyOf, now) {
  const isWhole = buffer.length >= 24 && buffer.compare(MAGIC, 0, 8, 0, 8) === 0;
  if (!isWhole || buffer.compare(MAGIC, 0, 8, buffer.length - 8) !== 0) {
    throw new SnapshotError('magic', 'not a file of retired totals');
  }
  const reader = new ByteReader(buffer, 8, buffer.length - 8);
  if (reader.uint32() !== VERSION)
    throw new SnapshotError('version', 'retired totals of another format version');
  const closed = reader.list(() => reader.uint32());
  const failures = readFailures(reader);
  const families = reader.list(() => readFamily(reader));
  for (const { definition, rows } of families) restoreFamily(familyOf(definition), definition, rows, now);
  return { closed, failures };
}

/** @param {ByteReader} reader */
function readFamily(reader) {
  const [name, help, type, aggregator, kind] = Array.from({ length: 5 }, () => reader.string());
  const windowed = reader.uint32() === 1;
  const layout = layoutFrom(
    kind,
    reader.list(() => reader.float64()),
  );
  const labels = reader.list(() => ({ name: reader.string(), values: reader.strings() }));
  if (layout === undefined) throw new SnapshotError('layout', `${kind} is not a layout`);
  /** @type {Definition} */
  const definition = { name, help, type, aggregator, layout, windowed, labelNames: [] };
  const width = widthOf(layout);
  const rows = reader.list(() => readRow(reader, labels, width));
  return { definition, rows };
}

/**
 * @param {ByteReader} reader
 * @param {{name: string, values: string[]}[]} labels
 * @param {number} width
 * @returns {RetiredRow}
 */
function readRow(reader, labels, width) {
  const names = [];
  const values = [];
  for (const label of labels) {
    const id = reader.uint32();
    if (id >= label.values.length) throw new SnapshotError('label', `value ${id} of ${label.values.length}`);
    if (id === 0) continue;
    names.push(label.name);
    values.push(label.values[id]);
  }
  reader.float64(); // when the row was last seen, by the writer's clock
  const numbers = Array.from({ length: width * 2 }, () => reader.float64());
  const digest = Float64Array.from({ length: reader.count() }, () => reader.float64());
  return { names, values, numbers, digest };
}

/**
 * @param {ClusterFamily} family
 * @param {Definition} definition
 * @param {RetiredRow[]} rows
 * @param {number} now milliseconds, by the store's clock
 */
function restoreFamily(family, { layout }, rows, now) {
  const { retired } = family;
  retired.addColumns(layout);
  for (const { names, values, numbers, digest } of rows) {
    const row = family.rows.rowOf(names, values);
    for (let column = 0; column * 2 < numbers.length; column++) {
      retired.add(row, column, numbers[column * 2]);
      retired.addError(row, column, numbers[column * 2 + 1]);
    }
    if (digest.length > 0) retired.addDigest(row, digest);
    // Their age counts from now, because live workers that expose them have not answered yet.
    retired.touch(row, now);
  }
}

module.exports = { encodeRetired, decodeRetired };
