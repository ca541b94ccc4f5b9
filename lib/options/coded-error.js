'use strict';

const PREFIX = 'PROM_CLIENT_';

/**
 * The codes of errors that a program may tell apart (docs/api.md). Each stands for PROM_CLIENT_ and its name.
 *
 * @typedef {'INVALID_NAME' | 'INVALID_LABEL' | 'INVALID_VALUE' | 'ALREADY_REGISTERED' | 'INVALID_OPTION' |
 *   'TIMEOUT' | 'NO_AGGREGATOR'} Code
 */

/**
 * Adds a code to an error. It is not enumerable: tests of programs print errors, or compare them with those
 * of prom-client, which have none.
 *
 * @param {Code} code
 * @param {Error} error
 * @returns {Error} the same
 */
function withCode(code, error) {
  return Object.defineProperty(error, 'code', {
    value: PREFIX + code,
    configurable: true,
    writable: true,
  });
}

/**
 * @param {Code} code
 * @param {new (message: string) => Error} Type
 * @param {string} message
 * @returns {Error}
 */
function codedError(code, Type, message) {
  return withCode(code, new Type(message));
}

/**
 * @param {string} message
 * @param {new (message: string) => Error} [Type]
 * @returns {Error} an argument or an option is not valid
 */
function invalidOption(message, Type = TypeError) {
  return codedError('INVALID_OPTION', Type, message);
}

/**
 * @param {string} message
 * @param {new (message: string) => Error} [Type]
 * @returns {Error} a label, or a list of labels, is not valid
 */
function invalidLabel(message, Type = Error) {
  return codedError('INVALID_LABEL', Type, message);
}

/**
 * @param {unknown} value the `code` of an error of another process
 * @returns {Code | undefined}
 */
function codeNamed(value) {
  if (typeof value !== 'string' || !value.startsWith(PREFIX)) return undefined;
  return /** @type {Code} */ (value.slice(PREFIX.length));
}

module.exports = { withCode, codedError, invalidOption, invalidLabel, codeNamed };
