'use strict';

// Runs on the primary's loop. What the primary knows about one worker, and the function that sends the worker
// a message.

const { debug } = require('../../options/debug-log');

/** @typedef {import('node:cluster').Worker} Worker */
/** @typedef {import('../../source/source-log').LogPosition} LogPosition */

class WorkerRecord {
  /** Whether the worker has ever answered with its source: then it also leaves last columns. */
  sendsSources = false;
  /** @type {string | undefined} last columns that it has sent over IPC */
  lastSource = undefined;
  /** @type {LogPosition | undefined} what the aggregator has of the worker's log */
  position = undefined;
  /** @type {number | undefined} the last batch of its ended rows that is part of the retired totals */
  ended = undefined;
  /** @type {string | undefined} name of a log that cannot be used: the worker must start another one */
  badLog = undefined;
  /** Id of the request that the worker has not answered; 0 if there is none. */
  outstanding = 0;
  /** When that request was last sent, by performance.now(). */
  askedAt = 0;
  /** When that request was first sent, by performance.now(). */
  requestedAt = 0;
  /** Whether the worker has missed a deadline or could not be reached, and has not answered since. */
  timedOut = false;
  /** When it last answered, by performance.now(). */
  answeredAt = -Infinity;
  /** Whether a page has ever included its numbers. */
  isShown = false;
  /** Whether its next source is to be sent over IPC, because one of its files could not be read. */
  overIpc = false;
  exited = false;
  /** Whether it ended by a signal. */
  wasKilled = false;
  disconnected = false;
  /** @type {string | undefined} error of its last answer */
  error = undefined;
  /** @type {import('./page-requests').Queue | undefined} its requests for pages */
  pages = undefined;

  /** @param {Worker} worker that was never asked */
  constructor(worker) {
    this.worker = worker;
  }
}

/**
 * @param {WorkerRecord} record of a dead worker
 * @returns {import('../../aggregator/retirement').Death}
 */
function deathOf({ sendsSources, lastSource, exited, wasKilled }) {
  return { isLastExpected: sendsSources && exited && !wasKilled, lastSource };
}

/**
 * @param {Worker} worker
 * @returns {boolean} whether messages can reach it
 */
function isOnline(worker) {
  return worker.isConnected() && !worker.isDead?.();
}

/**
 * Sends a message. Never throws.
 *
 * @param {Worker} worker
 * @param {object} message
 * @param {(error: Error | null) => void} [callback] called when it was sent, or cannot be
 */
function send(worker, message, callback = () => {}) {
  /** @param {Error | null} error */
  const onSent = error => {
    if (error) debug('worker %d cannot be reached: %s', worker.id, error);
    callback(error);
  };
  try {
    // Without a callback, a channel that closes meanwhile emits 'error' on the application's worker.
    // worker.send() and not worker.process.send(), because test suites replace the worker's own with a spy.
    worker.send(message, onSent);
  } catch (error) {
    onSent(/** @type {Error} */ (error));
  }
}

module.exports = { WorkerRecord, deathOf, isOnline, send };
