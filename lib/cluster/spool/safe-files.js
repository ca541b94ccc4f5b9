'use strict';

// Reads and writes single files of a spool. A link, FIFO or directory under a file's name is never followed or waited for.

const fs = require('node:fs');
const { debuglog } = require('node:util');

const debug = debuglog('prom-client-cluster');

// Windows has neither flag. O_NONBLOCK: opening a FIFO would wait for its writer, or reader.
const OPEN_TO_READ = fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);
const OPEN_TO_REPLACE =
  fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_TRUNC | (fs.constants.O_NOFOLLOW ?? 0);

/**
 * A real directory of this user. Where there are no user ids (Windows), any directory.
 *
 * @param {fs.Stats} stat from lstat
 * @returns {boolean}
 */
function isOurs(stat) {
  const user = process.geteuid?.();
  return stat.isDirectory() && (user === undefined || stat.uid === user);
}

/**
 * @param {string} file
 * @returns {Buffer}
 */
function readRegularFile(file) {
  const descriptor = fs.openSync(file, OPEN_TO_READ);
  try {
    const stat = fs.fstatSync(descriptor);
    if (!stat.isFile()) throw invalid(`not a regular file, read '${file}'`);
    return readFully(descriptor, stat.size);
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * @param {number} descriptor
 * @param {number} size
 * @returns {Buffer} shorter if the file was
 */
function readFully(descriptor, size) {
  const bytes = Buffer.allocUnsafeSlow(size);
  let end = 0;
  while (end < size) {
    const count = fs.readSync(descriptor, bytes, end, size - end, null);
    if (count === 0) return bytes.subarray(0, end);
    end += count;
  }
  return bytes;
}

/**
 * @param {string} file
 * @param {Uint8Array[]} chunks
 */
function writeFile(file, chunks) {
  const descriptor = fs.openSync(file, OPEN_TO_REPLACE, 0o600);
  try {
    for (const chunk of chunks) {
      let end = 0;
      while (end < chunk.length) end += fs.writeSync(descriptor, chunk, end);
    }
  } finally {
    fs.closeSync(descriptor);
  }
}

/** @param {string} file */
function touch(file) {
  try {
    const time = new Date();
    fs.utimesSync(file, time, time);
  } catch (error) {
    debug('cannot touch %s: %s', file, messageOf(error));
  }
}

/**
 * @template T
 * @param {() => T} action
 * @returns {T | undefined} undefined if the file does not exist
 */
function unlessMissing(action) {
  try {
    return action();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    return undefined;
  }
}

/**
 * @template T
 * @param {() => T} action
 * @returns {T | undefined}
 */
function ifReadable(action) {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/**
 * @param {string} message
 * @returns {NodeJS.ErrnoException}
 */
function invalid(message) {
  return Object.assign(new Error(`EINVAL: ${message}`), { code: 'EINVAL' });
}

/**
 * @param {unknown} error
 * @returns {string | undefined}
 */
function codeOf(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code;
}

/**
 * @param {unknown} error
 * @returns {string}
 */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

module.exports = {
  isOurs,
  readRegularFile,
  writeFile,
  touch,
  unlessMissing,
  ifReadable,
  invalid,
  codeOf,
  messageOf,
};
