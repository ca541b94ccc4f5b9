'use strict';

const { promisify } = require('util');

// zlib is loaded at first use: most programs never compress, and some runtimes do not have it.

// The text of metrics shrinks about 20-fold at any level; the fastest level takes a third of the default's
// time.
const OPTIONS = { level: 1 };

/**
 * @param {Uint8Array} bytes
 * @param {import('node:zlib').ZlibOptions} [options]
 * @returns {Promise<Buffer>} gzipped, in the thread pool
 */
function compress(bytes, options = OPTIONS) {
  return promisify(require('node:zlib').gzip)(bytes, options);
}

/**
 * @param {Uint8Array} bytes
 * @returns {Buffer} gzipped
 */
function compressSync(bytes) {
  return require('node:zlib').gzipSync(bytes, OPTIONS);
}

module.exports = { compress, compressSync };
