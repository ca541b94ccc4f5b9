'use strict';

// The messages that primary and worker exchange over IPC, and the processes of a group over their links.
// docs/internals/snapshot-format.md describes every field. Request and response have prom-client's message
// types, so either side may run prom-client: its worker ignores the additional fields, and its primary sends
// no `directory`.

const REQUEST = 'prom-client:getMetricsReq';
const RESPONSE = 'prom-client:getMetricsRes';
const WELCOME = 'prom-client-cluster:welcome';
const READY = 'prom-client-cluster:ready';
const PAGE = 'prom-client-cluster:page';
const HELLO = 'prom-client-cluster:hello';
const PING = 'prom-client-cluster:ping';
const LAST = 'prom-client-cluster:last';

/** Milliseconds. A shorter interval, from a message, would keep an event loop busy. */
const SHORTEST_CHECKPOINT_INTERVAL = 100;

const MAX_TEXT_CHARACTERS = 200;

/**
 * How much of a worker's journal the primary has; see docs/internals/snapshot-format.md.
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
  SHORTEST_CHECKPOINT_INTERVAL,
  hasType,
  beginningOf,
  snapshotFrom,
};
