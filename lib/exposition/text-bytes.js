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
 * @returns {Generator<void, Body>} yields where a slice may end
 */
function* renderBytes(families, openMetrics, memory) {
  const page = new Page(memory);
  let text = '';
  let first = true;
  for (const family of families) {
    if (!first) text += separator(openMetrics);
    first = false;
    if (family.cachedText?.prepare(family, openMetrics)) {
      page.write(text);
      text = '';
      yield* family.cachedText.write(family, openMetrics, page);
      continue;
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
  }
  // OpenMetrics allows no empty line; metrics() has one without families, as in prom-client.
  page.write(first && openMetrics ? ending(openMetrics).trimStart() : text + ending(openMetrics));
  yield;
  return page.body;
}

module.exports = { renderBytes };
