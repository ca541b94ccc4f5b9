'use strict';

// Runs in the worker. Puts the worker's source into a message to the primary, if no file can be written.

const { textOf } = require('../../options/thrown');

/**
 * @param {import('../../source/columns-encoder').EncodedColumns} source followed by the part of the log that
 *   the primary lacks
 * @param {unknown} error why no file was written
 * @returns {{source: string, reason: string}} fields of a message
 */
function inMessage({ chunks, bytes }, error) {
  const code = /** @type {any} */ (error)?.code;
  const reason = typeof code === 'string' ? code : textOf(error);
  return { source: Buffer.concat(chunks, bytes).toString('base64'), reason };
}

module.exports = { inMessage };
