'use strict';

// Names of the files in the primary's directory. Workers write logs and columns there, which the aggregator
// reads, and the aggregator writes pages there, which workers read.

/** Columns, a page or a log. Columns of request 0: nobody has asked for these. */
const FILE_NAME =
  /^w([0-9]{1,10})-(?:r([0-9]{1,16})-[0-9a-f]{24}\.columns|p([0-9]{1,16})-[0-9a-f]{24}\.page|[0-9a-f]{24}\.log)$/;

const SPOOL_NAME = /^prom-client-cluster-[0-9a-f]{24}$/;

/** @returns {string} a new name for a primary's directory */
function spoolName() {
  return `prom-client-cluster-${randomBits()}`;
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
 * What a name says: the worker to which the file belongs, and the request that its columns answer, or the
 * page that it has. No other name may be joined to a path.
 *
 * @param {unknown} name of any file in the directory, or one that a worker has sent
 * @returns {{workerId: number, requestId: number, pageId: number} | undefined} ids that the name does not
 *   have are NaN; undefined if the file belongs to no worker
 */
function partsOf(name) {
  const match = typeof name === 'string' ? FILE_NAME.exec(name) : null;
  if (match === null) return undefined;
  const [workerId, requestId, pageId] = match.slice(1).map(Number);
  return { workerId, requestId, pageId };
}

/**
 * @param {unknown} name
 * @param {number} workerId
 * @param {number} requestId
 * @returns {name is string} whether it is the bare name that this worker uses for columns of that request
 */
function isColumnsNameOf(name, workerId, requestId) {
  const parts = partsOf(name);
  return parts?.workerId === workerId && parts.requestId === requestId;
}

/**
 * @param {unknown} name
 * @param {number} workerId
 * @param {number} pageId
 * @returns {name is string} whether it is the bare name of the page that this worker has requested
 */
function isPageNameOf(name, workerId, pageId) {
  const parts = partsOf(name);
  return parts?.workerId === workerId && parts.pageId === pageId;
}

module.exports = {
  spoolName,
  isSpoolDirectoryName,
  columnsName,
  logName,
  pageName,
  partsOf,
  isColumnsNameOf,
  isPageNameOf,
};
