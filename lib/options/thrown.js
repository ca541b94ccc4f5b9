'use strict';

// What an application's code throws may be anything: `undefined`, a text, an object whose properties throw.

const MAX_TEXT_LENGTH = 1000;

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

module.exports = { textOf, asError };
