'use strict';

// Runs on the primary's loop. Starts the aggregator behind one interface: in a thread or, if no thread can be
// started, in slices on this loop.

const { ThreadBackend, isOutOfMemory } = require('./thread-backend');
const { findThread } = require('./thread-file');
const { debug } = require('../../options/debug-log');

/**
 * Methods of the Aggregator that are called by name: without a result (Sent), and with one (Requested).
 *
 * @typedef {'answer' | 'discard' | 'retire' | 'share'} Sent
 * @typedef {'render' | 'finish' | 'removeRetired' | 'deliverPush' | 'supersedePush' | 'close'} Requested
 */

/**
 * Events of the backend.
 *
 * @typedef {object} Events
 * @property {(directory: string) => void} onDirectory
 * @property {import('../../aggregator/retirement').OnSaved} onRetired
 * @property {(error?: Error) => void} onRestart the thread is lost, and with it the numbers of living workers
 */

/**
 * Why the aggregation runs in place: because of the option `inPlace`, because the thread's file is missing
 * (as in a bundle), or because threads cannot be started or do not last.
 *
 * @typedef {'option' | 'missing' | 'start'} InPlaceReason
 */

/**
 * @typedef {object} PlaceOptions
 * @property {() => import('../wire/messages').GroupFacts} [groupFacts] if the members are those of a group
 * @property {Promise<unknown>} [settled] no page is asked for before: members that live are not linked yet
 * @property {boolean} [inPlace] start no thread
 * @property {string | URL} [thread] main file of the thread; default findThread()
 */

/** @typedef {import('../../aggregator/aggregator').SentOptions & PlaceOptions} BackendOptions */

/**
 * Starts a backend: a thread if possible, else in place. Rejects if the thread runs out of memory.
 *
 * @param {BackendOptions} options
 * @param {Events} events
 * @param {InPlaceReason} [reason] if given, no thread is started
 * @returns {Promise<ThreadBackend | import('../../aggregator/in-place-backend').InPlaceBackend>}
 */
async function startBackend(options, events, reason = options.inPlace ? 'option' : undefined) {
  const file = reason === undefined ? findThread(options.thread) : undefined;
  if (file !== undefined) {
    const backend = new ThreadBackend(file, options, events);
    try {
      await backend.start();
      return backend;
    } catch (error) {
      // The heap of this process is no larger than the thread's was.
      if (isOutOfMemory(error)) throw error;
      debug('no thread can be started, aggregating in place: %s', error);
      reason = 'start';
    }
  }
  if (reason === undefined) {
    debug('the file of the thread is missing, aggregating in place: see docs/bundling.md');
    reason = 'missing';
  }
  const { InPlaceBackend } = require('../../aggregator/in-place-backend');
  const backend = new InPlaceBackend(options, reason, events);
  await backend.start();
  return backend;
}

module.exports = { startBackend };
