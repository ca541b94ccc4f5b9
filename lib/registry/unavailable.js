'use strict';

const { withCode } = require('../options/coded-error');

/**
 * Property of an error, and of a registry without metrics: why there is nothing to show, in one line that a
 * scraper may read. An endpoint responds with it, and with status 503. The symbol is the same in all copies
 * of this package.
 */
const UNAVAILABLE = Symbol.for('prom-client-cluster.unavailable.v1');

/**
 * @param {string} message
 * @param {string} [reason] if the message is not for scrapers
 * @param {import('../options/coded-error').Code} [code]
 * @returns {Error}
 */
function unavailable(message, reason = message, code) {
  const error = Object.defineProperty(new Error(message), UNAVAILABLE, { value: reason });
  return code === undefined ? error : withCode(code, error);
}

/**
 * @param {any} error whatever a `collect` hook or a registry of the application has thrown
 * @returns {string | undefined} why there is nothing to show, if that is the error
 */
function reasonOf(error) {
  try {
    return error?.[UNAVAILABLE];
  } catch {
    return undefined; // a Proxy or a getter that throws
  }
}

module.exports = { UNAVAILABLE, unavailable, reasonOf };
