'use strict';

// Compresses piece by piece. A Snappy block is its length and then elements, which refer to earlier bytes by
// their distance. So the elements of pieces that were compressed one by one can be joined.
// https://github.com/google/snappy/blob/main/format_description.txt

const { compress } = require('snappyjs');
const { ProtobufWriter } = require('../exposition/protobuf-writer');

const PIECE_BYTES = 65536;

const prefixWriter = new ProtobufWriter(16);

/**
 * @param {Uint8Array[]} parts
 * @returns {Generator<void, Buffer>} their bytes as one Snappy block; yields where a slice may end
 */
function* compressSteps(parts) {
  const bytes = Buffer.concat(parts);
  yield;
  /** @type {Uint8Array[]} */
  const pieces = [lengthPrefix(bytes.length)];
  for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
    const piece = bytes.subarray(start, start + PIECE_BYTES);
    pieces.push(compress(piece).subarray(lengthPrefix(piece.length).length));
    yield;
  }
  return Buffer.concat(pieces);
}

/** @param {number} length */
function lengthPrefix(length) {
  prefixWriter.varint(length);
  return prefixWriter.take();
}

module.exports = { compressSteps };
