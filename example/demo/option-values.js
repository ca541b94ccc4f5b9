'use strict';

/**
 * @param {string} name of the option
 * @param {string} text as given
 * @param {number} least
 * @returns {number}
 * @throws {Error} with a message for the user
 */
function numberOf(name, text, least) {
  const number = Number(text);
  if (!(number >= least && number < Infinity)) {
    throw new Error(`--${name} must be a number of at least ${least}, not ${text}`);
  }
  return number;
}

/** Parameters and error as of {@link numberOf}. */
function wholeNumberOf(name, text, least) {
  const number = Number(text);
  if (!Number.isInteger(number) || number < least) {
    throw new Error(`--${name} must be a whole number of at least ${least}, not ${text}`);
  }
  return number;
}

module.exports = { numberOf, wholeNumberOf };
