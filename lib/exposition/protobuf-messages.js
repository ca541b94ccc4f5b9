'use strict';

// What the protobuf page and remote write have in common: a label, and sparse buckets.

const { MOST_FILLED } = require('../series/native-json');

/** @typedef {import('./protobuf-writer').ProtobufWriter} ProtobufWriter */

/**
 * @param {ProtobufWriter} writer
 * @param {string} name
 * @param {string} value
 */
function writeLabel(writer, name, value) {
  const start = writer.begin(1);
  writer.text(1, name);
  writer.text(2, value);
  writer.end(start);
}

/**
 * Populated buckets as spans of indices, and the differences of their counts.
 *
 * @param {ProtobufWriter} writer
 * @param {number} field of the spans; the next one has the differences
 * @param {import('../series/merged-buckets').Side} side
 */
function writeSide(writer, field, { indices, counts }) {
  const { length } = indices;
  if (length === 0) return;
  let end = 0;
  for (let i = 0; i < length;) {
    const first = indices[i];
    const spanStart = writer.begin(field);
    writer.signed(1, first - end);
    for (end = first; i < length && indices[i] - end <= MOST_FILLED; i++) end = indices[i] + 1;
    writer.integer(2, end - first);
    writer.end(spanStart);
  }
  const start = writer.begin(field + 1);
  let previous = 0;
  for (let i = 0; i < length; i++) {
    const gap = i === 0 ? 0 : indices[i] - indices[i - 1] - 1;
    if (gap > 0 && gap <= MOST_FILLED) {
      writer.zigzag(-previous);
      if (gap > 1) writer.zigzag(0);
      previous = 0;
    }
    writer.zigzag(counts[i] - previous);
    previous = counts[i];
  }
  writer.end(start);
}

module.exports = { writeLabel, writeSide };
