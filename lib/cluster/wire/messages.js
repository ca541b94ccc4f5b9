'use strict';

// The messages that primary and worker exchange over IPC. Request and response have prom-client's message
// types, so either side may run prom-client: its worker ignores the additional fields, and its primary sends
// no `directory`. docs/snapshot-format.md describes every field.

const REQUEST = 'prom-client:getMetricsReq';
const RESPONSE = 'prom-client:getMetricsRes';
const WELCOME = 'prom-client-cluster:welcome';
const READY = 'prom-client-cluster:ready';
const PAGE = 'prom-client-cluster:page';
const HELLO = 'prom-client-cluster:hello';
const PING = 'prom-client-cluster:ping';
const LAST = 'prom-client-cluster:last';

const MAX_TEXT_CHARACTERS = 200;

/**
 * How much of a worker's journal the primary has; see docs/snapshot-format.md.
 *
 * @typedef {{incarnation: string, epoch: number, series: number}} JournalPosition
 */

/**
 * @typedef {object} Request
 * @property {string} type
 * @property {number} requestId
 * @property {string} [directory] where the worker writes its snapshot; absent in a request of prom-client
 * @property {string} [exitName] bare name of the file for the worker's exit snapshot
 * @property {JournalPosition} [known] absent if the primary has nothing of the journal
 * @property {number} [timeout] how long the primary waits, milliseconds
 * @property {number} [checkpointInterval] milliseconds between checkpoints: the worker also writes its exit
 *   snapshot while it runs, if something has changed
 * @property {boolean} [pages] whether the primary answers page requests
 */

/**
 * @typedef {object} Ready
 * @property {string} type
 * @property {string} [exitDirectory] where the worker writes its exit snapshot if it may not write into the
 *   primary's directory
 * @property {number} [checkpointInterval] milliseconds between checkpoints of this worker, if its program
 *   sets them: the primary sends them back in its requests to this worker
 */

/**
 * @typedef {object} Response
 * @property {string} type
 * @property {number} requestId
 * @property {string} [file] bare name of the snapshot file in the primary's directory
 * @property {number} [bytes] its length
 * @property {string} [snapshot] the snapshot itself (base64) if no file could be written
 * @property {string} [reason] why no file could be written
 * @property {unknown[]} [metrics] the registries of a worker with prom-client, as JSON
 * @property {string} [error]
 */

/**
 * The last snapshot of a worker that cannot write it to a file.
 *
 * @typedef {object} Last
 * @property {string} type
 * @property {string} snapshot base64
 * @property {string} reason why no file could be written
 */

/**
 * A worker asks for the cluster's page.
 *
 * @typedef {object} PageRequest
 * @property {string} type PAGE
 * @property {number} pageId
 * @property {Record<string, unknown>} format
 * @property {number} timeout milliseconds until the caller's deadline
 * @property {boolean} inParts whether to send the page itself, because the worker cannot read the file
 */

/**
 * The answer. Without any of `file`, `part` and `error` there is nothing to show. Without a `pageId` it
 * only states in `pages` whether the primary answers such requests.
 *
 * @typedef {object} PageAnswer
 * @property {string} type PAGE
 * @property {number} [pageId]
 * @property {string} [file] bare name in the primary's directory; the worker removes it
 * @property {number} [bytes] length of the page
 * @property {boolean} [ascii] whether each byte of it is one character
 * @property {string} [part] of the page (base64); parts come in order
 * @property {string} [error]
 * @property {string} [reason] the error as a line for scrapers
 * @property {boolean} [pages] whether the primary answers page requests
 */

/**
 * A member of a group introduces itself, or tries whether the holder answers. The holder answers with the
 * same type: HELLO with the member's id.
 *
 * @typedef {object} Hello
 * @property {string} type HELLO or PING
 * @property {string} [key] name of the member's socket
 * @property {number} [id] that the member has, or had
 * @property {number} [pid]
 */

/**
 * The group of a process.
 *
 * @typedef {object} GroupFacts
 * @property {string} directory
 * @property {number} generation rises by 1 whenever another process aggregates
 * @property {number} members of the group
 * @property {{pid: number, id: number} | undefined} aggregator the process that aggregates; undefined if it
 *   is not known
 */

/**
 * @param {unknown} message
 * @returns {message is {type: string}}
 */
function hasType(message) {
  return (
    typeof message === 'object' && message !== null && typeof (/** @type {any} */ (message).type) === 'string'
  );
}

/**
 * The beginning of a text that another process has sent, to be stored. It is a copy, because a slice of a
 * string keeps the whole string in memory.
 *
 * @param {string} text
 * @param {number} [length]
 * @returns {string}
 */
function beginningOf(text, length = MAX_TEXT_CHARACTERS) {
  return text.length <= length ? text : Buffer.from(text.slice(0, length)).toString();
}

/**
 * @param {string} base64 a snapshot in a message
 * @returns {Buffer} in an ArrayBuffer of its own, because columns are views that start at a multiple of 8
 */
function snapshotFrom(base64) {
  const buffer = Buffer.allocUnsafeSlow(Buffer.byteLength(base64, 'base64'));
  return buffer.subarray(0, buffer.write(base64, 'base64'));
}

module.exports = {
  REQUEST,
  RESPONSE,
  WELCOME,
  READY,
  LAST,
  PAGE,
  HELLO,
  PING,
  hasType,
  beginningOf,
  snapshotFrom,
};
