'use strict';

// Names of the files in the primary's directory. Workers write snapshots there; the aggregator reads them and
// retains the last one of each worker, and writes pages there that workers read.

const SNAPSHOT_NAME = /^w([0-9]{1,10})-r([0-9]{1,16})-[0-9a-f]{24}\.snap$/;
const EXIT_NAME = /^w([0-9]{1,10})-exit-[0-9a-f]{24}\.snap$/;
/** An exit snapshot that is being written; it gets its name when it is complete. */
const UNFINISHED_EXIT_NAME = /^w([0-9]{1,10})-exit-[0-9a-f]{24}\.snap\.part$/;
const PAGE_NAME = /^w([0-9]{1,10})-p([0-9]{1,16})-[0-9a-f]{24}\.page$/;
const RETAINED_NAME = /^w([0-9]{1,10})-(?:last|dictionary)\.snap(?:\.tmp)?$/;

/** The name of the primary's directory starts with this. */
const SPOOL_PREFIX = 'prom-client-cluster-';

const SPOOL_NAME = /^prom-client-cluster-[0-9a-f]{24}$/;

/** @returns {string} a new name for a primary's directory */
function spoolName() {
  return SPOOL_PREFIX + randomBits();
}

/**
 * @param {string} name
 * @returns {boolean} whether it is the name of a primary's directory: that of an unpacked archive of this
 *   package starts like one
 */
function isSpoolDirectoryName(name) {
  return SPOOL_NAME.test(name);
}

/**
 * A new name for one snapshot. 96 random bits make it unique, so two writers never use the same file.
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
 * @returns {string} a new name for the worker's exit snapshot
 */
function exitSnapshotName(workerId) {
  return `w${workerId}-exit-${randomBits()}.snap`;
}

/**
 * @param {string} name of an exit snapshot
 * @returns {string} its name until it is complete
 */
function unfinishedName(name) {
  return `${name}.part`;
}

/**
 * @param {number} workerId
 * @param {number} pageId
 * @returns {string} a new name for a page that the worker has requested
 */
function pageName(workerId, pageId) {
  return `w${workerId}-p${pageId}-${randomBits()}.page`;
}

/**
 * @param {number} workerId
 * @returns {string} name of the file in which the aggregator retains the worker's last snapshot
 */
function lastName(workerId) {
  return `w${workerId}-last.snap`;
}

/**
 * @param {number} workerId
 * @returns {string} name of the file in which the aggregator retains the worker's label sets
 */
function dictionaryName(workerId) {
  return `w${workerId}-dictionary.snap`;
}

/** 96 random bits in hex. */
function randomBits() {
  // Loaded here, because every process that loads the library loads this file, and most of them never name a
  // file.
  return require('node:crypto').randomBytes(12).toString('hex');
}

/**
 * Whether a name that a worker announced is a bare file name of exactly the form that this worker uses for
 * that request. No other name may be joined to a path.
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
 * @param {unknown} name
 * @param {number} workerId
 * @param {number} pageId
 * @returns {name is string} whether it is the bare name of the page that this worker has requested
 */
function isPageNameOf(name, workerId, pageId) {
  const match = typeof name === 'string' ? PAGE_NAME.exec(name) : null;
  return match !== null && Number(match[1]) === workerId && Number(match[2]) === pageId;
}

/**
 * @param {unknown} name
 * @returns {name is string} whether it is the bare name of a complete exit snapshot
 */
function isExitName(name) {
  return typeof name === 'string' && EXIT_NAME.test(name);
}

/**
 * @param {string} name of any file in the directory
 * @returns {number | undefined} the worker to which the file belongs; undefined if it belongs to none
 */
function workerIdOfFile(name) {
  const match = [SNAPSHOT_NAME, EXIT_NAME, UNFINISHED_EXIT_NAME, RETAINED_NAME, PAGE_NAME]
    .map(pattern => pattern.exec(name))
    .find(found => found !== null);
  return match == null ? undefined : Number(match[1]);
}

/**
 * @param {string} name of a worker's file
 * @returns {boolean} whether the aggregator wrote it: a page, or what it retains of the worker
 */
function isAggregatorFile(name) {
  return RETAINED_NAME.test(name) || PAGE_NAME.test(name);
}

/**
 * @param {string} name of a worker's file
 * @returns {boolean} whether it is an exit snapshot, complete or not
 */
function isExitFile(name) {
  return EXIT_NAME.test(name) || UNFINISHED_EXIT_NAME.test(name);
}

/**
 * @param {string} name of a worker's file
 * @returns {boolean} whether it is an exit snapshot that may be incomplete
 */
function isUnfinished(name) {
  return UNFINISHED_EXIT_NAME.test(name);
}

module.exports = {
  SPOOL_PREFIX,
  spoolName,
  isSpoolDirectoryName,
  snapshotName,
  exitSnapshotName,
  unfinishedName,
  lastName,
  dictionaryName,
  pageName,
  isSnapshotNameOf,
  isPageNameOf,
  isExitName,
  workerIdOfFile,
  isExitFile,
  isAggregatorFile,
  isUnfinished,
};
