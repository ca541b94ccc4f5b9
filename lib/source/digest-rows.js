'use strict';

// The digests of a summary's rows, in blocks: pairs of mean and count, in order of rising mean. Encoding one
// takes up to 40 µs, so a capture shows digests as they were encoded ahead of it: a thousand busy summaries
// would all be encoded again in one synchronous section.

const { centroidsOf } = require('../metric/observations');
const { SnapshotError } = require('./byte-buffers');
const { DIGESTS, LATER_DIGESTS } = require('./source-format');

/** Unlike the versions of digests, these are unique. */
let nextVersion = 1;

/** @typedef {import('../exposition/live-family').MetricView} MetricView */

/**
 * `changes` is the version of the digest.
 *
 * @typedef {import('./row-blocks').EncodedRow & {digest: object, changes: number, observations: number}}
 *   EncodedDigest
 */

/** @type {import('./row-encoder').RowKind<MetricView, EncodedDigest>} */
const DIGEST_ROWS = {
  ahead: DIGESTS,
  later: LATER_DIGESTS,
  rowsPerStep: 1,
  rowsOf: view => (view.digestOf === undefined ? undefined : view),
  isCurrent: (view, row, encoded, isExact) => {
    const digest = digestIn(view, row);
    if (encoded.digest !== digest) return false;
    if (!isExact) return observationsOf(view, row) >= encoded.observations;
    digest.slices(); // may start a new slice of the window, which changes the version
    return encoded.changes === digest.version;
  },
  encode: (view, row) => {
    const digest = digestIn(view, row);
    const slices = digest.slices();
    const { version: changes } = digest;
    const observations = observationsOf(view, row);
    const { buffer, byteOffset, byteLength } = centroidsOf(slices);
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    return { digest, changes, observations, version: nextVersion++, bytes };
  },
};

/**
 * @param {MetricView} view of a summary
 * @param {number} row
 */
function digestIn({ digestOf }, row) {
  return /** @type {NonNullable<MetricView['digestOf']>} */ (digestOf)(row);
}

/**
 * @param {MetricView} view of a summary, whose second number is its count
 * @param {number} row
 */
function observationsOf({ table }, row) {
  return table.pageOf(row)[table.offsetOf(row) + 1];
}

/**
 * @param {Buffer} bytes of a block, at a multiple of 8
 * @returns {import('./row-blocks').RowReader<Float64Array>}
 */
function digestReader({ buffer, byteOffset }) {
  return {
    check: (start, end) => {
      // Whole pairs, so that all of them are at multiples of 8.
      if ((end - start) % 16 !== 0) throw new SnapshotError('numbers', `a digest of ${end - start} bytes`);
    },
    read: (start, end) => new Float64Array(buffer, byteOffset + start, (end - start) / 8),
  };
}

module.exports = { DIGEST_ROWS, digestReader };
