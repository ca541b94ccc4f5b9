'use strict';

// Runs where the spool runs. The files of one directory. File operations are synchronous and short, because a
// saturated libuv pool would delay asynchronous ones, and the renewal of the lock, by seconds.

const fs = require('node:fs');
const path = require('node:path');
const { workerIdOfFile, requestIdOfColumns } = require('./file-names');
const { LOCK } = require('./sweep');
const {
  isOurs,
  readRegularFile,
  readRange,
  createInSteps,
  removeEntry,
  touch,
  unlessMissing,
  ifReadable,
  isTransient,
  systemError,
} = require('./safe-files');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');

// How many files of a worker are read: only the last ones, because columns replace earlier ones. A worker
// that is not compromised leaves two or three.
const MAX_FILES_OF_WORKER = 8;

class SpoolFiles {
  /** Absolute path. */
  directory;
  #device;
  #inode;

  /** @param {string} directory absolute */
  constructor(directory) {
    const stat = fs.lstatSync(directory);
    this.directory = directory;
    this.#device = stat.dev;
    this.#inode = stat.ino;
  }

  /**
   * A file's bytes, from the first byte of an ArrayBuffer of their own. Typed arrays of 8-byte elements can
   * view them.
   *
   * @param {string} name bare file name
   * @param {number} [maxBytes] a longer file is not read; at most 1 GiB
   * @returns {Buffer}
   * @throws {NodeJS.ErrnoException} ENOENT, ELOOP for a symbolic link, EINVAL for anything else that is not a
   *   regular file, EFBIG if it is too long
   */
  read(name, maxBytes) {
    return readRegularFile(this.#pathOf(name), maxBytes);
  }

  /**
   * @param {string} name bare file name
   * @returns {Buffer | undefined} as `read`; undefined if there is no such file
   */
  readIfPresent(name) {
    return unlessMissing(() => this.read(name));
  }

  /**
   * Removes a file, if it exists. An empty directory of that name is removed, too.
   *
   * @param {string} name bare file name
   */
  unlink(name) {
    unlessMissing(() => removeEntry(this.#pathOf(name)));
  }

  /**
   * Removes a file, if it exists. One that cannot be removed stays: a directory with files, for example.
   *
   * @param {string} name bare file name
   */
  discard(name) {
    try {
      this.unlink(name);
    } catch (error) {
      debug('%s cannot be removed: %s', name, textOf(error));
    }
  }

  /** @returns {number[]} ids of the workers that have files here */
  workers() {
    const ids = this.#names().map(name => workerIdOfFile(name) ?? NaN);
    return [...new Set(ids)].filter(id => !Number.isNaN(id));
  }

  /**
   * Names of the last columns that a worker has written and that still exist, those that nobody asked for
   * last. Empty if the directory is gone.
   *
   * @param {number} workerId
   * @returns {string[]}
   */
  columnsOfWorker(workerId) {
    return this.#names()
      .flatMap(name => {
        const request = requestIdOfColumns(name);
        return request === undefined || workerIdOfFile(name) !== workerId ? [] : { name, request };
      })
      .sort((a, b) => (a.request || Infinity) - (b.request || Infinity) || 0)
      .slice(-MAX_FILES_OF_WORKER)
      .map(({ name }) => name);
  }

  /**
   * @param {string} name bare file name
   * @param {number} from position of the first byte
   * @param {number} to position after the last one
   * @returns {Buffer} in an ArrayBuffer of its own; shorter if the file is
   * @throws {NodeJS.ErrnoException} as `read`
   */
  readRange(name, from, to) {
    return readRange(this.#pathOf(name), from, to);
  }

  /**
   * Removes all files of a worker, its logs included. Never throws: what stays goes with the directory.
   *
   * @param {number} workerId
   */
  unlinkAllOf(workerId) {
    const names = ifReadable(() => this.#names()) ?? [];
    for (const name of names) if (workerIdOfFile(name) === workerId) this.discard(name);
  }

  /**
   * Creates a file, in steps.
   *
   * @param {string} name bare file name
   * @param {Uint8Array} bytes
   * @returns {Generator<void, void>}
   * @throws {NodeJS.ErrnoException} nothing is left of the file then
   */
  *create(name, bytes) {
    yield* createInSteps(this.#pathOf(name), bytes);
  }

  /**
   * @returns {string[]} empty if the directory is gone
   * @throws {NodeJS.ErrnoException} if it cannot be read at the moment
   */
  #names() {
    return this.isAt(this.directory) ? (unlessMissing(() => fs.readdirSync(this.directory)) ?? []) : [];
  }

  /**
   * Writes or replaces a file. A reader (a later thread) finds either the old content or the new one. The
   * file is not synced to disk: it must outlive a thread, not the machine.
   *
   * @param {string} name bare file name
   * @param {Uint8Array} bytes
   * @throws {NodeJS.ErrnoException} the old content is unchanged then
   */
  writeAtomically(name, bytes) {
    const file = this.#pathOf(name);
    const unfinished = `${file}.tmp`;
    // An earlier thread may have left it incomplete.
    unlessMissing(() => fs.unlinkSync(unfinished));
    try {
      fs.writeFileSync(unfinished, bytes, { flag: 'wx', mode: 0o600 });
      fs.renameSync(unfinished, file);
    } catch (error) {
      ifReadable(() => fs.unlinkSync(unfinished));
      throw error;
    }
  }

  /**
   * Whether the directory still exists, is the one that was created, and belongs to this user.
   *
   * @returns {boolean} true if that cannot be found out at the moment
   */
  isPresent() {
    return ifReadable(() => this.isAt(this.directory)) ?? true;
  }

  /**
   * @param {string} place
   * @returns {boolean} whether the directory is there now
   * @throws {NodeJS.ErrnoException} if that cannot be found out at the moment: the disk has an error, for
   *   example
   */
  isAt(place) {
    try {
      const stat = fs.lstatSync(place);
      return isOurs(stat) && stat.dev === this.#device && stat.ino === this.#inode;
    } catch (error) {
      if (isTransient(error)) throw error;
      return false;
    }
  }

  /** Renews the times of all files. Never throws. */
  freshen() {
    for (const name of ifReadable(() => this.#names()) ?? []) if (name !== LOCK) this.touch(name);
  }

  /**
   * Never throws.
   *
   * @param {string} name bare file name
   */
  touch(name) {
    ifReadable(() => touch(this.#pathOf(name)));
  }

  /**
   * @param {string} name
   * @returns {string}
   */
  #pathOf(name) {
    if (name === '' || name === '.' || name === '..' || path.basename(name) !== name) {
      throw systemError('EINVAL', `not a bare file name: '${name}'`);
    }
    // A link may have replaced it, and lead to a directory of somebody else.
    if (!this.isAt(this.directory))
      throw systemError('ENOENT', `the snapshot directory is gone, '${this.directory}'`);
    return path.join(this.directory, name);
  }
}

module.exports = { SpoolFiles };
