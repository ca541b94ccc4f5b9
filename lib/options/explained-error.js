'use strict';

const { inspect } = require('util');

/**
 * Creates an error for programs and for people. Programs compare messages, so the message is exactly
 * prom-client's. People read the stack and `String(error)`, which explain more.
 *
 * @param {new (message: string) => Error} Type
 * @param {string} message
 * @param {string} more
 * @returns {Error}
 */
function explainedError(Type, message, more) {
  const { name, stack } = new Type(message + more);
  return Object.defineProperties(new Type(message), {
    stack: { value: stack, configurable: true, writable: true },
    toString: { value: () => `${name}: ${message}${more}`, configurable: true, writable: true },
  });
}

/**
 * @param {unknown} value of the program: it may throw when it is read
 * @returns {string} one short line
 */
function printed(value) {
  try {
    return inspect(value, { depth: 0, breakLength: Infinity, maxStringLength: 100, maxArrayLength: 10 });
  } catch {
    return 'a value that cannot be printed';
  }
}

module.exports = { explainedError, printed };
