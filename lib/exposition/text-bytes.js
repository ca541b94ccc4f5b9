'use strict';

const { renderFamilies } = require('./text-format');

/** @typedef {import('./text-format').Family} Family */
/** @typedef {{buffer: ArrayBuffer, length: number, ascii: boolean}} Body memory of its own, of which `length` bytes count */

/**
 * Writes families as UTF-8, without a string of the whole page in between.
 *
 * @param {Iterable<Family>} families
 * @param {boolean} openMetrics
 * @param {number} expectedLength bytes to begin with
 * @returns {Generator<void, Body>} yields where others may have the loop
 */
function* renderBytes(families, openMetrics, expectedLength) {
  let buffer = Buffer.allocUnsafeSlow(expectedLength);
  let length = 0;
  let characters = 0;
  for (const piece of renderFamilies(families, openMetrics)) {
    if (buffer.length - length < piece.length * 3) {
      const grown = Buffer.allocUnsafeSlow(buffer.length * 2 + piece.length * 3);
      buffer.copy(grown, 0, 0, length);
      buffer = grown;
    }
    length += buffer.write(piece, length);
    characters += piece.length;
    yield;
  }
  const { buffer: memory } = buffer;
  return { buffer: /** @type {ArrayBuffer} */ (memory), length, ascii: length === characters };
}

module.exports = { renderBytes };
