'use strict';

const { PIECE_CHARACTERS, renderFamily, separator, ending } = require('./text-format');
const { Page } = require('./page');

/** @typedef {import('./text-format').Family} Family */
/** @typedef {import('./page').Body} Body */

/**
 * Writes families as UTF-8, without first making one string of the whole page.
 *
 * @param {Iterable<Family>} families
 * @param {boolean} openMetrics
 * @param {number | ArrayBuffer} memory to start with, or how many bytes of it
 * @param {(family: Family, error: unknown) => void} [onFailure] called for each family that is left out
 *   because it cannot be written; without it the error is thrown
 * @returns {Generator<void, Body>} yields where a slice may end
 */
function* renderBytes(families, openMetrics, memory, onFailure) {
  const page = new Page(memory);
  let text = '';
  let first = true;
  for (const family of families) {
    const { position } = page;
    const start = first ? text : text + separator(openMetrics);
    try {
      text = yield* writeFamily(family, openMetrics, page, start);
      first = false;
    } catch (error) {
      if (onFailure === undefined) throw error;
      page.cutAt(position);
      onFailure(family, error);
    }
  }
  // OpenMetrics allows no empty line; metrics() has one without families, as in prom-client.
  page.write(first && openMetrics ? ending(openMetrics).trimStart() : text + ending(openMetrics));
  yield;
  return page.body;
}

/**
 * @param {Family} family
 * @param {boolean} openMetrics
 * @param {Page} page
 * @param {string} text that precedes it
 * @returns {Generator<void, string>} the end of the text, which is not written yet
 */
function* writeFamily(family, openMetrics, page, text) {
  if (family.cachedText?.prepare(family, openMetrics)) {
    page.write(text);
    yield* family.cachedText.write(family, openMetrics, page);
    return '';
  }
  for (const piece of renderFamily(family, openMetrics)) {
    text += piece;
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
