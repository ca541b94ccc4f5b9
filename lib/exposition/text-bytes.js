'use strict';

const { PIECE_CHARACTERS } = require('./text-format');
const { Page } = require('./page');

/** @typedef {import('./text-format').Family} Family */
/** @typedef {import('./formats').Format} Format */
/** @typedef {import('./page').Body} Body */

/**
 * Writes families as bytes, text as UTF-8, without first making one string of the whole page.
 *
 * @param {Iterable<Family>} families
 * @param {Format} format
 * @param {number | ArrayBuffer} memory to start with, or how many bytes of it
 * @param {(family: Family, error: unknown) => void} [onFailure] called for each family that is left out
 *   because it cannot be written; without it the error is thrown
 * @returns {Generator<void, Body>} yields where a slice may end
 */
function* renderBytes(families, format, memory, onFailure) {
  const page = new Page(memory);
  let text = '';
  let first = true;
  for (const family of families) {
    const { length } = page;
    const start = first ? text : text + format.separator;
    try {
      text = yield* writeFamily(family, format, page, start);
      first = false;
    } catch (error) {
      if (onFailure === undefined) throw error;
      page.length = length;
      onFailure(family, error);
    }
  }
  page.write(first ? format.emptyPage : text + format.ending);
  yield;
  return page.body;
}

/**
 * @param {Family} family
 * @param {Format} format
 * @param {Page} page
 * @param {string} text that precedes it
 * @returns {Generator<void, string>} the end of the text, which is not written yet
 */
function* writeFamily(family, format, page, text) {
  if (family.cachedText?.prepare(family, format)) {
    page.write(text);
    yield* family.cachedText.write(family, format, page);
    return '';
  }
  for (const piece of format.write(family)) {
    if (typeof piece === 'string') text += piece;
    else page.copyFrom(piece, 0, piece.length);
    if (text.length >= PIECE_CHARACTERS) {
      page.write(text);
      text = '';
    }
    // Even if nothing was written: a short text can take long, because quantiles are computed here.
    yield;
  }
  return text;
}

module.exports = { renderBytes };
