'use strict';

// The messages that primary and worker exchange over IPC, and the processes of a group over their links.
// docs/internals/messages.md describes every field. Request and response have prom-client's message types, so
// either side may run prom-client: its worker ignores the additional fields, and its primary sends no
// `directory`.

const REQUEST = 'prom-client:getMetricsReq';
const RESPONSE = 'prom-client:getMetricsRes';
const WELCOME = 'prom-client-cluster:welcome';
const PAGE = 'prom-client-cluster:page';
const HELLO = 'prom-client-cluster:hello';
const PING = 'prom-client-cluster:ping';
const LAST = 'prom-client-cluster:last';

/** Maximum number of a worker's page requests that are not answered yet. */
const MAX_UNANSWERED_PAGES = 64;

/**
 * @typedef {object} Request
 * @property {string} type
 * @property {number} requestId
 * @property {string} [directory] where the worker writes its source; absent in a request of prom-client
 * @property {import('../../source/source-log').LogPosition} [known] what the primary has of the worker's log
 * @property {string} [badLog] name of a log that the primary cannot use: the worker starts another one
 * @property {number} [ended] number of the last batch of the worker's ended rows that the primary has saved
 * @property {number} [timeout] how long the primary waits, milliseconds
 * @property {number} [checkpointInterval] milliseconds between checkpoints: the worker then writes its
 *   numbers if something has changed; 0 for none
 */

/**
 * The group of a process.
 *
 * @typedef {object} GroupFacts
 * @property {string} directory
 * @property {number} generation rises by 1 whenever another process becomes the leader
 * @property {number} members of the group
 * @property {{pid: number, id: number} | undefined} leader the process that aggregates; undefined if it is
 *   not known
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

module.exports = {
  REQUEST,
  RESPONSE,
  WELCOME,
  LAST,
  PAGE,
  HELLO,
  PING,
  MAX_UNANSWERED_PAGES,
  hasType,
};
