'use strict';

// A worker as the primary sees it, and what is sent to it.

const { debuglog } = require('node:util');
const { exitSnapshotName } = require('../wire/file-names');

const debug = debuglog('prom-client-cluster');

/** @typedef {import('node:cluster').Worker} Worker */
/** @typedef {import('../wire/messages').JournalPosition} JournalPosition */

/**
 * @typedef {object} Member
 * @property {Worker} worker
 * @property {string} exitName
 * @property {JournalPosition | undefined} known
 * @property {number} outstanding id of the request that it has not answered; 0 where there is none
 * @property {number} askedAt when that was sent last, by performance.now()
 * @property {number} pause milliseconds until it may be sent again
 * @property {boolean} spoken whether it has ever answered anything
 * @property {boolean} silent whether that request is past its deadline: no round waits for it
 * @property {number} answeredAt when it has answered last, by performance.now()
 * @property {boolean} exited
 * @property {boolean} disconnected
 * @property {string | undefined} error what its last answer said went wrong
 */

/**
 * @param {Worker} worker
 * @returns {Member} of whom nothing is known yet
 */
function newMember(worker) {
  return {
    worker,
    exitName: exitSnapshotName(worker.id),
    known: undefined,
    outstanding: 0,
    askedAt: 0,
    pause: 0,
    spoken: false,
    silent: false,
    answeredAt: -Infinity,
    exited: false,
    disconnected: false,
    error: undefined,
  };
}

/** @param {Worker} worker */
function isOnline(worker) {
  return worker.isConnected() && !worker.isDead?.();
}

/**
 * @param {Worker} worker
 * @param {object} message
 * @param {() => void} [onFailure]
 */
function send(worker, message, onFailure = () => {}) {
  /** @param {Error | null} error */
  const onSent = error => {
    if (!error) return;
    debug('worker %d cannot be reached: %s', worker.id, error);
    onFailure();
  };
  try {
    // With a callback a channel that closes meanwhile is no 'error' event on the application's worker.
    // Not worker.process.send(): suites put a spy in the place of the worker's own.
    worker.send(message, onSent);
  } catch (error) {
    onSent(/** @type {Error} */ (error));
  }
}

module.exports = { newMember, isOnline, send };
