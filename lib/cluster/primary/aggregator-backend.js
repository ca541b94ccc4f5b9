'use strict';

// Runs on the primary's loop. Starts the aggregator behind one interface: in a thread or, if no thread can be
// started, in slices on this loop.

const { debuglog } = require('node:util');
const { ThreadBackend, isOutOfMemory } = require('./thread-backend');

const debug = debuglog('prom-client-cluster');

/** @typedef {import('../aggregator/aggregator').Format} Format */
/** @typedef {import('../aggregator/self-metrics').PrimaryFacts} PrimaryFacts */
/** @typedef {{formats: Format[], custom: string[], final: boolean, facts?: PrimaryFacts}} RenderRequest */
/** @typedef {{formats: Format[], aggregated: any[], facts?: PrimaryFacts}} FinishRequest */

/**
 * Events of the backend.
 *
 * @typedef {object} Events
 * @property {(terminate: () => void) => void} onStarting a thread is starting; `terminate` ends it
 * @property {(directory: string) => void} onDirectory
 * @property {import('../aggregator/retirement').OnSaved} onRetired
 * @property {(error?: Error) => void} onRestart the thread is lost, and with it the numbers of living workers
 */

/**
 * @typedef {object} BackendOptions
 * @property {string} [directory]
 * @property {string} [name] of the spool, if a new one is created
 * @property {number} [retiredMaxAge] milliseconds
 * @property {boolean} [inPlace] start no thread
 * @property {Uint8Array} [totals] of dead workers, which a lost thread could not write
 * @property {boolean} [isTemporary] whether a thread will be started later, which needs the workers'
 *   snapshots
 */

/**
 * Starts a backend: a thread if possible, else in place until a thread can be started. Rejects if the thread
 * runs out of memory.
 *
 * @param {BackendOptions} options
 * @param {Events} events
 * @param {string} [adopt] directory of a lost thread
 * @returns {Promise<ThreadBackend | import('../aggregator/in-place-backend').InPlaceBackend>}
 */
async function startBackend(options, events, adopt) {
  if (!options.inPlace) {
    const backend = new ThreadBackend(options, events);
    try {
      await backend.start(adopt);
      return backend;
    } catch (error) {
      // The heap of this process has no more room than the thread's had.
      if (isOutOfMemory(error)) throw error;
      debug('no thread can be started, aggregating in place: %s', error);
    }
  }
  const { InPlaceBackend } = require('../aggregator/in-place-backend');
  const isTemporary = options.isTemporary || !options.inPlace;
  const backend = new InPlaceBackend({ ...options, isTemporary }, events, adopt);
  await backend.start();
  return backend;
}

module.exports = { startBackend };
