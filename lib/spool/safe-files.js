'use strict';

// Runs where the spool runs. Reads and writes single files of a spool. A link, FIFO or directory under a
// file's name is never followed or waited for.

const fs = require('node:fs');

const { runThrough } = require('../event-loop/slices');
const { MAGIC, HEADER_BYTES, BYTES_OFFSET } = require('../source/source-format');
const { viewOf, LITTLE_ENDIAN, SnapshotError } = require('../source/byte-buffers');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

// Windows has neither flag. O_NONBLOCK: opening a FIFO would wait for its writer, or reader.
const SAFE_FLAGS = (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);
const OPEN_TO_READ = fs.constants.O_RDONLY | SAFE_FLAGS;
const OPEN_TO_REPLACE = fs.constants.O_WRONLY | fs.constants.O_CREAT | SAFE_FLAGS;

// Far more than a snapshot of a million series needs. A larger (sparse) file would exhaust the memory.
const MAX_FILE_BYTES = 1 << 30;

// So much is read of any file.
const UNCHECKED_BYTES = 1 << 20;

// Reading or writing so much takes 0.1 to 0.2 ms.
const STEP_BYTES = 262_144;

// What has failed for one of these reasons may work later.
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
 * @param {string} file
 * @param {number} [maxBytes] a larger file is not read; nor is one of more than 1 GiB
 * @returns {Buffer}
 * @throws {NodeJS.ErrnoException} ELOOP for a symbolic link, EINVAL if it is not a regular file, EFBIG if it
 *   is too large
 */
function readRegularFile(file, maxBytes = MAX_FILE_BYTES) {
  return runThrough(readInSteps(file, maxBytes));
}

/**
 * The same for columns. A file that is not as long as its header states is not read if it is large: it may be
 * a sparse file, which takes no space on the disk, but memory.
 *
 * @param {string} file
 * @returns {Buffer}
 * @throws {NodeJS.ErrnoException} also with the code 'length'
 */
function readColumns(file) {
  withRegularFile(file, OPEN_TO_READ, (descriptor, size) => {
    if (size <= UNCHECKED_BYTES) return;
    const head = Buffer.alloc(HEADER_BYTES);
    fs.readSync(descriptor, head, 0, HEADER_BYTES, 0);
    const isComplete = head.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) === 0;
    const stated = viewOf(head).getFloat64(BYTES_OFFSET, LITTLE_ENDIAN);
    if (isComplete && stated === size) return;
    throw new SnapshotError('length', `${size} bytes, the header states ${stated}`);
  });
  return readRegularFile(file);
}

/**
 * @param {string} file
 * @param {number} from position of the first byte
 * @param {number} to position after the last one
 * @returns {Buffer} in an ArrayBuffer of its own; shorter if the file is
 * @throws {NodeJS.ErrnoException} as readRegularFile()
 */
function readRange(file, from, to) {
  return withRegularFile(file, OPEN_TO_READ, (descriptor, size) => {
    const bytes = Buffer.allocUnsafeSlow(Math.max(Math.min(to, size) - from, 0));
    let end = 0;
    for (let count = 1; count > 0 && end < bytes.length; end += count)
      count = fs.readSync(descriptor, bytes, end, bytes.length - end, from + end);
    return bytes.subarray(0, end);
  });
}

/**
 * The same for an event loop that must not be held.
 *
 * @param {string} file
 * @param {number} [maxBytes]
 * @returns {Generator<void, Buffer>}
 */
function* readInSteps(file, maxBytes = MAX_FILE_BYTES) {
  const { descriptor, size } = openRegularFile(file, OPEN_TO_READ);
  try {
    if (size <= Math.min(maxBytes, MAX_FILE_BYTES)) return yield* readFully(descriptor, size);
    throw systemError('EFBIG', `${size} bytes, at most ${maxBytes} expected, read '${file}'`);
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * @template T
 * @param {string} file
 * @param {number} flags
 * @param {(descriptor: number, size: number) => T} use
 * @returns {T}
 */
function withRegularFile(file, flags, use) {
  const { descriptor, size } = openRegularFile(file, flags);
  try {
    return use(descriptor, size);
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * @param {string} file
 * @param {number} flags
 * @returns {{descriptor: number, size: number}}
 */
function openRegularFile(file, flags) {
  const descriptor = fs.openSync(file, flags, 0o600);
  try {
    const stat = fs.fstatSync(descriptor);
    if (!stat.isFile()) throw systemError('EINVAL', `not a regular file, open '${file}'`);
    return { descriptor, size: stat.size };
  } catch (error) {
    fs.closeSync(descriptor);
    throw error;
  }
}

/**
 * @param {number} descriptor
 * @param {number} size
 * @returns {Generator<void, Buffer>} shorter if the file was
 */
function* readFully(descriptor, size) {
  const bytes = Buffer.allocUnsafeSlow(size);
  let end = 0;
  while (end < size) {
    const count = fs.readSync(descriptor, bytes, end, Math.min(size - end, STEP_BYTES), null);
    if (count === 0) return bytes.subarray(0, end);
    end += count;
    yield;
  }
  return bytes;
}

/**
 * Creates a file or replaces its content.
 *
 * @param {string} file
 * @param {Uint8Array[]} chunks
 * @throws {NodeJS.ErrnoException} if another kind of file has the name
 */
function writeFile(file, chunks) {
  if (hasOtherName(file)) fs.unlinkSync(file);
  withRegularFile(file, OPEN_TO_REPLACE, descriptor => {
    for (const chunk of chunks) writeFully(descriptor, chunk);
    // Only now: a full disk has space for the new content where the old one is.
    fs.ftruncateSync(
      descriptor,
      chunks.reduce((sum, { length }) => sum + length, 0),
    );
  });
}

/**
 * @param {string} file
 * @returns {boolean} whether what is written to it would also be in a file of another name: that of a backup
 *   that consists of hard links, for example
 */
function hasOtherName(file) {
  const stat = ifReadable(() => fs.lstatSync(file));
  return stat !== undefined && stat.isFile() && stat.nlink > 1;
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
      writeFully(descriptor, bytes.subarray(start, start + STEP_BYTES));
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
 * @param {Uint8Array} chunk
 */
function writeFully(descriptor, chunk) {
  let end = 0;
  while (end < chunk.length) end += fs.writeSync(descriptor, chunk, end);
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
 * The same for what must not be taken for missing: it shows to whom a file belongs, for example.
 *
 * @template T
 * @param {() => T} action
 * @returns {T | undefined}
 * @throws {NodeJS.ErrnoException} if it may be readable later
 */
function ifReadableNow(action) {
  try {
    return action();
  } catch (error) {
    if (isTransient(error)) throw error;
    return undefined;
  }
}

/**
 * @param {unknown} error
 * @returns {boolean} whether what has failed may work later: the error says nothing about the file. Whoever
 *   meets such an error tries again later, and until then neither removes the file nor goes on without it
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
  readColumns,
  readInSteps,
  createInSteps,
  writeFile,
  readRange,
  removeEntry,
  touch,
  unlessMissing,
  ifReadable,
  ifReadableNow,
  isTransient,
  checkDirectory,
  systemError,
  codeOf,
};
