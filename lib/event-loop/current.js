'use strict';

// Test runners load the package several times in one process: each test file of Jest has a globalThis of its
// own, and may leave a registry behind. All share Node's modules. So what follows the workers of `cluster`,
// or the threads of `worker_threads`, is noted there: the last one is in use, and closes the one before it.

const CURRENT = Symbol.for('prom-client-cluster.current.v1');

/** @typedef {{close: () => unknown}} Closable whose close() may be called again */

/**
 * @param {any} module of Node.js
 * @param {Closable} next
 */
function replaceCurrent(module, next) {
  const former = module[CURRENT];
  module[CURRENT] = next;
  former?.close();
}

/**
 * @param {any} module of Node.js
 * @param {Closable} closed
 */
function leaveCurrent(module, closed) {
  if (module[CURRENT] === closed) delete module[CURRENT];
}

module.exports = { replaceCurrent, leaveCurrent };
