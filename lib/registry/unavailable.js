'use strict';

const { codedError } = require('../options/coded-error');

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
  const error = code === undefined ? new Error(message) : codedError(code, Error, message);
  return Object.defineProperty(error, UNAVAILABLE, { value: reason });
}

/**
 * @param {string} [reason] that scrapers may read
 * @returns {Error}
 */
function timedOut(reason = 'The metrics of the cluster were not ready in time.') {
  return unavailable('Operation timed out.', reason, 'TIMEOUT');
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

module.exports = { UNAVAILABLE, unavailable, timedOut, reasonOf };
