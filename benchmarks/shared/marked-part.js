'use strict';

// The parts of documents that programs write, between two comments.

/**
 * @param {string} text Markdown with the two marks
 * @param {[begin: string, end: string]} marks
 * @param {string} part
 * @returns {string} the text with the part between the marks
 * @throws {Error} if a mark is missing
 */
function replaceBetween(text, [beginMark, endMark], part) {
  const [begin, end] = [text.indexOf(beginMark), text.indexOf(endMark)];
  if (begin < 0 || end < begin) throw new Error(`no place for results: ${beginMark} … ${endMark}`);
  return `${text.slice(0, begin + beginMark.length)}\n\n${part}\n\n${text.slice(end)}`;
}

module.exports = { replaceBetween };
