'use strict';

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
  return text.replace(/[\\"\n]/g, character => (character === '\n' ? '\\n' : '\\' + character));
}

/**
 * @param {string} text
 * @returns {string}
 */
function escapeHelp(text) {
  // Most texts need nothing, and there are hundreds of them in a page.
  if (!/[\\\n\ud800-\udfff]/.test(text)) return text;
  return text.toWellFormed().replace(/[\\\n]/g, character => (character === '\n' ? '\\n' : '\\\\'));
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

module.exports = { labelPair, escapeHelp, joinLabels };
