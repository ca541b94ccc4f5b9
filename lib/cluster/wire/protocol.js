'use strict';

// Every message that primary and worker exchange over IPC, and the shape of the names they carry. The request and
// response types are prom-client's own, so that either side may still run prom-client (a stock worker ignores the
// fields it does not know, a stock primary sends no `directory`).

const REQUEST = 'prom-client:getMetricsReq';
const RESPONSE = 'prom-client:getMetricsRes';
const WELCOME = 'prom-client-cluster:welcome';
const READY = 'prom-client-cluster:ready';

const SNAPSHOT_NAME = /^w([0-9]{1,10})-r([0-9]{1,16})-[0-9a-f]{24}\.snap$/;
const EXIT_NAME = /^w([0-9]{1,10})-exit-[0-9a-f]{24}\.snap$/;

const KEPT_NAME = /^w([0-9]{1,10})-(?:last|dictionary)\.snap(?:\.tmp)?$/;

/** What a worker was about to put in the place of its last snapshot when it was killed. */
const UNFINISHED_EXIT_NAME = /^w([0-9]{1,10})-exit-[0-9a-f]{24}\.snap\.part$/;

/**
 * What the primary already knows of a worker's dictionary; see docs/snapshot-format.md.
 *
 * @typedef {{incarnation: string, epoch: number, series: number}} Known
 */

/**
 * @typedef {object} Request
 * @property {string} type
 * @property {number} requestId
 * @property {string} [directory] where the worker puts its snapshot; absent from a stock primary
 * @property {string} [exitName] bare name of the file for the worker's last snapshot
 * @property {Known} [known]
 * @property {number} [timeout] milliseconds the primary is prepared to wait
 * @property {number} [checkpointInterval] milliseconds after which the worker writes its last snapshot before its end,
 *   where something has changed
 */

/**
 * @typedef {object} Response
 * @property {string} type
 * @property {number} requestId
 * @property {string} [file] bare name of the snapshot file in the primary's directory
 * @property {number} [bytes] its length
 * @property {string} [snapshot] the snapshot itself (base64), where no file could be written
 * @property {string} [reason] why no file could be written
 * @property {unknown[]} [metrics] a stock worker's registries as JSON
 * @property {string} [error]
 */

/**
 * A fresh name for one snapshot: unique by 96 random bits, so that no two writers ever meet.
 *
 * @param {number} workerId
 * @param {number} requestId
 * @returns {string}
 */
function snapshotName(workerId, requestId) {
  return `w${workerId}-r${requestId}-${randomBits()}.snap`;
}

/**
 * @param {number} workerId
 * @returns {string} name of the file in which the primary keeps the worker's last snapshot
 */
function lastName(workerId) {
  return `w${workerId}-last.snap`;
}

/**
 * @param {number} workerId
 * @returns {string} name of the file in which the primary keeps the worker's label sets
 */
function dictionaryName(workerId) {
  return `w${workerId}-dictionary.snap`;
}

/**
 * @param {number} workerId
 * @returns {string}
 */
function exitSnapshotName(workerId) {
  return `w${workerId}-exit-${randomBits()}.snap`;
}

/** 96 random bits in hex. */
function randomBits() {
  // Loaded here: this file is loaded wherever the library is, and most processes never name a file.
  return require('node:crypto').randomBytes(12).toString('hex');
}

/**
 * Whether a name that came from a worker is exactly the bare file name which that worker may announce for that
 * request. Nothing else may ever be joined to a path.
 *
 * @param {unknown} name
 * @param {number} workerId
 * @param {number} requestId
 * @returns {name is string}
 */
function isSnapshotNameOf(name, workerId, requestId) {
  const match = typeof name === 'string' ? SNAPSHOT_NAME.exec(name) : null;
  return match !== null && Number(match[1]) === workerId && Number(match[2]) === requestId;
}

/**
 * The worker a file in the spool belongs to, by its name; undefined for any other file.
 *
 * @param {string} name
 * @returns {number | undefined}
 */
function workerIdOfFile(name) {
  const match = [SNAPSHOT_NAME, EXIT_NAME, UNFINISHED_EXIT_NAME, KEPT_NAME]
    .map(pattern => pattern.exec(name))
    .find(found => found !== null);
  return match == null ? undefined : Number(match[1]);
}

/**
 * @param {string} name of a worker's file
 * @returns {boolean} whether the primary keeps it
 */
function isKeptFile(name) {
  return KEPT_NAME.test(name);
}

/**
 * @param {string} name of a worker's file
 * @returns {boolean} whether that is its last snapshot, finished or not
 */
function isExitFile(name) {
  return EXIT_NAME.test(name) || UNFINISHED_EXIT_NAME.test(name);
}

/**
 * @param {string} name of a worker's file
 * @returns {boolean} whether it may be half of one
 */
function isUnfinished(name) {
  return UNFINISHED_EXIT_NAME.test(name);
}

/**
 * @param {unknown} message
 * @returns {message is {type: string}}
 */
function hasType(message) {
  return (
    typeof message === 'object' && message !== null && typeof (/** @type {any} */ (message).type) === 'string'
  );
}

module.exports = {
  REQUEST,
  RESPONSE,
  WELCOME,
  READY,
  EXIT_NAME,
  snapshotName,
  exitSnapshotName,
  isSnapshotNameOf,
  workerIdOfFile,
  isExitFile,
  isKeptFile,
  isUnfinished,
  lastName,
  dictionaryName,
  hasType,
};
