'use strict';

// Runs on the primary's loop. Reads the answer of a worker. Workers may run another library or be
// compromised, so each field is checked for its type and size before it is used.

const { beginningOf } = require('../../options/thrown');
const { isColumnsNameOf } = require('../../spool/file-names');

// A source of a million label sets takes some 100 MB; in base64 a third more.
const MAX_SOURCE_CHARACTERS = 2 ** 28;

// Workers may send any text as a reason, so the number of different ones is limited.
const MAX_REASONS = 32;

/** @typedef {import('../../aggregator/aggregator').Answer} Answer */

/**
 * @typedef {object} ReadAnswer
 * @property {Answer} [answer] for the aggregator
 * @property {string} [overIpc] why the source itself was sent instead of a file's name
 * @property {string} [refused] why there is no answer, in one word
 * @property {string} [error] the same as a sentence
 */

/**
 * @param {any} message of type RESPONSE
 * @param {number} workerId
 * @param {number} requestId that it answers
 * @returns {ReadAnswer}
 */
function readAnswer({ metrics, source, reason, file, bytes, error }, workerId, requestId) {
  if (Array.isArray(metrics)) return { answer: { workerId, metrics } };
  // From this process itself.
  if (source instanceof Uint8Array) return { answer: { workerId, bytes: source } };
  if (typeof source === 'string' && source.length <= MAX_SOURCE_CHARACTERS)
    return { answer: { workerId, source }, overIpc: textOr(reason, 'unknown') };
  if (isColumnsNameOf(file, workerId, requestId)) {
    // Without a valid length the aggregator refuses the file, and removes it.
    return { answer: { workerId, file, maxBytes: Number.isSafeInteger(bytes) ? bytes : 0 } };
  }
  if (typeof error === 'string') return { refused: 'worker-error', error: textOr(error, '') };
  return NOT_UNDERSTOOD;
}

/**
 * @param {any} message of type RESPONSE
 * @returns {number} how long ago the `collect` hooks started that the capture has waited for, in
 *   milliseconds; 0 if it has waited for none
 */
function readHookMilliseconds({ hookMilliseconds }) {
  return hookMilliseconds > 0 ? Number(hookMilliseconds) : 0;
}

const NOT_UNDERSTOOD = { refused: 'answer', error: 'The answer of a worker is not valid' };

/**
 * @param {unknown} text
 * @param {string} otherwise
 * @returns {string} shortened to the length allowed on a page or in an error
 */
function textOr(text, otherwise) {
  return typeof text === 'string' ? beginningOf(text) : otherwise;
}

/**
 * @param {Map<string, number>} counts by reason
 * @param {string} reason counted as `other` if there are many different ones already
 */
function countReason(counts, reason) {
  const key = counts.has(reason) || counts.size < MAX_REASONS ? reason : 'other';
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

module.exports = { readAnswer, readHookMilliseconds, countReason, NOT_UNDERSTOOD };
