'use strict';

// Encodes and decodes exemplars.

const { ByteWriter, SnapshotError } = require('./byte-buffers');

/** @typedef {import('../metric/exemplar').Exemplar} Exemplar */
/** @typedef {{row: number, column: number, exemplar: Exemplar}} PlacedExemplar */

/**
 * @param {number} row
 * @param {number} column
 * @param {Exemplar} exemplar
 */
function encodeExemplar(row, column, { labelSet, value, timestamp }) {
  const writer = new ByteWriter(128);
  writer.uint32(row);
  writer.uint32(column);
  writer.float64(value);
  writer.float64(timestamp);
  writer.labels(labelSet);
  return writer.finish();
}

/**
 * @param {import('./byte-buffers').ByteReader} reader
 * @param {number} count
 * @returns {PlacedExemplar[]}
 * @throws {SnapshotError} if there are fewer
 */
function decodeExemplars(reader, count) {
  if (count > reader.end - reader.position)
    throw new SnapshotError('length', `${count} exemplars do not fit`);
  return Array.from({ length: count }, () => {
    const [row, column] = [reader.uint32(), reader.uint32()];
    const [value, timestamp] = [reader.float64(), reader.float64()];
    return { row, column, exemplar: { labelSet: Object.fromEntries(reader.labels()), value, timestamp } };
  });
}

module.exports = { encodeExemplar, decodeExemplars };
