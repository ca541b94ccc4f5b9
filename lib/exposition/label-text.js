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

/** @typedef {[name: string, value: string]} LabelPair */

/**
 * @param {readonly LabelPair[]} labels
 * @returns {string} all of them as text
 */
function labelsText(labels) {
  // join() makes a flat string; one that is built with + takes several times the memory of its characters.
  return labels.map(([name, value]) => labelPair(name, value)).join();
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

module.exports = { labelPair, labelsText, escapeHelp, joinLabels };
