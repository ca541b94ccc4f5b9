'use strict';

// Texts from elsewhere. What an application's code throws or passes may be anything: `undefined`, a text, an
// object whose properties throw.

const { inspect } = require('util');

const MAX_TEXT_LENGTH = 1000;
const MAX_STORED_LENGTH = 200;

/**
 * @param {any} thrown
 * @returns {string} its message, or itself as text
 */
function textOf(thrown) {
  try {
    return String(thrown?.message ?? thrown).slice(0, MAX_TEXT_LENGTH);
  } catch {
    return 'an error that cannot be printed';
  }
}

/**
 * @param {any} thrown
 * @returns {Error} itself if it is one; under Jest, errors of node:http are of another realm
 */
function asError(thrown) {
  try {
    if (thrown instanceof Error && typeof thrown.message === 'string') return thrown;
  } catch {
    // A Proxy or a getter that throws.
  }
  return new Error(textOf(thrown), { cause: thrown });
}

/**
 * @param {unknown} value of the program
 * @returns {string} one short line
 */
function printed(value) {
  try {
    return inspect(value, { depth: 0, breakLength: Infinity, maxStringLength: 100, maxArrayLength: 10 });
  } catch {
    return 'a value that cannot be printed';
  }
}

/**
 * The beginning of a text that another process has sent, to be stored. It is a copy, because a slice of a
 * string keeps the whole string in memory.
 *
 * @param {string} text
 * @param {number} [length]
 * @returns {string}
 */
function beginningOf(text, length = MAX_STORED_LENGTH) {
  return text.length <= length ? text : Buffer.from(text.slice(0, length)).toString();
}

module.exports = { textOf, asError, printed, beginningOf };
