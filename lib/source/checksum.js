'use strict';

// Detects accidental damage of a log and of the structure of columns: a disk that has lost a block, a file
// that another program has changed. It does not protect against a malicious process. Checking the numbers,
// too, would take a tenth of a capture.

const zlib = require('node:zlib');

/** The checksum of no bytes. Also used for any bytes if Node.js has no crc32() (before 20.15). */
const NO_CHECKSUM = 0;

/**
 * @param {Uint8Array} bytes
 * @param {number} before checksum of the bytes before them
 * @returns {number} an unsigned integer of 32 bits
 */
function checksumOf(bytes, before) {
  return zlib.crc32 === undefined ? NO_CHECKSUM : zlib.crc32(bytes, before);
}

/**
 * @param {Uint8Array} bytes
 * @param {number} before checksum of the bytes before them
 * @param {number} expected
 * @returns {boolean} whether it is their checksum; true if that cannot be checked
 */
function hasChecksum(bytes, before, expected) {
  return expected === NO_CHECKSUM || zlib.crc32 === undefined || zlib.crc32(bytes, before) === expected;
}

module.exports = { checksumOf, hasChecksum, NO_CHECKSUM };
