'use strict';

// Names of the files in the primary's directory. Workers write logs and columns there, which the aggregator
// reads, and the aggregator writes pages there, which workers read.

/** Request 0: nobody has asked for these. */
const COLUMNS_NAME = /^w([0-9]{1,10})-r([0-9]{1,16})-[0-9a-f]{24}\.columns$/;
const LOG_NAME = /^w([0-9]{1,10})-[0-9a-f]{24}\.log$/;
const PAGE_NAME = /^w([0-9]{1,10})-p([0-9]{1,16})-[0-9a-f]{24}\.page$/;

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
 * A new name for columns. 96 random bits make it unique, so two writers never use the same file.
 *
 * @param {number} workerId
 * @param {number} requestId 0 if nobody has asked for them
 * @returns {string}
 */
function columnsName(workerId, requestId) {
  return `w${workerId}-r${requestId}-${randomBits()}.columns`;
}

/**
 * @param {number} workerId
 * @param {string} log 24 hex digits
 * @returns {string} the name of a log's file
 */
function logName(workerId, log) {
  return `w${workerId}-${log}.log`;
}

/**
 * @param {number} workerId
 * @param {number} pageId
 * @returns {string} a new name for a page that the worker has requested
 */
function pageName(workerId, pageId) {
  return `w${workerId}-p${pageId}-${randomBits()}.page`;
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
function isColumnsNameOf(name, workerId, requestId) {
  const match = typeof name === 'string' ? COLUMNS_NAME.exec(name) : null;
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
 * @param {string} name of any file in the directory
 * @returns {number | undefined} the worker to which the file belongs; undefined if it belongs to none
 */
function workerIdOfFile(name) {
  const match = COLUMNS_NAME.exec(name) ?? LOG_NAME.exec(name) ?? PAGE_NAME.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/**
 * @param {string} name of any file in the directory
 * @returns {number | undefined} of the request that its columns answer; undefined if it has no columns
 */
function requestIdOfColumns(name) {
  const match = COLUMNS_NAME.exec(name);
  return match === null ? undefined : Number(match[2]);
}

module.exports = {
  SPOOL_PREFIX,
  spoolName,
  isSpoolDirectoryName,
  columnsName,
  logName,
  pageName,
  isColumnsNameOf,
  isPageNameOf,
  workerIdOfFile,
  requestIdOfColumns,
};
