'use strict';

// Makes a cluster worker answer its primary from the moment the library is loaded. Adds one 'message' and one 'exit'
// listener a process, however many copies of this package it loads, and nothing anywhere else: a 'message' listener
// would keep a plain fork (a test runner's, a process manager's) alive. In a cluster worker the channel is open anyway.

const { REQUEST, WELCOME, hasType } = require('../wire/messages');

const SHARED = Symbol.for('prom-client-cluster.worker.v1');

/**
 * What all copies of this package in a process share.
 *
 * @typedef {object} SharedWorker
 * @property {(() => Iterable<any>)[]} sources each copy's registries
 * @property {(message: any) => void} onMessage
 * @property {() => void} onExit
 * @property {(timeout: number) => Promise<void>} handOver
 */

/**
 * Lets the process answer with this copy's registries, if it is a cluster worker.
 *
 * @param {() => Iterable<any>} registries those that take part, asked at each scrape
 */
function hookIntoWorker(registries) {
  const { cluster } = processAsWorker() ?? {};
  if (cluster === undefined) return;
  const shared = /** @type {{[SHARED]?: SharedWorker}} */ (globalThis);
  if (shared[SHARED] !== undefined) {
    shared[SHARED].sources.push(registries);
    return;
  }
  const sources = [registries];
  /** @type {import('./worker-responder').WorkerResponder | undefined} */
  let responder;
  const state = (shared[SHARED] = {
    sources,
    onMessage(message) {
      if (!hasType(message) || (message.type !== REQUEST && message.type !== WELCOME)) return;
      if (responder === undefined) {
        // Loaded when the first question comes: a worker that nobody scrapes pays nothing.
        const { WorkerResponder } = require('./worker-responder');
        responder = new WorkerResponder(/** @type {any} */ (cluster).worker.id, () => allRegistries(sources));
      }
      // Behind the listeners that the application has added meanwhile: what they count counts, too.
      process.removeListener('exit', state.onExit);
      process.on('exit', state.onExit);
      responder.receive(message);
    },
    onExit: () => responder?.writeExitSnapshot(),
    handOver: async timeout => responder?.handOver(timeout),
  });
  process.on('message', state.onMessage);
  process.on('exit', state.onExit);
}

/** @returns {{cluster: import('node:cluster').Cluster} | undefined} undefined where the process is no cluster worker */
function processAsWorker() {
  // `connected` first: without an IPC channel `cluster` is not even loaded.
  if (!process.connected) return undefined;
  const cluster = /** @type {import('node:cluster').Cluster} */ (
    /** @type {unknown} */ (require('node:cluster'))
  );
  return cluster.isWorker ? { cluster } : undefined;
}

/**
 * Each registry once, even where two copies name the same one.
 *
 * @param {(() => Iterable<any>)[]} sources
 */
function allRegistries(sources) {
  return new Set(sources.flatMap(registries => [...registries()]));
}

/**
 * Has a worker leave its numbers to its primary. Resolved at once in any other process, and where no primary has asked.
 *
 * @param {number} timeout milliseconds for `collect` hooks
 * @returns {Promise<void>} never rejected
 */
async function handOver(timeout) {
  await /** @type {{[SHARED]?: SharedWorker}} */ (globalThis)[SHARED]?.handOver(timeout);
}

module.exports = { hookIntoWorker, handOver };
