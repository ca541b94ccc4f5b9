'use strict';

// Runs on the primary's loop. What the primary knows about one worker, and how it sends it a message.

const fs = require('node:fs');
const { exitSnapshotName } = require('../wire/file-names');
const { debug } = require('../../options/debug-log');

/** @typedef {import('node:cluster').Worker} Worker */
/** @typedef {import('../wire/messages').JournalPosition} JournalPosition */

/**
 * @typedef {object} WorkerRecord
 * @property {Worker} worker
 * @property {string} exitName bare name of the file for its last snapshot
 * @property {string | undefined} exitDirectory the worker's own, if it may not write into the primary's
 * @property {number | undefined} uid of its process when it announced that
 * @property {number | undefined} checkpointInterval milliseconds, if the worker has asked for it
 * @property {boolean} sendsSnapshots whether it has ever answered with a snapshot, and so sends a last one
 * @property {string | undefined} lastSnapshot that it has sent over IPC
 * @property {JournalPosition | undefined} position how much of the worker's dictionary the aggregator has
 * @property {boolean} isShown whether a page has ever had numbers of it
 * @property {number} outstanding id of the request that it has not answered; 0 if there is none
 * @property {number} askedAt when that request was last sent, by performance.now()
 * @property {number} requestedAt when it was first sent, by performance.now()
 * @property {number} longestWait longest time that a scrape has waited for it and timed out, in milliseconds
 * @property {boolean} isRenewed whether it has replaced a request that had timed out
 * @property {number} pause milliseconds until the same request may be sent again
 * @property {boolean} timedOut whether that request has missed a deadline
 * @property {boolean} hasReplied whether the worker has ever sent a message of ours
 * @property {number} answeredAt when it last answered, by performance.now()
 * @property {number} ipcUntil until when its snapshots are sent over IPC, because the primary may not read
 *   its files, by performance.now()
 * @property {number} ipcPause milliseconds for which they were at last
 * @property {boolean} exited
 * @property {boolean} wasKilled whether it ended by a signal
 * @property {boolean} disconnected
 * @property {string | undefined} error of its last answer
 */

/**
 * @param {Worker} worker
 * @returns {WorkerRecord} of a worker that was never asked
 */
function newRecord(worker) {
  return {
    worker,
    exitName: exitSnapshotName(worker.id),
    exitDirectory: undefined,
    uid: undefined,
    checkpointInterval: undefined,
    sendsSnapshots: false,
    lastSnapshot: undefined,
    position: undefined,
    isShown: false,
    outstanding: 0,
    askedAt: 0,
    requestedAt: 0,
    longestWait: 0,
    isRenewed: false,
    pause: 0,
    timedOut: false,
    hasReplied: false,
    answeredAt: -Infinity,
    ipcUntil: -Infinity,
    ipcPause: 0,
    exited: false,
    wasKilled: false,
    disconnected: false,
    error: undefined,
  };
}

/**
 * What messages to one worker have in place of the fields for all workers.
 *
 * @param {WorkerRecord} record
 */
function ownFields({ checkpointInterval }) {
  return checkpointInterval === undefined ? undefined : { checkpointInterval };
}

/**
 * @param {WorkerRecord} record of a dead worker
 * @returns {import('../aggregator/retirement').Death}
 */
function deathOf({ exitName, exitDirectory, uid, sendsSnapshots, lastSnapshot, exited, wasKilled }) {
  return {
    isSnapshotExpected: sendsSnapshots && exited && !wasKilled,
    lastSnapshot,
    own: exitDirectory === undefined ? undefined : { directory: exitDirectory, name: exitName, uid },
  };
}

/**
 * @param {Worker} worker
 * @returns {boolean} whether messages can reach it
 */
function isOnline(worker) {
  return worker.isConnected() && !worker.isDead?.();
}

/**
 * @param {Worker} worker
 * @returns {number | undefined} id of its user; undefined if the system does not show it
 */
function userOf({ process: { pid } }) {
  try {
    return fs.statSync(`/proc/${pid}`).uid;
  } catch {
    return undefined;
  }
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

module.exports = { newRecord, ownFields, deathOf, isOnline, send, userOf };
