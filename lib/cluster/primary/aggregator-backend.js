'use strict';

// Where the aggregator runs, behind one face: in a thread (started clean; else with the options that this process was
// started with, as Yarn PnP needs them), or, where no thread can be had, in slices on this loop.

const { debuglog } = require('node:util');
const { ThreadBackend } = require('./thread-backend');

const debug = debuglog('prom-client-cluster');

/** @typedef {import('../aggregator/aggregator').Format} Format */
/** @typedef {import('../aggregator/self-metrics').PrimaryFacts} PrimaryFacts */
/** @typedef {{formats: Format[], custom: string[], final: boolean, facts?: PrimaryFacts}} RenderRequest */
/** @typedef {{formats: Format[], aggregated: any[], facts?: PrimaryFacts}} FinishRequest */

/**
 * What the backend tells its owner.
 *
 * @typedef {object} Events
 * @property {(directory: string) => void} onDirectory
 * @property {(workerIds: number[]) => void} onRetired
 * @property {() => void} onRestart all that was known of living workers is gone
 */

/**
 * @typedef {object} BackendOptions
 * @property {string} [directory]
 * @property {number} [retiredMaxAge] milliseconds
 * @property {boolean} [inPlace] never start a thread
 */

/**
 * Starts the best backend that there is.
 *
 * @param {BackendOptions} options
 * @param {Events} events
 * @param {string} [adopt] directory of a thread that is gone
 * @returns {Promise<ThreadBackend | import('../aggregator/in-place-backend').InPlaceBackend>}
 */
async function startBackend(options, events, adopt) {
  if (!options.inPlace) {
    const backend = new ThreadBackend(options, events);
    try {
      await backend.start(adopt);
      return backend;
    } catch (error) {
      debug('no thread can be started, aggregating in place: %s', error);
    }
  }
  const { InPlaceBackend } = require('../aggregator/in-place-backend');
  const backend = new InPlaceBackend(options, events, adopt);
  await backend.start();
  return backend;
}

module.exports = { startBackend };
