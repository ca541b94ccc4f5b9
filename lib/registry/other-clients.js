'use strict';

// What is recorded with another Prometheus client, or with another copy of this one, is in a registry of its
// own. A page without it looks as if nothing had been recorded. With NODE_DEBUG=prom-client-cluster, a scrape
// reports such clients.

const { debuglog } = require('util');

const debug = debuglog('prom-client-cluster');

const PACKAGE =
  /^(.*[\\/]node_modules[\\/](?:prom-client|prom-client-cluster|@prometheus-io[\\/]client))[\\/]/;

/** @type {Set<string>} */
const reported = new Set();

/** Reports each package once. Does nothing unless the debug log is enabled. */
function reportOtherClients() {
  if (!debug.enabled) return;
  // Not require(): these files are also bundled for browsers.
  const { _cache: loaded = {} } = /** @type {any} */ (process.getBuiltinModule?.('node:module') ?? {});
  for (const file of Object.keys(loaded)) {
    const directory = PACKAGE.exec(file)?.[1];
    if (directory === undefined || reported.has(directory) || isOwn(directory)) continue;
    reported.add(directory);
    debug('another Prometheus client is loaded, with a registry of its own: %s', directory);
  }
}

/** @param {string} directory of a package */
function isOwn(directory) {
  // A bundle that is an ES module has no __dirname.
  if (typeof __dirname !== 'string') return false;
  return __dirname.replaceAll('\\', '/') === `${directory.replaceAll('\\', '/')}/lib/registry`;
}

module.exports = { reportOtherClients };
