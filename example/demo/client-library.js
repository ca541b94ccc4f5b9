'use strict';

/** The two libraries that the demo can run with; both offer prom-client's interface. */
const LIBRARIES = {
  'prom-client-cluster': 'prom-client-cluster',
  'prom-client': 'prom-client',
};

/** @type {string[]} what `--client` accepts, the default first */
const CLIENT_NAMES = Object.keys(LIBRARIES);

/**
 * @param {string} name one of {@link CLIENT_NAMES}
 * @returns {object} the library's exports
 */
function loadClientLibrary(name) {
  return require(LIBRARIES[name]);
}

module.exports = { CLIENT_NAMES, loadClientLibrary };
