'use strict';

// Test runners load the package several times in one process: each test file of Jest has its own globalThis,
// and may leave a registry behind. But all of them share Node's modules. So the object that follows the
// workers of `cluster`, or the threads of `worker_threads`, is stored on that module: the latest one is in
// use, and closes its predecessor.

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
