'use strict';

const PREFIX = 'PROM_CLIENT_';

/**
 * The codes of errors that a program may tell apart (docs/api.md). Each stands for PROM_CLIENT_ and its name.
 *
 * @typedef {'INVALID_NAME' | 'INVALID_LABEL' | 'INVALID_VALUE' | 'ALREADY_REGISTERED' | 'INVALID_OPTION' |
 *   'TIMEOUT' | 'NO_AGGREGATOR'} Code
 */

/**
 * Creates an error with a code, for programs and for people. Programs compare messages, so the message is
 * exactly prom-client's. People read the stack and `String(error)`, which explain more. The code is not
 * enumerable: tests of programs print errors, or compare them with those of prom-client, which have none.
 *
 * @param {Code} code
 * @param {new (message: string) => Error} Type
 * @param {string} message
 * @param {string} [more] follows the message where people read it
 * @returns {Error}
 */
function codedError(code, Type, message, more = '') {
  const error = new Type(message);
  const define = (/** @type {string} */ key, /** @type {unknown} */ value) =>
    Object.defineProperty(error, key, { value, configurable: true, writable: true });
  define('code', PREFIX + code);
  if (more === '') return error;
  const { name, stack } = new Type(message + more);
  define('stack', stack);
  define('toString', () => `${name}: ${message}${more}`);
  return error;
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

module.exports = { codedError, invalidOption, invalidLabel, codeNamed };
