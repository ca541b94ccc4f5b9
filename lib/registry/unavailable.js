'use strict';

/**
 * Property of an error, and of a registry without metrics: why there is nothing to show, in one line that a
 * scraper may read. An endpoint responds with it, and with status 503. The symbol is the same in all copies
 * of this package.
 */
const UNAVAILABLE = Symbol.for('prom-client-cluster.unavailable.v1');

/**
 * @param {string} message
 * @param {string} [reason] if the message is not for scrapers
 * @returns {Error}
 */
function unavailable(message, reason = message) {
  return Object.defineProperty(new Error(message), UNAVAILABLE, { value: reason });
}

module.exports = { UNAVAILABLE, unavailable };
