'use strict';

const PIECE_CHARACTERS = 2 ** 20;

/**
 * One label as text: name="value", escaped.
 *
 * @param {string} name
 * @param {unknown} value
 * @returns {string}
 */
function labelPair(name, value) {
  return `${name}="${escapeLabelValue(String(value))}"`;
}

/**
 * @param {string} text
 * @returns {string}
 */
function escapeLabelValue(text) {
  if (!/[\\"\n]/.test(text)) return text;
  return escape(text, /[\\"\n]/g);
}

/**
 * In pieces, because V8 ends the whole process if an expression has some 30 million matches in one text.
 *
 * @param {string} text
 * @param {RegExp} special the characters to escape
 * @returns {string}
 */
function escape(text, special) {
  let escaped = '';
  for (let start = 0; start < text.length; start += PIECE_CHARACTERS) {
    escaped += text
      .slice(start, start + PIECE_CHARACTERS)
      .replace(special, character => (character === '\n' ? '\\n' : '\\' + character));
  }
  return escaped;
}

/**
 * @param {string} text
 * @returns {string}
 */
function escapeHelp(text) {
  // Most texts need nothing, and there are hundreds of them in a page.
  if (!/[\\\n\ud800-\udfff]/.test(text)) return text;
  return escape(text.toWellFormed(), /[\\\n]/g);
}

/**
 * Joins two parts of a label list; either may be empty.
 *
 * @param {string} left
 * @param {string} right
 * @returns {string}
 */
function joinLabels(left, right) {
  if (left === '') return right;
  return right === '' ? left : left + ',' + right;
}

const PAIR = /([a-zA-Z_][a-zA-Z0-9_]*)="([^"\\]*(?:\\.[^"\\]*)*)"(?:,|$)/sy;

/** @typedef {{name: string, value: string, pair: string}} Label `pair`: the label as text */

/**
 * Reads label text.
 *
 * @param {string} text
 * @returns {Label[] | undefined} undefined if a name is not valid
 */
function parseLabels(text) {
  /** @type {Label[]} */
  const labels = [];
  PAIR.lastIndex = 0;
  for (let end = 0; end < text.length; end = PAIR.lastIndex) {
    const match = PAIR.exec(text);
    if (match === null) return undefined;
    const value = match[2];
    const pair = `${match[1]}="${value}"`;
    labels.push({ name: match[1], value: value.includes('\\') ? unescape(value) : value, pair });
  }
  return labels;
}

/** @param {string} value */
function unescape(value) {
  return value.replace(/\\(.)/gs, (_, character) => (character === 'n' ? '\n' : character));
}

module.exports = { labelPair, escapeHelp, joinLabels, parseLabels };
