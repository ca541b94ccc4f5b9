'use strict';

// Runs where the spool runs. Reads and writes single files of a spool. A link, FIFO or directory under a
// file's name is never followed or waited for.

const fs = require('node:fs');

const { runThrough } = require('../event-loop/slices');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

// Windows has neither flag. O_NONBLOCK: opening a FIFO would wait for its writer.
const SAFE_FLAGS = (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);
const OPEN_TO_READ = fs.constants.O_RDONLY | SAFE_FLAGS;

// Far more than a snapshot of a million series needs. A larger (sparse) file would exhaust the memory.
const MAX_FILE_BYTES = 1 << 30;

// Reading or writing this much takes 0.1 to 0.2 ms.
const STEP_BYTES = 262_144;

// An operation that has failed for one of these reasons may work later.
const TRANSIENT_CODES = new Set(['EMFILE', 'ENFILE', 'EIO', 'EAGAIN', 'EINTR', 'ENOMEM']);
// On Windows, while a virus scanner or an indexer has the file open.
const TRANSIENT_CODES_OF_WINDOWS = new Set(['EBUSY', 'EPERM', 'EACCES']);

/**
 * Whether it is a directory, not a link, and belongs to this user. Windows has no user ids, so any directory
 * passes there.
 *
 * @param {fs.Stats} stat from lstat()
 * @returns {boolean}
 */
function isOurs(stat) {
  const user = process.geteuid?.();
  return stat.isDirectory() && (user === undefined || stat.uid === user);
}

/**
 * @param {string} directory of a primary
 * @returns {boolean} whether it is another user's: then the primary cannot read files of this process. False
 *   if it is missing, because the primary creates another one
 */
function isOthers(directory) {
  const stat = ifReadable(() => fs.lstatSync(directory));
  return stat !== undefined && !isOurs(stat);
}

/**
 * @typedef {object} Part of a file
 * @property {number} [from] position of the first byte, default 0
 * @property {number} [to] position after the last one, default the end of the file
 * @property {number} [maxBytes] if it is larger, it is not read; nor is one of more than 1 GiB
 */

/**
 * @param {string} file
 * @param {Part} [part]
 * @returns {Buffer} in an ArrayBuffer of its own; shorter than the part if the file is
 * @throws {NodeJS.ErrnoException} ELOOP for a symbolic link, EINVAL if it is not a regular file, EFBIG if the
 *   part is too large
 */
function readRegularFile(file, part) {
  return runThrough(readInSteps(file, part));
}

/**
 * The same for an event loop that must not be held.
 *
 * @param {string} file
 * @param {Part} [part]
 * @returns {Generator<void, Buffer>}
 */
function* readInSteps(file, { from = 0, to = Infinity, maxBytes = MAX_FILE_BYTES } = {}) {
  const descriptor = fs.openSync(file, OPEN_TO_READ);
  try {
    const stat = fs.fstatSync(descriptor);
    if (!stat.isFile()) throw systemError('EINVAL', `not a regular file, open '${file}'`);
    const size = Math.max(Math.min(to, stat.size) - from, 0);
    if (size > Math.min(maxBytes, MAX_FILE_BYTES))
      throw systemError('EFBIG', `${size} bytes, at most ${maxBytes} expected, read '${file}'`);
    const bytes = Buffer.allocUnsafeSlow(size);
    let end = 0;
    while (end < size) {
      const count = fs.readSync(descriptor, bytes, end, Math.min(size - end, STEP_BYTES), from + end);
      if (count === 0) break;
      end += count;
      yield;
    }
    return bytes.subarray(0, end);
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * Creates a file and writes it, in steps. Nothing is left of it if that fails.
 *
 * @param {string} file
 * @param {Uint8Array} bytes
 * @returns {Generator<void, void>}
 * @throws {NodeJS.ErrnoException} EEXIST if there is anything of that name
 */
function* createInSteps(file, bytes) {
  const descriptor = fs.openSync(file, 'wx', 0o600);
  try {
    for (let start = 0; start < bytes.length; start += STEP_BYTES) {
      fs.writeFileSync(descriptor, bytes.subarray(start, start + STEP_BYTES));
      yield;
    }
  } catch (error) {
    fs.rmSync(file, { force: true });
    throw error;
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * @param {number} descriptor
 * @param {Uint8Array[]} chunks
 * @param {number} position
 * @returns {number} how many bytes they are
 * @throws {NodeJS.ErrnoException} if the disk is full, for example
 */
function writeAll(descriptor, chunks, position) {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
  const written = fs.writevSync(descriptor, chunks, position);
  if (written === bytes) return bytes;
  throw systemError('ENOSPC', `${written} of ${bytes} bytes were written`);
}

/**
 * Removes a file, a link, or an empty directory.
 *
 * @param {string} file
 */
function removeEntry(file) {
  try {
    fs.unlinkSync(file);
  } catch (error) {
    if (!ifReadable(() => fs.lstatSync(file))?.isDirectory()) throw error;
    fs.rmdirSync(file);
  }
}

/** @param {string} file */
function touch(file) {
  try {
    const time = new Date();
    // Not utimes(): the file may be a link to another one.
    fs.lutimesSync(file, time, time);
  } catch (error) {
    debug('cannot touch %s: %s', file, textOf(error));
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
 * @param {unknown} error
 * @returns {boolean} whether the operation may work later, because the error says nothing about the file. The
 *   caller must try again later, and until then neither remove the file nor continue without it
 */
function isTransient(error) {
  const code = codeOf(error) ?? '';
  return TRANSIENT_CODES.has(code) || (process.platform === 'win32' && TRANSIENT_CODES_OF_WINDOWS.has(code));
}

/**
 * @param {string} directory
 * @throws {NodeJS.ErrnoException} if it is not a directory, but a link that may lead to another user's
 */
function checkDirectory(directory) {
  if (fs.lstatSync(directory).isDirectory()) return;
  throw systemError('ENOTDIR', `not a directory, '${directory}'`);
}

/**
 * @param {string} code
 * @param {string} message
 * @returns {NodeJS.ErrnoException} like one of the file system
 */
function systemError(code, message) {
  return Object.assign(new Error(`${code}: ${message}`), { code });
}

/**
 * @param {unknown} error
 * @returns {string | undefined}
 */
function codeOf(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code;
}

module.exports = {
  isOurs,
  isOthers,
  readRegularFile,
  readInSteps,
  createInSteps,
  writeAll,
  removeEntry,
  touch,
  unlessMissing,
  ifReadable,
  isTransient,
  checkDirectory,
  systemError,
  codeOf,
};
