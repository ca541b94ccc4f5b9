'use strict';

// Runs in the worker. Sends messages to the primary, and snapshots in them if no file can be written.

const { debuglog } = require('node:util');

const debug = debuglog('prom-client-cluster');

const MAX_TEXT_LENGTH = 1000;

/** Why no file was written although nothing has failed. */
const NO_DIRECTORY = 'the primary has no directory';

/**
 * Sends a message to the primary. Throws if it cannot be serialized.
 *
 * @param {object} message
 * @param {() => void} [onSent] called when it was sent, or cannot be
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

/**
 * @param {import('../wire/snapshot-encoder').EncodedSnapshot} snapshot
 * @param {unknown} error because of which no file was written
 * @returns {{snapshot: string, reason: string}} fields of a message
 */
function inMessage({ chunks, bytes }, error) {
  const code = /** @type {any} */ (error)?.code;
  const reason = typeof code === 'string' ? code : textOf(error);
  return { snapshot: Buffer.concat(chunks, bytes).toString('base64'), reason };
}

/**
 * @param {unknown} error anything that the program threw
 * @returns {string}
 */
function textOf(error) {
  try {
    return String(error instanceof Error ? error.message : error).slice(0, MAX_TEXT_LENGTH);
  } catch {
    return 'an error that cannot be printed';
  }
}

module.exports = { send, inMessage, textOf, NO_DIRECTORY };
