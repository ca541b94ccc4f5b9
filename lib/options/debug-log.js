'use strict';

const { debuglog } = require('util');

const log = debuglog('prom-client-cluster');

/**
 * Writes to the debug log, if NODE_DEBUG is set. A value may be anything that the application has thrown: an
 * error whose text is a getter that throws, for example.
 *
 * @param {string} text as for util.format()
 * @param {...unknown} values
 */
function debug(text, ...values) {
  try {
    log(text, ...values);
  } catch {
    log('%s (with a value that cannot be printed)', text);
  }
}

/** @returns {boolean} whether the debug log is enabled */
function isDebugging() {
  return log.enabled;
}

module.exports = { debug, isDebugging };
