'use strict';

const { debuglog } = require('node:util');

const log = debuglog('prom-client-cluster');

/**
 * Logs what the application has thrown, if NODE_DEBUG is set. Such a value may be anything, an error whose
 * text is a getter that throws, for example.
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

module.exports = { debug };
