'use strict';

// Runs in the worker. The link to the primary over Node's IPC channel.
//
// A link connects a member with the process that aggregates. Neither side depends on how the link works. A
// member has a Link. The aggregating side sees its members through the interface of `node:cluster`: their ids
// in `workers`, the events 'fork', 'online', 'message', 'disconnect' and 'exit', and for each member `id`,
// `process.pid`, send(), isConnected() and isDead().

const { debug } = require('../../options/debug-log');

/**
 * @typedef {object} Link
 * @property {number} id of this member
 * @property {boolean} [isDirect] whether messages are direct calls, so that bytes need not be encoded as text
 * @property {() => boolean} isConnected whether messages can reach the other side
 * @property {(message: object, onSent?: () => void) => void} send throws if the message cannot be serialized;
 *   `onSent` is called when it was sent, or cannot be
 * @property {() => string | undefined} [directory] where the directory of snapshot files is now. Only in a
 *   group, where another process may have taken over and moved it
 */

/**
 * @param {number} workerId
 * @returns {Link}
 */
function linkToPrimary(workerId) {
  return { id: workerId, isConnected: () => Boolean(process.connected), send };
}

/**
 * @param {object} message
 * @param {() => void} [onSent]
 */
function send(message, onSent = () => {}) {
  if (!process.connected) {
    onSent();
    return;
  }
  // Without a callback, a channel that closes meanwhile would emit an 'error' event on the application's
  // `process`.
  /** @type {any} */ (process).send(message, undefined, undefined, (/** @type {Error | null} */ error) => {
    if (error) debug('the primary did not get a message: %s', error);
    onSent();
  });
}

module.exports = { linkToPrimary };
