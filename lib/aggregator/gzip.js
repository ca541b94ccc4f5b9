'use strict';

// Runs with the aggregator. Compresses a page.

const { compress, compressSync } = require('../exposition/gzip');

/** @typedef {import('../exposition/page').Body} Body memory that can be transferred to another thread */

/**
 * @param {Body} body
 * @returns {Body} gzipped, synchronously
 */
function compressBody({ buffer, length }) {
  return bodyOf(compressSync(Buffer.from(buffer, 0, length)));
}

/**
 * @param {Body} body
 * @returns {Promise<Body>} gzipped, in the thread pool
 */
async function compressBodyAsync({ buffer, length }) {
  return bodyOf(await compress(Buffer.from(buffer, 0, length)));
}

/** @param {Buffer} bytes */
function bodyOf(bytes) {
  const memory = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  return { buffer: /** @type {ArrayBuffer} */ (memory), length: bytes.length };
}

module.exports = { compressBody, compressBodyAsync };
