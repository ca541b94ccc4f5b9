'use strict';

// Runs in the worker. Answers the primary as soon as the library is loaded. Adds one 'message' and two 'exit'
// listeners per process, however many copies of this package are loaded. Other processes get no listener: a
// 'message' listener keeps a plain fork (of a test runner or process manager) alive. In a cluster worker the
// channel is open anyway.

const { REQUEST, WELCOME, PAGE, hasType } = require('../wire/messages');
const { processState, ownProcessState } = require('../../registry/process-state');
const { unavailable } = require('../../registry/unavailable');
const { debug } = require('../../options/debug-log');

const OWN_EXIT_LISTENERS = 2;

/**
 * The state that all copies of this package in a process share.
 *
 * @typedef {object} SharedWorker
 * @property {(message: any) => void} onMessage
 * @property {(timeout: number) => Promise<void>} handOver writes the last columns for the primary, with
 *   milliseconds for `collect` hooks. Never rejected; resolved at once if no primary has sent a request
 * @property {(interval: number | undefined) => void} requestCheckpoints sets the interval of checkpoints in
 *   milliseconds; undefined leaves it to the primary
 * @property {(format: Format, timeout: number) => Promise<PageBytes | undefined>} page
 */

/** @typedef {import('../wire/scrape-callers').Format} Format */
/** @typedef {import('../../exposition/page-bytes').PageBytes} PageBytes */

/**
 * Answers the primary, if this process is a cluster worker and no other copy does.
 *
 * @param {() => Iterable<any>} registries returns those of all copies; called at each scrape
 * @returns {boolean} whether it is a cluster worker
 */
function hookIntoWorker(registries) {
  const worker = processAsWorker();
  if (worker === undefined) return false;
  if (processState().worker !== undefined) return true;
  /** @type {import('./worker-responder').WorkerResponder | undefined} */
  let responder;
  /** @type {number | undefined} */
  let checkpointInterval;
  /** @type {import('./cluster-pages').ClusterPages | undefined} */
  let pages;
  const listenToExit = exitListeners(() => responder?.writeLast());
  const linkToPrimary = () => require('../links/ipc').linkToPrimary(worker.id);
  const clusterPages = () => (pages ??= new (require('./cluster-pages').ClusterPages)(linkToPrimary()));
  const receive = (/** @type {any} */ message) => {
    clusterPages().receive(message);
    if (message.type === PAGE) return;
    if (responder === undefined) {
      // Loaded at the first request: a worker that is never scraped does not pay for it.
      const { WorkerResponder } = require('./worker-responder');
      responder = new WorkerResponder(linkToPrimary(), registries);
      if (checkpointInterval !== undefined) responder.keepInterval(checkpointInterval);
    }
    listenToExit();
    responder.receive(message);
  };
  const state = (ownProcessState().worker = {
    onMessage(message) {
      if (!hasType(message) || ![REQUEST, WELCOME, PAGE].includes(message.type)) return;
      try {
        receive(message);
      } catch (error) {
        // A file of this package could not be loaded, because the process has no free descriptors, for
        // example. The next message tries again.
        debug('a message of the primary failed: %s', error);
      }
    },
    handOver: async timeout => responder?.handOver(timeout),
    requestCheckpoints(interval) {
      // The first one applies, as with the other options.
      checkpointInterval ??= interval;
      if (checkpointInterval !== undefined) responder?.keepInterval(checkpointInterval);
    },
    page: (format, timeout) => clusterPages().page(format, timeout),
  });
  process.on('message', state.onMessage);
  listenToExit();
  return true;
}

/**
 * The last 'exit' listener writes the numbers, so what other listeners record is included. So does the first
 * one, if there are others: one of them may call process.exit(), which ends the process.
 *
 * @param {() => void} writeLast
 * @param {() => void} [onEnd] called by the last listener, after that
 * @returns {() => void} makes them the first and the last listener, whatever the application has added
 */
function exitListeners(writeLast, onEnd) {
  const onExitFirst = () => void (process.listenerCount('exit') > OWN_EXIT_LISTENERS && writeLast());
  const onExit = () => {
    writeLast();
    onEnd?.();
  };
  return () => {
    process.removeListener('exit', onExit);
    process.removeListener('exit', onExitFirst);
    process.on('exit', onExit);
    process.prependListener('exit', onExitFirst);
  };
}

/**
 * @returns {import('node:cluster').Worker | undefined} undefined unless this is a cluster worker
 */
function processAsWorker() {
  try {
    // Checked first, because `cluster` need not be loaded without an IPC channel.
    if (!process.connected) return undefined;
  } catch {
    // Deno, in a thread.
    return undefined;
  }
  const { isWorker, worker } = /** @type {any} */ (require('node:cluster'));
  return isWorker ? worker : undefined;
}

/**
 * The cluster's page, from the primary.
 *
 * @param {Format} format
 * @param {number} timeout milliseconds after which the last known numbers of missing workers are used
 * @returns {Promise<PageBytes | undefined>} undefined if there are no metrics
 * @throws {Error} if this process is not a worker, or its primary does not aggregate
 */
async function clusterPage(format, timeout) {
  const { worker } = processState();
  if (worker === undefined)
    throw unavailable('This worker is not connected to a primary.', undefined, 'NO_AGGREGATOR');
  return worker.page(format, timeout);
}

module.exports = { hookIntoWorker, exitListeners, clusterPage };
