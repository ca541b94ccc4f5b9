'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');

// Elsewhere in example/, 'prom-client' is this library.
const requireFromRoot = createRequire(path.join(__dirname, '../../package.json'));

/** The two libraries that the demo runs with, in this order. Both have prom-client's interface. */
const CLIENT_NAMES = ['prom-client', 'prom-client-cluster'];

/**
 * @param {string} name one of {@link CLIENT_NAMES}
 * @returns {object} the library's exports
 */
function loadClientLibrary(name) {
  return requireFromRoot(name);
}

module.exports = { CLIENT_NAMES, loadClientLibrary };
