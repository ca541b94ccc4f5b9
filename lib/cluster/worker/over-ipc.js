'use strict';

// Runs in the worker. Snapshots in messages to the primary, if no file can be written.

const MAX_TEXT_LENGTH = 1000;

/** Why no file was written although nothing has failed. */
const NO_DIRECTORY = 'the primary has no directory';

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

module.exports = { inMessage, textOf, NO_DIRECTORY };
